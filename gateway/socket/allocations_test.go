//go:build !race && (linux || darwin || freebsd || netbsd || openbsd)

package socket

import "testing"

// Neither reading nor writing allocates.
func TestAllocations(t *testing.T) {
	a, b := pair(t)
	out, in := []byte("hello"), make([]byte, 16)
	if n := testing.AllocsPerRun(100, func() {
		a.WriteBoth(out, out)
		b.Read(in)
		b.Look()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
