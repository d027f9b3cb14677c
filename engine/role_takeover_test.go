package engine

import (
	"testing"
	"time"
)

// The time of a room whose coordinator begins is the latest that a site says which has heard one: a report
// that was long on its way says an older one.
func TestRoomTime(t *testing.T) {
	t.Parallel()
	type report struct {
		at    time.Duration // when it comes, since the process took the role
		late  time.Duration // how long it was on its way
		epoch uint64
		timed bool
	}
	for _, c := range []struct {
		name    string
		reports []report
		known   time.Duration // when the time is
		off     time.Duration
		guessed bool
	}{
		{name: "one site", reports: []report{{at: 0, late: 20 * time.Millisecond, epoch: 1}, {at: 500 * time.Millisecond, late: 30 * time.Millisecond, epoch: 1}},
			known: 500 * time.Millisecond, off: 20 * time.Millisecond},
		{name: "the first was held up", reports: []report{{at: 0, late: 2300 * time.Millisecond, epoch: 1}, {at: 100 * time.Millisecond, late: 10 * time.Millisecond, epoch: 1}, {at: followFor, late: time.Second, epoch: 1}},
			known: followFor, off: 10 * time.Millisecond},
		{name: "a site that has just begun says nothing", reports: []report{{at: 0, late: time.Hour}, {at: time.Second, late: 5 * time.Millisecond, epoch: 1}, {at: 2 * time.Second, epoch: 0, late: -time.Hour}},
			known: 2 * time.Second, off: 5 * time.Millisecond},
		{name: "no site has heard a coordinator, and doors have", reports: []report{{at: 0, late: time.Hour}, {at: time.Second, late: 5 * time.Millisecond, timed: true}, {at: 2 * time.Second, late: time.Second, timed: true}},
			known: 2 * time.Second, off: 5 * time.Millisecond},
		{name: "all have just begun", reports: []report{{at: 0, late: time.Hour}, {at: GuessAfter, late: time.Hour}},
			known: GuessAfter, guessed: true},
	} {
		var room RoomTime
		for _, r := range c.reports {
			local := midnight.Add(r.at)
			at, ok := room.Follow(local, r.at, &Report{Sent: local.Add(-r.late), Epoch: r.epoch, Timed: r.timed})
			if ok != (r.at >= c.known) {
				t.Errorf("%s: known after %v: %v", c.name, r.at, ok)
			}
			if off := local.Sub(at); ok && (off != c.off || room.guessed != c.guessed) {
				t.Errorf("%s: off by %v, guessed: %v", c.name, off, room.guessed)
			}
		}
	}
	if room, ok := new(RoomTime).Follow(midnight, GuessAfter, &Report{Sent: midnight.Add(time.Hour)}); !ok || room != midnight.Add(time.Hour) {
		t.Errorf("what a journal has seen counts when all have just begun: %v, %v", room, ok)
	}
}

// A process whose own clock was told the room time waits for no site that is: the first report begins the room, and one
// that says a later time is right.
func TestRoomTimeIsKnown(t *testing.T) {
	t.Parallel()
	const ahead = 40 * time.Millisecond
	for _, c := range []struct {
		name   string
		report Report
		want   time.Duration
	}{
		{name: "a site that has just begun", report: Report{Sent: midnight.Add(-time.Hour)}, want: ahead},
		{name: "one whose clock is a guess", report: Report{Sent: midnight.Add(time.Hour)}, want: ahead},
		{name: "a report that was held up", report: Report{Sent: midnight.Add(-time.Second), Epoch: 1}, want: ahead},
		{name: "a site that knows better", report: Report{Sent: midnight.Add(2 * ahead), Epoch: 1}, want: 2 * ahead},
		{name: "one whose doors know better", report: Report{Sent: midnight.Add(2 * ahead), Timed: true}, want: 2 * ahead},
	} {
		var room RoomTime
		room.Know(midnight, midnight.Add(ahead))
		if at, ok := room.Follow(midnight, 0, &c.report); !ok || at != midnight.Add(c.want) || room.guessed {
			t.Errorf("%s: known: %v, ahead by %v, guessed: %v", c.name, ok, at.Sub(midnight), room.guessed)
		}
	}
	var room RoomTime
	room.Follow(midnight, 0, &Report{Sent: midnight.Add(2 * ahead), Epoch: 1})
	room.Know(midnight, midnight.Add(ahead))
	if at, ok := room.Follow(midnight, 0, &Report{Sent: midnight}); !ok || at != midnight.Add(2*ahead) {
		t.Errorf("what a site has said counts further: known: %v, ahead by %v", ok, at.Sub(midnight))
	}
}
