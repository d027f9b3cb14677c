package server

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// Long tests wait: for visitors, for nodes, for a time to pass. So more of them at once than there are processors, but not so
	// many that their disks stall. Those of three cores that come and go have the machine for themselves.
	flag.Set("test.parallel", "4")
	os.Exit(m.Run())
}
