package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// tenASecond is a line of 100 who arrived in ten seconds and of whom ten are released every
// five seconds from a moment on.
func tenASecond(from anteroom.Time) *Figures {
	f := &Figures{At: from, Waiting: 100, CurveAt: from, Known: true, Step: baseStep}
	for i := range 10 {
		f.Seconds = append(f.Seconds, SecondCount{Second: int64(midnight)/1e6 + int64(i), Before: uint32(10 * i), Count: 10, Last: 900_000})
	}
	for i := range 15 {
		f.Curve = append(f.Curve, float32(10*(i+1)))
	}
	return f
}

func TestReached(t *testing.T) {
	from := midnight.Add(time.Minute)
	f := tenASecond(from)
	late := tenASecond(from)
	late.Released, late.CurveFrom = 25, 20
	cases := []struct {
		name  string
		f     *Figures
		after time.Duration
		want  time.Duration // since midnight
		known bool
	}{
		{"at once", f, 0, 0, true},
		{"half a second of arrivals", f, 2500 * time.Millisecond, 450 * time.Millisecond, true},
		{"a second of arrivals", f, 5 * time.Second, time.Second, true},
		{"nine and a half", f, 47500 * time.Millisecond, 9450 * time.Millisecond, true},
		{"everybody", f, 50 * time.Second, 0, false},
		{"long after", f, time.Hour, 0, false},
		{"before the forecast", f, -time.Minute, 0, false},
		{"some were released before the figures were made", late, 5 * time.Second, 450 * time.Millisecond, true},
		{"no forecast", &Figures{At: from, Step: baseStep, Seconds: f.Seconds}, 5 * time.Second, 0, false},
		{"nobody waits", &Figures{At: from, Step: baseStep, Curve: f.Curve}, 5 * time.Second, 0, false},
		{"nonsense", &Figures{Seconds: f.Seconds, Curve: f.Curve}, 5 * time.Second, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			key, known := c.f.Reached(from.Add(c.after))
			if known != c.known || known && key != midnight.Add(c.want) {
				t.Errorf("%v %v, want %v %v", key.Sub(midnight), known, c.want, c.known)
			}
		})
	}
}

// cutSite is a site with ten permits whose link breaks, and with it wait those who arrived
// at the given moments.
func cutSite(t *testing.T, m Mode, s anteroom.Settings, f *Figures, arrivals ...anteroom.Time) (*Site, anteroom.Time, []anteroom.Ticket) {
	t.Helper()
	now := midnight.Add(time.Minute)
	x := NewSite(now, SiteKey{Name: "site", Incarnation: 1}, s)
	x.Receive(now, State{Epoch: 1, Now: now, Mode: Queue, Figures: f, Sites: 2})
	w := trial{}
	var tickets []anteroom.Ticket
	for _, at := range arrivals {
		ticket := anteroom.Ticket{ID: w.newID(), Arrival: at, Next: now.Add(time.Minute)}
		x.Polls(now, []Poll{{ID: ticket.ID, Key: at, Due: ticket.Next}})
		tickets = append(tickets, ticket)
	}
	x.Receive(now, State{Epoch: 1, Now: now, Mode: m, Granted: Units{10, 10}, Target: 10, Figures: f, Sites: 2})
	x.Report(now)
	now = now.Add(cutAfter + time.Millisecond)
	x.unanswered = now.Add(-cutAfter)
	x.Tick(now)
	if x.Mode() != Cut {
		t.Fatal("not cut")
	}
	x.balance.Returned = Units{} // as if units had come free since
	for i := range tickets {
		x.Visit(now, anteroom.Visit{Ticket: tickets[i], Stream: true})
	}
	x.Tick(now)
	return x, now, tickets
}

func called(x *Site, tickets []anteroom.Ticket) (n int) {
	for _, t := range tickets {
		if x.Called(t.ID) {
			n++
		}
	}
	return n
}

// A cut site does not call somebody before those elsewhere who arrived earlier are expected
// to have been called, unless there was no line when the link broke.
func TestCutSiteKeepsTheOrderOfAll(t *testing.T) {
	s := anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 600}
	from := midnight.Add(time.Minute)
	second := func(n float64) anteroom.Time { return midnight.Add(time.Duration(n * float64(time.Second))) }
	arrivals := []anteroom.Time{second(0.1), second(0.7), second(1.5), second(4.5), second(9.5)}

	x, now, tickets := cutSite(t, Queue, s, tenASecond(from), arrivals...)
	for _, c := range []struct {
		after time.Duration // since the link broke, 3 s after the forecast; the bound is of a second later
		want  int
	}{{0, 2}, {4 * time.Second, 3}, {17 * time.Second, 3}, {19 * time.Second, 4}, {40 * time.Second, 4}, {45 * time.Second, 5}} {
		at := now.Add(c.after)
		n := 0
		x.offers = map[uint32]offer{}
		x.balance.Offers = 0
		x.here.each(func(slot uint32) { x.here.at(slot).flags &^= hereOffered })
		x.Tick(at)
		if n = called(x, tickets); n != c.want {
			t.Errorf("%v after the link broke %d are called, want %d", c.after, n, c.want)
		}
	}

	x, _, tickets = cutSite(t, Open, s, tenASecond(from), arrivals...)
	if n := called(x, tickets); n != len(tickets) {
		t.Errorf("the room was open and %d of %d are called", n, len(tickets))
	}
}

// A limit of 0 admits nobody, also by what a cut site has been granted before: it cannot give that back.
func TestCutSiteWhoseLimitIsZero(t *testing.T) {
	s := anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 600}
	for name, shut := range map[string]anteroom.Settings{"seats": {NewUsersPerMinute: 600}, "rate": {TotalActiveUsers: 100}} {
		x, now, tickets := cutSite(t, Open, s, &Figures{Step: baseStep}, midnight, midnight)
		if n := called(x, tickets); n != len(tickets) {
			t.Fatalf("%s: %d of %d are called before", name, n, len(tickets))
		}
		x.Configure(now, shut)
		x.Tick(now)
		if n := called(x, tickets); n != 0 {
			t.Errorf("%s: %d have a turn still", name, n)
		}
		for i := range tickets {
			x.Visit(now, anteroom.Visit{Ticket: tickets[i], Leave: true})
		}
		id := anteroom.ID{1}
		if d, held := x.Visit(now, anteroom.Visit{Fresh: true, NewID: id, NoHold: true, Ticket: anteroom.Ticket{ID: id}}); held != 0 || d.Verdict != anteroom.Wait {
			t.Errorf("%s: a newcomer, and nobody waits: %v", name, d.Verdict)
		}
	}
}

// A cut site draws uniformly among its own, repeatably, and who is away keeps the win.
func TestCutSiteDraws(t *testing.T) {
	s := anteroom.Settings{TotalActiveUsers: 100, NewUsersPerMinute: 600, QueueingMethod: anteroom.Random}
	var arrivals []anteroom.Time
	for i := range 40 {
		arrivals = append(arrivals, midnight.Add(time.Duration(i)*time.Second))
	}
	winners := func() (out []int) {
		x, _, tickets := cutSite(t, Queue, s, &Figures{Step: baseStep}, arrivals...)
		for i := range tickets {
			if x.Called(tickets[i].ID) {
				out = append(out, i)
			}
		}
		return out
	}
	first, again := winners(), winners()
	if len(first) != 10 {
		t.Fatalf("%d were called for 10 permits", len(first))
	}
	ordered := true
	for i := range first {
		if first[i] != again[i] {
			t.Fatal("another run draws others")
		}
		ordered = ordered && first[i] == i
	}
	if ordered {
		t.Error("the draw is the order of arrival")
	}

	for _, lane := range []uint8{0, 7} {
		x, now, tickets := cutSite(t, Queue, s, &Figures{Step: baseStep}, arrivals[:5]...)
		x.offers, x.balance.Offers = map[uint32]offer{}, 0
		x.balance.Granted = Units{1, 1}
		away := map[anteroom.ID]bool{}
		x.here.each(func(slot uint32) { // all are away for half a minute
			w := x.here.at(slot)
			w.flags &^= hereOffered
			w.streams, w.due, w.lane = 0, now.Add(30*time.Second), lane
			away[x.here.id(slot)] = true
		})
		for i := range x.cut.places {
			x.cut.places[i].lane = lane
		}
		x.Tick(now)
		if len(x.cut.won) == 0 || len(x.offers) != 0 {
			t.Fatalf("%d won while away, %d were offered a turn", len(x.cut.won), len(x.offers))
		}
		win := x.here.id(x.cut.won[len(x.cut.won)-1].slot)
		for _, ticket := range tickets {
			if ticket.ID == win {
				x.Visit(now, anteroom.Visit{Ticket: ticket, Stream: true, Lane: lane})
			}
		}
		x.Tick(now)
		if !x.Called(win) {
			t.Errorf("a winner in lane %d came back and is not called", lane)
		}
	}
}

// What a ticket says of its lane counts where the site knows a lower one: a code was spent while it was out of reach.
func TestATicketRaisesItsPlace(t *testing.T) {
	for name, come := range map[string]func(s *Site, now anteroom.Time, ticket anteroom.Ticket){
		"a visit": func(s *Site, now anteroom.Time, ticket anteroom.Ticket) {
			s.Visit(now, anteroom.Visit{Ticket: ticket, NewID: anteroom.ID{9}, NoHold: true})
		},
		"a check-in that a door answered": func(s *Site, now anteroom.Time, ticket anteroom.Ticket) {
			s.Polls(now, []Poll{{ID: ticket.ID, Key: ticket.Arrival, Lane: ticket.Lane, Due: now.Add(time.Second), Last: now}})
		},
	} {
		now := midnight
		set := anteroom.Settings{NewUsersPerMinute: 1, Lanes: &anteroom.Lanes{List: []anteroom.Lane{{Name: "gold", Priority: 7}}}}.WithDefaults()
		s := NewSite(now, hereKey, set)
		d, _ := s.Visit(now, anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: anteroom.ID{1}}, NewID: anteroom.ID{2}, NoHold: true})
		if d.Ticket.ID.IsZero() || d.Ticket.Lane != 0 {
			t.Fatalf("%s: %+v", name, d)
		}
		s.TakeEvents()
		now = d.Ticket.Next
		d.Ticket.Lane = 7
		come(s, now, d.Ticket)
		if at := s.here.find(&d.Ticket.ID); at == 0 || s.here.at(at).lane != 7 {
			t.Errorf("%s: the place is not in the ticket's lane", name)
		}
		if !slices.ContainsFunc(s.TakeEvents(), func(e Event) bool { return e.Kind == EventJoined && e.Lane == 7 }) {
			t.Errorf("%s: the lane is not on record", name)
		}
	}
}
