package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// value returns the ticket in a Cookie header.
func (w *world) value(t anteroom.Ticket) string {
	_, value, _ := strings.Cut(w.seal(t), "=")
	return value
}

// Reports that are good reach the door as requests of their visitors, and all others do not.
func TestTouch(t *testing.T) {
	w := newWorld(t, admit, passing())
	good, gone, waits := session(), session(), session()
	gone.ID[0]++
	waits.AcceptedAt = 0
	w.door.revoked = []anteroom.ID{gone.ID}
	changed := []byte(w.value(good))
	changed[len(changed)/2] ^= 1
	for _, c := range []struct {
		what string
		is   Touch
		want int
	}{
		{"a session", Touch{Ticket: w.value(good)}, TouchTaken},
		{"the oldest that counts", Touch{w.value(good), anteroom.MaxTouchAge}, TouchTaken},
		{"older", Touch{w.value(good), anteroom.MaxTouchAge + 1}, TouchAge},
		{"of the future", Touch{w.value(good), -1}, TouchAge},
		{"a session that is over", Touch{Ticket: w.value(gone)}, TouchSession},
		{"a place in line", Touch{Ticket: w.value(waits)}, TouchTicket},
		{"a changed ticket", Touch{Ticket: string(changed)}, TouchTicket},
		{"nothing", Touch{}, TouchTicket},
	} {
		w.door.reported = nil
		got, ok := w.gw.Touch(w.room.ID, []Touch{c.is})
		if !ok || !slices.Equal(got, []int{c.want}) {
			t.Errorf("%s: %v %v, want %s", c.what, got, ok, TouchWords[c.want])
		}
		reached := len(w.door.reported) == 1
		if reached != (c.want == TouchTaken || c.want == TouchSession) {
			t.Errorf("%s: reached the door: %v", c.what, reached)
		}
	}
	if got := w.gw.Stats().Touches; got != [touchResults]uint64{2, 3, 2, 1, 0} {
		t.Errorf("counted: %v", got)
	}
	if len(w.door.visits) > 0 {
		t.Errorf("%d visits", len(w.door.visits))
	}
	if _, ok := w.gw.Touch("0123", nil); ok {
		t.Error("an unknown room takes reports")
	}
	if _, ok := newWorld(t, admit).gw.Touch(w.room.ID, nil); ok {
		t.Error("a room without passes takes reports")
	}
}

// A room takes so many reports in a second, and the others are refused.
func TestTouchesHaveARate(t *testing.T) {
	b := new(touching)
	now := time.Now()
	for _, step := range []struct {
		after   time.Duration
		n, want int
	}{
		{0, 1000, 1000}, {0, touchesAtOnce, touchesAtOnce - 1000}, {0, 10, 0}, {time.Second, 2 * touchesPerSecond, touchesPerSecond},
		{time.Hour, 2 * touchesAtOnce, touchesAtOnce}, {-time.Hour, 10, 0}, {time.Second, 10, 10},
	} {
		now = now.Add(step.after)
		if got := b.spend(step.n, now); got != step.want {
			t.Errorf("after %v: %d of %d, want %d", step.after, got, step.n, step.want)
		}
	}
}

// A cookie outlives a session that goes on by reports, by which no cookie is renewed.
func TestCookiesOfReportedSessions(t *testing.T) {
	plain, reported := newWorld(t, admit, passing()), newWorld(t, admit, passing(func(r *anteroom.Room) { r.PassReported = true }))
	age := func(w *world) string {
		res, _ := w.do("GET", "/", nil)
		_, attributes, _ := strings.Cut(res.Header.Get("Set-Cookie"), "; ")
		return attributes
	}
	if p, r := age(plain), age(reported); p != r || !strings.HasPrefix(p, "Max-Age=670;") {
		t.Errorf("%q, and %q where edges report", p, r)
	}
}
