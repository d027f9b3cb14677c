package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxPending and maxPendingBytes are how much waits for a slow subscriber.
	maxPending      = 8192
	maxPendingBytes = 64 << 20

	// readAgain is how soon a watch reads again what could not be read.
	readAgain = 200 * time.Millisecond
)

// Bus carries the messages of a [Space] within one process. The zero value is ready. It holds
// a goroutine only while a message is on its way.
type Bus struct {
	mu     sync.Mutex
	closed bool
	subs   map[string][]*subscription
}

type subscription struct {
	fn func(Message)

	mu      sync.Mutex
	pending []Message
	bytes   int  // of pending
	running bool // a goroutine takes from pending
	stopped bool
}

// Publish is as in [Space].
func (b *Bus) Publish(subject string, data []byte) error {
	_, err := b.Deliver(subject, data, nil)
	return err
}

// Deliver gives the message to the subscribers and returns how many there are.
func (b *Bus) Deliver(subject string, data []byte, reply func([]byte) error) (int, error) {
	if err := CheckMessage(subject, data); err != nil {
		return 0, err
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, ErrClosed
	}
	subs := b.subs[subject]
	b.mu.Unlock()
	for _, s := range subs {
		s.give(Message{Subject: subject, Data: slices.Clone(data), Reply: reply})
	}
	return len(subs), nil
}

func (s *subscription) give(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || len(s.pending) >= maxPending || s.bytes+len(m.Data) > maxPendingBytes {
		return
	}
	s.pending = append(s.pending, m)
	s.bytes += len(m.Data)
	if !s.running {
		s.running = true
		go s.run()
	}
}

// run calls fn until nothing is pending.
func (s *subscription) run() {
	for {
		s.mu.Lock()
		if s.stopped || len(s.pending) == 0 {
			s.pending, s.bytes, s.running = nil, 0, false
			s.mu.Unlock()
			return
		}
		m := s.pending[0]
		s.pending[0] = Message{}
		s.pending = s.pending[1:]
		s.bytes -= len(m.Data)
		s.mu.Unlock()
		s.fn(m)
	}
}

func (s *subscription) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// Subscribe is as in [Space].
func (b *Bus) Subscribe(subject string, fn func(Message)) (stop func(), err error) {
	if err := CheckKey(subject); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	s := &subscription{fn: fn}
	if b.subs == nil {
		b.subs = map[string][]*subscription{}
	}
	// Lists are replaced, not changed: send goes through one without the lock.
	b.subs[subject] = append(slices.Clone(b.subs[subject]), s)
	return func() {
		s.stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		rest := slices.DeleteFunc(slices.Clone(b.subs[subject]), func(one *subscription) bool { return one == s })
		if len(rest) == 0 {
			delete(b.subs, subject)
		} else {
			b.subs[subject] = rest
		}
	}, nil
}

// Request is as in [Space]. It also ends with ErrClosed when ended is closed; nil never is.
func (b *Bus) Request(ctx context.Context, ended <-chan struct{}, subject string, data []byte) ([]byte, error) {
	return Ask(ctx, ended, func(reply func([]byte) error) (int, error) { return b.Deliver(subject, data, reply) })
}

// Ask is Request for a way of sending that returns how many it has reached.
func Ask(ctx context.Context, ended <-chan struct{}, send func(reply func([]byte) error) (int, error)) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	answer := make(chan []byte, 1)
	n, err := send(func(data []byte) error {
		if err := CheckMessage("answer", data); err != nil {
			return err
		}
		select {
		case answer <- slices.Clone(data):
		default: // another was first
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return nil, ErrNobody
	}
	select {
	case data := <-answer:
		return data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-ended:
		return nil, ErrClosed
	}
}

// Close drops what is on its way and all subscriptions.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, subs := range b.subs {
		for _, s := range subs {
			s.stop()
		}
	}
	b.subs = nil
}

// Watchers tells the watchers of a [Space] within one process which keys have changed; they
// read the values themselves, so what waits for a slow one are names. The zero value is ready.
type Watchers struct {
	mu  sync.Mutex
	all map[*watcher]struct{}
}

type watcher struct {
	prefix  string
	wake    chan struct{}
	pending map[string]bool // guarded by Watchers.mu
	again   bool            // so, too: everything is to be read
}

// Changed says that the key holds something else, or nothing, than before. It does not wait.
func (w *Watchers) Changed(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		if strings.HasPrefix(key, one.prefix) {
			one.pending[key] = true
			one.poke()
		}
	}
}

// Again makes every watch read everything once more: some changes may not have been told.
func (w *Watchers) Again() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		one.again = true
		one.poke()
	}
}

func (w *watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watch is as in [Space]. It reads through get and keys, and ends with ErrClosed when ended is
// closed or either says so.
func (w *Watchers) Watch(ctx context.Context, ended <-chan struct{}, prefix string, fn func(Change),
	get func(ctx context.Context, key string) (Entry, error), keys func(ctx context.Context, prefix string) ([]string, error)) error {
	if err := CheckPrefix(prefix); err != nil {
		return err
	}
	one := &watcher{prefix: prefix, wake: make(chan struct{}, 1), pending: map[string]bool{}}
	w.mu.Lock()
	if w.all == nil {
		w.all = map[*watcher]struct{}{}
	}
	w.all[one] = struct{}{}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, one)
	}()
	told := map[string]uint64{} // revision by key
	todo := map[string]bool{}   // keys to be read
	tell := func() error {
		for _, name := range slices.Sorted(maps.Keys(todo)) {
			e, err := get(ctx, name)
			_, known := told[name]
			switch {
			case err == nil && told[name] != e.Revision:
				told[name] = e.Revision
				fn(Change{Entry: e})
			case errors.Is(err, ErrNotFound) && known:
				delete(told, name)
				fn(Change{Entry: Entry{Key: name}, Gone: true})
			case err != nil && !errors.Is(err, ErrNotFound):
				return err
			}
			delete(todo, name)
		}
		return nil
	}
	listed := false
	for {
		err := tell()
		if err == nil && !listed {
			var now []string
			if now, err = keys(ctx, prefix); err == nil {
				for _, name := range now {
					todo[name] = true
				}
				if err = tell(); err == nil {
					listed = true
					fn(Change{Synced: true})
				}
			}
		}
		var again <-chan time.Time
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrClosed):
			return ErrClosed
		case err != nil:
			again = time.After(readAgain)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return ErrClosed
		case <-one.wake:
		case <-again:
		}
		w.mu.Lock()
		maps.Copy(todo, one.pending)
		clear(one.pending)
		if one.again {
			one.again, listed = false, false
			for name := range told {
				todo[name] = true
			}
		}
		w.mu.Unlock()
	}
}
