package natslink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/anteroom/anteroom/cluster"
)

// What waits for a slow receiver at most; then the newest messages are lost.
const (
	waitingMessages = 8192
	waitingBytes    = 64 << 20
)

// messages are those of a space: core NATS, kept nowhere.
type messages struct {
	j      *joined
	nc     *nats.Conn
	prefix string // begins the subjects
}

func (m *messages) closed() error {
	if m.j.ctx.Err() != nil {
		return cluster.ErrClosed
	}
	return nil
}

// sent returns what a send that failed with err returns.
func (m *messages) sent(err error) error {
	switch {
	case err == nil:
		return nil
	case m.closed() != nil:
		return cluster.ErrClosed
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: the servers take %d bytes in one message; raise their max_payload to %d", cluster.ErrTooLarge, m.nc.MaxPayload(), leastPayload)
	}
	return fmt.Errorf("%w: %w", cluster.ErrUnavailable, err)
}

func (m *messages) Publish(subject string, data []byte) error {
	if err := cluster.CheckMessage(subject, data); err != nil {
		return err
	}
	if err := m.closed(); err != nil {
		return err
	}
	return m.sent(m.nc.Publish(m.prefix+subject, data))
}

func (m *messages) Subscribe(subject string, fn func(cluster.Message)) (stop func(), err error) {
	if err := cluster.CheckKey(subject); err != nil {
		return nil, err
	}
	if err := m.closed(); err != nil {
		return nil, err
	}
	var stopped sync.Once
	off := make(chan struct{})
	sub, err := m.nc.Subscribe(m.prefix+subject, func(got *nats.Msg) {
		select {
		case <-off:
			return
		case <-m.j.ctx.Done():
			return
		default:
		}
		msg := cluster.Message{Subject: strings.TrimPrefix(got.Subject, m.prefix), Data: got.Data}
		if got.Reply != "" {
			msg.Reply = func(data []byte) error {
				if err := cluster.CheckMessage(subject, data); err != nil {
					return err
				}
				if err := m.closed(); err != nil {
					return err
				}
				return m.sent(m.nc.Publish(got.Reply, data))
			}
		}
		fn(msg)
	})
	if err != nil {
		return nil, m.sent(err)
	}
	if err := sub.SetPendingLimits(waitingMessages, waitingBytes); err != nil {
		return nil, m.sent(err)
	}
	// The server knows of it when this returns, if there is one; else it will be told when
	// the connection is back.
	if m.nc.IsConnected() {
		m.nc.FlushTimeout(tryBound)
	}
	return func() {
		stopped.Do(func() {
			close(off)
			sub.Unsubscribe()
		})
	}, nil
}

func (m *messages) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if err := cluster.CheckMessage(subject, data); err != nil {
		return nil, err
	}
	own, cancel, err := m.j.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	own, cancel = context.WithTimeout(own, callBound)
	defer cancel()
	if !m.nc.IsConnected() {
		return nil, fmt.Errorf("%w: %w", cluster.ErrUnavailable, unconnected(m.nc))
	}
	answer, err := m.nc.RequestWithContext(own, m.prefix+subject, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, fmt.Errorf("%w: subject %s", cluster.ErrNobody, subject)
	}
	if err != nil {
		return nil, m.j.ended(ctx, m.sent(err))
	}
	return slices.Clip(answer.Data), nil
}
