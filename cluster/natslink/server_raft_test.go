//go:build unix

package natslink

import "testing"

// An update of nats-server that renames one of the times, or changes what it means, fails here.
func TestRaftTimesAreSet(t *testing.T) {
	if err := hastened(); err != nil {
		t.Fatal(err)
	}
	for _, one := range raftTimes() {
		if *one.is != one.set {
			t.Errorf("%s is %v, want %v", one.name, *one.is, one.set)
		}
	}
}
