package manage

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
)

// ownEvent returns a room that the API may change, and the place of one of its events.
func (t *tx) ownEvent(zone anteroom.ZoneID, room anteroom.RoomID, id anteroom.EventID) (r *Served, i int, err error) {
	if r, err = t.own(zone, room); err != nil {
		return nil, -1, err
	}
	if i = slices.IndexFunc(r.Events, func(e anteroom.Event) bool { return e.ID == id }); i < 0 {
		err = notFound("event", string(id))
	}
	return r, i, err
}

// checkEvent returns the faults of a room's event, alone and beside the others.
func (s *State) checkEvent(r *anteroom.Room, i int) error {
	e := &r.Events[i]
	f := e.Check()
	alone := *r
	alone.Events = []anteroom.Event{*e}
	for _, one := range alone.CheckLimits() {
		if path, ok := strings.CutPrefix(one.Path, "events[0]."); ok {
			one.Path = path
			f = append(f, one)
		}
	}
	if s.strict {
		f = append(f, checkPublished(e.Overrides)...)
	}
	if len(f) > 0 {
		return f.Err()
	}
	if n := len(r.Events); s.strict && n > strictEvents {
		f = append(f, anteroom.Fault{Path: "events", Problem: fmt.Sprintf("has %d events", n), Fix: fmt.Sprintf("at most %d, as api.strict asks for", strictEvents)})
	}
	return append(f, anteroom.CheckEvents(r.Events)...).Err()
}

// CreateEvent adds an event to a room. ID, seed and times are given by us.
func (m *Manager) CreateEvent(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, event anteroom.Event) (made anteroom.Event, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.own(zone, room)
		if err != nil {
			return err
		}
		made = copyEvent(event)
		made.ID, made.Seed = anteroom.EventID(newID()), newSeed()
		made.CreatedOn, made.ModifiedOn = t.now, t.now
		r := copyRoom(old.Room)
		r.Events = append(r.Events, made)
		if err := t.next.checkEvent(&r, len(r.Events)-1); err != nil {
			return err
		}
		_, err = t.setRoom("event.create", string(made.ID), old, r)
		return err
	})
	return made, err
}

// ChangeEvent changes an event. Changes that fn makes to ID, seed and creation times are ignored. An event that is
// rescheduled after it has begun gets a new seed, because the old one is public.
func (m *Manager) ChangeEvent(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, id anteroom.EventID, fn func(*anteroom.Event) error) (changed anteroom.Event, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		old, i, err := t.ownEvent(zone, room, id)
		if err != nil {
			return err
		}
		was := old.Events[i]
		e := copyEvent(was)
		if err := fn(&e); err != nil {
			return err
		}
		e.ID, e.Seed, e.CreatedOn, e.ModifiedOn = was.ID, was.Seed, was.CreatedOn, was.ModifiedOn
		if changed = e; reflect.DeepEqual(e, was) {
			return nil
		}
		if begun, err := was.Start.Time(); err == nil && e.Start != was.Start && !t.now.Before(begun) {
			e.Seed = newSeed()
		}
		e.ModifiedOn = t.now
		changed = e
		r := copyRoom(old.Room)
		r.Events[i] = e
		if err := t.next.checkEvent(&r, i); err != nil {
			return err
		}
		_, err = t.setRoom("event.change", string(id), old, r)
		return err
	})
	return changed, err
}

// DeleteEvent deletes an event.
func (m *Manager) DeleteEvent(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, id anteroom.EventID) error {
	return m.change(ctx, by, func(t *tx) error {
		old, i, err := t.ownEvent(zone, room, id)
		if err != nil {
			return err
		}
		r := copyRoom(old.Room)
		r.Events = slices.Delete(r.Events, i, i+1)
		_, err = t.setRoom("event.delete", string(id), old, r)
		return err
	})
}

// ChangeRules changes the rules of a room as a whole. A rule without an ID is new; one with
// the ID of a rule that is there keeps it, and its version counts up when something has
// changed. Last updates are set by us.
func (m *Manager) ChangeRules(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, fn func([]anteroom.Rule) ([]anteroom.Rule, error)) (rules []anteroom.Rule, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.own(zone, room)
		if err != nil {
			return err
		}
		if rules, err = fn(slices.Clone(old.Rules)); err != nil {
			return err
		}
		rules = slices.Clone(rules)
		before := map[anteroom.RuleID]anteroom.Rule{}
		for _, rule := range old.Rules {
			before[rule.ID] = rule
		}
		var f anteroom.Faults
		for i := range rules {
			rule := &rules[i]
			was, known := before[rule.ID]
			delete(before, rule.ID) // an ID is used once
			rule.ID, rule.Version, rule.LastUpdated = was.ID, was.Version, was.LastUpdated
			if *rule != was || !known {
				rule.Version, rule.LastUpdated = was.Version+1, t.now
			}
			if !known {
				rule.ID = anteroom.RuleID(newID())
			}
			for _, one := range rule.Check() {
				one.Path = fmt.Sprintf("rules[%d].%s", i, one.Path)
				f = append(f, one)
			}
		}
		if n := len(rules); n > anteroom.MaxRulesPerRoom {
			f = append(f, anteroom.Fault{Path: "rules", Problem: fmt.Sprintf("has %d rules", n), Fix: fmt.Sprintf("at most %d", anteroom.MaxRulesPerRoom)})
		}
		if err := f.Err(); err != nil {
			return err
		}
		if slices.Equal(rules, old.Rules) {
			return nil
		}
		r := copyRoom(old.Room)
		r.Rules = rules
		_, err = t.setRoom("rules.change", string(room), old, r)
		return err
	})
	return rules, err
}
