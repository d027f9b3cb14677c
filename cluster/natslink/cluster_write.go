package natslink

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// deletedLease is how long the mark stays that a leased key was deleted: the key cannot
// come back, since its own time is over by then.
const deletedLease = time.Hour

// holds says whether the record is a value.
func (s *store) holds(r row) (bool, error) {
	if r.seq == 0 || r.marker {
		return false, nil
	}
	e, err := unseal(r.subject, r.data)
	if err != nil {
		return false, &cluster.DamagedError{What: "key " + r.subject[len(s.subjects):], Err: err}
	}
	return e.kind == kindValue, nil
}

// write does what a space's [cluster.Writes] do; what is expected is the number of the key's last message. Where the caller expects
// none, known is that number as far as this process knows, or 0. It calls learn with what it wrote, and with what it found there instead.
//
// A try without an answer is repeated: the expected number makes sure that it is done once,
// and the nonce in the envelope's number says whether it was ours.
func (s *store) write(ctx context.Context, w cluster.Write, known uint64, learn func(row)) (uint64, error) {
	if err := errOfCores(w.Key, s.cores); err != nil {
		return 0, err
	}
	own, cancel := context.WithTimeout(ctx, callBound)
	defer cancel()
	subject := s.subjects + w.Key
	env := envelope{number: rand.Uint64(), extra: uint64(time.Now().UnixNano()), kind: kindValue, data: w.Value}
	if w.Delete {
		env.kind = kindDeleted
	}
	sealed := env.seal(subject)
	create := !w.Any && w.Expect == 0
	if w.Any || create {
		w.Expect = known
	}
	unsure := false
	var failed error
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		var now row
		var err error
		// Nothing is deleted that nobody has looked at.
		if !w.Delete || w.Expect != 0 {
			var seq uint64
			if seq, err = s.publish(own, subject, sealed, w.Expect, w.TTL); err == nil {
				learn(row{subject: subject, seq: seq, data: sealed, stored: time.Now(), ttl: w.TTL})
				return seq, nil
			}
		} else {
			err = errWrongLast
		}
		if errors.Is(err, errWrongLast) {
			if now, err = s.last(own, subject); errors.Is(err, errMissing) {
				now, err = row{subject: subject}, nil
			}
			if err == nil {
				if now.seq > 0 && string(now.data) == string(sealed) {
					learn(now)
					return now.seq, nil
				}
				learn(now)
				value, damage := s.holds(now)
				switch {
				case w.Delete && !value && damage == nil && !unsure:
					return 0, cluster.ErrUnchanged
				case w.Any && now.seq != w.Expect, create && !value && damage == nil && now.seq != w.Expect:
					w.Expect = now.seq
					if w.Delete && now.ttl > 0 {
						w.TTL = deletedLease
					}
					wait = minBackoff
					if own.Err() == nil {
						continue
					}
				case now.seq == w.Expect:
					err = s.unreachable(errors.New("another write of the key is under way"))
				case unsure:
					return 0, s.unreachable(errors.New("no answer to a change came in time, and somebody else has changed the same since: look whether it was made, and repeat it if not"))
				default:
					return 0, cluster.ErrRevision
				}
			}
		} else {
			unsure = true
		}
		if err == nil {
			err = s.unreachable(own.Err())
		} else if !errors.Is(err, cluster.ErrUnavailable) {
			return 0, err
		}
		failed = cmp.Or(failed, err)
		if !pause(own, wait) {
			return 0, failed
		}
	}
}
