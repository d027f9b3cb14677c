//go:build unix

package natslink

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestADirectoryOfTheHubStaysOne: a core of another site that is started without its hub would grant all units once more,
// and one of the hub that is started with another hub would leave them behind.
func TestADirectoryOfTheHubStaysOne(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	refused := func(cfg ClusterConfig, want string) {
		t.Helper()
		a, err := attach(t.Context(), cfg)
		if err == nil {
			stop(t, a)
			t.Errorf("%s started; want %q", cfg.Node, want)
			return
		}
		wantText(t, err, want)
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than one line: %q", err)
		}
	}
	hub := single(t, "dublin")
	tokyo := siteAt(t, "tokyo", hub)

	// A first start that reaches no hub leaves nothing behind, and can be put right.
	lost := hub
	lost.Hub = []string{freeAddress(t)}
	stop(t, start(t, lost))

	for _, l := range joinAll(t, hub, tokyo) {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	asHub, asSite := tokyo, hub
	asHub.Hub, asSite.Hub = nil, []string{tokyo.Listen}
	for _, says := range []string{"the file", "what an earlier version stored"} {
		t.Log("by", says)
		refused(asHub, `belongs to a core of site "tokyo", which is not the hub, and the configuration lists no hub`)
		refused(asSite, "belongs to a core of the hub, and the configuration lists "+tokyo.Listen+" as the hub")
		for _, cfg := range []ClusterConfig{hub, tokyo} {
			stop(t, start(t, cfg))
			if err := os.Remove(filepath.Join(cfg.Dir, hubName)); (err == nil) != (says == "the file") {
				t.Fatal(err)
			}
		}
	}

	// An earlier version was started as both: the configuration decides, and is written down.
	mkdir(t, filepath.Join(tokyo.Dir, engineName, accountShared, "streams", sharedKeys))
	for _, l := range joinAll(t, hub, tokyo) {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	refused(asHub, "which is not the hub")
	write(t, filepath.Join(tokyo.Dir, hubName), "")
	refused(tokyo, "neither \"hub\" nor \"site\"")
}

// TestAHubThatIsNone: a core says what is wrong with the addresses of the hub, as far as it can know.
func TestAHubThatIsNone(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	own := single(t, "dublin")
	own.Hub = []string{own.Listen}
	tokyo, paris := single(t, "tokyo"), single(t, "paris")
	tokyo.Hub, paris.Hub = []string{paris.Listen}, []string{tokyo.Listen}
	gone := siteAt(t, "oslo", single(t, "lima"))
	var joining sync.WaitGroup
	for _, c := range []struct {
		cfg  ClusterConfig
		want string
	}{
		{own, "hub lists " + own.Listen + ", which is a core of this site itself"},
		{tokyo, `is of site "paris", which is not the hub: its own configuration lists a hub`},
		{paris, `is of site "tokyo", which is not the hub: its own configuration lists a hub`},
		{gone, "no core answers at " + gone.Hub[0] + ", nor at "},
	} {
		joining.Go(func() {
			// Join tells what it knows when it gives up, and some of it only once the others' servers are up, which takes seconds on a busy machine.
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
			defer cancel()
			l, err := Join(ctx, c.cfg)
			if err == nil {
				t.Errorf("site %s found a hub", c.cfg.Site)
				l.Close()
				return
			}
			wantText(t, err, c.want)
			if strings.Contains(err.Error(), "JetStream") || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says what nobody can use: %v", err)
			}
		})
	}
	joining.Wait()
}
