package manage

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
)

// State is everything that is in force. It is immutable: what it returns is shared and must
// not be changed.
type State struct {
	seq     uint64 // of the audit record that made it
	head    string // the record's hash
	account accountDocument
	zones   []*storedZone // in the order of their creation, those of the file first
	rooms   []*Served     // those of the file first, then in the order of their creation
	byID    map[anteroom.RoomID]*Served
	// held are the controls of the file's rooms, RenewalEnded left out, and of rooms that were
	// in the file.
	held    map[anteroom.RoomID]anteroom.Controls
	lists   []*storedList // in the order of their creation
	named   *rules.Lists  // made from them
	tokens  []*token      // in the order of their creation
	secrets map[digest]*token
	hooks   []*storedWebhook // in the order of their creation
	invites []*storedInvites // likewise

	cookieName string
	strict     bool
	hosts      []string // as File.Hosts
}

// Served is a room with what was made from it.
type Served struct {
	anteroom.Room
	// File says that the room is defined in the configuration file.
	File bool
	// Template is the compiled custom page; nil means the built-in one.
	Template *page.Template
	// EventTemplates are the compiled custom pages of events that have one.
	EventTemplates map[anteroom.EventID]*page.Template
	// Bypass holds the compiled rules; nil if there are none.
	Bypass *rules.Set
	// Unbounded are the networks whose first requests have no bound; nil if there are none.
	Unbounded *rules.Networks
	// LaneConditions are the compiled expressions of the lanes; nil if there are none.
	LaneConditions *rules.Lanes

	lists *rules.Lists // with which rules and lanes were compiled
	made  uint64       // the number of the audit record that created it
	pages []*custom
}

// uses reports whether the room names a list.
func (r *Served) uses(list string) bool {
	return r.FirstRequestList == list || slices.ContainsFunc(r.Rules, func(rule anteroom.Rule) bool { return UsesList(rule.Expression, list) }) ||
		slices.ContainsFunc(r.Lanes, func(l anteroom.Lane) bool { return UsesList(l.Expression, list) })
}

type storedZone struct {
	anteroom.Zone
	made   uint64
	stored bool // else it is there for the rooms of the file
}

type storedList struct {
	anteroom.List
	made uint64
}

// Seq is the number of the audit record that made the state.
func (s *State) Seq() uint64 { return s.seq }

// Rooms returns all rooms: those of the file in its order, then the others in the order of
// their creation.
func (s *State) Rooms() iter.Seq[*Served] { return slices.Values(s.rooms) }

// Len returns the number of rooms.
func (s *State) Len() int { return len(s.rooms) }

// Room returns a room, or nil.
func (s *State) Room(id anteroom.RoomID) *Served { return s.byID[id] }

// Zones returns all zones, those of the file's rooms first.
func (s *State) Zones() []anteroom.Zone {
	out := make([]anteroom.Zone, len(s.zones))
	for i, z := range s.zones {
		out[i] = z.Zone
	}
	return out
}

// Zone returns a zone by its id.
func (s *State) Zone(id anteroom.ZoneID) (anteroom.Zone, bool) {
	for _, z := range s.zones {
		if z.ID == id {
			return z.Zone, true
		}
	}
	return anteroom.Zone{}, false
}

// ZoneNamed returns a zone by the name that [anteroom.Room.Zone] uses.
func (s *State) ZoneNamed(name string) (anteroom.Zone, bool) {
	for _, z := range s.zones {
		if z.Name == name {
			return z.Zone, true
		}
	}
	return anteroom.Zone{}, false
}

// Lists returns all lists in the order of their creation.
func (s *State) Lists() []anteroom.List {
	out := make([]anteroom.List, len(s.lists))
	for i, l := range s.lists {
		out[i] = l.List
	}
	return out
}

// clone returns a copy whose slices and maps are shared: the set and drop methods replace
// them.
func (s *State) clone() *State { c := *s; return &c }

func (s *State) setRoom(r *Served) {
	s.byID = maps.Clone(s.byID)
	s.rooms = slices.Clone(s.rooms)
	if old := s.byID[r.ID]; old != nil {
		s.rooms[slices.Index(s.rooms, old)] = r
	} else {
		s.rooms = append(s.rooms, r)
	}
	s.byID[r.ID] = r
}

func (s *State) dropRoom(id anteroom.RoomID) {
	s.byID = maps.Clone(s.byID)
	delete(s.byID, id)
	s.rooms = slices.DeleteFunc(slices.Clone(s.rooms), func(r *Served) bool { return r.ID == id })
}

// put returns a list with the member in the place of the one that is the same, or at the end.
func put[T any](list []T, member T, same func(T) bool) []T {
	list = slices.Clone(list)
	if i := slices.IndexFunc(list, same); i >= 0 {
		list[i] = member
		return list
	}
	return append(list, member)
}

func without[T any](list []T, same func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), same)
}

func (s *State) setZone(z *storedZone) {
	s.zones = put(s.zones, z, func(o *storedZone) bool { return o.ID == z.ID })
	s.orderZones()
}

// orderZones brings the zones into their order, as a start does.
func (s *State) orderZones() {
	s.zones = slices.Clone(s.zones)
	slices.SortFunc(s.zones, byBirth)
	s.zones = s.zonesWithFile()
}

func (s *State) setTokens(tokens []*token) {
	s.tokens = tokens
	s.secrets = map[digest]*token{}
	for _, t := range tokens {
		for _, one := range t.Secrets {
			s.secrets[one.Token] = t
			s.secrets[one.Key] = t
		}
	}
}

// roomsIn reports how many rooms a zone has.
func (s *State) roomsIn(zone string) (n int) {
	for _, r := range s.rooms {
		if r.Zone == zone {
			n++
		}
	}
	return n
}

// withFile returns the state with other rooms of the file, or says what does not go together.
func (s *State) withFile(f File, now time.Time) (*State, error) {
	n := s.clone()
	n.cookieName, n.strict, n.hosts = f.CookieName, f.Strict, f.Hosts
	n.byID = maps.Clone(s.byID)
	for _, r := range s.rooms {
		if r.File {
			delete(n.byID, r.ID)
		}
	}
	own := slices.DeleteFunc(slices.Clone(s.rooms), func(r *Served) bool { return r.File })
	n.rooms = nil
	for i, r := range f.Rooms {
		r = r.WithDefaults()
		r = s.account.name(r)
		r.Controls = s.held[r.ID]
		if before := s.byID[r.ID]; before != nil {
			r.Controls.RenewalEnded = renewalEnded(&before.Room, &r, now)
		}
		one, err := compile(r, s.byID[r.ID], s.named, nil)
		if err != nil {
			var f anteroom.Faults
			if errors.As(err, &f) {
				err = under(fmt.Sprintf("rooms[%d].", i), f).Err()
			}
			return nil, err
		}
		one.File = true
		n.rooms = append(n.rooms, one)
		n.byID[r.ID] = one
	}
	n.rooms = append(n.rooms, own...)
	n.zones = n.zonesWithFile()
	return n, n.checkTogether()
}

// zonesWithFile returns the stored zones, with one for each zone of the file's rooms.
func (s *State) zonesWithFile() []*storedZone {
	stored := slices.DeleteFunc(slices.Clone(s.zones), func(z *storedZone) bool { return !z.stored })
	var all []*storedZone
	for _, r := range s.rooms {
		same := func(z *storedZone) bool { return z.Name == r.Zone }
		if !slices.ContainsFunc(stored, same) && !slices.ContainsFunc(all, same) {
			all = append(all, &storedZone{Zone: anteroom.Zone{ID: anteroom.ZoneIDOf(r.Zone), Name: r.Zone}})
		}
	}
	return append(all, stored...)
}

// index finds the rooms that a room could be in conflict with. It is changed in place.
type index struct {
	routes   map[anteroom.Route][]anteroom.RoomID
	suffixes map[string][]anteroom.RoomID
	names    map[[2]string]anteroom.RoomID // zone and name
}

func indexOf(s *State) index {
	x := index{map[anteroom.Route][]anteroom.RoomID{}, map[string][]anteroom.RoomID{}, map[[2]string]anteroom.RoomID{}}
	for _, r := range s.rooms {
		x.add(&r.Room)
	}
	return x
}

func (x index) add(r *anteroom.Room) {
	x.names[[2]string{r.Zone, r.Name}] = r.ID
	for _, rt := range r.Routes {
		key := claim(rt)
		x.routes[key] = append(x.routes[key], r.ID)
	}
	if r.CookieSuffix != "" {
		x.suffixes[r.CookieSuffix] = append(x.suffixes[r.CookieSuffix], r.ID)
	}
}

func (x index) remove(r *anteroom.Room) {
	delete(x.names, [2]string{r.Zone, r.Name})
	cut := func(ids []anteroom.RoomID) []anteroom.RoomID {
		return slices.DeleteFunc(ids, func(id anteroom.RoomID) bool { return id == r.ID })
	}
	for _, rt := range r.Routes {
		key := claim(rt)
		if left := cut(x.routes[key]); len(left) > 0 {
			x.routes[key] = left
		} else {
			delete(x.routes, key)
		}
	}
	if r.CookieSuffix != "" {
		x.suffixes[r.CookieSuffix] = cut(x.suffixes[r.CookieSuffix])
	}
}

// near returns the rooms that share a route or a cookie suffix with a room.
func (x index) near(s *State, r *anteroom.Room) []anteroom.Room {
	ids := slices.Clone(x.suffixes[r.CookieSuffix])
	for _, rt := range r.Routes {
		ids = append(ids, x.routes[claim(rt)]...)
	}
	slices.Sort(ids)
	var out []anteroom.Room
	for _, id := range slices.Compact(ids) {
		if one := s.byID[id]; one != nil && id != r.ID {
			out = append(out, one.Room)
		}
	}
	return out
}

// claim is what only one room can have: a route in its one spelling.
func claim(rt anteroom.Route) anteroom.Route {
	if host, err := route.Host(rt.Host); err == nil {
		rt.Host = host
	}
	for len(rt.Path) > 0 && rt.Path[len(rt.Path)-1] == '/' {
		rt.Path = rt.Path[:len(rt.Path)-1]
	}
	return rt
}

// kept is what a document is made into.
type kept interface {
	// birth returns the number of the audit record that created it, and its id.
	birth() (made uint64, id string)
}

func (z *storedZone) birth() (made uint64, id string)    { return z.made, string(z.ID) }
func (r *Served) birth() (made uint64, id string)        { return r.made, string(r.ID) }
func (l *storedList) birth() (made uint64, id string)    { return l.made, string(l.ID) }
func (t *token) birth() (made uint64, id string)         { return t.Made, string(t.ID) }
func (w *storedWebhook) birth() (made uint64, id string) { return w.Made, string(w.Webhook.ID) }

// find returns the one with an id.
func find[T kept](all []T, what, id string) (one T, err error) {
	for _, one := range all {
		if _, own := one.birth(); own == id {
			return one, nil
		}
	}
	return one, notFound(what, id)
}

// byBirth is the order of creation.
func byBirth[T kept](a, b T) int {
	madeA, idA := a.birth()
	madeB, idB := b.birth()
	return cmp.Or(cmp.Compare(madeA, madeB), cmp.Compare(idA, idB))
}
