package engine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// testdata/admission-vectors.json holds exact examples; those marked published come from
// public descriptions of an edge waiting room. This file runs the sections that concern
// one site. share_two_minutes_back, aggregate, split, anywhere, workers_7_1, workers_8_7,
// eta_random_published and lottery_window belong to the published ways of sharing slots
// among many sites, which this engine replaces; they are for the simulator, which keeps
// those ways as baselines.
func vectors(t *testing.T, section string, into any) {
	t.Helper()
	b, err := os.ReadFile("testdata/admission-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[section], into); err != nil {
		t.Fatalf("section %q: %v", section, err)
	}
}

func TestVectorBucket(t *testing.T) {
	var cases []struct{ At, Bucket string }
	vectors(t, "bucket", &cases)
	for _, c := range cases {
		at, err := time.Parse(time.TimeOnly, c.At)
		if err != nil {
			t.Fatal(err)
		}
		at = at.AddDate(2026, 0, 0)
		got := anteroom.Time(anteroom.Ticket{Arrival: anteroom.TimeOf(at)}.Bucket()).Std().Format(time.TimeOnly)
		if got != c.Bucket {
			t.Errorf("bucket of %s is %s, want %s", c.At, got, c.Bucket)
		}
	}
}

// TestVectorReserve makes the very numbers of sessions and of waiting visitors per minute,
// lets everybody who waits check in, and looks who of which minute entered and how many
// newcomers then find a slot.
func TestVectorReserve(t *testing.T) {
	var cases []struct {
		L, R, Active, Slots int
		Waiting, Reserved   []int
		LeftForNew          int `json:"left_for_new"`
	}
	vectors(t, "reserve", &cases)
	for i, c := range cases {
		w := newTrial(t, anteroom.Settings{TotalActiveUsers: c.Active, NewUsersPerMinute: 1 << 20, SessionDuration: time.Hour, Unpaced: true})
		for range c.Active {
			w.arrive()
		}
		w.leap(2 * time.Minute) // their rate slots are free again
		var buckets [][]*visitor
		for _, n := range c.Waiting {
			var b []*visitor
			for range n {
				v := w.arrive()
				w.open(v)
				b = append(b, v)
			}
			buckets = append(buckets, b)
			w.leap(time.Minute)
		}
		w.hasty = true
		s := w.set
		s.TotalActiveUsers, s.NewUsersPerMinute = c.L, c.R
		w.configure(s)
		w.pass(500 * time.Millisecond)
		sum := 0
		for k, b := range buckets {
			in := 0
			for _, v := range b {
				if v.inside {
					in++
				}
			}
			if in != c.Reserved[k] {
				t.Errorf("case %d: of minute %d %d entered, want %d", i, k, in, c.Reserved[k])
			}
			sum += in
		}
		left := 0
		for range c.LeftForNew + 5 {
			if w.arrive().inside {
				left++
			}
		}
		if left != c.LeftForNew || sum+left != c.Slots {
			t.Errorf("case %d: %d newcomers found a slot, want %d; %d slots were used, want %d", i, left, c.LeftForNew, sum+left, c.Slots)
		}
	}
}

// counter_value: the v-th visitor (from 0) enters iff v is less than the slots.
func TestVectorCounterValue(t *testing.T) {
	var cases []struct {
		Value, Slots int
		Admit        bool
	}
	vectors(t, "counter_value", &cases)
	for _, c := range cases {
		w := newTrial(t, anteroom.Settings{TotalActiveUsers: c.Slots, NewUsersPerMinute: 1000})
		for range c.Value {
			w.arrive()
		}
		if got := w.arrive().inside; got != c.Admit {
			t.Errorf("visitor %d with %d slots: admitted %v, want %v", c.Value, c.Slots, got, c.Admit)
		}
	}
}

func TestVectorWaitFIFO(t *testing.T) {
	var cases []struct {
		Waiting, Reserved []int
		Own               int
		Ahead             float64
		PerMinute         float64 `json:"per_minute"`
		Leave             float64 `json:"leave_per_minute"`
		Minutes           float64
	}
	vectors(t, "eta_fifo", &cases)
	for _, c := range cases {
		if c.Waiting != nil { // the published form: those with a reserved slot do not count
			ahead := 0
			for k := 0; k <= c.Own; k++ {
				ahead += c.Waiting[k] - c.Reserved[k]
			}
			if float64(ahead) != c.Ahead {
				t.Errorf("%+v: %d ahead", c, ahead)
			}
		}
		if got := waitFIFO(c.Ahead, c.PerMinute, c.Leave); math.Abs(got-c.Minutes) > 6e-5 {
			t.Errorf("WaitFIFO(%v, %v, %v) = %.4f, want %.4f", c.Ahead, c.PerMinute, c.Leave, got, c.Minutes)
		}
	}
}

func TestVectorWaitRandom(t *testing.T) {
	var cases []struct {
		Waiting   float64
		PerMinute float64 `json:"per_minute"`
		Joins     float64 `json:"joins_per_minute"`
		Minutes   [3]float64
	}
	vectors(t, "eta_random", &cases)
	for _, c := range cases {
		for q, p := range [3]float64{0.25, 0.5, 0.75} {
			if got := waitRandom(c.Waiting, c.PerMinute, c.Joins, p); math.Abs(got-c.Minutes[q]) > 6e-5 {
				t.Errorf("WaitRandom(%v, %v, %v, %v) = %.4f, want %.4f", c.Waiting, c.PerMinute, c.Joins, p, got, c.Minutes[q])
			}
		}
	}
}

// TestVectorMethodSwitch tries seeds until the draw admits the vector's winner.
func TestVectorMethodSwitch(t *testing.T) {
	var c struct {
		Arrived      []int
		FIFONext     int   `json:"fifo_next"`
		RandomAdmits int   `json:"random_admits"`
		BackToFIFO   []int `json:"back_to_fifo"`
	}
	vectors(t, "method_switch", &c)
	for seed := range 200 {
		s := anteroom.Settings{TotalActiveUsers: 0, NewUsersPerMinute: 600, QueueingMethod: anteroom.FIFO}
		w := &trial{t: t, now: midnight, set: s.WithDefaults(), byID: map[anteroom.ID]*visitor{}, byToken: map[uint64]*visitor{}, hasty: true}
		w.room = NewSingle(w.now, hereKey, w.set, w.record, []byte{byte(seed)}, nil, 0, 0)
		w.collect()
		for range c.Arrived {
			w.open(w.arrive())
		}
		w.pass(time.Second)
		number := func() (n []int) {
			for _, id := range w.room.coordinator.Line() {
				n = append(n, c.Arrived[w.byID[id].n])
			}
			return n
		}
		if got := number(); got[0] != c.FIFONext {
			t.Fatalf("under fifo the line is %v, %d is to be first", got, c.FIFONext)
		}
		s.QueueingMethod, s.TotalActiveUsers = anteroom.Random, 1
		w.configure(s)
		if !w.people[3].inside {
			continue
		}
		if c.Arrived[3] != c.RandomAdmits {
			t.Fatalf("the vector's winner is %d", c.RandomAdmits)
		}
		s.QueueingMethod = anteroom.FIFO
		w.configure(s)
		want := c.BackToFIFO
		for i, got := range number() {
			if got != want[i] {
				t.Fatalf("back under fifo the line is %v, want %v", number(), want)
			}
		}
		for i := range want { // and they enter in that order
			s.TotalActiveUsers = 2 + i
			w.configure(s)
			w.pass(100 * time.Millisecond)
			if !w.people[want[i]-c.Arrived[0]].inside {
				t.Fatalf("%d is not let in at place %d", want[i], i)
			}
		}
		return
	}
	t.Fatal("200 seeds and the draw never fell on the vector's winner")
}

func TestVectorLedger(t *testing.T) {
	var c struct {
		L     int64
		Steps []struct {
			Do, Site, Note string
			N, Total       uint64
			Pool           int64
			Refused        bool
		}
	}
	vectors(t, "ledger", &c)
	l := newLedger()
	l.Limit = [units]int64{c.L, c.L}
	for i, s := range c.Steps {
		key := SiteKey{Name: s.Site}
		if l.accounts[key] == nil {
			l.Open(key, Units{}, Units{})
			l.accounts[key].Reserved = Units{100, 100}
		}
		switch s.Do {
		case "grant":
			if l.Grant(key, s.N) == s.Refused {
				t.Errorf("step %d: granted %v", i, !s.Refused)
			}
		case "returned":
			if err := l.Heard(key, Units{s.Total, s.Total}); err != nil {
				t.Errorf("step %d: %v", i, err)
			}
		}
		for k := range units {
			if l.Pool(k) != s.Pool {
				t.Errorf("step %d (%s): pool of unit %d is %d, want %d", i, s.Note, k, l.Pool(k), s.Pool)
			}
		}
	}
}

// TestVectorRateSlot: the vector states a hold of its own; the product holds a rate slot
// for 60,010 ms (rule 5), so the vector's moments are moved by what lies between: a moment
// of n holds becomes n product holds.
func TestVectorRateSlot(t *testing.T) {
	var c struct {
		R        int
		HoldMS   int64 `json:"hold_ms"`
		Requests []struct {
			AtMS  int64 `json:"at_ms"`
			Admit bool
		}
	}
	vectors(t, "rate_slot", &c)
	extra := RateHold - time.Duration(c.HoldMS)*time.Millisecond
	moment := func(ms int64) anteroom.Time {
		if ms >= c.HoldMS-1 {
			return midnight.Add(time.Duration(ms)*time.Millisecond + extra)
		}
		return midnight.Add(time.Duration(ms) * time.Millisecond)
	}
	for i, r := range c.Requests {
		// Those who were refused did not stay: else they would be the next to enter.
		w := newTrial(t, anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: c.R, SessionDuration: time.Hour})
		for _, before := range c.Requests[:i] {
			if before.Admit {
				w.now = moment(before.AtMS)
				w.tick()
				w.arrive()
			}
		}
		w.now = moment(r.AtMS)
		w.tick()
		if got := w.arrive().inside; got != r.Admit {
			t.Errorf("at %d ms: admitted %v, want %v", r.AtMS, got, r.Admit)
		}
	}
}

func TestVectorShuffle(t *testing.T) {
	var s struct {
		Seed, Commitment, Entries, Key string
		IDs, Priority                  []string
		Order                          []int
	}
	vectors(t, "shuffle", &s)
	seed := unhex(t, s.Seed)
	var ids []anteroom.ID
	for _, x := range s.IDs {
		ids = append(ids, anteroom.ID(unhex(t, x)))
	}
	same := func(what string, got [32]byte, want string) {
		t.Helper()
		if !bytes.Equal(got[:], unhex(t, want)) {
			t.Errorf("%s is %x, want %s", what, got, want)
		}
	}
	entries := Entries(ids)
	key := ShuffleKey(seed, entries)
	same("commitment", Commitment(seed), s.Commitment)
	same("entries", entries, s.Entries)
	same("entries in another order", Entries([]anteroom.ID{ids[2], ids[0], ids[3], ids[1]}), s.Entries)
	same("shuffle key", key, s.Key)
	for i, id := range ids {
		var be [8]byte
		for k := range be {
			be[k] = byte(Priority(key, id) >> (56 - 8*k))
		}
		if hex.EncodeToString(be[:]) != s.Priority[i] {
			t.Errorf("priority %d is %x, want %s", i, be, s.Priority[i])
		}
	}
	for i, got := range Order(key, ids) {
		if got != s.Order[i] {
			t.Errorf("shuffled order %v, want %v", Order(key, ids), s.Order)
			break
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
