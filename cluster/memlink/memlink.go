// Package memlink is the [cluster.Link] that keeps everything in memory; nothing survives the process. It serves
// processes without a data directory, the middleware without persistence, and tests: a [World] has many links in
// several sites, disconnects them on demand, and works in testing/synctest bubbles.
//
// One mutex guards a world. No method does more than copy bytes while it holds the mutex, so ctx is only checked when a
// call begins (and, in Replay, before each record). All data that goes in or out is copied.
//
// It is bounded: the values of a space may take 256 MiB, then writes fail with cluster.ErrFull. The journals of a site
// keep their newest 64 MiB together; older records are dropped even within the retention. A gateway that stopped
// admitting visitors to save a history that dies with the process would help no one.
package memlink

import (
	"context"
	"sync"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

const (
	maxValues  = 256 << 20 // bytes of all keys and values
	maxJournal = 64 << 20  // bytes of all records
	overhead   = 64        // bytes that an entry or record costs beside its own
)

// New returns an empty link of a process alone. It holds no goroutine and needs no Close to be
// collected.
func New() cluster.Link { return newLink(maxValues, maxJournal) }

func newLink(values, journal int) *link {
	w := newWorld(values, journal)
	w.alone = true
	return w.Join("local", "local").(*link)
}

// link is one process.
type link struct {
	*space // shared by all sites
	own    *space
	world  *World
	site   *site
	node   string
	done   chan struct{} // closed by Close

	close sync.Once
}

func (l *link) Site() cluster.Space { return l.own }

func (l *link) Journal(ctx context.Context, name string) (cluster.Journal, error) {
	if err := cluster.CheckJournal(name); err != nil {
		return nil, err
	}
	if err := l.own.begin(ctx); err != nil {
		return nil, err
	}
	defer l.world.mu.Unlock()
	return l.site.journals.open(l, name), l.own.reached()
}

func (l *link) Look(ctx context.Context, name string, from cluster.Place, fn func(appended time.Time, record []byte) error) (cluster.Place, error) {
	if err := cluster.CheckJournal(name); err != nil {
		return cluster.Place{}, err
	}
	return l.replay(ctx, name, from, fn)
}

func (l *link) Retain(ctx context.Context, d time.Duration) error {
	if err := cluster.CheckRetention(d); err != nil {
		return err
	}
	if err := l.own.begin(ctx); err != nil {
		return err
	}
	defer l.world.mu.Unlock()
	l.site.journals.retention = d
	l.site.journals.forget()
	return l.own.reached()
}

func (l *link) Health() cluster.Health {
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	touch := func(c Cut, at time.Time) cluster.Touch {
		t := cluster.Touch{OK: c == None, Since: at}
		if c != None {
			t.Detail = "cut"
			t.Lag = time.Since(at)
		}
		return t
	}
	node := l.world.cutNodes[l.node]
	h := cluster.Health{Alone: l.world.alone, Hub: l.site.hub, SiteName: l.site.name, Site: touch(node.cut, node.since), Shared: touch(node.cut|l.site.cut, l.site.since)}
	if h.CutOff = node.cut != None; h.CutOff {
		h.Shared.Since, h.Shared.Lag = node.since, h.Site.Lag
	}
	return h
}

func (l *link) Close() error {
	l.close.Do(func() {
		l.world.mu.Lock()
		close(l.done)
		l.world.leave(l)
		l.world.mu.Unlock()
		l.space.bus.Close()
		l.own.bus.Close()
	})
	return nil
}
