package memlink

import (
	"context"
	"slices"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// journals are those of a site, in one list. The world's mutex guards them.
type journals struct {
	records   []record // oldest first
	size      int
	first     uint64 // number of records[0]; numbers grow by one
	retention time.Duration
	most      int               // bytes
	owners    map[string]uint64 // how often a journal was opened
}

type record struct {
	journal  string
	appended time.Time
	data     []byte
}

// handle is a journal as somebody opened it.
type handle struct {
	link  *link
	name  string
	owner uint64
}

func (j *journals) open(l *link, name string) *handle {
	j.owners[name]++
	return &handle{link: l, name: name, owner: j.owners[name]}
}

// forget drops records that are older than the retention or beyond the space.
func (j *journals) forget() {
	limit := time.Now().Add(-j.retention)
	n := 0
	for n < len(j.records) && (j.records[n].appended.Before(limit) || j.size > j.most) {
		j.size -= len(j.records[n].data) + overhead
		j.records[n] = record{}
		n++
	}
	j.records = j.records[n:]
	j.first += uint64(n)
}

func (h *handle) Append(ctx context.Context, data []byte) error {
	if err := cluster.CheckValue(data); err != nil {
		return err
	}
	if err := h.link.own.begin(ctx); err != nil {
		return err
	}
	defer h.link.world.mu.Unlock()
	j := &h.link.site.journals
	if j.owners[h.name] != h.owner {
		return cluster.ErrFenced
	}
	j.records = append(j.records, record{h.name, time.Now(), slices.Clone(data)})
	j.size += len(data) + overhead
	j.forget()
	return h.link.own.reached()
}

func (h *handle) Replay(ctx context.Context, fn func(appended time.Time, record []byte) error) error {
	return h.ReplayFrom(ctx, cluster.Place{}, fn)
}

func (h *handle) ReplayFrom(ctx context.Context, from cluster.Place, fn func(appended time.Time, record []byte) error) error {
	_, err := h.link.replay(ctx, h.name, from, fn)
	return err
}

// replay calls fn with the records of a journal from a place on, and returns the place after them.
func (l *link) replay(ctx context.Context, name string, from cluster.Place, fn func(appended time.Time, record []byte) error) (cluster.Place, error) {
	begin := func() error {
		err := l.own.begin(ctx)
		if err == nil {
			if err = l.own.reached(); err != nil {
				l.world.mu.Unlock()
			}
		}
		return err
	}
	if err := begin(); err != nil {
		return from, err
	}
	mu, j := &l.world.mu, &l.site.journals
	j.forget()
	next, end := max(j.first, from.Next), j.first+uint64(len(j.records))
	mu.Unlock()
	for next < end {
		if err := begin(); err != nil {
			return from, err
		}
		// Records that went while fn was at work are older than the retention by now.
		next = max(next, j.first)
		for next < end && j.records[next-j.first].journal != name {
			next++
		}
		if next >= end {
			mu.Unlock()
			break
		}
		r := j.records[next-j.first]
		mu.Unlock()
		if err := fn(r.appended, slices.Clone(r.data)); err != nil {
			return from, err
		}
		next++
	}
	return cluster.Place{Next: max(next, end)}, nil
}
