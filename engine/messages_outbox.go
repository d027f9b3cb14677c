package engine

import "slices"

// Outbox orders what a process records and what it says: batches of records are written one at a
// time, and a message leaves when every record that was made before it is durable. B is a batch as
// the host writes it, M a message. The zero value is empty. It is not safe for concurrent use.
type Outbox[B, M any] struct {
	queue []*outboxBatch[B, M]
	busy  bool // queue[0] is being written, or its messages leave
}

type outboxBatch[B, M any] struct {
	records B
	tried   bool // a write has begun: nothing may be added, because it may have arrived
	after   []M
}

// Open returns the batch that takes more records, or nil when there is none.
func (o *Outbox[B, M]) Open() *B {
	if n := len(o.queue); n > 0 && !o.queue[n-1].tried {
		return &o.queue[n-1].records
	}
	return nil
}

// Add begins a batch behind the others.
func (o *Outbox[B, M]) Add(records B) *B {
	b := &outboxBatch[B, M]{records: records}
	o.queue = append(o.queue, b)
	return &b.records
}

// Last returns the newest batch, written or not, or nil when everything is durable.
func (o *Outbox[B, M]) Last() *B {
	if n := len(o.queue); n > 0 {
		return &o.queue[n-1].records
	}
	return nil
}

// After makes messages leave when everything added so far is durable, behind those that wait
// already. It is false, and keeps nothing, when nothing is to be waited for: they may leave now.
func (o *Outbox[B, M]) After(messages []M) bool {
	n := len(o.queue)
	if n == 0 {
		return false
	}
	b := o.queue[n-1]
	b.after = append(b.after, messages...)
	return true
}

// Next returns the batch that is to be written now, or nil: there is none, or one is being
// written. Call Written or Failed when that is over.
func (o *Outbox[B, M]) Next() *B {
	if o.busy || len(o.queue) == 0 {
		return nil
	}
	o.busy, o.queue[0].tried = true, true
	return &o.queue[0].records
}

// Written says that the batch is durable and returns messages that may leave. Call it until it
// returns none: more may have been added while some left.
func (o *Outbox[B, M]) Written() (messages []M) {
	b := o.queue[0]
	if messages, b.after = b.after, nil; len(messages) == 0 {
		o.busy, o.queue = false, slices.Delete(o.queue, 0, 1)
	}
	return messages
}

// Failed says that the batch may not be durable: Next returns it again.
func (o *Outbox[B, M]) Failed() { o.busy = false }
