package engine

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// hall is a site with its coordinator beside it and its doors a way off, under virtual time. What
// goes between site and doors is bytes, and may be lost, repeated, late and in disorder.
type hall struct {
	t     *testing.T
	rng   *rand.Rand
	now   anteroom.Time
	set   anteroom.Settings
	coord *Coordinator
	desk  *Desk
	doors []*hallDoor
	mail  []parcel
	ids   uint64
	lossy float64
	slow  time.Duration // the longest way; the shortest is a millisecond

	admitted map[anteroom.ID]anteroom.Time // by the site, first
}

type hallDoor struct {
	*Doorway
	number  uint64
	off     anteroom.Time // of its clock
	deaf    bool          // nothing comes
	mute    bool          // nothing goes
	pending map[uint64]anteroom.Visit
	answers map[uint64]anteroom.Decision
	streams map[anteroom.ID]int
	pushed  map[anteroom.ID]bool
}

type parcel struct {
	at   anteroom.Time
	from int // a door, or -1
	to   int
	data []byte
}

func newHall(t *testing.T, doors int, s anteroom.Settings) *hall {
	h := &hall{t: t, rng: rand.New(rand.NewPCG(1, 2)), now: midnight, set: s.WithDefaults(), slow: time.Millisecond, admitted: map[anteroom.ID]anteroom.Time{}}
	h.coord = NewCoordinator(h.now, s, LedgerRecord{}, []byte("seed"))
	h.desk = NewDesk(NewSite(h.now, hereKey, s))
	for i := range doors {
		h.doors = append(h.doors, &hallDoor{Doorway: NewDoorway(uint64(i+1), s), number: uint64(i + 1), pending: map[uint64]anteroom.Visit{},
			answers: map[uint64]anteroom.Decision{}, streams: map[anteroom.ID]int{}, pushed: map[anteroom.ID]bool{}})
	}
	h.settle()
	return h
}

func (h *hall) id() (id anteroom.ID) {
	h.ids++
	binary.BigEndian.PutUint64(id[:], h.ids*0x9e3779b97f4a7c15)
	id[15] = 1
	return id
}

func (d *hallDoor) time(h *hall) anteroom.Time { return h.now + d.off }

// settle has the coordinator and the site talk until they have nothing to say, and posts what
// the doors are to hear.
func (h *hall) settle() {
	site := h.desk.Site()
	for range 100 {
		for rec, ok := h.coord.Needs(); ok; rec, ok = h.coord.Needs() {
			h.coord.Stored(h.now, rec)
		}
		r, more := site.Report(h.now)
		if more {
			h.coord.Receive(h.now, r)
		}
		out := h.coord.Take()
		for _, m := range out {
			site.Deliver(h.now, m)
		}
		if !more && len(out) == 0 {
			break
		}
	}
	for _, e := range site.TakeEvents() {
		if e.Kind == EventAdmitted && h.admitted[e.ID] == 0 {
			h.admitted[e.ID] = e.At
		}
	}
	if site.Active() > h.set.TotalActiveUsers || !site.Sound() {
		h.t.Fatalf("%d sessions of %d, sound: %v", site.Active(), h.set.TotalActiveUsers, site.Sound())
	}
	for _, m := range h.desk.Take(h.now) {
		data := m.Message.AppendWire(nil)
		for i, d := range h.doors {
			if m.Door == 0 || m.Door == d.number {
				h.post(-1, i, data)
			}
		}
	}
}

func (h *hall) post(from, to int, data []byte) {
	for range 2 {
		if h.rng.Float64() >= h.lossy {
			h.mail = append(h.mail, parcel{h.now.Add(time.Millisecond + time.Duration(h.rng.Int64N(int64(h.slow)))), from, to, data})
		}
		if h.rng.Float64() >= h.lossy {
			break
		}
	}
}

// send posts what a door has to say.
func (h *hall) send(i int) {
	d := h.doors[i]
	for {
		m, ok := d.Take(d.time(h))
		if !ok {
			return
		}
		if !d.mute {
			h.post(i, -1, m.AppendWire(nil))
		}
	}
}

// visit is a request at a door; the answer is in d.answers when it is there.
func (h *hall) visit(i int, v anteroom.Visit) uint64 {
	d := h.doors[i]
	dec, held := d.Visit(d.time(h), v)
	if held == 0 {
		held = 1<<40 + h.ids
		h.ids++
		if dec.Verdict == anteroom.Admit {
			if _, ok := h.desk.Site().Session(dec.Ticket.ID); !ok {
				h.t.Fatalf("door %d lets in %x alone, whose session has ended", i, dec.Ticket.ID)
			}
		}
		h.answered(i, held, v, dec)
		return held
	}
	d.pending[held] = v
	if d.Urgent() {
		h.send(i)
	}
	return held
}

func (h *hall) answered(i int, token uint64, v anteroom.Visit, dec anteroom.Decision) {
	d := h.doors[i]
	d.answers[token] = dec
	if v.Stream && dec.Verdict == anteroom.Wait && !dec.Ticket.ID.IsZero() {
		d.streams[dec.Ticket.ID]++
	}
}

// collect takes what came of a call to a door.
func (h *hall) collect(i int) {
	d := h.doors[i]
	for _, a := range d.TakeAnswers(d.time(h)) {
		v, ok := d.pending[a.Token]
		if !ok {
			h.t.Fatalf("door %d answers %d, which nobody waits for", i, a.Token)
		}
		delete(d.pending, a.Token)
		if dec := a.Decision; dec.Verdict == anteroom.Admit && h.admitted[dec.Ticket.ID] == 0 {
			h.t.Fatalf("door %d lets in %x, which the site never has", i, dec.Ticket.ID)
		}
		h.answered(i, a.Token, v, a.Decision)
	}
	for _, id := range d.TakePushes() {
		d.pushed[id] = true
		if !d.Called(id) {
			h.t.Errorf("door %d: the turn of %x is told and not known", i, id)
		}
	}
	d.TakeEnded()
}

// run lets time pass.
func (h *hall) run(long time.Duration) {
	const step = 5 * time.Millisecond
	for end := h.now.Add(long); h.now < end; {
		h.now = h.now.Add(step)
		h.rng.Shuffle(len(h.mail), func(i, j int) { h.mail[i], h.mail[j] = h.mail[j], h.mail[i] })
		var due []parcel
		h.mail = slices.DeleteFunc(h.mail, func(p parcel) bool {
			if p.at <= h.now {
				due = append(due, p)
			}
			return p.at <= h.now
		})
		for _, p := range due {
			h.deliver(p)
		}
		if int64(h.now)%100_000 == 0 {
			h.desk.Tick(h.now)
			h.coord.Tick(h.now)
			h.settle()
			for i, d := range h.doors {
				d.Tick(d.time(h))
				h.collect(i)
				h.send(i)
			}
		}
	}
}

func (h *hall) deliver(p parcel) {
	if p.to < 0 {
		m, err := ParseFromDoor(p.data)
		if err != nil {
			h.t.Fatal(err)
		}
		h.desk.Receive(h.now, m)
		h.settle()
		return
	}
	d := h.doors[p.to]
	if d.deaf {
		return
	}
	m, err := parseToDoor(p.data)
	if err != nil {
		h.t.Fatal(err)
	}
	d.Receive(d.time(h), m)
	h.collect(p.to)
	if d.Urgent() {
		h.send(p.to)
	}
}

// close ends a stream.
func (h *hall) close(i int, id anteroom.ID) {
	d := h.doors[i]
	if d.streams[id]--; d.streams[id] == 0 {
		delete(d.streams, id)
	}
	d.CloseStream(d.time(h), id)
}

// answer is that of a request; it must be there.
func (h *hall) answer(i int, token uint64) anteroom.Decision {
	h.t.Helper()
	dec, ok := h.doors[i].answers[token]
	if !ok {
		h.t.Fatalf("door %d has not answered %d", i, token)
	}
	return dec
}

// get is a request and its answer.
func (h *hall) get(i int, v anteroom.Visit) anteroom.Decision {
	h.t.Helper()
	token := h.visit(i, v)
	h.run(time.Second)
	return h.answer(i, token)
}

func (h *hall) newcomer() anteroom.Visit {
	return anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: h.id()}, NewID: h.id()}
}

// streamsAgree holds the desk and the site to the streams that the doors have.
func (h *hall) streamsAgree() {
	h.t.Helper()
	open := map[anteroom.ID]int{}
	for _, d := range h.doors {
		for id := range d.streams {
			open[id]++
		}
	}
	site := h.desk.Site()
	site.here.each(func(slot uint32) {
		if id := site.here.id(slot); int(site.here.at(slot).streams) != open[id] {
			h.dump(id)
			h.t.Errorf("%x has streams at %d doors, the site counts %d", id, open[id], site.here.at(slot).streams)
		}
	})
	for id, list := range h.desk.streams {
		if len(list) > open[id] {
			h.t.Errorf("%x has streams at %d doors, the desk counts %d", id, open[id], len(list))
		}
	}
}

func (h *hall) dump(id anteroom.ID) {
	site := h.desk.Site()
	slot := site.here.find(&id)
	h.t.Logf("%x here %v seat %v used %v", id, slot, site.seats.find(&id), site.used.find(&id))
	for i, d := range h.doors {
		s := d.Doorway.streams[id]
		_, closing := d.closing[id]
		h.t.Logf("door %d: host %d, door %+v, closing %v absent %v asks %d silence %v", i, d.streams[id], s, closing, d.absent, d.asks.open, d.silence)
		for _, x := range h.desk.streams[id] {
			h.t.Logf("desk has door %d", x.number)
		}
	}
}
