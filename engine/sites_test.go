package engine

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/cockroachdb/datadriven"
)

// The stories in testdata/sites have several sites and a coordinator, 20 ms from each other:
//
//	room sites=N [total_active_users=N …]    a new room; the clock is at 00:00
//	arrive NAME … at=SITE                    requests without a ticket
//	visit NAME … at=SITE                     requests with the ticket the visitor holds
//	stream NAME … at=SITE / close NAME at=SITE
//	clone NAME as OTHER                      OTHER gets a copy of the ticket
//	advance DURATION                         time passes, in steps of 10 ms
//	cut SITE … / heal SITE …                 the link to the coordinator breaks / is back
//	lose SITE …                              the site starts again without its memory
//	revoke NAME at=SITE
//	where NAME …                             who holds the ticket
//	status                                   every site's mode, sessions and line
func TestSites(t *testing.T) {
	datadriven.Walk(t, "testdata/sites", func(t *testing.T, path string) {
		w := &sitesStory{}
		datadriven.RunTest(t, path, w.run)
	})
}

type sitesStory struct {
	world
	names map[string]*walker
	told  []string
}

func (w *sitesStory) run(t *testing.T, d *datadriven.TestData) string {
	w.t = t
	at := -1
	if d.HasArg("at") {
		var n int
		d.ScanArgs(t, "at", &n)
		at = n
	}
	var names []string
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			names = append(names, expand(a.Key)...)
		}
	}
	var out strings.Builder
	switch d.Cmd {
	case "room":
		s := story{settings: anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 100, SessionDuration: 5 * time.Minute, FirstSession: 24 * time.Hour}}
		flags := map[string]string{}
		for _, a := range d.CmdArgs {
			flags[a.Key] = a.Vals[0]
		}
		n, _ := strconv.Atoi(flags["sites"])
		delete(flags, "sites")
		s.apply(t, flags)
		w.world = *newWorld(t, 1, n, s.settings, faults{})
		w.names, w.told = map[string]*walker{}, nil
		w.faults.lose = 1e-300 // links will break: the story says what is right, not the world
		w.delay = 20 * time.Millisecond
		w.pass(2 * time.Second)
		out.WriteString("ok\n")
	case "arrive", "visit", "stream", "leave":
		for _, name := range names {
			g := w.names[name]
			if d.Cmd == "arrive" {
				g = &walker{ticket: anteroom.Ticket{ID: w.id()}}
				w.names[name] = g
			}
			s := w.sites[at]
			v := anteroom.Visit{Ticket: g.ticket, NewID: w.id(), Fresh: d.Cmd == "arrive", Stream: d.Cmd == "stream"}
			if d.Cmd == "leave" {
				v.Leave, v.NoJoin, v.NoClaim = true, true, true
			}
			switch dec, held := s.Visit(w.now, v); {
			case held != 0:
				s.held[held] = g
				fmt.Fprintf(&out, "%s held\n", name)
			default:
				fmt.Fprintln(&out, w.say(name, g, dec))
			}
		}
	case "close":
		w.sites[at].CloseStream(w.now, w.names[names[0]].ticket.ID)
		out.WriteString("ok\n")
	case "clone":
		c := *w.names[names[0]]
		w.names[names[2]] = &c
		out.WriteString("ok\n")
	case "advance":
		dur, err := time.ParseDuration(names[0])
		if err != nil {
			t.Fatal(err)
		}
		w.pass(dur)
		out.WriteString("at " + clock(w.now) + "\n")
	case "cut", "heal", "lose":
		for _, n := range names {
			i, _ := strconv.Atoi(n)
			w.sites[i].cutUntil = 0
			switch d.Cmd {
			case "cut":
				w.sites[i].cutUntil = w.now.Add(24 * time.Hour)
			case "lose":
				w.fresh(i)
			}
		}
		out.WriteString("ok\n")
	case "revoke":
		fmt.Fprintf(&out, "%v\n", w.sites[at].Revoke(w.now, w.names[names[0]].ticket.ID))
	case "where":
		for _, name := range names {
			fmt.Fprintf(&out, "%s%s\n", name, w.where(w.names[name].ticket.ID))
		}
	case "status":
		for i, s := range w.sites {
			b := s.Balance()
			fmt.Fprintf(&out, "site %d %v: %d active, %d here, units %d and %d\n", i, s.Mode(), s.Active(), s.Here(),
				b.Granted[Seat]-b.Returned[Seat], b.Granted[RateSlot]-b.Returned[RateSlot])
		}
		n := w.coord.Numbers()
		fmt.Fprintf(&out, "coordinator %v: pool %d and %d, %d waiting\n", n.Mode, n.Pool[Seat], n.Pool[RateSlot], n.Waiting)
	default:
		t.Fatalf("%s: no such verb: %s", d.Pos, d.Cmd)
	}
	for _, l := range w.told {
		out.WriteString("  then " + l + "\n")
	}
	w.told = nil
	return out.String()
}

// pass lets time pass and gathers what was answered to held requests.
func (w *sitesStory) pass(d time.Duration) {
	w.answered = func(g *walker, dec anteroom.Decision) { w.told = append(w.told, w.say(w.nameOf(g), g, dec)) }
	for end := w.now.Add(d); w.now < end; {
		w.step()
	}
}

func (w *sitesStory) nameOf(g *walker) string {
	var names []string
	for n, o := range w.names {
		if o == g {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	return strings.Join(names, "")
}

func (w *sitesStory) say(name string, g *walker, d anteroom.Decision) string {
	if d.SetCookie {
		g.ticket = d.Ticket
	}
	s := fmt.Sprintf("%s %s: %s", name, d.Verdict, d.Reason)
	if d.AheadKnown {
		s += fmt.Sprintf(", %d ahead", d.Ahead)
	}
	return s
}

func (w *sitesStory) where(id anteroom.ID) (s string) {
	for i, site := range w.sites {
		switch {
		case site.seats.find(&id) != 0:
			s += fmt.Sprintf(" is inside at site %d", i)
		case site.guests.find(&id) != 0:
			s += fmt.Sprintf(" is a guest at site %d", i)
		case site.here.find(&id) != 0:
			s += fmt.Sprintf(" waits at site %d", i)
		case site.used.find(&id) != 0:
			s += fmt.Sprintf(" was used at site %d", i)
		}
	}
	if slot := w.coord.line.places.find(&id); slot != 0 {
		s += fmt.Sprintf("; its place is at site %d", w.coord.line.places.at(slot).site)
	}
	return s
}
