package natslink

import (
	"context"

	"github.com/anteroom/anteroom/cluster"
)

// A process alone talks to itself without NATS.

func (l *link) Site() cluster.Space { return l }

func (l *link) Health() cluster.Health {
	ok := cluster.Touch{OK: true}
	return cluster.Health{Alone: true, Hub: true, SiteName: "local", Site: ok, Shared: ok}
}

func (l *link) Watch(ctx context.Context, prefix string, fn func(cluster.Change)) error {
	return l.watchers.Watch(ctx, l.done, prefix, fn, l.Get, l.Keys)
}

func (l *link) Publish(subject string, data []byte) error { return l.bus.Publish(subject, data) }

func (l *link) Subscribe(subject string, fn func(cluster.Message)) (func(), error) {
	return l.bus.Subscribe(subject, fn)
}

func (l *link) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	return l.bus.Request(ctx, l.done, subject, data)
}
