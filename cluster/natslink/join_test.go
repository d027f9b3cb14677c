package natslink

import (
	"context"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/linktest"
)

// join joins a cluster; the end of the test leaves it.
func join(t testing.TB, cfg ClusterConfig) cluster.Link {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	l, err := Join(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestJoinedContract(t *testing.T) {
	t.Parallel()
	linktest.Run(t, func(t *testing.T) cluster.Link {
		cfg := single(t, "dublin")
		cfg.Listen = ""
		return join(t, cfg)
	})
}
