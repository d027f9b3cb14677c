package route

import (
	"strings"

	"github.com/anteroom/anteroom"
)

// Config is what a [Table] is made from.
type Config struct {
	// Rooms, with or without their defaults.
	Rooms []anteroom.Room
	// Hosts are served although no room names them; "*" stands for every host. The hosts
	// of the rooms need not be repeated.
	Hosts []string
	// OpenHosts serves, under "*", hosts that nobody names even if rooms name hosts. Without it
	// such a host would be a way to the application past its room, so it is only served where
	// a room for "*" covers the request.
	OpenHosts bool
	// CookieName is the name of the ticket cookie without suffix; empty means
	// [DefaultCookieName].
	CookieName string
}

// Match is a room of a table with what follows from its place there. It is shared and
// must not be changed.
type Match struct {
	// Index is the room's place in [Config].Rooms.
	Index int
	// Room has its defaults filled in.
	Room *anteroom.Room
	// Cookie is where the room's ticket lives in the visitor's browser.
	Cookie Scope
	// WidePath is the cookie's path for a visitor who comes by a spelling of the path that
	// Cookie does not cover: "/". Where another room has its ticket there under the same
	// name, it is Cookie.Path: a link to an odd spelling must not overwrite that ticket. Then
	// every such request is a new visitor, and a cookie suffix is the cure.
	WidePath string
}

// Table finds the room of a request. It is immutable and safe for concurrent use; its
// cost does not depend on the number of rooms.
type Table struct {
	rooms []Match
	hosts map[string]*paths // canonical host → its rooms; nil paths for a host without
	any   *paths            // rooms for "*"
	open  bool              // hosts that nobody named are served
	named bool              // only where a room covers the request: rooms name hosts
}

// paths holds the routes of one host.
type paths struct {
	whole    *Match              // the room of "/"; most hosts have nothing else
	byFold   map[string][]target // folded path → routes that agree but for case
	longest  int                 // bytes of the longest folded path
	segments int                 // segments of the deepest path
}

// target is a route below "/": its exact path and its room.
type target struct {
	path string
	room *Match
}

// NewTable builds a table, or returns every fault of [Check] and of cfg.Hosts.
func NewTable(cfg Config) (*Table, error) {
	faults := Check(cfg.Rooms, cfg.CookieName)
	t := &Table{hosts: make(map[string]*paths, len(cfg.Rooms)+len(cfg.Hosts))}
	for i, h := range cfg.Hosts {
		if h == "*" {
			t.open = true
			continue
		}
		name, err := Host(h)
		if err != nil {
			faults = append(faults, hostFault(indexed("hosts", i), h, err))
		}
		t.hosts[name] = nil
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	t.rooms = make([]Match, len(cfg.Rooms))
	rooms := make([]anteroom.Room, len(cfg.Rooms)) // one by one, ten thousand would take a seventh more memory
	for i := range rooms {
		room := &rooms[i]
		*room = cfg.Rooms[i].WithDefaults()
		scope, _ := Cookie(*room, cfg.CookieName) // Check has seen its fault
		t.rooms[i] = Match{Index: i, Room: room, Cookie: scope}
		for _, rt := range room.Routes {
			t.add(&t.rooms[i], rt)
		}
	}
	atRoot := make(map[Scope]bool)
	for _, m := range t.rooms {
		if m.Cookie.Path == "/" {
			atRoot[Scope{Name: m.Cookie.Name, Domain: m.Cookie.Domain, Path: "/"}] = true
		}
	}
	t.named = t.named && !cfg.OpenHosts
	for i := range t.rooms {
		m := &t.rooms[i]
		if m.WidePath = "/"; atRoot[Scope{Name: m.Cookie.Name, Domain: m.Cookie.Domain, Path: "/"}] {
			m.WidePath = m.Cookie.Path
		}
	}
	return t, nil
}

func (t *Table) add(m *Match, rt anteroom.Route) {
	host, path := canonical(rt)
	p := t.any
	if host != "*" {
		p = t.hosts[host]
	}
	if p == nil {
		p = &paths{}
		if host == "*" {
			t.any = p
		} else {
			t.hosts[host], t.named = p, true
		}
	}
	if path == "" {
		p.whole = m // Check has seen to it that there is one
		return
	}
	if p.byFold == nil {
		p.byFold = make(map[string][]target)
	}
	folded := fold(path)
	p.byFold[folded] = append(p.byFold[folded], target{path, m})
	p.longest = max(p.longest, len(folded))
	p.segments = max(p.segments, strings.Count(path, "/"))
}

// Rooms returns the rooms in the order of [Config].Rooms.
func (t *Table) Rooms() []Match { return t.rooms }

// Closed reports whether "*" serves no host beyond those that are named, because rooms name hosts.
func (t *Table) Closed() bool { return t.open && t.named }

// Lookup returns the room that covers a request, or nil when the host is served without
// one there. The host is the request's as it came, the target what stood on the request
// line. The errors wrap [ErrHost], [ErrUnknownHost] or [ErrTarget].
//
// A path that has only one reading, which is nearly every path, costs no allocation.
func (t *Table) Lookup(host, requestTarget string) (*Match, error) {
	own, known := t.hosts[host] // what is a key is canonical
	if !known {
		var err error
		if host, err = Host(host); err != nil {
			return nil, err
		}
		if own, known = t.hosts[host]; !known && t.any == nil && !t.open {
			return nil, ErrUnknownHost
		}
	}
	raw, err := pathOf(host, requestTarget)
	if err != nil {
		return nil, err
	}
	var space [2]string
	readings := append(space[:0], raw)
	if !isPlain(raw) {
		if readings, err = interpret(raw); err != nil {
			return nil, err
		}
	}
	for _, form := range [...]func(string) string{windowsForm, frontForm} {
		for _, reading := range readings {
			if f := form(reading); f != reading {
				readings = append(readings, f)
			}
		}
	}
	if m := own.findAny(readings); m != nil {
		return m, nil
	}
	m := t.any.findAny(readings)
	return m, t.missed(m, known)
}

// missed refuses what no room covers on a host that nobody names.
func (t *Table) missed(m *Match, known bool) error {
	if m == nil && !known && t.named {
		return ErrUnknownHost
	}
	return nil
}

// findAny returns the room with the longest route that any of the readings is inside of.
func (p *paths) findAny(readings []string) *Match {
	if p != nil && p.segments == 0 {
		return p.whole
	}
	var best *Match
	most := -1
	for _, reading := range readings {
		if m, n := p.find(reading); m != nil && n > most {
			best, most = m, n
		}
		if m, n := p.findExtended(reading); m != nil && n > most {
			best, most = m, n
		}
	}
	return best
}

// find returns the room with the longest route that path is inside of, and the length of
// the route's folded path.
func (p *paths) find(path string) (*Match, int) {
	if p == nil {
		return nil, 0
	}
	if p.segments == 0 {
		return p.whole, 0
	}
	// Folding stops where no route can go on: one segment past the longest.
	var space [256]byte
	folded := appendFold(space[:0], path, p.longest+1)
	end := 0 // of the deepest prefix of path that can be a route
	for range p.segments {
		if end >= len(folded) || folded[end] != '/' {
			break
		}
		end++
		for end < len(folded) && folded[end] != '/' {
			end++
		}
	}
	for ; ; end-- {
		for end > 0 && end < len(folded) && folded[end] != '/' {
			end--
		}
		if end == 0 {
			return p.whole, 0
		}
		if among := p.byFold[string(folded[:end])]; among != nil {
			return closest(among, path), end
		}
	}
}

// closest returns the room whose path agrees in case, or the first.
func closest(among []target, path string) *Match {
	for _, t := range among {
		if strings.HasPrefix(path, t.path) {
			return t.room
		}
	}
	return among[0].room
}
