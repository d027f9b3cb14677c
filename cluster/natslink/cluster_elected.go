package natslink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// subjectElected is where JetStream says that a stream has another leader; the stream's name follows.
const subjectElected = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."

const (
	// electedFor is how long after that a try has electedBound: until the new leader listens, what is sent to it is lost.
	electedFor   = time.Second
	electedBound = 75 * time.Millisecond
)

var errElected = errors.New("it has got another leader")

// elections ends tries that were under way when a stream got another leader: most of them are never answered. The next try
// is soon, and the visitors who wait for the journal wait no longer than it takes to elect the leader. The zero value has
// heard of none.
type elections struct {
	mu    sync.Mutex
	last  time.Time
	tries map[*try]struct{}
}

type try struct{ end context.CancelFunc }

// follow hears of the elections of a stream until the connection is closed.
func (e *elections) follow(nc *nats.Conn, stream string) error {
	if _, err := nc.Subscribe(subjectElected+stream, func(*nats.Msg) { e.elected() }); err != nil {
		return fmt.Errorf("natslink: hearing of the leaders of %s: %w", stream, err)
	}
	return nil
}

func (e *elections) elected() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = time.Now()
	for t := range e.tries {
		t.end()
	}
	clear(e.tries)
}

// try returns a context for one try, which ends when the stream gets another leader, or after soonBound.
func (e *elections) try(ctx context.Context) (context.Context, context.CancelFunc) {
	if e == nil {
		return context.WithTimeout(ctx, soonBound)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	bound := soonBound
	if time.Since(e.last) < electedFor {
		bound = electedBound
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	t := &try{cancel}
	if e.tries == nil {
		e.tries = map[*try]struct{}{}
	}
	e.tries[t] = struct{}{}
	return ctx, func() {
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.tries, t)
	}
}
