package memlink

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// numbered sends count messages that hold their number, one every interval.
func numbered(n *Network, from, to End, count int, every time.Duration) {
	for i := range count {
		n.Send(time.Duration(i)*every, from, to, binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
}

// drain receives everything, asking at each moment that Next names.
func drain(t *testing.T, n *Network) (out []Message) {
	t.Helper()
	before := time.Duration(-1)
	for {
		at, ok := n.Next()
		if !ok {
			break
		}
		if _, early := n.Receive(at - 1); early {
			t.Fatalf("received a message before %v, when it was due", at)
		}
		m, ok := n.Receive(at)
		if !ok || m.At != at || at < before {
			t.Fatalf("Next said %v, Receive gave %v, %v after %v", at, m.At, ok, before)
		}
		before = at
		out = append(out, m)
	}
	if m, ok := n.Receive(math.MaxInt64); ok {
		t.Fatalf("Next said that nothing is under way, Receive gave %v", m)
	}
	return out
}

func numbers(messages []Message) (out []int) {
	for _, m := range messages {
		out = append(out, int(binary.BigEndian.Uint32(m.Data)))
	}
	return out
}

func balanced(t *testing.T, p *Path) {
	t.Helper()
	if p.Sent+p.Repeated != p.Delivered+p.Lost+p.UnderWay() {
		t.Errorf("sent %d + repeated %d, but delivered %d + lost %d + under way %d",
			p.Sent, p.Repeated, p.Delivered, p.Lost, p.UnderWay())
	}
}

func TestNetworkPlainPath(t *testing.T) {
	t.Parallel()
	n := NewNetwork(1)
	n.Send(time.Second, 1, 2, []byte("a"))
	n.Send(time.Second, 3, 2, []byte("b"))
	n.Send(time.Second, 1, 2, []byte("c"))
	var got string
	for _, m := range drain(t, n) {
		if m.Sent != time.Second || m.At != time.Second || m.To != 2 {
			t.Errorf("got %+v, want it at the moment of sending", m)
		}
		got += string(m.Data)
	}
	if got != "abc" {
		t.Errorf("at one moment the order was %q, want that of sending", got)
	}
	if n.Path(1, 2).Delay != 0 || n.Path(1, 2).Sent != 2 || n.Path(2, 1).Sent != 0 {
		t.Error("a path is not one direction between two ends")
	}
}

// TestNetworkOrder: jitter and a delay that shrinks do not reorder a path; paths overtake
// each other.
func TestNetworkOrder(t *testing.T) {
	t.Parallel()
	n := NewNetwork(2)
	p := n.Path(1, 2)
	p.Delay, p.Jitter = 50*time.Millisecond, 40*time.Millisecond
	numbered(n, 1, 2, 500, time.Millisecond)
	p.Delay, p.Jitter = time.Millisecond, 0
	n.Send(501*time.Millisecond, 1, 2, binary.BigEndian.AppendUint32(nil, 500))
	n.Send(501*time.Millisecond, 3, 2, binary.BigEndian.AppendUint32(nil, 1000))
	got := drain(t, n)
	var late bool
	for _, m := range got {
		took := m.At - m.Sent
		if took < time.Millisecond && m.From == 1 || took > 90*time.Millisecond {
			t.Errorf("took %v", took)
		}
		late = late || took > 80*time.Millisecond
	}
	order := numbers(got)
	if order[len(order)-1] == 1000 {
		t.Error("the second path waited for the first")
	}
	order = slices.DeleteFunc(order, func(i int) bool { return i == 1000 })
	if len(order) != 501 || !slices.IsSorted(order) {
		t.Errorf("the path did not keep the order of sending: %v", order)
	}
	if !late {
		t.Error("no message had jitter")
	}
}

func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	const count = 20_000
	for _, c := range []struct {
		name                 string
		set                  func(p *Path)
		lost, repeated, late float64 // shares
	}{
		{"none", func(*Path) {}, 0, 0, 0},
		{"loss", func(p *Path) { p.Loss = 0.1 }, 0.1, 0, 0},
		{"all lost", func(p *Path) { p.Loss = 1 }, 1, 0, 0},
		{"repeat", func(p *Path) { p.Repeat = 0.2 }, 0, 0.2, 0},
		{"reorder", func(p *Path) { p.Reorder = 0.05 }, 0, 0, 0.05},
		{"cut", func(p *Path) { p.Cut = true }, 1, 0, 0},
		{"all", func(p *Path) { p.Loss, p.Repeat, p.Reorder = 0.1, 0.1, 0.1 }, 0.1, 0.09, 0.099},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := NewNetwork(3)
			p := n.Path(1, 2)
			p.Delay = 10 * time.Millisecond
			c.set(p)
			numbered(n, 1, 2, count, time.Millisecond)
			if p.Sent != count || p.Bytes != 4*count {
				t.Errorf("counted %d messages, %d bytes", p.Sent, p.Bytes)
			}
			balanced(t, p)
			got := drain(t, n)
			balanced(t, p)
			if p.UnderWay() != 0 || p.Delivered != uint64(len(got)) {
				t.Errorf("delivered %d, counted %d; under way %d", len(got), p.Delivered, p.UnderWay())
			}
			var late int
			for _, m := range got {
				switch took := m.At - m.Sent; {
				case took < 10*time.Millisecond || took > 10*time.Millisecond+reorderMost:
					t.Fatalf("took %v", took)
				case took > 10*time.Millisecond:
					late++
				}
			}
			near := func(what string, n int, share float64) {
				t.Helper()
				if got := float64(n) / count; math.Abs(got-share) > 0.01*min(1, 100*share) {
					t.Errorf("%s: %.3f, want %.3f", what, got, share)
				}
			}
			near("lost", int(p.Lost), c.lost)
			near("repeated", int(p.Repeated), c.repeated)
			near("late", late, c.late)
			order := numbers(got)
			if (c.late == 0) != slices.IsSorted(order) {
				t.Errorf("in order: %v", slices.IsSorted(order))
			}
			slices.Sort(order)
			if distinct := len(slices.Compact(order)); distinct != count-int(p.Lost) {
				t.Errorf("%d different messages came of %d less %d", distinct, count, p.Lost)
			}
		})
	}
}

func TestNetworkBreak(t *testing.T) {
	t.Parallel()
	n := NewNetwork(4)
	there, back := n.Path(1, 2), n.Path(2, 1)
	there.Delay, back.Delay = 100*time.Millisecond, 200*time.Millisecond
	n.Send(0, 1, 2, []byte("arrives"))
	n.Send(0, 2, 1, []byte("the other direction"))
	n.Send(50*time.Millisecond, 1, 2, []byte("under way"))
	if m, ok := n.Receive(100 * time.Millisecond); !ok || string(m.Data) != "arrives" {
		t.Fatalf("got %q, %v", m.Data, ok)
	}
	there.Break()
	if there.Lost != 1 || there.UnderWay() != 0 {
		t.Errorf("lost %d, under way %d at the moment of the cut; want 1, 0", there.Lost, there.UnderWay())
	}
	n.Send(110*time.Millisecond, 1, 2, []byte("during the cut"))
	if at, ok := n.Next(); !ok || at != 200*time.Millisecond {
		t.Errorf("next at %v, %v; want the other direction at 200ms", at, ok)
	}
	there.Heal()
	n.Send(120*time.Millisecond, 1, 2, []byte("healed"))
	var got []string
	for _, m := range drain(t, n) {
		got = append(got, string(m.Data))
	}
	if want := []string{"the other direction", "healed"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if there.Sent != 4 || there.Delivered != 2 || there.Lost != 2 || back.Lost != 0 {
		t.Errorf("there %+v, back %+v", *there, *back)
	}
	balanced(t, there)
	balanced(t, back)
}

// TestNetworkDrop: what is under way to and from the end is gone, nothing else; the paths
// go on without a cut, and a reordered straggler does not come back.
func TestNetworkDrop(t *testing.T) {
	t.Parallel()
	n := NewNetwork(5)
	for _, r := range []route{{1, 2}, {2, 1}, {1, 3}} {
		n.Path(r.from, r.to).Delay = time.Second
		n.Send(0, r.from, r.to, []byte("before"))
	}
	n.Path(3, 2).Reorder = 1
	n.Send(0, 3, 2, []byte("straggler"))
	n.Drop(2)
	n.Path(1, 2).Delay = 0
	n.Send(time.Millisecond, 1, 2, []byte("after"))
	got := drain(t, n)
	if len(got) != 2 || string(got[0].Data) != "after" || got[0].At != time.Millisecond || got[1].To != 3 {
		t.Errorf("got %+v", got)
	}
	for _, r := range []route{{1, 2}, {2, 1}, {3, 2}} {
		if p := n.Path(r.from, r.to); p.Lost != 1 {
			t.Errorf("%v lost %d", r, p.Lost)
		}
	}
}

// TestNetworkSeed: the same seed gives the same deliveries, another seed others.
func TestNetworkSeed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (out []Message) {
		n := NewNetwork(seed)
		for from := range End(5) {
			for to := range End(5) {
				p := n.Path(from, to)
				p.Delay, p.Jitter = time.Duration(from)*time.Millisecond, 20*time.Millisecond
				p.Loss, p.Repeat, p.Reorder = 0.05, 0.05, 0.05
			}
		}
		traffic := rand.New(rand.NewPCG(9, 9))
		for i := range 5_000 {
			now := time.Duration(i) * time.Millisecond
			n.Send(now, End(traffic.IntN(5)), End(traffic.IntN(5)), binary.BigEndian.AppendUint32(nil, uint32(i)))
			switch i % 500 {
			case 100:
				n.Path(End(traffic.IntN(5)), End(traffic.IntN(5))).Break()
			case 300:
				n.Path(End(traffic.IntN(5)), End(traffic.IntN(5))).Heal()
			case 400:
				n.Drop(End(traffic.IntN(5)))
			}
			for m, ok := n.Receive(now); ok; m, ok = n.Receive(now) {
				out = append(out, m)
			}
		}
		return append(out, drain(t, n)...)
	}
	same := func(a, b Message) bool {
		return a.From == b.From && a.To == b.To && a.Sent == b.Sent && a.At == b.At && string(a.Data) == string(b.Data)
	}
	first := run(7)
	if !slices.EqualFunc(first, run(7), same) {
		t.Error("two runs with one seed differ")
	}
	if slices.EqualFunc(first, run(8), same) {
		t.Error("another seed makes no difference")
	}
}

// TestNetworkKeepsNothing: what was delivered or lost is not held on to, and slots are used
// again.
func TestNetworkKeepsNothing(t *testing.T) {
	t.Parallel()
	n := NewNetwork(6)
	n.Path(1, 2).Repeat = 0.5
	for range 100 {
		numbered(n, 1, 2, 10, 0)
		n.Drop(2)
		numbered(n, 1, 2, 10, 0)
		drain(t, n)
	}
	if len(n.transit) > 40 || len(n.free) != len(n.transit) {
		t.Errorf("%d slots for at most 40 messages at a time, %d of them free", len(n.transit), len(n.free))
	}
	for _, c := range n.transit {
		if c.message.Data != nil {
			t.Fatal("a delivered message is held on to")
		}
	}
}

func BenchmarkNetwork(b *testing.B) {
	n := NewNetwork(1)
	const ends = 100
	for e := range End(ends) {
		p := n.Path(e, 0)
		p.Delay, p.Jitter, p.Loss = 50*time.Millisecond, 10*time.Millisecond, 0.001
	}
	data := make([]byte, 100)
	now := time.Duration(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now += 10 * time.Microsecond // some 5,000 messages under way
		n.Send(now, End(i%ends), 0, data)
		for _, ok := n.Receive(now); ok; _, ok = n.Receive(now) {
		}
	}
}
