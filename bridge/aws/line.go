package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/walltime"
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
	// lately is how far back the line looks for how many of those who are invited come. What is older counts less: half for
	// each half-life.
	lately, halfLife = time.Minute, 5 * time.Second
	// batchTime is how long invitations share a batch. Batches older than lately are merged until there are mergedBatches in a
	// place hold, so that a record stays small: it has maxBatches.
	batchTime     = 2 * time.Second
	mergedBatches = 64
	maxBatches    = mergedBatches + int(lately/batchTime)
	// changeTries bounds how often a change is tried while other nodes change the record.
	changeTries = 20
	// unreachable is the mode of a room whose site or coordinator does not answer.
	unreachable = "cut"
)

// record is what an event stores: its counters, and when positions were invited. The nodes of a cluster share it.
type record struct {
	Generation uint32 `json:"generation"` // grows with each reset
	Queue      int64  `json:"queue"`      // the last number given out
	Serving    int64  `json:"serving"`    // the last number invited; never smaller, and it may be ahead of Queue
	Tokens     int64  `json:"tokens"`     // positions that became sessions
	Expired    int64  `json:"expired"`    // positions that did not within their time
	ExpiredTo  int64  `json:"expired_to"` // the number before the first batch
	// Batches are the invitations that have not expired, the oldest first.
	Batches []batch `json:"batches,omitempty"`
}

// batch is a run of positions that were invited one after the other: lately within batchTime, before within a 64th of the place
// hold.
type batch struct {
	UpTo   int64         `json:"up_to"` // the last number; the first follows the batch before
	At     anteroom.Time `json:"at"`    // of the last invitation, so that no position expires early
	Tokens int64         `json:"tokens"`
}

// serve invites the next n positions.
func (r *record) serve(now anteroom.Time, n int64, hold time.Duration) {
	if n <= 0 {
		return
	}
	r.Serving += n
	if i := len(r.Batches) - 1; i >= 0 && sameBatch(r.Batches[i].At, now, min(batchTime, hold/mergedBatches)) {
		r.Batches[i].UpTo, r.Batches[i].At = r.Serving, now
		return
	}
	r.Batches = append(r.Batches, batch{UpTo: r.Serving, At: now})
}

// sameBatch reports whether two moments are in the same span, as the clock divides time.
func sameBatch(a, b anteroom.Time, span time.Duration) bool {
	s := anteroom.Time(span / time.Microsecond)
	return a/s == b/s
}

// expire forgets invitations older than hold, and merges old ones.
func (r *record) expire(now anteroom.Time, hold time.Duration) {
	for len(r.Batches) > 0 && now.Sub(r.Batches[0].At) > hold {
		b := r.Batches[0]
		r.Expired += max(0, min(b.UpTo, r.Queue)-r.ExpiredTo-b.Tokens)
		r.ExpiredTo, r.Batches = b.UpTo, r.Batches[1:]
	}
	for i := 1; i < len(r.Batches) && now.Sub(r.Batches[i].At) > lately; {
		if before := r.Batches[i-1]; sameBatch(before.At, r.Batches[i].At, hold/mergedBatches) {
			r.Batches[i].Tokens += before.Tokens
			r.Batches = slices.Delete(r.Batches, i-1, i)
		} else {
			i++
		}
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

// showing is the share of invited positions that come, above 0 and at most 1. It is learned from those whose time to claim is
// just over; where there are none it is 1.
func (r *record) showing(now anteroom.Time) float64 {
	came, invited := 1.0, 1.0
	from := r.ExpiredTo
	for _, b := range r.Batches {
		if age := now.Sub(b.At); age > claimWithin && age <= lately {
			weight := math.Exp2(-float64(age-claimWithin) / float64(halfLife))
			came += weight * float64(b.Tokens)
			invited += weight * float64(max(0, min(b.UpTo, r.Queue)-from))
		}
		from = b.UpTo
	}
	return min(1, came/invited)
}

// due is how many positions to invite so that as many come as the room wants. The more of the invited stay away, the more are
// invited: a flood of joins that nobody claims must not keep seats empty. If too many come, the room lets them wait in the
// order of their arrival, and while they are present, they count as the ones who take what is free.
func (r *record) due(now anteroom.Time, wanted, present int64) int64 {
	all := max(float64(wanted), float64(wanted-present)/r.showing(now))
	return int64(min(all, float64(anteroom.MaxUsers))) - r.expected(now)
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
	case set.QueueAll, set.Prequeueing, set.OriginDown, set.InfiniteQueue, set.InviteOnly, set.QueueingMethod == anteroom.Reject:
		return 0
	}
	ahead := st.Pace * int(lookAhead/time.Second) / 60
	return int64(min(set.TotalActiveUsers-st.ActiveUsers-st.Offered, st.Pace+ahead-st.AdmittedLastMin))
}

// joined is the answer to a join.
type joined struct {
	position
	generation uint32
}

// line numbers the positions of an event and moves its serving counter.
type line struct {
	space  cluster.Space
	key    string
	room   func() Room
	custom bool // only operators move the counter
	joins  chan chan<- joined

	mu     sync.Mutex
	known  record
	claims []int64 // numbers that became sessions, not stored yet
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
	l.claims = append(l.claims, int64(number))
}

// change stores what fn makes of the record, with the claims of this node. Nothing is written if that is nothing.
func (l *line) change(ctx context.Context, fn func(*record)) (r record, err error) {
	l.mu.Lock()
	claims := l.claims
	l.claims = nil
	l.mu.Unlock()
	for try := range changeTries {
		if r, err = l.tryChange(ctx, claims, fn); !errors.Is(err, cluster.ErrRevision) || !walltime.Sleep(ctx, time.Duration(try)*5*time.Millisecond) {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.claims = append(claims, l.claims...)
		return r, err
	}
	l.known = r
	return r, nil
}

func (l *line) load(ctx context.Context) (r record, e cluster.Entry, err error) {
	e, err = l.space.Get(ctx, l.key)
	if err == nil {
		err = json.Unmarshal(e.Value, &r)
	} else if errors.Is(err, cluster.ErrNotFound) {
		err = nil
	}
	return r, e, err
}

func (l *line) tryChange(ctx context.Context, claims []int64, fn func(*record)) (record, error) {
	r, e, err := l.load(ctx)
	if err != nil {
		return r, err
	}
	for _, number := range claims {
		r.claim(number)
	}
	fn(&r)
	after, err := json.Marshal(r)
	if err == nil && !bytes.Equal(e.Value, after) {
		_, err = l.space.Update(ctx, l.key, after, e.Revision)
	}
	return r, err
}

// join gives out the next number. Joins that come while a record is being written share the next one.
func (l *line) join(ctx context.Context) (j joined, err error) {
	answer := make(chan joined, 1)
	select {
	case l.joins <- answer:
	case <-ctx.Done():
		return j, ctx.Err()
	}
	select {
	case j = <-answer: // at the end of run or of the store, too
	case <-ctx.Done():
	}
	if j.number == 0 {
		err = anteroom.Errorf(anteroom.Unavailable, "the number could not be stored")
	}
	return j, err
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
			if _, err := l.change(last, func(*record) {}); err != nil {
				failed(err)
			}
			return
		case <-tick.C:
		case one := <-l.joins:
			waiting = append(waiting, one)
		}
		for more := true; more; {
			select {
			case one := <-l.joins:
				waiting = append(waiting, one)
			default:
				more = false
			}
		}
		first, now, generation := l.number(ctx, int64(len(waiting)), failed)
		for i, one := range waiting {
			if first == 0 {
				close(one)
				continue
			}
			latest = max(now, latest+1) // no two arrivals are the same, so the room has the order of the numbers
			one <- joined{position{number: uint32(first + int64(i)), arrival: latest}, generation}
		}
	}
}

// number gives out n numbers and moves the counter as far as the room could admit visitors now, and no further than there
// are any. It returns the first number, 0 if there is none, with the moment and the generation.
func (l *line) number(ctx context.Context, n int64, failed func(error)) (first int64, now anteroom.Time, generation uint32) {
	room := l.room()
	if room == nil || l.now().Queue+n > math.MaxUint32 {
		return 0, 0, 0
	}
	now = room.Now()
	r, err := l.change(ctx, func(r *record) {
		// After the claims that r counts: one that the status knows and r does not invites nobody, the other way round its seat seems free.
		set, status := room.Settings(), room.Status()
		r.Queue += n
		r.expire(now, set.PlaceHold)
		if !l.custom {
			r.serve(now, min(r.Queue-r.Serving, r.due(now, wanted(set, status), int64(status.Waiting-status.Unproven))), set.PlaceHold)
		}
	})
	if err != nil {
		if ctx.Err() == nil {
			failed(err)
		}
		return 0, 0, 0
	}
	return r.Queue - n + 1, now, r.Generation
}
