package memlink

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/anteroom/anteroom/cluster"
)

// World is many processes in several sites that share what it keeps. The first site to be
// joined is the hub. Safe for concurrent use.
type World struct {
	mu            sync.Mutex
	alone         bool // one process: the site's space is the shared one
	values, space int  // bytes of a store, of a site's journals
	shared        *store
	sites         map[string]*site
	links         []*link
	cutNodes      map[string]cutting
	star          bool // see Star
}

type site struct {
	name     string
	hub      bool // the first one
	store    *store
	journals journals
	cutting
	copied map[string]cluster.Entry // of the shared space while it does not hear of changes; else nil
}

// Cut says which way nothing goes.
type Cut int

// The cuts. A write that is cut in comes about and is answered ErrUnavailable all the same.
const (
	None Cut = 0
	Out  Cut = 1 // what leaves is lost
	In   Cut = 2 // what comes is lost
	Both Cut = Out | In
)

type cutting struct {
	cut   Cut
	since time.Time
}

// NewWorld returns a world without processes.
func NewWorld() *World { return newWorld(maxValues, maxJournal) }

func newWorld(values, journal int) *World {
	w := &World{values: values, space: journal, sites: map[string]*site{}, cutNodes: map[string]cutting{}}
	w.shared = newStore(w, values)
	return w
}

// Join returns the link of a new process. Closing it is the end of the process (kill -9):
// what it has leased expires. A node may be joined again after that, or beside it.
func (w *World) Join(siteName, node string) cluster.Link {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sites[siteName]
	if s == nil {
		s = &site{store: newStore(w, w.values), journals: journals{retention: cluster.DefaultRetention, most: w.space, owners: map[string]uint64{}}}
		w.sites[siteName] = s
		s.name, s.hub = siteName, len(w.sites) == 1
	}
	l := &link{world: w, site: s, node: node, done: make(chan struct{})}
	l.space = &space{link: l, store: w.shared, shared: true}
	l.own = &space{link: l, store: s.store}
	l.space.Writes, l.own.Writes = l.space.change, l.own.change
	if w.alone {
		l.own = l.space
	}
	w.links = append(w.links, l)
	return l
}

// CutSite cuts a site's processes from the shared space and from the other sites' messages
// there; None heals. Among each other they go on, and read what they knew of the shared space.
func (w *World) CutSite(name string, c Cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sites[name]
	s.cutting = cutting{c, time.Now()}
	switch {
	case c&In != 0 && s.copied == nil:
		s.copied = maps.Clone(w.shared.entries)
	case c&In == 0 && s.copied != nil:
		s.copied = nil
		for _, l := range w.links {
			if l.site == s {
				l.space.watchers.Again()
			}
		}
	}
}

// CutNode cuts the processes of a node from its site's space and from the shared one; None
// heals.
func (w *World) CutNode(node string, c Cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutNodes[node] = cutting{c, time.Now()}
	for _, l := range w.links {
		if l.node == node {
			l.space.watchers.Again()
			l.own.watchers.Again()
		}
	}
}

// Star has messages of the shared space go between the first site and the others only, as where
// each site but the hub has one link, to the hub. Before, every site hears every other.
func (w *World) Star() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.star = true
}

// changed tells the watchers of a store; w.mu is held.
func (w *World) changed(s *store, key string) {
	for _, l := range w.links {
		if s == w.shared && l.space.cut()&In == 0 {
			l.space.watchers.Changed(key)
		}
		if s == l.own.store && l.own != l.space && l.own.cut()&In == 0 {
			l.own.watchers.Changed(key)
		}
	}
}

// reachable returns the spaces that hear what x publishes; w.mu is held.
func (w *World) reachable(x *space) []*space {
	var to []*space
	for _, l := range w.links {
		one := l.own
		if x.shared {
			one = l.space
		}
		switch {
		case one.store != x.store:
		case one == x: // oneself is always heard
			to = append(to, one)
		case w.cutNodes[x.link.node].cut&Out != 0 || w.cutNodes[l.node].cut&In != 0:
		case x.shared && w.star && l.site != x.link.site && !l.site.hub && !x.link.site.hub:
		case l.site != x.link.site && (x.link.site.cut&Out != 0 || l.site.cut&In != 0):
		default:
			to = append(to, one)
		}
	}
	return to
}

// leave forgets the link; w.mu is held.
func (w *World) leave(l *link) {
	w.links = slices.DeleteFunc(w.links, func(one *link) bool { return one == l })
}
