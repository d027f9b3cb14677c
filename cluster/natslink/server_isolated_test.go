//go:build unix

package natslink

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/anteroom/anteroom/cluster"
)

// standing returns in how many of its groups the core stands in elections, and in how many it does not.
func standing(a *attachment) (stands, aside int) {
	for _, account := range []string{accountSite, accountShared, accountSystem} {
		status := a.server.srv().Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			continue
		}
		for _, groups := range *status {
			for _, is := range groups {
				if is.Observer {
					aside++
				} else {
					stands++
				}
			}
		}
	}
	return stands, aside
}

// TestACoreThatHearsNobodyStandsAside: as long as both others are gone, and no longer.
func TestACoreThatHearsNobodyStandsAside(t *testing.T) {
	t.Parallel()
	cfgs := members(t, "dublin")
	cores := startSite(t, cfgs...)
	keep(t, cores[0], cores[0].shared, hubDomain, "shared")
	last := cores[2]
	until := func(want func(stands, aside int) bool) func(context.Context) error {
		return func(ctx context.Context) error {
			for !want(standing(last)) {
				if !pause(ctx, hereEvery) {
					return errors.New("a core stands in elections when it should not, or does not when it should")
				}
			}
			return nil
		}
	}
	within(t, 10*time.Second, until(func(stands, aside int) bool { return stands > 1 && aside == 0 }))
	// One that has not heard anybody since it started is not deaf: the others may yet have to start.
	here, err := last.system.SubscribeSync(subjectHere)
	if err != nil {
		t.Fatal(err)
	}
	for heard := map[string]bool{}; len(heard) < 2; {
		m, err := here.NextMsg(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		core, _ := strings.CutSuffix(string(m.Data), hearsNobody)
		heard[core] = true
	}
	stop(t, cores[0])
	stop(t, cores[1])
	keys, _ := siteStore(last)
	for !last.deaf.Load() { // it finds out within seconds, and writes fail before that, too
		_, err := keys.publish(t.Context(), keys.subjects+"key", nil, 0, 0)
		if !errors.Is(err, cluster.ErrUnavailable) || strings.Contains(err.Error(), "deadline") || strings.Contains(err.Error(), "responders") {
			t.Fatalf("a write just after the loss of a majority: %v", err)
		}
	}
	within(t, 10*time.Second, until(func(stands, aside int) bool { return stands == 0 && aside > 1 }))
	if _, err := keys.publish(t.Context(), keys.subjects+"key", nil, 0, 0); !errors.Is(err, cluster.ErrUnavailable) || !strings.Contains(err.Error(), "hears no other") {
		t.Errorf("a write: %v", err)
	}
	for _, cfg := range cfgs[:2] {
		start(t, cfg)
	}
	within(t, 20*time.Second, until(func(stands, aside int) bool { return stands > 1 && aside == 0 }))
	within(t, 30*time.Second, last.ready)
	keep(t, last, last.shared, hubDomain, "shared")
}

// TestWhoHearsNobodyCountsAsGone: it says so, and is still a reason for the others to believe that they are heard.
func TestWhoHearsNobodyCountsAsGone(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Minute)
	deaf := &hearing{own: "deaf", start: past, heard: map[string]time.Duration{}}
	other := &hearing{own: "other", start: past, heard: map[string]time.Duration{}}
	if says := string(deaf.here()); says != "deaf" {
		t.Errorf("a core that starts says %q", says)
	}
	deaf.hear("other")
	if says := string(deaf.here()); says != "deaf" {
		t.Errorf("a core that hears another says %q", says)
	}
	deaf.last -= doubtAfter
	other.hear(string(deaf.here()))
	if _, heard := other.heard["deaf"]; heard || other.last == 0 {
		t.Errorf("a core that hears nobody is heard: %v; anybody: %v", heard, other.last)
	}
}

// TestWhoStands: one core after the other, in an order that all of them know, and nobody while the leader is heard.
func TestWhoStands(t *testing.T) {
	t.Parallel()
	const later = deafAfter + standStep
	cores := []string{"a", "b", "c"}
	first := map[string]bool{}
	for _, tc := range []struct {
		name   string
		leader string
		silent map[string]time.Duration
		stand  int
	}{
		{"everybody is heard", "a", nil, 0},
		{"the leader was heard a moment ago", "a", map[string]time.Duration{"a": deafAfter - 1}, 0},
		{"the leader is gone", "a", map[string]time.Duration{"a": deafAfter}, 1},
		{"and the first has not been elected", "a", map[string]time.Duration{"a": later}, 2},
		{"another one is gone", "a", map[string]time.Duration{"b": later}, 0},
		{"the leader and another one are gone", "a", map[string]time.Duration{"a": later, "b": later}, 0},
		{"the first stood in vain", "", map[string]time.Duration{"a": later}, 2},
		{"an election is under way, and everybody is heard", "", nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, group := range []string{"one", "two", "three", "four", "five"} {
				stand := 0
				for _, own := range cores {
					if tc.silent[own] > 0 {
						continue
					}
					is := server.RaftzGroup{Leader: tc.leader, QuorumNeeded: 2, Peers: map[string]server.RaftzGroupPeer{}}
					silent := map[string]time.Duration{}
					for _, core := range cores {
						silent[core] = tc.silent[core]
						if core != own {
							is.Peers[core] = server.RaftzGroupPeer{}
						}
					}
					if stands(own, group, is, silent) {
						stand++
						if tc.stand == 1 {
							first[own] = true
						}
					}
				}
				if stand != tc.stand {
					t.Errorf("group %s: %d cores stand, want %d", group, stand, tc.stand)
				}
			}
		})
	}
	if len(first) < 2 {
		t.Errorf("the first to stand is the same core in every group")
	}
}

// TestCoresSendHeartbeats: those of all groups, more often than NATS does, and over two connections to each other core.
func TestCoresSendHeartbeats(t *testing.T) {
	t.Parallel()
	cores := startSite(t, members(t, "dublin")...)
	keep(t, cores[0], cores[0].shared, hubDomain, "shared")
	sub, err := cores[0].system.SubscribeSync("$NRG.AE.>")
	if err != nil {
		t.Fatal(err)
	}
	const whole = 5 * time.Second
	beats := map[string]int{}
	for began := time.Now(); time.Since(began) < whole; {
		m, err := sub.NextMsg(whole)
		if err != nil {
			t.Fatal(err)
		}
		beats[m.Subject]++
	}
	if len(beats) < 2 {
		t.Fatalf("heartbeats of %v, want those of the cores' own group and of a stream's", beats)
	}
	for subject, n := range beats {
		if most := int(whole / beatEvery); n < most*2/3 { // NATS itself sends five at most
			t.Errorf("%s: %d heartbeats in %v, want about %d", subject, n, whole, most)
		}
	}
	for _, c := range cores {
		if n := c.server.srv().NumRoutes(); n != 4 {
			t.Errorf("a core has %d connections to two others, want 4", n)
		}
	}
}
