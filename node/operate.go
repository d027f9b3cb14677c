package node

// What an operator does with a room by hand.

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// AdmitNow gives turns to the next n in line at once: unpaced, also while the room is held, and
// never beyond the two limits. Who has a stream is told; the others enter with their next
// check-in. It returns how many got a turn. The error is of kind Unavailable when nobody can be
// admitted, because admissions cannot be recorded or another process takes over.
func (r *Room) AdmitNow(ctx context.Context, n int) (int, error) {
	if r.far != nil {
		return r.node.member.client.AdmitNow(ctx, r.id, n)
	}
	given := 0
	for range admitTries {
		more, stored, err := r.admitNow(n - given)
		if given += more; err != nil || given == n || stored == nil {
			return given, err
		}
		select {
		case <-stored:
		case <-ctx.Done():
			return given, nil
		}
	}
	return given, nil
}

// admitTries is how often AdmitNow tries: once with what is reserved, and then after the record of a room that nobody had
// visited, and after one that reserves more.
const admitTries = 3

// admitNow returns a channel that closes when a ledger record is stored after which more may be admitted; nil if there is none.
func (r *Room) admitNow(n int) (given int, stored <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	switch {
	case r.released || r.closed:
		return 0, nil, anteroom.Errorf(anteroom.Unavailable, "the room is being handed over to another process: try again in a moment")
	case r.holding:
		return 0, nil, anteroom.Errorf(anteroom.Unavailable, "admissions cannot be recorded, so no new visitor is admitted: the log says what is wrong with the disk")
	}
	r.visited = true
	given = r.single.AdmitNow(now, n)
	r.active.Store(true)
	r.settle()
	return given, r.stored, nil
}

// maxFound bounds what one look-up returns. Ten hexadecimal digits hardly ever name two.
const maxFound = 100

// Find returns what the room knows of the visitors with a reference: the short code on the
// waiting page, or the whole id in 32 hexadecimal digits. The error is of kind Invalid when it
// is neither.
func (r *Room) Find(ctx context.Context, reference string) ([]engine.Visitor, error) {
	digits := strings.ReplaceAll(strings.TrimSpace(reference), "-", "")
	raw, err := hex.DecodeString(digits[:min(len(digits), 64)])
	if err != nil || len(raw) != len(anteroom.ID{}) && len(raw) != referenceBytes {
		return nil, anteroom.Errorf(anteroom.Invalid, "use a code like 3f9a1-c07be, or an id of 32 hexadecimal digits")
	}
	if r.far != nil {
		return r.findFar(ctx, raw)
	}
	ids, err := matching(raw, func(at engine.Place) (some []anteroom.ID, next engine.Place, more bool, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		some, next, more = r.single.Search(raw, at)
		return some, next, more, ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.follow()
	var found []engine.Visitor
	for _, id := range ids {
		if v, ok := r.single.Visitor(now, id); ok {
			v.AheadKnown = v.AheadKnown && !r.shuffles()
			found = append(found, v)
		}
	}
	return found, nil
}

// matching returns the ids that begin with the bytes, at most maxFound. It looks for them step by step:
// there may be millions, and each step has the lock anew.
func matching(prefix []byte, step func(at engine.Place) (some []anteroom.ID, next engine.Place, more bool, err error)) (ids []anteroom.ID, err error) {
	if len(prefix) == len(anteroom.ID{}) {
		return []anteroom.ID{anteroom.ID(prefix)}, nil
	}
	var at engine.Place
	for more := true; more && len(ids) < maxFound; {
		var some []anteroom.ID
		if some, at, more, err = step(at); err != nil {
			return nil, err
		}
		for _, id := range some {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids[:min(len(ids), maxFound)], nil
}

// referenceBytes is how much of an id its reference tells.
const referenceBytes = 5
