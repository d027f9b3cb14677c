//go:build unix

package natslink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// busily writes through a link until the returned function is called, which tells the longest time until a write was
// acknowledged.
func busily(t *testing.T, l cluster.Link) (worst func() time.Duration) {
	ctx, stop := context.WithCancel(t.Context())
	longest := make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for ctx.Err() == nil {
			most = max(most, gap(t, l.Site()))
		}
		longest <- most
	}()
	return func() time.Duration { stop(); return <-longest }
}

func coresOf(t *testing.T, l cluster.Link) string {
	t.Helper()
	var all []Core
	within(t, 20*time.Second, func(ctx context.Context) (err error) {
		// NATS lists no streams for 4 s while one of them has no leader.
		for all, err = Cores(ctx, l); err != nil && pause(ctx, minBackoff); {
			all, err = Cores(ctx, l)
		}
		return err
	})
	var text []string
	for _, c := range all {
		text = append(text, fmt.Sprint(c.Node, c.Runs))
	}
	return strings.Join(text, " ")
}

// The core that leads the others removes itself while the site writes. The two that are left restart one by one, a new
// one takes the place that is free, and one that dies is removed although those that are left never heard its name.
func TestCoresAreRemovedAndReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	all := joinAll(t, cfgs...)
	edge := join(t, edgeOf(t, cfgs...))
	whole := func(l cluster.Link) {
		t.Helper()
		within(t, 30*time.Second, func(ctx context.Context) error {
			if !AwaitWhole(ctx, l) {
				f, err := Look(context.Background(), l)
				return fmt.Errorf("copies are missing: %+v, %w", f.Streams, err)
			}
			return nil
		})
	}
	whole(all[0])
	if got := coresOf(t, all[1]); got != "dublin-1true dublin-2true dublin-3true" {
		t.Errorf("cores: %s", got)
	}
	if _, err := Cores(t.Context(), edge); err == nil || !strings.Contains(err.Error(), "ask at one") {
		t.Errorf("an edge says: %v", err)
	}
	known, err := Cores(t.Context(), all[0])
	if err != nil {
		t.Fatal(err)
	}
	waits := Core{Node: "dublin-9", Runs: true, id: peerID("dublin.dublin-9")}
	if last, err := CameLast(t.Context(), all[0], append(known, waits)); err != nil || !slices.Equal(last, []Core{waits}) {
		t.Errorf("a core that waits to begin came last, and not %v, %v", last, err)
	}
	if last, err := CameLast(t.Context(), all[0], known); err != nil || len(last) > 0 {
		t.Errorf("of as many cores as are listed, none has come in the place of another: %v, %v", last, err)
	}
	wantText(t, RemoveCore(t.Context(), edge, "dublin-1"), "ask at one")
	wantText(t, RemoveCore(t.Context(), all[0], "dublin-9"), "is no core of this site")

	i := slices.IndexFunc(all, func(j *joined) bool { return j.att.server.srv().JetStreamIsLeader() })
	gone := all[i]
	worst := busily(t, edge)
	if err := RemoveCore(t.Context(), gone, cfgs[i].Node); err != nil {
		t.Fatal(err)
	}
	select {
	case <-Removed(gone):
	case <-time.After(10 * time.Second):
		t.Fatal("the core does not know that it was removed")
	}
	gone.Close()
	took := worst()
	t.Logf("the longest write while the core that leads was removed took %v", took)
	if took > 5*time.Second {
		t.Errorf("a write took %v while a core was removed", took)
	}
	_, err = Join(t.Context(), cfgs[i])
	wantText(t, err, "have removed this one")
	first, second := (i+1)%3, (i+2)%3
	wantText(t, RemoveCore(t.Context(), all[first], cfgs[second].Node), "one of 2 cores")

	restart := func(k int) {
		t.Helper()
		all[k].Close()
		all[k] = join(t, cfgs[k])
		gap(t, all[k].Site())
	}
	restart(first)
	restart(second)

	cfgs[i].Dir, cfgs[i].Node = t.TempDir(), "dublin-4"
	all[i] = join(t, cfgs[i])
	whole(all[first])
	if got := strings.Count(coresOf(t, all[first]), "true"); got != 3 {
		t.Errorf("%d cores run", got)
	}
	all[i].Close()
	restart(first)
	restart(second)
	if err := RemoveCore(t.Context(), all[first], "dublin-4"); err != nil {
		t.Errorf("a core that is away: %v", err)
	}
	if got := coresOf(t, all[second]); strings.Contains(got, "false") || strings.Count(got, "true") != 2 {
		t.Errorf("cores: %s", got)
	}
}

// A core that was killed counts as away within seconds, although NATS calls it offline only after minutes.
func TestAKilledCoreIsAwaySoon(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	h := &history{acked: map[string]map[int]string{}, more: make(chan struct{})}
	killed := startCoreProcess(t, h, cfgs[2], "quiet")
	all := joinAll(t, cfgs[:2]...)
	within(t, 30*time.Second, func(ctx context.Context) error {
		if !AwaitWhole(ctx, all[0]) {
			return ctx.Err()
		}
		return nil
	})
	if got := coresOf(t, all[0]); got != "dublin-1true dublin-2true dublin-3true" {
		t.Errorf("cores: %s", got)
	}
	killed.kill()
	within(t, 20*time.Second, func(ctx context.Context) error {
		for pause(ctx, minBackoff) {
			if coresOf(t, all[0]) == "dublin-1true dublin-2true dublin-3false" {
				break
			}
		}
		return ctx.Err()
	})
	within(t, 10*time.Second, func(ctx context.Context) error {
		for {
			f, err := Look(ctx, all[0])
			if err == nil && slices.Equal(f.away(true), []string{"dublin.dublin-3"}) {
				return nil
			}
			if !pause(ctx, minBackoff) {
				return fmt.Errorf("the facts do not say that the core is away: %v, %w", f.away(true), err)
			}
		}
	})
}

// Whoever asks for the cores while they elect a leader waits for it: what was asked before has got lost.
func TestCoresAreAskedDuringAnElection(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfgs := members(t, "dublin")
	h := &history{acked: map[string]map[int]string{}, more: make(chan struct{})}
	others := []*coreProcess{startCoreProcess(t, h, cfgs[1], "quiet"), startCoreProcess(t, h, cfgs[2], "quiet")}
	l := joinAll(t, cfgs[0])[0]
	within(t, 30*time.Second, func(ctx context.Context) error {
		if !AwaitWhole(ctx, l) {
			return ctx.Err()
		}
		return nil
	})
	for _, p := range others {
		p.kill()
	}
	within(t, 30*time.Second, func(ctx context.Context) error {
		for pause(ctx, minBackoff) {
			if _, _, err := l.att.askCores(ctx); errors.Is(err, cluster.ErrUnavailable) {
				return nil
			}
		}
		return ctx.Err()
	})
	asked := make(chan error, 1)
	go func() {
		_, err := Cores(t.Context(), l)
		asked <- err
	}()
	startCoreProcess(t, h, cfgs[1], "quiet")
	if err := <-asked; err != nil {
		t.Errorf("the cores have a leader again: %v", err)
	}
	if got := coresOf(t, l); !strings.Contains(got, "dublin-1true dublin-2true") {
		t.Errorf("cores: %s", got)
	}
}
