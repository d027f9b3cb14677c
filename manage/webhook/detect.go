package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
)

// View is a room at a moment.
type View struct {
	Zone   anteroom.Zone
	Room   *anteroom.Room // it is only read
	Status anteroom.Status
}

// Told is a message for one webhook.
type Told struct {
	Webhook anteroom.WebhookID
	Message Message
}

// Pace says how long a condition has to last before it is reported. The zero value of a field means the default.
type Pace struct {
	Queueing time.Duration // somebody waits; 5 s
	Gap      time.Duration // something is not so any more; 60 s
	Stuck    time.Duration // nobody is let in; 2 min
	Events   time.Duration // between two looks at planned events; 10 s
}

func (p Pace) withDefaults() Pace {
	orElse := func(d *time.Duration, is time.Duration) {
		if *d == 0 {
			*d = is
		}
	}
	orElse(&p.Queueing, 5*time.Second)
	orElse(&p.Gap, time.Minute)
	orElse(&p.Stuck, 2*time.Minute)
	orElse(&p.Events, 10*time.Second)
	return p
}

// saturation is the part of a limit, in percent, from which it counts as used up.
const saturation = 95

// Detector notices what happens. It is shown the rooms about once a second, and knows the time only
// from that. Not safe for concurrent use.
type Detector struct {
	pace   Pace
	rooms  map[anteroom.RoomID]*roomState
	events time.Time // when planned events are looked at again
	dirty  bool
}

// roomState is what was told of a room.
type roomState struct {
	Queue   lasting                                 `json:"queue"`
	Longest int                                     `json:"longest,omitempty"`
	Stuck   lasting                                 `json:"stuck"`
	Active  lasting                                 `json:"active"` // total_active_users is used up
	New     lasting                                 `json:"new"`    // new_users_per_minute is
	Hooks   map[anteroom.WebhookID]*hookState       `json:"hooks,omitempty"`
	Starts  map[anteroom.WebhookID]map[string]int64 `json:"starts,omitempty"` // Unix times of starts that were told, by event and number
}

// hookState is what one webhook was told of a room.
type hookState struct {
	Longer bool `json:"longer,omitempty"`
	Active bool `json:"active,omitempty"`
	New    bool `json:"new,omitempty"`
}

// lasting is a condition that counts when it has held for some time, short gaps included, and is
// over when it has not held for some.
type lasting struct {
	Since time.Time `json:"since,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	Told  bool      `json:"told,omitempty"`
}

// look is shown whether the condition holds. It reports whether it is over now.
func (l *lasting) look(now time.Time, holds bool, gap time.Duration) (over bool) {
	if holds {
		if l.Since.IsZero() {
			l.Since = now
		}
		l.Last = now
		return false
	}
	if l.Since.IsZero() || now.Sub(l.Last) < gap {
		return false
	}
	*l = lasting{Told: l.Told}
	return true
}

// lasted is for how long it has held; valid while it holds.
func (l *lasting) lasted() time.Duration { return l.Last.Sub(l.Since) }

// NewDetector returns a detector that continues from the saved state of another one; nil starts without any.
func NewDetector(pace Pace, saved []byte) (*Detector, error) {
	d := &Detector{pace: pace.withDefaults(), rooms: map[anteroom.RoomID]*roomState{}}
	if len(saved) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(saved, &d.rooms); err != nil {
		d.rooms = map[anteroom.RoomID]*roomState{}
		return d, fmt.Errorf("webhook: the record of past notifications cannot be read: %w", err)
	}
	maps.DeleteFunc(d.rooms, func(_ anteroom.RoomID, r *roomState) bool { return r == nil })
	for _, r := range d.rooms {
		maps.DeleteFunc(r.Hooks, func(_ anteroom.WebhookID, h *hookState) bool { return h == nil })
	}
	return d, nil
}

// Save returns what was reported about the rooms, and whether that has changed since the last call.
func (d *Detector) Save() (data []byte, changed bool) {
	if !d.dirty {
		return nil, false
	}
	d.dirty = false
	kept := map[anteroom.RoomID]*roomState{}
	for id, r := range d.rooms {
		if r.Queue.Told || r.Stuck.Told || r.Active.Told || r.New.Told || len(r.Hooks) > 0 || len(r.Starts) > 0 {
			kept[id] = r
		}
	}
	data, err := json.Marshal(kept)
	return data, err == nil
}

// Look gets every room that can be seen now and the webhooks, and returns which message goes to which webhook. It
// remembers what it knows about rooms that are missing from the views until they are deleted: known reports whether a
// room exists.
func (d *Detector) Look(now time.Time, views []View, hooks []anteroom.Webhook, known func(anteroom.RoomID) bool) (told []Told) {
	for id := range d.rooms {
		if !known(id) {
			delete(d.rooms, id)
			d.dirty = true
		}
	}
	planned := !now.Before(d.events)
	if planned {
		d.events = now.Add(d.pace.Events)
	}
	for i := range views {
		v := &views[i]
		r := d.rooms[v.Room.ID]
		if r == nil {
			r = &roomState{}
			d.rooms[v.Room.ID] = r
		}
		l := looking{d: d, now: now, v: v, r: r, hooks: hooks}
		l.conditions()
		if planned {
			l.planned()
		}
		r.forget(hooks)
		told = append(told, l.told...)
	}
	if len(told) > 0 {
		d.dirty = true
	}
	return told
}

// forget drops what webhooks were told that are gone.
func (r *roomState) forget(hooks []anteroom.Webhook) {
	gone := func(id anteroom.WebhookID) bool {
		return !slices.ContainsFunc(hooks, func(h anteroom.Webhook) bool { return h.ID == id })
	}
	maps.DeleteFunc(r.Hooks, func(id anteroom.WebhookID, _ *hookState) bool { return gone(id) })
	maps.DeleteFunc(r.Starts, func(id anteroom.WebhookID, _ map[string]int64) bool { return gone(id) })
}

// looking is one look at one room.
type looking struct {
	d     *Detector
	now   time.Time
	v     *View
	r     *roomState
	hooks []anteroom.Webhook
	told  []Told
}

// tell tells all webhooks that want to hear it.
func (l *looking) tell(m Message) {
	for _, h := range l.hooks {
		l.tellOne(h, m)
	}
}

func (l *looking) tellOne(h anteroom.Webhook, m Message) {
	if !h.Wants(m.Type) || !h.Covers(l.v.Zone.ID, l.v.Room.ID) {
		return
	}
	room := l.v.Room
	m.ID, m.At = newID(), l.now.UTC()
	m.Room = &Room{Named{string(room.ID), room.Name}, Named{string(l.v.Zone.ID), l.v.Zone.Name}}
	m.Text = room.Name + " (" + l.v.Zone.Name + "): " + m.Text
	l.told = append(l.told, Told{h.ID, m})
}

// hook returns what a webhook was told of the room.
func (l *looking) hook(id anteroom.WebhookID) *hookState {
	h := l.r.Hooks[id]
	if h == nil {
		h = &hookState{}
		if l.r.Hooks == nil {
			l.r.Hooks = map[anteroom.WebhookID]*hookState{}
		}
		l.r.Hooks[id] = h
	}
	return h
}

// conditions looks at the numbers.
func (l *looking) conditions() {
	st, r, pace := l.v.Status, l.r, l.d.pace
	on := !l.v.Room.Suspended
	waits := on && st.Waiting > 0
	figures := figuresOf(st)

	if waits {
		r.Longest = max(r.Longest, st.Waiting)
	}
	since := r.Queue
	if over := r.Queue.look(l.now, waits, pace.Gap); over {
		if r.Queue.Told {
			line := Line{Seconds: int(since.lasted() / time.Second), Longest: r.Longest}
			l.tell(Message{Type: anteroom.RoomRecovered, Figures: figures, Line: &line,
				Text: fmt.Sprintf("the queue is empty. It lasted %s and had up to %d visitors.", spoken(since.lasted()), line.Longest)})
			r.Queue.Told, l.d.dirty = false, true
		}
		r.Longest = 0
	} else if waits && !r.Queue.Told && r.Queue.lasted() >= pace.Queueing {
		r.Queue.Told, l.d.dirty = true, true
		l.tell(Message{Type: anteroom.RoomQueueing, Figures: figures, Text: "visitors are waiting. " + numbers(st)})
	}

	free := min(st.TotalActiveUsers-st.ActiveUsers-st.Offered, st.NewPerMinute-st.AdmittedLastMin)
	stuck := waits && free > 0 && st.AdmittedLastMin == 0 && !held(st)
	if over := r.Stuck.look(l.now, stuck, pace.Gap); over {
		l.d.dirty = l.d.dirty || r.Stuck.Told
		r.Stuck.Told = false
	} else if stuck && !r.Stuck.Told && r.Stuck.lasted() >= pace.Stuck {
		r.Stuck.Told, l.d.dirty = true, true
		l.tell(Message{Type: anteroom.RoomStuck, Figures: figures,
			Text: fmt.Sprintf("the queue is stuck. No visitor was admitted for %s, although %d more could be admitted. %s", spoken(r.Stuck.lasted()), free, numbers(st))})
	}

	passes := st.InForce != nil && st.InForce.QueueingMethod == anteroom.Passthrough
	l.saturated(&r.Active, on && !passes && used(st.ActiveUsers+st.Offered, st.TotalActiveUsers), "total_active_users",
		fmt.Sprintf("%d of %d", st.ActiveUsers+st.Offered, st.TotalActiveUsers), func(h *hookState) *bool { return &h.Active })
	l.saturated(&r.New, on && !passes && used(st.AdmittedLastMin, st.NewPerMinute), "new_users_per_minute",
		fmt.Sprintf("%d of %d", st.AdmittedLastMin, st.NewPerMinute), func(h *hookState) *bool { return &h.New })

	for _, h := range l.hooks {
		if !h.Wants(anteroom.RoomQueueLonger) || !h.Covers(l.v.Zone.ID, l.v.Room.ID) {
			continue
		}
		before := l.r.Hooks[h.ID] != nil && l.r.Hooks[h.ID].Longer
		switch {
		case !before && waits && st.Waiting > h.LongerThan:
			l.hook(h.ID).Longer = true
			l.tellOne(h, Message{Type: anteroom.RoomQueueLonger, Figures: figures, LongerThan: h.LongerThan,
				Text: fmt.Sprintf("more than %d visitors are waiting. %s", h.LongerThan, numbers(st))})
		case before && (!waits || st.Waiting <= h.LongerThan-h.LongerThan/5):
			l.hook(h.ID).Longer = false
			l.d.dirty = true
		}
	}
}

// held reports whether somebody has decided that nobody is let in.
func held(st anteroom.Status) bool {
	f := st.InForce
	return f != nil && (f.QueueAll || f.Prequeueing || f.QueueingMethod == anteroom.Reject)
}

func used(n, limit int) bool { return limit > 0 && int64(n)*100 >= int64(limit)*saturation }

// saturated looks at one limit, for each webhook with its own minutes.
func (l *looking) saturated(s *lasting, is bool, limit, numbers string, told func(*hookState) *bool) {
	over := s.look(l.now, is, l.d.pace.Gap)
	for _, h := range l.hooks {
		if over {
			if state := l.r.Hooks[h.ID]; state != nil && *told(state) {
				*told(state), l.d.dirty = false, true
			}
			continue
		}
		if !is || s.lasted() < time.Duration(h.SaturatedMinutes)*time.Minute || !h.Wants(anteroom.RoomLimitSaturated) || !h.Covers(l.v.Zone.ID, l.v.Room.ID) {
			continue
		}
		if done := told(l.hook(h.ID)); !*done {
			*done = true
			l.tellOne(h, Message{Type: anteroom.RoomLimitSaturated, Figures: figuresOf(l.v.Status), Limit: &Limit{limit, int(s.lasted() / time.Minute)},
				Text: fmt.Sprintf("at least %d %% of %s has been in use for %s: %s.", saturation, limit, spoken(s.lasted()), numbers)})
		}
	}
}

// planned looks at events that are about to start.
func (l *looking) planned() {
	room := l.v.Room
	for _, starts := range l.r.Starts {
		maps.DeleteFunc(starts, func(_ string, at int64) bool { return at < l.now.Unix() })
	}
	if room.Suspended {
		return
	}
	for i := range room.Events {
		e := &room.Events[i]
		if e.Suspended {
			continue
		}
		o, ok := e.Next(l.now)
		wait := o.Start.Sub(l.now)
		if !ok || wait <= 0 || wait > anteroom.MaxMinutesBefore*time.Minute {
			continue
		}
		key := string(e.ID) + "/" + strconv.Itoa(o.Number)
		for _, h := range l.hooks {
			if !h.Wants(anteroom.RoomEventStarting) || !h.Covers(l.v.Zone.ID, room.ID) || wait > time.Duration(h.MinutesBefore)*time.Minute || l.r.Starts[h.ID][key] == o.Start.Unix() {
				continue
			}
			if l.r.Starts == nil {
				l.r.Starts = map[anteroom.WebhookID]map[string]int64{}
			}
			if l.r.Starts[h.ID] == nil {
				l.r.Starts[h.ID] = map[string]int64{}
			}
			l.r.Starts[h.ID][key] = o.Start.Unix()
			l.tellOne(h, starting(e, o, wait, l.v.Status))
		}
	}
}

func starting(e *anteroom.Event, o anteroom.Occurrence, wait time.Duration, st anteroom.Status) Message {
	m := Message{Type: anteroom.RoomEventStarting, Figures: figuresOf(st),
		Event: &Event{Named: Named{string(e.ID), e.Name}, Number: o.Number, Start: o.Start.UTC(), End: o.End.UTC()},
		Text:  fmt.Sprintf("the event %s starts in %s, at %s UTC.", e.Name, spoken(wait), o.Start.UTC().Format("2006-01-02 15:04"))}
	if !o.Prequeue.IsZero() {
		p := o.Prequeue.UTC()
		m.Event.Prequeue = &p
		m.Text += fmt.Sprintf(" Its prequeue starts at %s UTC.", p.Format("2006-01-02 15:04"))
	}
	return m
}

func figuresOf(st anteroom.Status) *Figures {
	f := &Figures{Waiting: st.Waiting, ActiveUsers: st.ActiveUsers, TotalActiveUsers: st.TotalActiveUsers, AdmittedLastMin: st.AdmittedLastMin, NewUsersPerMinute: st.NewPerMinute}
	if st.WaitKnown {
		f.EstimateSeconds = new(int(st.WaitOfNewcomer / time.Second))
	}
	return f
}

// numbers says a room's figures in a sentence.
func numbers(st anteroom.Status) string {
	s := fmt.Sprintf("%d in the queue, %d of %d active users, %d of %d admitted in the last minute", st.Waiting, st.ActiveUsers, st.TotalActiveUsers, st.AdmittedLastMin, st.NewPerMinute)
	if st.WaitKnown {
		s += ", estimated wait of a new visitor: " + spoken(st.WaitOfNewcomer)
	}
	return s + "."
}

// spoken says a duration as people do.
func spoken(d time.Duration) string {
	one := func(n int64, unit string) string {
		if n == 1 {
			return "1 " + unit
		}
		return strconv.FormatInt(n, 10) + " " + unit + "s"
	}
	switch s := int64((d + time.Second/2) / time.Second); {
	case s < 120:
		return one(s, "second")
	case s < 120*60:
		return one((s+30)/60, "minute")
	default:
		return one((s+1800)/3600, "hour")
	}
}
