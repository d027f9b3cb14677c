package main

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// heedMemory makes the garbage collector keep to the memory that a container or systemd (MemoryMax) allows. It knows nothing of that by
// itself: it would let the heap of a rush double first, and the kernel would kill the process, although most of the heap is garbage.
// A fifth is left for stacks of the kernel, buffers of connections, and what is not Go's. GOMEMLIMIT, which the runtime has read, has precedence.
func heedMemory(root fs.FS) {
	if os.Getenv("GOMEMLIMIT") == "" {
		if limit := allowedMemory(root); limit > 0 {
			debug.SetMemoryLimit(limit / 5 * 4)
		}
	}
}

// allowedMemory returns how many bytes the control groups of this process allow; 0 where there is no bound, or no control groups.
func allowedMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		at, name := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory":
			at, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[0] != "0":
			continue
		}
		// A group is bounded by those around it, too. In a container the inner ones may not be there under the name that they have outside.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			text, _ := fs.ReadFile(root, path.Join(at, dir, name))
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
				least = min(least, n)
			}
			if dir == "/" {
				break
			}
		}
	}
	if least > 1<<50 { // how the older control groups say that there is none
		return 0
	}
	return least
}
