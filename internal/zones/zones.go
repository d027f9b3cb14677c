// Package zones has the time zones of the IANA for machines that have none. It takes the place of time/tzdata, which has the same and is
// six times as large.
package zones

import (
	"bytes"
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"syscall"
	_ "unsafe" // for go:linkname

	"github.com/anteroom/anteroom/internal/packed"
)

// zones.gz holds the zones that Go has, packed by the test: for each, a line of names and its length, and the zone.
//
//go:embed zones.gz
var member []byte

// all are the zones by name.
var all = sync.OnceValue(func() map[string]string { return read(packed.Unpack(member)) })

func read(list []byte) map[string]string {
	out := map[string]string{}
	for len(list) > 0 {
		head, rest, _ := bytes.Cut(list, []byte("\n"))
		names := strings.Fields(string(head))
		n, err := strconv.Atoi(names[len(names)-1])
		if err != nil || n > len(rest) {
			panic("zones: the list is damaged") // only in a program that was built wrong
		}
		zone := string(rest[:n])
		for _, name := range names[:len(names)-1] {
			out[name] = zone
		}
		list = rest[n:]
	}
	return out
}

// register is how time/tzdata makes itself known.
//
//go:linkname register time.registerLoadFromEmbeddedTZData
func register(func(name string) (zone string, err error))

// Use makes package time look here for what the machine does not know.
func Use() {
	register(func(name string) (string, error) {
		if zone, ok := all()[name]; ok {
			return zone, nil
		}
		return "", syscall.ENOENT
	})
}
