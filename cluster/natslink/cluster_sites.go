package natslink

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// getBound is the longest that Get of the site's keys waits.
const getBound = 2 * time.Second

// siteSpace is that of the site: every call asks its store.
type siteSpace struct {
	messages
	cluster.Writes
	keys *store
}

func (s *siteSpace) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if err := cluster.CheckKey(key); err != nil {
		return cluster.Entry{}, err
	}
	own, cancel, err := s.j.begin(ctx)
	if err != nil {
		return cluster.Entry{}, err
	}
	defer cancel()
	own, cancel = context.WithTimeout(own, getBound)
	defer cancel()
	var r row
	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		r, err = s.keys.last(own, s.keys.subjects+key)
		if !errors.Is(err, cluster.ErrUnavailable) || !pause(own, wait) {
			break
		}
	}
	if errors.Is(err, errMissing) {
		return cluster.Entry{}, cluster.ErrNotFound
	}
	if err != nil {
		return cluster.Entry{}, s.j.ended(ctx, err)
	}
	e, err := s.open(own, key, r)
	if err != nil {
		return cluster.Entry{}, err
	}
	if e.kind != kindValue {
		return cluster.Entry{}, cluster.ErrNotFound
	}
	return cluster.Entry{Key: key, Value: slices.Clip(e.data), Revision: r.seq}, nil
}

// open opens a key's record. A damaged one is asked for at other replicas.
func (s *siteSpace) open(ctx context.Context, key string, r row) (envelope, error) {
	if r.marker {
		return envelope{kind: kindDeleted}, nil
	}
	e, err := unseal(r.subject, r.data)
	for try := 0; err != nil && try < repairTries; try++ {
		again, derr := s.keys.direct(ctx, map[string]any{"last_by_subj": r.subject})
		if derr != nil {
			break
		}
		if other, oerr := unseal(r.subject, again.data); oerr == nil && again.seq == r.seq {
			return other, nil
		}
	}
	if err != nil {
		return envelope{}, &cluster.DamagedError{What: "key " + key, Err: err}
	}
	return e, nil
}

func (s *siteSpace) change(ctx context.Context, w cluster.Write) (uint64, error) {
	own, cancel, err := s.j.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	seq, err := s.keys.write(own, w, 0, func(row) {})
	return seq, s.j.ended(ctx, err)
}

// Keys reads all keys up to a barrier: whatever was acknowledged before is among them.
func (s *siteSpace) Keys(ctx context.Context, prefix string) ([]string, error) {
	own, cancel, err := s.j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	own, cancel = context.WithTimeout(own, callBound)
	defer cancel()
	for {
		var keys []string
		w := siteWatch{s: s, prefix: prefix, known: map[string]uint64{}, fn: func(c cluster.Change) {
			switch {
			case c.Synced, c.Gone:
			default:
				keys = append(keys, c.Key)
			}
		}}
		err := w.once(own, true)
		if err == nil {
			keys = slices.DeleteFunc(keys, func(key string) bool { return w.known[key] == 0 })
			slices.Sort(keys)
			return slices.Compact(keys), nil
		}
		if !errors.Is(err, errTouch) && !errors.Is(err, cluster.ErrUnavailable) || !pause(own, minBackoff) {
			return nil, s.j.ended(ctx, s.keys.unreachable(err))
		}
	}
}

func (s *siteSpace) Watch(ctx context.Context, prefix string, fn func(cluster.Change)) error {
	if err := cluster.CheckPrefix(prefix); err != nil {
		return err
	}
	own, cancel, err := s.j.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	w := siteWatch{s: s, prefix: prefix, known: map[string]uint64{}, fn: func(c cluster.Change) {
		if own.Err() == nil {
			fn(c)
		}
	}}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		synced := w.synced
		err := w.once(own, false)
		if own.Err() != nil {
			return s.j.ended(ctx, own.Err())
		}
		if w.synced > synced {
			wait = firstRetry
		}
		s.j.log.Debug("watching the site's keys again", "prefix", prefix, "reason", err)
		if !pause(own, wait) {
			return s.j.ended(ctx, own.Err())
		}
	}
}

// siteWatch is one Watch.
type siteWatch struct {
	s      *siteSpace
	prefix string
	fn     func(cluster.Change)
	known  map[string]uint64 // what was told and holds: keys with their revisions
	synced int               // how often
}

var errSynced = errors.New("synced")

// once tells what differs from what was told, then Synced, then every change until touch is
// lost; with listing it returns at Synced.
func (w *siteWatch) once(ctx context.Context, listing bool) error {
	keys := w.s.keys
	barrier, err := keys.barrier(ctx)
	if err != nil {
		return err
	}
	// A consumer's filter ends at a dot.
	tokens := w.prefix[:strings.LastIndexByte(w.prefix, '.')+1]
	filters := []string{keys.subjects + tokens + ">"}
	if tokens != "" {
		filters = append(filters, keys.subjects+barrierKey)
	}
	seen := map[string]bool{}
	synced, again := false, false
	err = keys.follow(ctx, 0, filters, nil, func(r row) error {
		key := strings.TrimPrefix(r.subject, keys.subjects)
		if key != barrierKey {
			if strings.HasPrefix(key, w.prefix) && cluster.CheckKey(key) == nil {
				seen[key] = true
				w.tell(ctx, key, r)
			}
			return ctx.Err()
		}
		if synced || r.seq < barrier {
			return nil
		}
		// What a key held when this began is left out if it was written again before its turn came. All of that has been
		// written by now, so it comes before a barrier that is written now.
		if !again {
			again = true
			barrier, err = keys.barrier(ctx)
			return err
		}
		synced = true
		for key := range w.known {
			// It expired while nothing was heard.
			if !seen[key] {
				w.gone(key)
			}
		}
		seen = map[string]bool{}
		w.synced++
		w.fn(cluster.Change{Synced: true})
		if listing {
			return errSynced
		}
		return ctx.Err()
	})
	if errors.Is(err, errSynced) {
		return nil
	}
	return err
}

func (w *siteWatch) gone(key string) {
	if _, ok := w.known[key]; ok {
		delete(w.known, key)
		w.fn(cluster.Change{Entry: cluster.Entry{Key: key}, Gone: true})
	}
}

func (w *siteWatch) tell(ctx context.Context, key string, r row) {
	if w.known[key] >= r.seq {
		return
	}
	e, err := w.s.open(ctx, key, r)
	switch {
	case err != nil:
		w.s.j.log.Error("a key of the site is damaged; who watches it hears nothing until it is written again", "error", err)
	case e.kind == kindValue:
		w.known[key] = r.seq
		w.fn(cluster.Change{Entry: cluster.Entry{Key: key, Value: slices.Clip(e.data), Revision: r.seq}})
	default:
		w.gone(key)
	}
}
