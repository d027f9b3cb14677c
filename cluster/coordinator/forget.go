package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

// forgetFor bounds how long a shard takes to write a site off in all of its rooms.
const forgetFor = 30 * time.Second

// Forgotten says what a site was charged for when it was written off.
type Forgotten struct {
	Rooms int    `json:"rooms"` // in which it had an account
	Seats uint64 `json:"seats"`
}

// forget writes a site off in the rooms of the shard, those without a coordinator included. It may be repeated.
func (s *shard) forget(site string) (all Forgotten, err error) {
	// Before that, a room that reports have not reached yet looks unused.
	if s.host.cfg.Now().Sub(s.begun) < engine.GuessAfter {
		return all, errElected()
	}
	ctx, cancel := context.WithTimeout(s.ctx, forgetFor)
	defer cancel()
	defer s.flush()
	rooms := s.all()
	for _, r := range rooms {
		if err := r.silentFor(site); err != nil {
			return all, err
		}
	}
	for _, r := range rooms {
		if err := r.forget(ctx, site, &all); err != nil {
			return all, err
		}
	}
	keys, err := s.host.cfg.Link.Site().Keys(ctx, ledgerKey(""))
	if err != nil {
		return all, anteroom.Errorf(anteroom.Unavailable, "the ledger records cannot be listed: %w", err)
	}
	for _, key := range keys {
		id := anteroom.RoomID(strings.TrimPrefix(key, ledgerKey("")))
		if cluster.ShardOf(string(id)) != s.number || slices.ContainsFunc(rooms, func(r *room) bool { return r.id == id }) {
			continue
		}
		if err := s.forgetRecord(ctx, id, site, &all); err != nil {
			return all, anteroom.Errorf(anteroom.Unavailable, "the ledger record of room %s: %w", id, err)
		}
	}
	return all, nil
}

// silentFor refuses a site that was heard lately: its rate slots of the last minute are in use wherever it is.
func (r *room) silentFor(site string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine == nil {
		return errElected()
	}
	for _, one := range r.machine.Sites(r.follow()) {
		if one.Key.Name == site && !one.Lost && one.Age < engine.RateHold {
			return anteroom.Errorf(anteroom.Conflict, "site %s was heard %v ago, and what it admitted counts for a minute: stop its nodes, and try again in %v",
				site, one.Age.Round(time.Second), (engine.RateHold-one.Age).Round(time.Second)+time.Second)
		}
	}
	return nil
}

// forget writes a site off in a room that has a coordinator, durably.
func (r *room) forget(ctx context.Context, site string, all *Forgotten) error {
	r.mu.Lock()
	if r.machine == nil {
		r.mu.Unlock()
		return errElected()
	}
	now := r.follow()
	if slices.ContainsFunc(r.machine.Sites(now), func(one engine.SiteStatus) bool { return one.Key.Name == site }) {
		all.Rooms++
	}
	all.Seats += r.machine.Forget(now, site)
	r.drain()
	r.mu.Unlock()
	if err := r.store(ctx); err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "the ledger record of room %s cannot be stored: %w", r.id, err)
	}
	return nil
}

// forgetRecord writes a site off in the record of a room that has no coordinator. One that begins meanwhile reads the
// record again, because its revision has changed.
func (s *shard) forgetRecord(ctx context.Context, id anteroom.RoomID, site string, all *Forgotten) error {
	store := s.host.cfg.Link.Site()
	for {
		entry, err := store.Get(ctx, ledgerKey(id))
		if errors.Is(err, cluster.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		var rec record
		if err := json.Unmarshal(entry.Value, &rec); err != nil {
			return &cluster.DamagedError{What: ledgerKey(id), Err: err}
		}
		before, seats := len(rec.Sites), uint64(0)
		rec.Sites = slices.DeleteFunc(rec.Sites, func(u engine.ReservedUnits) bool {
			if u.Site.Name != site {
				return false
			}
			seats += u.Reserved[engine.Seat] - min(u.Reserved[engine.Seat], u.Returned[engine.Seat]+u.Out)
			return true
		})
		if len(rec.Sites) == before {
			return nil
		}
		value, err := json.Marshal(rec)
		if err != nil {
			return err
		}
		_, err = store.Update(ctx, ledgerKey(id), value, entry.Revision)
		if errors.Is(err, cluster.ErrRevision) && ctx.Err() == nil {
			continue
		}
		if err == nil {
			all.Rooms++
			all.Seats += seats
		}
		return err
	}
}
