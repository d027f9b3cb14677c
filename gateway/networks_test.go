package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/page"
)

// inSharing is a booth with free seats, where three networks may use a session.
func inSharing(t *testing.T, action string, f func(booth, *Gateway, *bytes.Buffer), more ...func(*Config)) {
	var log bytes.Buffer
	more = append(more, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	inEmptyBooth(t, func(r *anteroom.Room) {
		r.TotalActiveUsers, r.JSONResponse, r.SessionNetworks, r.SessionNetworksAction = 100, true, 3, action
	}, func(b booth) { f(b, b.gw, &log) }, more...)
}

// at sends a request with the guest's ticket from another address, and keeps the ticket that comes back. It reports whether the
// origin got the request.
func (g *guest) at(address string) bool {
	g.t.Helper()
	g.from = address
	return g.get("/").Header().Get("X-Origin") == "shop"
}

func TestSessionsOfManyNetworksAreAnAlarm(t *testing.T) {
	inSharing(t, anteroom.SharedLog, func(b booth, gw *Gateway, log *bytes.Buffer) {
		ann := b.guest()
		for _, address := range []string{"192.0.2.1", "192.0.2.200", "198.51.100.7", "203.0.113.9", "192.0.2.3"} {
			if !ann.at(address) {
				t.Fatalf("not admitted at %s", address)
			}
		}
		if log.Len() > 0 || gw.Stats().SharedSessions != [sharedActions]uint64{} {
			t.Errorf("three networks: %v, log %s", gw.Stats().SharedSessions, log)
		}
		for range 3 {
			if !ann.at("10.0.0.1") || !ann.at("10.0.1.1") {
				t.Error("an active user is turned away")
			}
		}
		if got := gw.Stats().SharedSessions; got != [sharedActions]uint64{sharedLogged: 1} {
			t.Errorf("counted %v, want one alarm for the session", got)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "networks=4") || !strings.Contains(text, "client=10.0.0.1") {
			t.Errorf("log %s", text)
		}
	})
}

func TestNetworksOfASessionAreCountedByPrefix(t *testing.T) {
	c := newCrowds()
	for _, same := range [][2]string{{"192.0.2.1", "192.0.2.254"}, {"2001:db8:1::1", "2001:db8:1:ffff::9"}} {
		if c.network(netip.MustParseAddr(same[0])) != c.network(netip.MustParseAddr(same[1])) {
			t.Errorf("%v are two networks", same)
		}
	}
	for _, apart := range [][2]string{{"192.0.2.1", "192.0.3.1"}, {"2001:db8:1::1", "2001:db8:2::1"}} {
		if c.network(netip.MustParseAddr(apart[0])) == c.network(netip.MustParseAddr(apart[1])) {
			t.Errorf("%v are one network", apart)
		}
	}
}

func TestASharedSessionIsRevoked(t *testing.T) {
	inSharing(t, anteroom.SharedRevoke, func(b booth, gw *Gateway, _ *bytes.Buffer) {
		ann := b.guest()
		ann.at("192.0.2.1")
		copied := ann.cookie
		for i := range 3 {
			one := &guest{booth: b, cookie: copied}
			one.at(fmt.Sprintf("10.0.%d.1", i))
			if i == 2 && one.cookie == copied {
				t.Error("the fourth network has no ticket of its own")
			}
		}
		ann.cookie = copied
		ann.at("192.0.2.1")
		if ann.cookie == copied {
			t.Error("the session goes on")
		}
		if st := gw.Stats(); st.SharedSessions != [sharedActions]uint64{sharedRevoked: 1} || st.Revoked != 1 {
			t.Errorf("counted %v, %d revoked", st.SharedSessions, st.Revoked)
		}
	})
}

func TestASharedSessionHasToSolveTheChallengeInEachNetwork(t *testing.T) {
	works := func(c *Config) {
		c.Challenge = Challenge{Kind: page.Work, Difficulty: difficulty, Patience: 10 * time.Minute}
	}
	inSharing(t, anteroom.SharedChallenge, func(b booth, gw *Gateway, _ *bytes.Buffer) {
		ann := b.guest()
		for _, address := range []string{"192.0.2.1", "198.51.100.7", "203.0.113.9"} {
			if !ann.at(address) {
				t.Fatalf("not admitted at %s", address)
			}
		}
		session := ann.cookie
		asked := func(address string) (question, cookie string) {
			t.Helper()
			ann.from, ann.cookie = address, session
			rec := ann.get("/")
			m := asksWork.FindStringSubmatch(rec.Body.String())
			if m == nil {
				t.Fatalf("at %s the page asks nothing: %s", address, rec.Body)
			}
			return m[1], m[2]
		}
		question, cookie := asked("10.0.0.1")
		elsewhere, _ := asked("10.0.1.1")
		if question == elsewhere {
			t.Error("an answer counts in all networks")
		}
		ann.from, ann.cookie = "10.0.1.1", session+"; "+cookie+"="+work(question, difficulty)
		if ann.ask().Admitted {
			t.Error("admitted by an answer from another network")
		}
		ann.from = "10.0.0.1"
		if !ann.ask().Admitted {
			t.Error("not admitted with the answer")
		}
		ann.cookie = session
		if !ann.at("10.0.0.1") {
			t.Error("asked again in the same network")
		}
		if got := gw.Stats().SharedSessions; got != [sharedActions]uint64{sharedChallenged: 1} {
			t.Errorf("counted %v", got)
		}
	}, works)
}

func TestWithoutAChallengeSharedSessionsAreLogged(t *testing.T) {
	inSharing(t, anteroom.SharedChallenge, func(b booth, gw *Gateway, _ *bytes.Buffer) {
		ann := b.guest()
		for i := range 5 {
			if !ann.at(fmt.Sprintf("10.0.%d.1", i)) {
				t.Errorf("not admitted in network %d", i+1)
			}
		}
		if got := gw.Stats().SharedSessions; got != [sharedActions]uint64{sharedLogged: 1} {
			t.Errorf("counted %v", got)
		}
	})
}

// TestNetworksOfSessionsAreBounded: whoever opens any number of sessions fills no memory, and the sessions used last are remembered.
func TestNetworksOfSessionsAreBounded(t *testing.T) {
	c := newCrowds()
	ids := func(n int) (id anteroom.ID) {
		id[0], id[1], id[2], id[3] = byte(n), byte(n>>8), byte(n>>16), 1
		return id
	}
	const many = 500_000
	busy := ids(many)
	for n := range many {
		c.count(ids(n), 1, 2)
		if n%1000 == 0 {
			c.count(busy, uint32(1+n/1000%2), 2)
		}
	}
	kept := 0
	for i := range c.parts {
		kept += len(c.parts[i].young) + len(c.parts[i].old)
	}
	if most := 2 * crowdsPerPart * len(c.parts); kept > most || kept < most/2 {
		t.Errorf("%d sessions are kept, want up to %d", kept, most)
	}
	if beyond, first := c.count(busy, 3, 2); !beyond || !first {
		t.Error("a session in use was forgotten")
	}
}

func TestCountingNetworksAllocatesNothing(t *testing.T) {
	c, id, client := newCrowds(), anteroom.ID{1}, netip.MustParseAddr("192.0.2.1")
	if n := testing.AllocsPerRun(1000, func() { c.count(id, c.network(client), 8) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
