package aws

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

const (
	// inviteEvery is how often the serving counter is looked at.
	inviteEvery = time.Second
	// claimWithin is how long a free seat waits for the position that was invited to it. Sites ask for the serving counter
	// every few seconds. After that, the next positions are invited as well; the earlier one keeps its turn.
	claimWithin = 15 * time.Second
	// lookAhead invites positions to the places in the minute that come free by then, because a visitor learns of the
	// counter only at the next poll.
	lookAhead = 3 * time.Second
	// maxBatches bounds the invitations that are told apart, so that a record stays small.
	maxBatches = 64
	// maxJoins bounds the joins that wait to be numbered.
	maxJoins = 10_000
	// changeTries bounds how often a change is tried while other nodes change the record.
	changeTries = 20
)

// record is what an event stores: its counters, and when positions were invited. The nodes of a cluster share it.
type record struct {
	Generation uint32 `json:"generation"` // grows with each reset
	Queue      int64  `json:"queue"`      // the last number given out
	Serving    int64  `json:"serving"`    // the last number invited; never smaller, and it may be ahead of Queue
	Tokens     int64  `json:"tokens"`     // positions that became sessions
	Expired    int64  `json:"expired"`    // positions that did not within their time
	Completed  int64  `json:"completed"`
	Abandoned  int64  `json:"abandoned"`
	ExpiredTo  int64  `json:"expired_to"` // the number before the first batch
	// Batches are the invitations that have not expired, the oldest first.
	Batches []batch `json:"batches,omitempty"`
}

// batch is a run of positions that were invited together.
type batch struct {
	UpTo   int64         `json:"up_to"` // the last number; the first follows the batch before
	At     anteroom.Time `json:"at"`
	Tokens int64         `json:"tokens"`
}

// serve invites the next n positions.
func (r *record) serve(now anteroom.Time, n int64, hold time.Duration) {
	if n <= 0 {
		return
	}
	r.Serving += n
	r.Batches = append(r.Batches, batch{UpTo: r.Serving, At: now})
	// Older invitations need less precision. The later moment counts, so that no position expires early.
	for i := 0; i+1 < len(r.Batches) && len(r.Batches) > maxBatches/2; {
		one, next := r.Batches[i], r.Batches[i+1]
		if now.Sub(next.At) > claimWithin && next.At.Sub(one.At) < hold/maxBatches*2 || len(r.Batches) > maxBatches {
			next.Tokens += one.Tokens
			r.Batches[i+1] = next
			r.Batches = slices.Delete(r.Batches, i, i+1)
			continue
		}
		i++
	}
}

// expire forgets invitations older than hold.
func (r *record) expire(now anteroom.Time, hold time.Duration) {
	for len(r.Batches) > 0 && now.Sub(r.Batches[0].At) > hold {
		b := r.Batches[0]
		r.Expired += max(0, min(b.UpTo, r.Queue)-r.ExpiredTo-b.Tokens)
		r.ExpiredTo, r.Batches = b.UpTo, r.Batches[1:]
	}
}

// find returns the index of the batch with a number; -1 when it has expired, or is not invited.
func (r *record) find(number int64) int {
	if number <= r.ExpiredTo {
		return -1
	}
	return slices.IndexFunc(r.Batches, func(b batch) bool { return number <= b.UpTo })
}

// claim counts a position that became a session.
func (r *record) claim(number int64) {
	r.Tokens++
	if i := r.find(number); i >= 0 {
		r.Batches[i].Tokens++
	}
}

// invitedAt is when the time of a position began to run: its arrival or, if that is later, its invitation.
func (r *record) invitedAt(p position) anteroom.Time {
	if i := r.find(int64(p.number)); i >= 0 {
		return max(p.arrival, r.Batches[i].At)
	}
	return p.arrival
}

// expected is the number of positions that were invited lately and may come any moment.
func (r *record) expected(now anteroom.Time) (n int64) {
	from := r.ExpiredTo
	for _, b := range r.Batches {
		if now.Sub(b.At) <= claimWithin {
			n += max(0, min(b.UpTo, r.Queue)-from-b.Tokens)
		}
		from = b.UpTo
	}
	return n
}

// waiting is the number of positions that are neither sessions nor expired.
func (r *record) waiting() int64 { return max(0, r.Queue-r.Tokens-r.Expired) }

// wanted is how many positions a room could admit now beyond those that are expected. The room decides about each of
// them when it comes; the counter only says whom it is worth to come.
func wanted(set anteroom.Settings, st anteroom.Status) int64 {
	switch {
	case st.Mode == unreachable:
		return 0
	case set.Suspended, set.QueueingMethod == anteroom.Passthrough:
		return anteroom.MaxUsers
	case set.QueueAll, set.Prequeueing, set.OriginDown, set.InfiniteQueue, set.QueueingMethod == anteroom.Reject:
		return 0
	}
	rate := min(cmp.Or(st.Pace, set.NewUsersPerMinute), set.NewUsersPerMinute)
	ahead := rate * int(lookAhead/time.Second) / 60
	return int64(min(set.TotalActiveUsers-st.ActiveUsers-st.Offered, rate+ahead-st.AdmittedLastMin))
}

// joined is the answer to a join.
type joined struct {
	position
	generation uint32
}

// unreachable is the mode of a room whose site or coordinator does not answer.
const unreachable = "cut"

var errNumbers = anteroom.Errorf(anteroom.Unavailable, "the event has no number left: reset it")

// line numbers the positions of an event and moves its serving counter.
type line struct {
	space  cluster.Space
	key    string
	room   func() Room
	custom bool // only operators move the counter

	joins chan chan<- joined

	mu      sync.Mutex
	known   record
	counted counted // not stored yet
}

// counted is what a node has counted.
type counted struct {
	claims               []int64 // numbers that became sessions
	completed, abandoned int64
}

func (c counted) into(r *record) {
	for _, number := range c.claims {
		r.claim(number)
	}
	r.Completed, r.Abandoned = r.Completed+c.completed, r.Abandoned+c.abandoned
}

func (c counted) and(d counted) counted {
	return counted{append(c.claims, d.claims...), c.completed + d.completed, c.abandoned + d.abandoned}
}

// now returns what is known of the counters.
func (l *line) now() record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

// claimed counts a session, to be stored with the next look at the counters.
func (l *line) claimed(number uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counted.claims = append(l.counted.claims, int64(number))
}

// ended counts a session that an application has ended.
func (l *line) ended(completed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if completed {
		l.counted.completed++
	} else {
		l.counted.abandoned++
	}
}

// change stores what fn makes of the record, with what this node has counted since the last time. Nothing is written if
// that is nothing.
func (l *line) change(ctx context.Context, fn func(*record) error) (r record, err error) {
	l.mu.Lock()
	mine := l.counted
	l.counted = counted{}
	l.mu.Unlock()
	for try := range changeTries {
		var revision uint64
		var before []byte
		if r, revision, before, err = l.load(ctx); err != nil {
			break
		}
		mine.into(&r)
		if err = fn(&r); err != nil {
			break
		}
		if err = l.store(ctx, r, before, revision); !errors.Is(err, cluster.ErrRevision) || !pause(ctx, time.Duration(try)*5*time.Millisecond) {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.counted = mine.and(l.counted)
		return record{}, err
	}
	l.known = r
	return r, nil
}

func (l *line) store(ctx context.Context, r record, before []byte, revision uint64) error {
	after, err := json.Marshal(r)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	_, err = l.space.Update(ctx, l.key, after, revision)
	return err
}

func (l *line) load(ctx context.Context) (r record, revision uint64, text []byte, err error) {
	e, err := l.space.Get(ctx, l.key)
	if errors.Is(err, cluster.ErrNotFound) {
		return r, 0, nil, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &r)
	}
	return r, e.Revision, e.Value, err
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// join gives out the next number. Joins that come while a record is being written share the next one.
func (l *line) join(ctx context.Context) (joined, error) {
	answer := make(chan joined, 1)
	select {
	case l.joins <- answer:
	default:
		return joined{}, anteroom.Errorf(anteroom.Unavailable, "too many joins are waiting for a number")
	}
	select {
	case p, ok := <-answer:
		if !ok {
			return p, anteroom.Errorf(anteroom.Unavailable, "the number could not be stored")
		}
		return p, nil
	case <-ctx.Done():
		return joined{}, ctx.Err()
	}
}

// run numbers joins and moves the counter until ctx ends.
func (l *line) run(ctx context.Context, failed func(error)) {
	tick := time.NewTicker(inviteEvery)
	defer tick.Stop()
	var latest anteroom.Time // arrival
	for {
		var waiting []chan<- joined
		select {
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), inviteEvery)
			defer stop()
			if _, err := l.change(last, func(*record) error { return nil }); err != nil {
				failed(err)
			}
			return
		case <-tick.C:
		case one := <-l.joins:
			waiting = append(waiting, one)
		more:
			for len(waiting) < maxJoins {
				select {
				case one := <-l.joins:
					waiting = append(waiting, one)
				default:
					break more
				}
			}
		}
		room := l.room()
		if room == nil {
			refuse(waiting)
			continue
		}
		now := room.Now()
		r, err := l.change(ctx, func(r *record) error {
			if r.Queue += int64(len(waiting)); r.Queue > math.MaxUint32 {
				return errNumbers
			}
			l.invite(r, room, now)
			return nil
		})
		if err != nil {
			refuse(waiting)
			if ctx.Err() == nil {
				failed(err)
			}
			continue
		}
		first := r.Queue - int64(len(waiting)) + 1
		for i, one := range waiting {
			latest = max(now, latest+1) // no two arrivals are the same, so the room has the order of the numbers
			one <- joined{position{number: uint32(first + int64(i)), arrival: latest}, r.Generation}
		}
	}
}

func refuse(waiting []chan<- joined) {
	for _, one := range waiting {
		close(one)
	}
}

// invite moves the counter as far as the room could admit visitors now, and no further than there are any.
func (l *line) invite(r *record, room Room, now anteroom.Time) {
	set := room.Settings()
	r.expire(now, set.PlaceHold)
	if l.custom || r.Serving >= r.Queue {
		return
	}
	r.serve(now, min(r.Queue-r.Serving, wanted(set, room.Status())-r.expected(now)), set.PlaceHold)
}
