package natslink

import (
	"testing"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
)

func open(t testing.TB, cfg Config) cluster.Link {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestContract(t *testing.T) {
	linktest.Run(t, func(t *testing.T) cluster.Link { return open(t, Config{Dir: t.TempDir()}) })
}
