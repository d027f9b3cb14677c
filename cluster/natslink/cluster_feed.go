package natslink

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/internal/wire"
)

const (
	// announceEvery is how often somebody at the hub says how far the shared store is.
	announceEvery = 2 * time.Second
	// announceMissed is how long nobody says so until the hub counts as out of touch.
	announceMissed = 3 * announceEvery
	// feedPatience is how long the site's mirror may be behind the hub: after a cut it
	// takes up to 15 s to go on by itself.
	feedPatience = time.Second
	// repairTries is how often a damaged record is asked for: any replica may answer.
	repairTries = 8
	// repairPause is the longest time between two rounds of that.
	repairPause = time.Minute

	subjectPosition = "~position"
)

// feed keeps the copy of the shared keys up to date: by following the site's mirror, and
// from the hub itself when that is behind.
type feed struct {
	j    *joined
	copy *keysCopy
	hub  *store
	near *store

	store string // the shared store's name when it was found

	mu     sync.Mutex
	target uint64    // how far the hub is, as far as heard
	heard  time.Time // when somebody said so last
	behind time.Time // since when the copy has been behind target; zero: it is not
	before uint64    // how far the copy was at the last announcement
	older  int       // how many announcements in a row were behind that
}

// follow hears the site's stream until the link closes.
func (f *feed) follow() {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		pos, _ := f.copy.position()
		err := f.near.follow(f.j.ctx, pos+1, nil, func() { wait = firstRetry }, func(r row) error {
			f.take(r)
			return nil
		})
		if f.j.ctx.Err() != nil {
			return
		}
		f.j.log.Debug("following the shared keys again", "reason", err)
		if !pause(f.j.ctx, wait) {
			return
		}
	}
}

// take puts a record into the copy; a damaged one is asked for again, see repair.
func (f *feed) take(r row) {
	err := f.copy.heard(r, true)
	f.moved()
	if err != nil {
		f.j.log.Error("a shared key came damaged; it is asked for again", "error", err)
	}
}

// reach waits until the copy has everything up to the number.
func (f *feed) reach(ctx context.Context, target uint64) error {
	for {
		pos, moved := f.copy.position()
		if pos >= target {
			f.j.touch.shared.ok("")
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// moved notes whether the copy is behind.
func (f *feed) moved() {
	pos, _ := f.copy.position()
	f.mu.Lock()
	defer f.mu.Unlock()
	if pos >= f.target {
		f.behind = time.Time{}
	}
}

// told notes how far the hub is. An announcement may have been under way for a while, so
// it takes two in a row that are behind what the copy had before to say that the hub lost something.
func (f *feed) told(store string, target uint64) {
	pos, _ := f.copy.position()
	f.mu.Lock()
	if target >= f.before {
		f.older = 0
	} else {
		f.older++
	}
	f.before = pos
	last := uint64(math.MaxUint64) // not pos, which the copy has passed by the time it is compared
	if f.older > 1 {
		last = target
	}
	f.heard = time.Now()
	f.target = max(f.target, target)
	if pos < f.target && f.behind.IsZero() {
		f.behind = f.heard
	}
	f.mu.Unlock()
	if err := f.copy.follows(store, last); err != nil {
		f.j.touch.shared.lost(err)
	}
}

// compare hears how far the hub is and reads there what the site's mirror does not say in
// time; it asks for what is doubtful, and says what it knows to Health.
func (f *feed) compare() {
	ctx := f.j.ctx
	f.told(f.store, f.target)
	sub, err := f.j.nc.Subscribe(f.j.prefix+subjectPosition, func(m *nats.Msg) {
		r := wire.Read(m.Data)
		if last, store := r.Big64(), r.Rest(); len(store) > 0 {
			f.told(string(store), last)
		}
	})
	if err != nil {
		return // the link was closed
	}
	defer sub.Unsubscribe()
	tick := time.NewTimer(walltime.NextBeat(feedPatience / 2))
	defer tick.Stop()
	var repaired time.Time
	between := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		tick.Reset(walltime.NextBeat(feedPatience / 2))
		f.mu.Lock()
		target, heard, behind := f.target, f.heard, f.behind
		f.mu.Unlock()
		if !behind.IsZero() && time.Since(behind) > feedPatience {
			if err := f.catchUp(ctx, target); err != nil {
				f.j.touch.shared.lost(err)
			}
			f.moved()
		}
		// What stays damaged is asked for less and less often.
		switch doubtful := f.copy.doubtful(time.Now()); {
		case len(doubtful) == 0:
			between = 0
		case time.Since(repaired) > between:
			f.repair(doubtful)
			repaired, between = time.Now(), min(max(2*between, feedPatience), repairPause)
		}
		if silent := time.Since(heard); silent > announceMissed {
			f.j.touch.shared.lost(errors.New("nothing was heard of the hub for " + silent.Round(time.Second).String()))
		} else if pos, _ := f.copy.position(); pos >= target && f.copy.foreign() == nil {
			f.j.touch.shared.ok("")
		}
	}
}

// catchUp reads at the hub what is missing up to the number.
func (f *feed) catchUp(ctx context.Context, target uint64) error {
	for {
		pos, _ := f.copy.position()
		if pos >= target {
			return nil
		}
		records, err := f.hub.batch(ctx, map[string]any{"seq": pos + 1})
		for _, r := range records {
			f.take(r)
		}
		if err != nil {
			return err
		}
		if len(records) > 0 {
			continue
		}
		// The replica that answered may lag. The leader does not: if it has nothing, the
		// newest changes were of keys that have expired.
		r, err := f.hub.get(ctx, map[string]any{"seq": pos + 1, "next_by_subj": ">"})
		if errors.Is(err, errMissing) {
			f.copy.reached(target)
			return nil
		}
		if err != nil {
			return err
		}
		f.take(r)
	}
}

// prune drops from the copy what the store does not hold any more. A deletion leaves a mark that the copy hears of, but those of
// earlier releases left none: what was deleted while this node was away would be in force here for good.
func (f *feed) prune(ctx context.Context) error {
	if n, _ := f.copy.counts(); n == 0 {
		return nil
	}
	var info struct {
		Total int `json:"total"`
		State struct {
			Last     uint64            `json:"last_seq"`
			Subjects map[string]uint64 `json:"subjects"`
			Lost     *struct{}         `json:"lost"`
		} `json:"state"`
	}
	if err := f.hub.ask(ctx, "STREAM.INFO."+f.hub.stream, map[string]any{"subjects_filter": f.hub.subjects + ">"}, &info); err != nil {
		return err
	}
	// What is missing in a store that is damaged or in a part of its list was not deleted.
	if info.State.Lost != nil || info.Total == 0 || len(info.State.Subjects) < info.Total {
		return nil
	}
	n := f.copy.prune(info.State.Last, func(subject string) bool { return info.State.Subjects[subject] > 0 })
	if n > 0 {
		f.j.log.Info("what was deleted while this node was away is not in force here any more", "keys", n)
	}
	return nil
}

// repair asks the hub for keys whose record came damaged or whose lease was not heard of.
func (f *feed) repair(keys []string) {
	for _, key := range keys {
		subject := f.hub.subjects + key
		revision := f.copy.revision(key)
		r, err := f.hub.last(f.j.ctx, subject)
		switch {
		case errors.Is(err, errMissing):
			f.copy.expired(key, revision)
		case err == nil:
			for range repairTries {
				if f.copy.heard(r, false) == nil {
					break
				}
				if r, err = f.hub.direct(f.j.ctx, map[string]any{"last_by_subj": subject}); err != nil {
					break
				}
			}
		}
	}
}

// announce makes one process at the hub say how far the store is, now and then: whoever
// has heard nothing for long enough asks and says it.
func (f *feed) announce() {
	if !f.j.att.isHub() {
		return
	}
	ctx := f.j.ctx
	for {
		if !pause(ctx, announceEvery) {
			return
		}
		f.mu.Lock()
		silent := time.Since(f.heard)
		f.mu.Unlock()
		if silent < announceEvery-announceEvery/4+rand.N(announceEvery/4) {
			continue
		}
		store, last, err := f.lastAtHub(ctx)
		if err != nil {
			f.j.touch.shared.lost(err)
			continue
		}
		f.j.nc.Publish(f.j.prefix+subjectPosition, append(binary.BigEndian.AppendUint64(nil, last), store...))
	}
}

// lastAtHub asks the shared store's leader which store it is and for its last number.
func (f *feed) lastAtHub(ctx context.Context) (store string, last uint64, err error) {
	var info struct {
		Config struct {
			Metadata map[string]string `json:"metadata"`
		} `json:"config"`
		State struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := f.hub.ask(ctx, "STREAM.INFO."+f.hub.stream, nil, &info); err != nil {
		return "", 0, err
	}
	return info.Config.Metadata[metaStore], info.State.Last, nil
}
