package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
)

const (
	// MaxPending is how many messages one webhook can have before it: beyond that the oldest is
	// given up.
	MaxPending = 100
	// maxKept is how many messages that are over are still shown.
	maxKept = 50
)

// saveTime bounds a write to the store.
const saveTime = 5 * time.Second

// queues are those of all webhooks.
type queues struct {
	mu  sync.Mutex
	all map[anteroom.WebhookID]*queue
	end sync.WaitGroup
}

// queue is what one webhook is to be told and was told.
type queue struct {
	s    *Sender
	id   anteroom.WebhookID
	stop context.CancelFunc
	wake chan struct{}

	mu     sync.Mutex
	target Target
	list   []*delivery // in the order of their creation

	saving sync.Mutex // of one save after the other
	told   bool       // in the log, that nothing can be saved
}

// Use puts the webhooks in force: new ones start with their saved queue, and deleted ones get nothing more, but what
// was saved stays. The work ends with ctx. Use and Tell must be called by one goroutine at a time.
func (s *Sender) Use(ctx context.Context, targets []Target) {
	s.queues.mu.Lock()
	defer s.queues.mu.Unlock()
	if s.queues.all == nil {
		s.queues.all = map[anteroom.WebhookID]*queue{}
	}
	seen := map[anteroom.WebhookID]bool{}
	for _, t := range targets {
		seen[t.ID] = true
		if q := s.queues.all[t.ID]; q != nil {
			q.mu.Lock()
			q.target = t
			q.mu.Unlock()
			continue
		}
		q := s.newQueue(ctx, t)
		s.queues.all[t.ID] = q
	}
	for id, q := range s.queues.all {
		if !seen[id] {
			q.stop()
			delete(s.queues.all, id)
		}
	}
}

func (s *Sender) newQueue(ctx context.Context, t Target) *queue {
	q := &queue{s: s, id: t.ID, target: t, wake: make(chan struct{}, 1)}
	loading, done := context.WithTimeout(ctx, saveTime)
	data, err := s.cfg.Store.Load(loading, t.ID)
	done()
	if err == nil {
		q.list, err = parseQueue(data)
	}
	if err != nil {
		s.log.Error("the queue of this webhook's deliveries is not known", "webhook", string(t.ID), "name", t.Name, "error", err)
	}
	working, stop := context.WithCancel(ctx)
	q.stop = stop
	s.queues.end.Go(func() { q.work(working) })
	return q
}

// Wait returns when the work of all queues has ended, after the ctx of Use.
func (s *Sender) Wait() { s.queues.end.Wait() }

// Tell queues a message for a webhook, and saves it before it returns. If there is no such webhook, it does nothing.
func (s *Sender) Tell(ctx context.Context, id anteroom.WebhookID, m Message) {
	s.queues.mu.Lock()
	q := s.queues.all[id]
	s.queues.mu.Unlock()
	if q == nil {
		return
	}
	q.mu.Lock()
	m.Webhook = Named{string(id), q.target.Name}
	m = m.bounded()
	q.list = append(q.list, &delivery{ID: m.ID, Type: m.Type, Text: m.Text, Created: m.At, State: anteroom.DeliveryPending, Next: s.now(), Message: &m})
	q.trim()
	q.mu.Unlock()
	q.save(ctx)
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// trim keeps the bounds; q.mu is held.
func (q *queue) trim() {
	pending, over := 0, 0
	for i := len(q.list) - 1; i >= 0; i-- {
		switch d := q.list[i]; {
		case d.State != anteroom.DeliveryPending:
			if over++; over > maxKept {
				q.list[i] = nil
			}
		case pending == MaxPending:
			d.fail("dropped: the queue of deliveries is full")
			q.s.log.Warn("the receiver of a webhook accepts nothing; its oldest delivery was dropped", "webhook", string(q.id), "name", q.target.Name, "type", d.Type)
			over++
		default:
			pending++
		}
	}
	q.list = slices.DeleteFunc(q.list, func(d *delivery) bool { return d == nil })
}

// fail ends a delivery.
func (d *delivery) fail(why string) {
	d.State, d.Error, d.Next, d.Message = anteroom.DeliveryFailed, why, time.Time{}, nil
}

// save stores the queue as it is.
func (q *queue) save(ctx context.Context) {
	q.saving.Lock()
	defer q.saving.Unlock()
	q.mu.Lock()
	data, err := json.Marshal(savedQueue{queueVersion, q.list})
	q.mu.Unlock()
	if err == nil {
		ctx, done := context.WithTimeout(ctx, saveTime)
		defer done()
		err = q.s.cfg.Store.Save(ctx, q.id, data)
	}
	switch {
	case err != nil && !q.told && ctx.Err() == nil:
		q.s.log.Error("a webhook delivery cannot be saved: it is still sent, but a restart would lose it", "webhook", string(q.id), "error", err)
		q.told = true
	case err == nil:
		q.told = false
	}
}

// work sends from the queue until ctx ends: what is due first goes first.
func (q *queue) work(ctx context.Context) {
	for {
		d, t, m, wait := q.next()
		if d == nil {
			select {
			case <-ctx.Done():
				return
			case <-q.wake:
			case <-time.After(wait):
			}
			continue
		}
		out := q.s.Try(ctx, t, m)
		if ctx.Err() != nil {
			return // it is tried again by whoever sends next
		}
		q.settle(d, t, out)
		q.save(ctx)
	}
}

// idle is how long a queue without anything to send sleeps, unless it is woken.
const idle = time.Hour

// next returns what is due, or for how long nothing is.
func (q *queue) next() (*delivery, Target, Message, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var first *delivery
	for _, d := range q.list {
		if d.State == anteroom.DeliveryPending && (first == nil || d.Next.Before(first.Next)) {
			first = d
		}
	}
	if first == nil {
		return nil, Target{}, Message{}, idle
	}
	if wait := first.Next.Sub(q.s.now()); wait > 0 {
		return nil, Target{}, Message{}, min(wait, idle)
	}
	return first, q.target, *first.Message, 0
}

// settle notes what came of an attempt.
func (q *queue) settle(d *delivery, t Target, out Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d.State != anteroom.DeliveryPending { // it was given up meanwhile
		return
	}
	now := q.s.now()
	d.Attempts++
	d.Status, d.Millis, d.Last, d.Error = out.Status, out.Took.Milliseconds(), now, ""
	log := q.s.log.With("webhook", string(q.id), "name", t.Name, "type", d.Type, "delivery", d.ID, "attempts", d.Attempts)
	if out.Err == nil {
		d.State, d.Next, d.Message = anteroom.DeliveryDelivered, time.Time{}, nil
		log.Debug("webhook delivered")
		q.trim()
		return
	}
	d.Next = now.Add(max(pause(d.Attempts), out.later))
	switch {
	case out.final:
		d.fail(out.Err.Error())
	case d.Next.Sub(d.Created) > giveUpAfter:
		d.fail("dropped after a day: " + out.Err.Error())
	default:
		d.Error = out.Err.Error()
		if d.Attempts == 1 {
			log.Warn("a webhook delivery failed; retrying for a day", "error", d.Error)
		}
		return
	}
	log.Error("a webhook delivery failed for the last time and was dropped", "error", d.Error)
	q.trim()
}
