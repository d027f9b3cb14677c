package memlink

import (
	"math/rand/v2"
	"time"
)

// reorderMost is the longest that a reordered message is late.
const reorderMost = 5 * time.Second

// End is one end of the network: a process. The caller gives the numbers.
type End int32

// Network is the simulator's network: messages between numbered ends under virtual time,
// with delay, loss, repetition, reordering and cuts on demand. It has no clock and no
// goroutine; the moment (since the start) is an argument, and the same calls with the same
// seed give the same deliveries. It is for one goroutine. Links that are cut on demand are a
// [World]'s.
type Network struct {
	chance  *rand.Rand
	paths   map[route]*Path
	queue   []due     // binary heap by at, then number
	transit []carried // what the queue's slots name; without pointers the heap moves fast
	free    []uint32  // slots of transit that hold nothing
	number  uint64    // of messages ever sent, repetitions included
}

type route struct{ from, to End }

type due struct {
	at     time.Duration
	number uint64
	slot   uint32
}

func (d due) before(e due) bool { return d.at < e.at || d.at == e.at && d.number < e.number }

type carried struct {
	message Message
	path    *Path
	era     uint64
}

// Message is one delivery.
type Message struct {
	From, To End
	Data     []byte // as given to Send
	Sent, At time.Duration
	Shared   bool // Data is that of a repetition too, so nobody may change it
}

// Path is one direction between two ends. Its faults may be set at any moment and apply to
// what is sent from then on. Without Reorder it delivers in the order of sending, also with
// Jitter and when Delay shrinks, as one TCP connection does.
type Path struct {
	Delay  time.Duration // of every message
	Jitter time.Duration // up to so much more, uniformly, per message

	Loss    float64 // chance of a message, 0 to 1, to be dropped
	Repeat  float64 // chance to be delivered twice, each time with its own jitter and Reorder
	Reorder float64 // chance to be up to 5 s late, while later ones pass it
	Cut     bool    // whatever is sent is lost; see Break for what is under way

	Sent, Repeated, Delivered, Lost uint64 // messages; Sent + Repeated = Delivered + Lost + under way
	Bytes                           uint64 // of the messages sent

	underWay uint64
	era      uint64        // messages of an earlier era are lost
	last     time.Duration // when the latest message in order arrives
}

// NewNetwork returns a network without messages.
func NewNetwork(seed uint64) *Network {
	return &Network{chance: rand.New(rand.NewPCG(seed, 0)), paths: map[route]*Path{}}
}

// Path returns the path between two ends. It is made when first asked for and then has
// neither delay nor faults.
func (n *Network) Path(from, to End) *Path {
	p := n.paths[route{from, to}]
	if p == nil {
		p = &Path{}
		n.paths[route{from, to}] = p
	}
	return p
}

// Break cuts the path and loses what is under way on it.
func (p *Path) Break() {
	p.Cut = true
	p.drop()
}

// Heal ends a cut.
func (p *Path) Heal() { p.Cut = false }

// UnderWay is the number of messages sent and neither delivered nor lost.
func (p *Path) UnderWay() uint64 { return p.underWay }

func (p *Path) drop() {
	p.Lost += p.underWay
	p.underWay = 0
	p.last = 0
	p.era++
}

// Drop loses what is under way to and from an end: its process has died. Paths stay as they
// are.
func (n *Network) Drop(end End) {
	for r, p := range n.paths {
		if r.from == end || r.to == end {
			p.drop()
		}
	}
}

// Send puts a message on its way. The network keeps data.
func (n *Network) Send(now time.Duration, from, to End, data []byte) {
	p := n.Path(from, to)
	p.Sent++
	p.Bytes += uint64(len(data))
	if p.Cut || n.happens(p.Loss) {
		p.Lost++
		return
	}
	m := Message{From: from, To: to, Data: data, Sent: now}
	slot := n.carry(p, m)
	if n.happens(p.Repeat) {
		p.Repeated++
		n.transit[slot].message.Shared, m.Shared = true, true
		n.carry(p, m)
	}
}

func (n *Network) carry(p *Path, m Message) (slot uint32) {
	m.At = m.Sent + max(0, p.Delay) + n.upTo(p.Jitter)
	if n.happens(p.Reorder) {
		m.At += 1 + n.upTo(reorderMost-1)
	} else {
		m.At = max(m.At, p.last)
		p.last = m.At
	}
	p.underWay++
	n.number++
	slot = n.keep(carried{message: m, path: p, era: p.era})
	n.push(due{at: m.At, number: n.number, slot: slot})
	return slot
}

func (n *Network) happens(chance float64) bool { return chance > 0 && n.chance.Float64() < chance }

// upTo is a uniform duration of 0 to most.
func (n *Network) upTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(n.chance.Int64N(int64(most) + 1))
}

// Next says when the next delivery is due; ok is false when nothing is under way.
func (n *Network) Next() (at time.Duration, ok bool) {
	n.skipLost()
	if len(n.queue) == 0 {
		return 0, false
	}
	return n.queue[0].at, true
}

// Receive returns the next message that is due at or before now, in the order of At and, at
// the same moment, of sending; ok is false when there is none.
func (n *Network) Receive(now time.Duration) (m Message, ok bool) {
	n.skipLost()
	if len(n.queue) == 0 || n.queue[0].at > now {
		return Message{}, false
	}
	c := n.take(n.pop())
	c.path.Delivered++
	c.path.underWay--
	return c.message, true
}

// skipLost removes from the front what was lost after it was sent.
func (n *Network) skipLost() {
	for len(n.queue) > 0 {
		c := &n.transit[n.queue[0].slot]
		if c.era == c.path.era {
			return
		}
		n.take(n.pop())
	}
}

func (n *Network) keep(c carried) uint32 {
	last := len(n.free) - 1
	if last < 0 {
		n.transit = append(n.transit, c)
		return uint32(len(n.transit) - 1)
	}
	slot := n.free[last]
	n.free = n.free[:last]
	n.transit[slot] = c
	return slot
}

func (n *Network) take(d due) carried {
	c := n.transit[d.slot]
	n.transit[d.slot] = carried{}
	n.free = append(n.free, d.slot)
	return c
}

func (n *Network) push(d due) {
	n.queue = append(n.queue, d)
	i := len(n.queue) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !d.before(n.queue[parent]) {
			break
		}
		n.queue[i] = n.queue[parent]
		i = parent
	}
	n.queue[i] = d
}

func (n *Network) pop() due {
	top := n.queue[0]
	last := len(n.queue) - 1
	d := n.queue[last]
	n.queue = n.queue[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && n.queue[child+1].before(n.queue[child]) {
			child++
		}
		if !n.queue[child].before(d) {
			break
		}
		n.queue[i] = n.queue[child]
		i = child
	}
	if last > 0 {
		n.queue[i] = d
	}
	return top
}
