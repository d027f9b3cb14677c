package main

import (
	"testing"
	"testing/fstest"
)

func TestAllowedMemory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no control groups": {nil, 0},
		"a service": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/anteroom.service\n", "sys/fs/cgroup/system.slice/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/anteroom.service/memory.max": "268435456\n"}, 256 << 20},
		"a slice that has less": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/anteroom.service\n", "sys/fs/cgroup/system.slice/memory.max": "134217728\n",
			"sys/fs/cgroup/system.slice/anteroom.service/memory.max": "268435456\n"}, 128 << 20},
		"a service without a bound": {map[string]string{
			"proc/self/cgroup": "0::/system.slice/anteroom.service\n", "sys/fs/cgroup/system.slice/anteroom.service/memory.max": "max\n"}, 0},
		"a container": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"a container that shows its name outside": {map[string]string{
			"proc/self/cgroup":                           "12:pids:/docker/7f3\n4:memory:/docker/7f3\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n"}, 512 << 20},
		"older control groups without a bound": {map[string]string{
			"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"damaged": {map[string]string{"proc/self/cgroup": "0:/\n\n::\n0::../..\n", "sys/fs/cgroup/memory.max": "-1\n"}, 0},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := allowedMemory(root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
