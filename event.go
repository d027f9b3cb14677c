package anteroom

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/anteroom/anteroom/internal/field"
)

// EventID names an event: 32 lower-case hexadecimal digits.
type EventID string

// Stamp is a moment as an operator wrote it: RFC 3339 with any offset and fraction of a
// second. The text is kept because clients compare it with what they sent. Empty means
// "not set".
type Stamp string

// StampOf returns the stamp of a moment, in UTC.
func StampOf(t time.Time) Stamp { return Stamp(t.UTC().Format(time.RFC3339Nano)) }

// Time returns the moment, or an error that says what a stamp looks like. The empty stamp
// is an error too.
func (s Stamp) Time() (time.Time, error) {
	if len(s) > MaxStampLength {
		return time.Time{}, fmt.Errorf("has %d characters; write it like 2026-11-27T10:00:00Z", len(s))
	}
	t, err := time.Parse(time.RFC3339Nano, string(s))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is not a moment; write it like 2026-11-27T10:00:00Z", field.Quote(string(s)))
	}
	if y := t.UTC().Year(); y < 1970 || y > 9999 {
		return time.Time{}, fmt.Errorf("%s is out of range, 1970 to 9999", field.Quote(string(s)))
	}
	return t, nil
}

// Event changes a room between two moments, and may hold everybody for some time before.
type Event struct {
	ID          EventID
	Name        string `key:"name" label:"Name" group:"Event" required:"true" word:"true" max:"64" doc:"1 to 64 letters, digits, _ and -; unique in the room."`
	Description string `key:"description" label:"Description" group:"Event" max:"1024" doc:"Free text, at most 1024 bytes."`

	// Start and End bound the event: Start belongs to it, End does not.
	Start Stamp `key:"event_start_time" label:"Start" group:"Event" required:"true" moment:"true" doc:"Start, like 2026-11-27T10:00:00Z."`
	End   Stamp `key:"event_end_time" label:"End" group:"Event" required:"true" moment:"true" doc:"End; at least a minute after the start."`
	// Prequeue is when the event begins to hold everybody without a session; empty means
	// that it does not.
	Prequeue       Stamp `key:"prequeue_start_time" label:"Prequeue" group:"Event" moment:"true" doc:"Start of the prequeue, in which new visitors wait; at least 5 minutes before the event starts. No prequeue by default."`
	ShuffleAtStart bool  `key:"shuffle_at_event_start" label:"Shuffle" group:"Event" default:"false" doc:"Put the visitors who are waiting at the start in random order, before all visitors who arrive later. Requires prequeue_start_time."`
	Suspended      bool  `key:"suspended" label:"Suspended" group:"Event" default:"false" doc:"Turn the event off, even while it runs."`

	Overrides

	// Ramp changes the limits while the event runs, in the order of its steps; empty means that they stay.
	Ramp []Step `key:"ramp" label:"Ramp" group:"Event" ours:"true" doc:"Steps in which the limits rise after the start, so that the origin warms up: each holds until the next. No step may be above the event's limits, which hold before the first step."`

	// Repeat makes further occurrences of the event; the zero value means none.
	Repeat Repeat `key:"repeat" ours:"true" doc:"When the event repeats. It happens once by default."`

	// Seed decides a shuffle: 32 random bytes, secret until it was done. See [Event.Occurrence].
	Seed [32]byte

	CreatedOn, ModifiedOn time.Time
}

// Step is a member of [Event.Ramp]. A limit of zero is the event's own.
type Step struct {
	After time.Duration `key:"after" required:"true" min:"0s" max:"168h" doc:"Time since the start, like 10m."`
	// Over is how long the limits take to get there, from those that held until After; zero means at once.
	Over              time.Duration `key:"over" default:"0s" min:"0s" max:"168h" doc:"How long the limits take to get there, along an S curve: slowly at first, fastest in the middle, slowly at the end. At once by default."`
	TotalActiveUsers  int           `key:"total_active_users" default:"0" min:"0" max:"2147483647" doc:"Active users from then on; 0 means as many as the event allows."`
	NewUsersPerMinute int           `key:"new_users_per_minute" default:"0" min:"0" max:"2147483647" doc:"New users per minute from then on; 0 means as many as the event allows."`
}

// set returns settings with the limits of the step in the place of their own.
func (p Step) set(s Settings) Settings {
	s.TotalActiveUsers, s.NewUsersPerMinute = cmp.Or(p.TotalActiveUsers, s.TotalActiveUsers), cmp.Or(p.NewUsersPerMinute, s.NewUsersPerMinute)
	return s
}

// curve is how far the limits are, in ten thousandths, after each twentieth of a step's Over: the logistic function with steepness 10
// about the middle, from 0 to all. Whole numbers, so that every machine of a cluster has the same limits.
var curve = [20]int{44, 114, 229, 413, 701, 1140, 1781, 2658, 3759, 5000, 6241, 7342, 8219, 8860, 9299, 9587, 9771, 9886, 9956, 10000}

// curveLeast is the shortest Over: a second for each part of the curve.
const curveLeast = time.Duration(len(curve)) * time.Second

// Ramped returns an event's settings with the limits that its ramp has so long after the start, and when they change next, since the
// start; 0 if the ramp has ended.
func (e Event) Ramped(s Settings, since time.Duration) (now Settings, next time.Duration) {
	now = s
	for _, step := range e.Ramp {
		from, to := now, step.set(s)
		parts := curve[:]
		if step.Over == 0 {
			parts = curve[len(curve)-1:]
		}
		for i, part := range parts {
			at := step.After
			if step.Over > 0 {
				at += step.Over * time.Duration(i+1) / time.Duration(len(curve))
			}
			if since < at {
				return now, at
			}
			between := func(a, b int) int { return a + (b-a)*part/curve[len(curve)-1] }
			now.TotalActiveUsers = between(from.TotalActiveUsers, to.TotalActiveUsers)
			now.NewUsersPerMinute = between(from.NewUsersPerMinute, to.NewUsersPerMinute)
		}
	}
	return now, 0
}

// Overrides are the settings of an event: the fields of a room that are marked for it, with the
// same names. Nil inherits what the room has at the moment.
type Overrides struct {
	// TotalActiveUsers and NewUsersPerMinute are set together or not at all.
	TotalActiveUsers      *int
	NewUsersPerMinute     *int
	SessionDuration       *time.Duration
	DisableSessionRenewal *bool
	QueueingMethod        *QueueingMethod
	InviteOnly            *bool
	CustomPageHTML        *string
	TurnstileMode         *string
	TurnstileAction       *string
}

// Over returns the room with every override that is set in the place of its own value.
func (o Overrides) Over(r Room) Room {
	from, to := reflect.ValueOf(o), reflect.ValueOf(&r).Elem()
	for _, f := range overridable {
		if v, given := f.override.In(from); given {
			to.FieldByIndex(f.room.Index).Set(v)
		}
	}
	return r
}

// Overriding returns overrides that set everything that an event can, to what the room has.
func (r Room) Overriding() (o Overrides) {
	from, to := reflect.ValueOf(r), reflect.ValueOf(&o).Elem()
	for _, f := range overridable {
		f.override.Make(to).Set(from.FieldByIndex(f.room.Index))
	}
	return o
}

// Clone returns overrides that share nothing with these.
func (o Overrides) Clone() Overrides {
	from, to := reflect.ValueOf(o), reflect.ValueOf(&o).Elem()
	for _, f := range overridable {
		if v, given := f.override.In(from); given {
			f.override.Make(to).Set(v)
		}
	}
	return o
}

// Units of [Repeat.Every].
const (
	EveryDay  = "day"
	EveryWeek = "week"
)

// Repeat says when an event happens again. An occurrence keeps its time of day by the
// clocks of TimeZone, also when they are changed.
type Repeat struct {
	// Every is EveryDay, EveryWeek, or empty for no repetition.
	Every string `key:"every" enum:"day,week" doc:"Unit of interval."`
	// Interval zero means 1.
	Interval int `key:"interval" min:"1" max:"366" doc:"Number of days or weeks between two occurrences; 1 by default."`
	// Times zero means without end, or until Until. The first occurrence counts.
	Times    int    `key:"times" min:"1" max:"1000" doc:"Number of occurrences, including the first. Unlimited by default."`
	Until    Stamp  `key:"until" moment:"true" doc:"No occurrence starts after this time."`
	TimeZone string `key:"time_zone" doc:"Time zone in which the time of day stays the same, like Europe/Berlin. UTC by default."`
}

// Occurrence is one time that an event happens.
type Occurrence struct {
	Number     int       // 0, 1, 2 …
	Prequeue   time.Time // zero without a prequeue
	Start, End time.Time
	From       time.Time // Prequeue, or else Start: since when the event is active
}

// Occurrence returns the occurrence with the number, and whether there is one. The event has
// passed [Event.Check].
func (e Event) Occurrence(number int) (o Occurrence, ok bool) {
	return e.occurrence(number, new(zones).of(&e))
}

// zones are the time zones that were read, by name: reading one takes longer than all the rest of an occurrence, so whoever looks at
// many occurrences keeps them.
type zones map[string]*time.Location

// of returns the time zone of an event's repetition; nil when there is none.
func (z *zones) of(e *Event) *time.Location {
	if e.Repeat.Every == "" {
		return nil
	}
	zone, ok := (*z)[e.Repeat.TimeZone]
	if !ok {
		zone, _ = time.LoadLocation(e.Repeat.TimeZone)
		if *z == nil {
			*z = zones{}
		}
		(*z)[e.Repeat.TimeZone] = zone
	}
	return zone
}

func (e Event) occurrence(number int, zone *time.Location) (o Occurrence, ok bool) {
	start, err := e.Start.Time()
	end, err2 := e.End.Time()
	if err != nil || err2 != nil || number < 0 || number > maxNumber {
		return o, false
	}
	first := start
	if number > 0 {
		if e.Repeat.Every == "" || e.Repeat.Times > 0 && number >= e.Repeat.Times {
			return o, false
		}
		if zone == nil {
			return o, false
		}
		days := number * max(1, e.Repeat.Interval)
		if e.Repeat.Every == EveryWeek {
			days *= 7
		}
		start = start.In(zone).AddDate(0, 0, days)
		if e.Repeat.Until != "" {
			if until, err := e.Repeat.Until.Time(); err == nil && start.After(until) {
				return o, false
			}
		}
	}
	o = Occurrence{Number: number, Start: start, End: start.Add(end.Sub(first)), From: start}
	if e.Prequeue != "" {
		if p, err := e.Prequeue.Time(); err == nil {
			o.Prequeue = start.Add(p.Sub(first))
			o.From = o.Prequeue
		}
	}
	return o, true
}

// maxNumber bounds the numbers of occurrences: almost three thousand years of days.
const maxNumber = 1 << 20

// OccurrenceSeed decides the shuffle of an occurrence: the seed of the event for the first, and
// for those after it one made from that.
func (e Event) OccurrenceSeed(number int) [32]byte {
	if number == 0 {
		return e.Seed
	}
	h := hmac.New(sha256.New, e.Seed[:])
	h.Write([]byte("anteroom-occurrence"))
	var be [8]byte
	binary.BigEndian.PutUint64(be[:], uint64(number))
	h.Write(be[:])
	return [32]byte(h.Sum(nil))
}

// Next returns the first occurrence that has not ended at a moment.
func (e Event) Next(at time.Time) (o Occurrence, ok bool) { return e.next(at, new(zones)) }

func (e *Event) next(at time.Time, read *zones) (o Occurrence, ok bool) {
	zone := read.of(e)
	first, ok := e.occurrence(0, zone)
	if !ok || at.Before(first.End) || e.Repeat.Every == "" {
		return first, ok && at.Before(first.End)
	}
	days := max(1, e.Repeat.Interval)
	if e.Repeat.Every == EveryWeek {
		days *= 7
	}
	// Clocks are changed by an hour or so: one before what even days say is early enough.
	n := max(0, int(at.Sub(first.End)/(time.Duration(days)*24*time.Hour))-1)
	for ; ; n++ {
		if o, ok = e.occurrence(n, zone); !ok || at.Before(o.End) {
			return o, ok
		}
	}
}

// NextEvent returns the event that is active at a moment, or else the one that becomes so first,
// with its occurrence; nil when none is to come. Suspended events are left out.
func (r Room) NextEvent(at time.Time) (next *Event, when Occurrence) {
	read := new(zones)
	for i := range r.Events {
		e := &r.Events[i]
		o, ok := e.next(at, read)
		if ok && !e.Suspended && (next == nil || o.From.Before(when.From)) {
			next, when = e, o
		}
	}
	return next, when
}

// Latest returns the last occurrence that has become active by a moment, also when it is over.
func (e Event) Latest(at time.Time) (o Occurrence, ok bool) {
	read := new(zones)
	number, zone := 0, read.of(&e)
	if next, ok := e.next(at, read); ok {
		number = next.Number
	} else if last := sort.Search(maxNumber+1, func(n int) bool { _, ok := e.occurrence(n, zone); return !ok }); last > 0 {
		number = last - 1
	}
	for ; number >= 0; number-- {
		if o, ok = e.occurrence(number, zone); ok && !at.Before(o.From) {
			return o, true
		}
	}
	return Occurrence{}, false
}

// Phase says how far an event is.
type Phase uint8

const (
	// NoEvent: the room's own settings are in force.
	NoEvent Phase = iota
	// Prequeueing: an event holds everybody without a session.
	Prequeueing
	// Started: an event's settings are in force.
	Started
)

// String returns the phase's word.
func (p Phase) String() string { return [...]string{"none", "prequeueing", "started"}[p] }

// InForce is what a room is at a moment. It is shared and must not be changed.
type InForce struct {
	Settings // the room's, with the event's over them and the operator's controls applied
	Phase    Phase
	// Event is the active event, with its occurrence; nil when there is none.
	Event *Event
	Occurrence
	// Challenge asks visitors who wait to solve a challenge, where the process has one.
	Challenge bool
	// Message is the operator's to everybody who waits; empty means none.
	Message string
	// Remaining is what is left for visitors, as the operator says; with none left, the room is closed.
	Remaining Remaining
	// Until is the moment at which this ends; the zero Time when nothing is planned.
	Until Time
}

// Ahead are limits that are going to be in force, in the order of their beginning.
type Ahead struct{ Limits []LimitsFrom }

// LimitsFrom are limits that are in force from a moment on.
type LimitsFrom struct {
	From                                Time
	TotalActiveUsers, NewUsersPerMinute int
}

// At returns what is in force at a moment: the room's settings, those of the active event
// over them, and the operator's controls over both. A moment belongs to the event that ends
// last among those active: the one that a mistake in planning would hide otherwise.
func (r Room) At(now Time) *InForce { return r.at(now, new(zones)) }

func (r Room) at(now Time, read *zones) *InForce {
	f := &InForce{Settings: r.Settings, Message: r.Controls.Message, Remaining: r.Controls.Remaining}
	at := now.Std()
	until := func(t time.Time) {
		if u := TimeOf(t); u > now && (f.Until == 0 || u < f.Until) {
			f.Until = u
		}
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.Suspended {
			continue
		}
		o, ok := e.next(at, read)
		if !ok {
			continue
		}
		until(o.From)
		until(o.Start)
		until(o.End)
		if at.Before(o.From) || f.Event != nil && !o.End.After(f.Occurrence.End) {
			continue
		}
		f.Event, f.Occurrence, f.Phase = e, o, Started
		if at.Before(o.Start) {
			f.Phase = Prequeueing
		}
	}
	asked := r
	f.Settings.RenewalEnded = r.Controls.RenewalEnded
	if f.Event != nil {
		asked = f.Event.Over(r)
		f.Settings = asked.Settings
		var next time.Duration
		f.Settings, next = f.Event.Ramped(asked.Settings, at.Sub(f.Occurrence.Start))
		until(f.Occurrence.Start.Add(next))
		f.Settings.Prequeueing = f.Phase == Prequeueing
		if f.Settings.DisableSessionRenewal {
			f.Settings.RenewalEnded = r.renewalEnded(TimeOf(f.Occurrence.From))
		}
	}
	f.Challenge = asked.TurnstileMode != ChallengeOff
	f.Settings.InfiniteQueue = f.Challenge && asked.TurnstileAction == InfiniteQueue
	f.Settings.QueueAll = f.Settings.QueueAll || r.Controls.Paused
	f.Settings.Draining = r.Controls.Draining
	f.Settings.ResetAt = r.Controls.ResetAt
	if f.SoldOut() {
		f.Settings.QueueingMethod, f.Settings.QueueAll, f.Settings.Prequeueing = Reject, false, false
	}
	if r.Suspended {
		f.Phase, f.Event, f.Occurrence, f.Settings = NoEvent, nil, Occurrence{}, r.Settings
	}
	return f
}

// AtWithAhead is At with [Settings.Ahead]: what the limits change to in the next four hours, or less of them for a room with many events.
func (r Room) AtWithAhead(now Time) *InForce {
	read := new(zones)
	f := r.at(now, read)
	var ahead Ahead
	last := f
	for work := 0; work < aheadWork; work += len(r.Events) {
		if last.Until == 0 || last.Until > now.Add(aheadMost) {
			break
		}
		next := r.at(last.Until, read)
		if next.TotalActiveUsers != last.TotalActiveUsers || next.NewUsersPerMinute != last.NewUsersPerMinute {
			ahead.Limits = append(ahead.Limits, LimitsFrom{From: last.Until, TotalActiveUsers: next.TotalActiveUsers, NewUsersPerMinute: next.NewUsersPerMinute})
		}
		last = next
	}
	if len(ahead.Limits) > 0 {
		f.Ahead = &ahead
	}
	return f
}

// renewalEnded is since when sessions are not renewed, given that they are not from a moment on
// at which an event begins: that moment, unless it was so before.
func (r Room) renewalEnded(from Time) Time {
	if before := r.At(from - 1); before.DisableSessionRenewal {
		return before.RenewalEnded
	}
	return from
}

// Controls are the operator's hand on a room. They are not settings: whoever writes the
// settings anew does not undo them.
type Controls struct {
	// Paused holds everybody without a session, as QueueAll does, until resumed.
	Paused bool
	// Draining turns newcomers away; those in line are let in as ever.
	Draining bool
	// ResetAt: places of before it are void; whoever had one is new.
	ResetAt Time
	// RenewalEnded is when the room's own DisableSessionRenewal was set; zero when it always was.
	RenewalEnded Time
	// Message is plain text that the waiting page shows to everybody, at most MaxMessageLength
	// characters; empty means none.
	Message string `json:",omitempty"`
	// Remaining is what is left for visitors. At 0 the room is closed as with [Reject]: nobody new is admitted, and sessions stay.
	Remaining Remaining `json:",omitzero"`
}

// Remaining is how many there are left of what visitors wait for. The zero value says nothing of that.
type Remaining struct {
	Told  bool // Count is known
	Count int  // 0 to MaxRemaining
}

// SoldOut says that nothing is left.
func (f *InForce) SoldOut() bool { return f.Remaining.Told && f.Remaining.Count == 0 }

// Check returns the faults of the controls, with paths relative to them.
func (c Controls) Check() Faults {
	fault := func(problem, fix string) Faults { return Faults{{Path: "message", Problem: problem, Fix: fix}} }
	if n := c.Remaining.Count; n < 0 || n > MaxRemaining || n > 0 && !c.Remaining.Told {
		return Faults{{Path: "remaining", Problem: fmt.Sprintf("is %d", n), Fix: fmt.Sprintf("0 to %d", MaxRemaining)}}
	}
	if !utf8.ValidString(c.Message) {
		return fault("is not UTF-8", "send it in UTF-8")
	}
	if n := utf8.RuneCountInString(c.Message); n > MaxMessageLength {
		return fault(fmt.Sprintf("has %d characters", n), fmt.Sprintf("at most %d", MaxMessageLength))
	}
	if i := strings.IndexFunc(c.Message, steers); i >= 0 {
		r, _ := utf8.DecodeRuneInString(c.Message[i:])
		return fault(fmt.Sprintf("has the unprintable character %U", r), "one line of plain text, without controls")
	}
	return nil
}

// steers reports whether a character is no text: a control, the end of a line, or one that turns
// the direction of what follows. Joiners, which some scripts and pictures need, are text.
func steers(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r == '\u200e' || r == '\u200f' || r == '\u061c' ||
		r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' || r == '\ufeff'
}

// Check returns every fault of the event, with paths relative to it. Overlaps with the other
// events of its room are [CheckEvents]' to find.
func (e Event) Check() Faults {
	f := checkFields(ofEvent, reflect.ValueOf(e))
	add := func(path, problem, fix string) {
		f = append(f, Fault{Path: path, Problem: problem, Fix: fix})
	}
	moment := func(path string, s Stamp) (time.Time, bool) {
		if s == "" {
			return time.Time{}, false
		}
		t, err := s.Time()
		if err != nil {
			add(path, err.Error(), "")
		}
		return t, err == nil
	}
	start, ok := moment("event_start_time", e.Start)
	end, ok2 := moment("event_end_time", e.End)
	if ok && ok2 && end.Sub(start) < MinEventDuration {
		add("event_end_time", fmt.Sprintf("%s is less than %v after event_start_time", field.Quote(string(e.End)), MinEventDuration), "an event lasts at least a minute")
	}
	prequeue, ok3 := moment("prequeue_start_time", e.Prequeue)
	if ok && ok3 && start.Sub(prequeue) < MinPrequeue {
		add("prequeue_start_time", fmt.Sprintf("%s is less than %v before event_start_time", field.Quote(string(e.Prequeue)), MinPrequeue), "start it earlier, or leave out the prequeue")
	}
	if e.ShuffleAtStart && e.Prequeue == "" {
		add("shuffle_at_event_start", "needs a prequeue: without one, no visitor is waiting at the start", "set prequeue_start_time")
	}
	f = append(f, e.Overrides.check()...)
	f = append(f, e.checkRamp(end.Sub(start), ok && ok2)...)
	return append(f, e.Repeat.check(start, end, prequeue)...)
}

// checkRamp returns the faults of the ramp by itself. Timed says that the event's length is known.
func (e Event) checkRamp(lasts time.Duration, timed bool) Faults {
	if len(e.Ramp) > MaxRampSteps {
		return Faults{{Path: "ramp", Problem: fmt.Sprintf("has %d steps", len(e.Ramp)), Fix: fmt.Sprintf("at most %d", MaxRampSteps)}}
	}
	var f Faults
	for i, step := range e.Ramp {
		path := fmt.Sprintf("ramp[%d]", i)
		f = append(f, checkFields(ofStep, reflect.ValueOf(step)).under(path)...)
		switch {
		case timed && step.After >= lasts && lasts > 0:
			f = append(f, Fault{Path: path + ".after", Problem: fmt.Sprintf("%v is not before the end of the event, which lasts %v", step.After, lasts), Fix: "end later, or leave the step out"})
		case i > 0 && step.After <= e.Ramp[i-1].After:
			f = append(f, Fault{Path: path + ".after", Problem: fmt.Sprintf("%v is not later than the step before", step.After), Fix: "put the steps in order"})
		case step.Over > 0 && step.Over < curveLeast:
			f = append(f, Fault{Path: path + ".over", Problem: fmt.Sprintf("%v is too short for a curve", step.Over), Fix: fmt.Sprintf("at least %v, or 0s for at once", curveLeast)})
		case timed && step.After+step.Over > lasts && lasts > 0:
			f = append(f, Fault{Path: path + ".over", Problem: fmt.Sprintf("the limits are reached %v after the start, and the event lasts %v", step.After+step.Over, lasts), Fix: "end later, or let them rise faster"})
		case step.Over > 0 && i+1 < len(e.Ramp) && step.After+step.Over > e.Ramp[i+1].After:
			f = append(f, Fault{Path: path + ".over", Problem: fmt.Sprintf("the limits are reached %v after the start, and the next step begins at %v", step.After+step.Over, e.Ramp[i+1].After), Fix: "let them rise faster, or begin the next step later"})
		}
		if step.TotalActiveUsers == 0 && step.NewUsersPerMinute == 0 {
			f = append(f, Fault{Path: path, Problem: "changes nothing", Fix: "set new_users_per_minute, total_active_users or both"})
		}
	}
	return f
}

func (o Overrides) check() Faults {
	var f Faults
	if (o.TotalActiveUsers == nil) != (o.NewUsersPerMinute == nil) {
		missing := "total_active_users"
		if o.NewUsersPerMinute == nil {
			missing = "new_users_per_minute"
		}
		f = append(f, Fault{Path: missing, Problem: "is missing", Fix: "an event sets both limits or neither"})
	}
	return f
}

func (r Repeat) check(start, end, prequeue time.Time) Faults {
	var f Faults
	add := func(path, problem, fix string) {
		f = append(f, Fault{Path: "repeat." + path, Problem: problem, Fix: fix})
	}
	if r.Every == "" {
		if r != (Repeat{}) {
			add("every", "is missing", "day or week")
		}
		return f
	}
	days := max(1, r.Interval)
	if r.Every == EveryWeek {
		days *= 7
	}
	if r.Until != "" {
		if _, err := r.Until.Time(); err != nil {
			add("until", err.Error(), "")
		}
	}
	if _, err := time.LoadLocation(r.TimeZone); err != nil {
		add("time_zone", fmt.Sprintf("%s is not a time zone", field.Quote(r.TimeZone)), "an IANA name like Europe/Berlin")
	}
	if from := prequeue; !end.IsZero() {
		if from.IsZero() {
			from = start
		}
		// An hour less: a day on which the clocks are put forward is that much shorter.
		if end.Sub(from) > time.Duration(days)*24*time.Hour-time.Hour {
			add("interval", "is shorter than the event with its prequeue", "an occurrence has to end before the next begins")
		}
	}
	return f
}

// CheckEvents returns the faults of a room's events among each other: names used twice, and
// active times that overlap. Suspended events take part, for they can be resumed.
func CheckEvents(events []Event) Faults {
	var f Faults
	if len(events) > MaxEventsPerRoom {
		f = append(f, Fault{Path: "events", Problem: fmt.Sprintf("has %d events", len(events)), Fix: fmt.Sprintf("at most %d; delete some", MaxEventsPerRoom)})
		return f
	}
	type span struct {
		event    int
		from, to time.Time
	}
	var spans []span
	names := map[string]bool{}
	for i, e := range events {
		if names[e.Name] {
			f = append(f, Fault{Path: fmt.Sprintf("events[%d].name", i), Problem: fmt.Sprintf("%s is another event's name", field.Quote(e.Name)), Fix: "names are unique in a room"})
		}
		names[e.Name] = true
		zone := new(zones).of(&e)
		for n := range checkedOccurrences {
			o, ok := e.occurrence(n, zone)
			if !ok {
				break
			}
			spans = append(spans, span{i, o.From, o.End})
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	reported := map[[2]int]bool{}
	last := 0 // of those before: the one that ends last
	for i := 1; i < len(spans); i++ {
		a, b := spans[last], spans[i]
		if pair := [2]int{min(a.event, b.event), max(a.event, b.event)}; b.from.Before(a.to) && a.event != b.event && !reported[pair] {
			reported[pair] = true
			f = append(f, Fault{Path: fmt.Sprintf("events[%d]", pair[1]),
				Problem: fmt.Sprintf("event %s overlaps event %s at %s", field.Quote(events[pair[1]].Name), field.Quote(events[pair[0]].Name), b.from.UTC().Format(time.RFC3339)),
				Fix:     "an event, with its prequeue, may start when another ends; for overlapping events use two rooms"})
		}
		if b.to.After(a.to) {
			last = i
		}
	}
	return f
}

// checkedOccurrences is how far CheckEvents looks ahead in a repetition: a year of days.
const checkedOccurrences = 400
