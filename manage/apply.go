package manage

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
)

// applying is records of other processes on their way into force.
type applying struct {
	m      *Manager
	ctx    context.Context
	next   *State
	writes []write // of the last record
	rooms  []roomChange
	wide   bool // rooms may be in conflict, or too many
	anew   bool // next was read as a whole, and the rest counts for nothing

	// Of one record:
	known int      // writes that were taken over
	names []string // of lists that have changed
	moved bool     // lists, zones or rooms have come or gone
}

type roomChange struct{ before, after *Served }

// apply makes next the state after the writes of a record.
func (a *applying) apply(e entry) error {
	a.next = a.next.clone()
	a.next.seq, a.next.head = e.Seq, e.Hash
	a.known, a.names, a.moved = 0, nil, false
	// Rooms name lists, and what is held names rooms.
	for _, prefix := range []string{listPrefix, tokenPrefix, webhookPrefix, invitesPrefix, zonePrefix, roomPrefix, heldPrefix} {
		for _, w := range a.writes {
			if strings.HasPrefix(w.Key, prefix) {
				if err := a.write(prefix, w); err != nil {
					return err
				}
			}
		}
		if prefix == listPrefix {
			if err := a.lists(); err != nil {
				return err
			}
		}
	}
	if a.known != len(a.writes) {
		return errors.New("it changes more than what can be taken over alone")
	}
	a.order()
	a.wide = a.wide || a.moved
	return nil
}

// write takes over one write of a key with that prefix.
func (a *applying) write(prefix string, w write) error {
	a.known++
	id, data := strings.TrimPrefix(w.Key, prefix), w.bytes()
	gone := len(data) == 0
	s := a.next
	switch prefix {
	case listPrefix:
		same := func(l *storedList) bool { return string(l.ID) == id }
		if gone {
			s.lists = without(s.lists, same)
			a.moved = true
			return nil
		}
		var d listDocument
		if err := decode(w.Key, data, &d); err != nil {
			return err
		}
		s.lists = put(s.lists, &storedList{List: d.List, made: d.Made}, same)
		a.names = append(a.names, d.List.Name)
	case tokenPrefix:
		same := func(t *token) bool { return string(t.ID) == id }
		if gone {
			s.setTokens(without(s.tokens, same))
			return nil
		}
		var d tokenDocument
		if err := decode(w.Key, data, &d); err != nil {
			return err
		}
		s.setTokens(put(s.tokens, &d.token, same))
	case webhookPrefix:
		same := func(h *storedWebhook) bool { return string(h.Webhook.ID) == id }
		if gone {
			s.hooks = without(s.hooks, same)
			return nil
		}
		one, err := readWebhook(w.Key, data)
		if err != nil {
			return err
		}
		s.hooks = put(s.hooks, one, same)
	case invitesPrefix:
		same := func(b *storedInvites) bool { return b.Invites.ID == id }
		if gone {
			s.invites = without(s.invites, same)
			return nil
		}
		one, err := readInvites(w.Key, data)
		if err != nil {
			return err
		}
		s.invites = put(s.invites, one, same)
	case zonePrefix:
		a.moved = true
		if gone {
			s.zones = without(s.zones, func(z *storedZone) bool { return string(z.ID) == id })
			return nil
		}
		var d zoneDocument
		if err := decode(w.Key, data, &d); err != nil {
			return err
		}
		s.setZone(&storedZone{Zone: d.Zone, made: d.Made, stored: true})
	case roomPrefix:
		return a.room(w.Key, anteroom.RoomID(id), data)
	case heldPrefix:
		return a.held(w.Key, anteroom.RoomID(id), data)
	}
	return nil
}

func (a *applying) room(key string, id anteroom.RoomID, data []byte) error {
	before := a.next.byID[id]
	if len(data) == 0 {
		a.next.dropRoom(id)
		a.moved = true
		a.rooms = append(a.rooms, roomChange{before, nil})
		return nil
	}
	var d roomDocument
	if err := decode(key, data, &d); err != nil {
		return err
	}
	var failed error
	one, err := d.served(key, func(key string) (string, bool) {
		if use, ok := a.m.pages[key]; ok {
			return use.page.html, true
		}
		got, err := a.m.cfg.Link.Get(a.ctx, key)
		if err != nil {
			failed = readable(key, err)
			return "", false
		}
		return string(got.Value), pageKey(string(got.Value)) == key
	}, a.next.named, a.m.custom)
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	a.next.setRoom(one)
	a.rooms = append(a.rooms, roomChange{before, one})
	if before == nil {
		a.moved = true
	} else if before.Name != one.Name || before.CookieSuffix != one.CookieSuffix || !slices.Equal(before.Routes, one.Routes) ||
		len(one.Events) > len(before.Events) || len(one.Rules) > len(before.Rules) {
		a.wide = true
	}
	return nil
}

func (a *applying) held(key string, id anteroom.RoomID, data []byte) error {
	s := a.next
	s.held = maps.Clone(s.held)
	var d heldDocument
	if len(data) == 0 {
		delete(s.held, id)
	} else {
		if err := decode(key, data, &d); err != nil {
			return err
		}
		s.held[id] = d.Controls
	}
	if r := s.byID[id]; r != nil && r.File {
		one := *r
		one.Room = copyRoom(r.Room)
		d.Controls.RenewalEnded = r.Controls.RenewalEnded
		one.Controls = d.Controls
		s.setRoom(&one)
	}
	return nil
}

// lists makes anew what was made from lists that have changed.
func (a *applying) lists() error {
	if !a.moved && len(a.names) == 0 {
		return nil
	}
	if err := a.next.nameLists(); err != nil {
		return err
	}
	for _, name := range a.names {
		if err := a.next.relist(name); err != nil {
			return err
		}
	}
	return nil
}

// order brings everything into its order, as a start does.
func (a *applying) order() {
	s := a.next
	slices.SortFunc(s.tokens, byBirth)
	slices.SortFunc(s.hooks, byBirth)
	slices.SortFunc(s.lists, byBirth)
	if !a.moved {
		return
	}
	s.rooms = slices.Clone(s.rooms)
	slices.SortStableFunc(s.rooms, func(a, b *Served) int {
		if a.File || b.File {
			return cmp.Compare(rank(a), rank(b)) // those of the file stay as they are
		}
		return byBirth(a, b)
	})
	s.orderZones()
}

// rank puts rooms of the file first.
func rank(r *Served) int {
	if r.File {
		return 0
	}
	return 1
}
