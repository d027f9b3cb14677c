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
	return r.decider.admitNow(ctx, n)
}

// EndSession ends the session of id now, wherever in the cluster it is, and reports whether there was one. The error
// has kind Unavailable if none was found and a site did not answer.
func (r *Room) EndSession(ctx context.Context, id anteroom.ID) (bool, error) {
	return r.decider.endSession(ctx, id)
}

// Revoked returns the revoked sessions whose passes may be valid still, wherever in the cluster they were, and whether these are
// all: a site may not have answered, or there are too many.
func (r *Room) Revoked(ctx context.Context) (ids []anteroom.ID, complete bool) {
	return r.decider.revoked(ctx)
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
	return r.decider.find(ctx, raw)
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
