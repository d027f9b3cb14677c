package server

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// The long tests wait: for visitors, for other cores, for a time to pass. So more of them at once than there are processors,
	// but not so many that their disks stall.
	flag.Set("test.parallel", "4")
	os.Exit(m.Run())
}
