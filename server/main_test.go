package server

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// Most tests wait: for visitors, for other cores, for a time to pass. So more of them at once than there are processors.
	flag.Set("test.parallel", "12")
	os.Exit(m.Run())
}
