package manage

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket/account"
)

// published are the minima of [Config.Strict].
const (
	strictUsers      = 200
	strictMinSession = time.Minute
	strictMaxSession = 30 * time.Minute
	strictEvents     = 5
)

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func newSeed() (seed [32]byte) {
	rand.Read(seed[:])
	return seed
}

// custom is a custom page. Rooms and events with the same text share it: what is bounded in
// the store would otherwise be there once for each of them in memory.
type custom struct {
	key, html string
	template  *page.Template
}

// compile makes what is served of a room. What has not changed since before, which may be
// nil, is taken from it; so are pages that somebody has, by their texts.
func compile(r anteroom.Room, before *Served, lists *rules.Lists, known map[string]*custom) (*Served, error) {
	one := &Served{Room: r, lists: lists}
	before = cmp.Or(before, &Served{})
	var faults anteroom.Faults
	here := map[string]*custom{}
	for _, c := range before.pages {
		here[c.html] = c
	}
	made := func(at, html string) *custom {
		if html == "" {
			return nil
		}
		c := cmp.Or(here[html], known[html])
		if c == nil {
			t, wrong := page.CompileAt(at, html)
			faults = append(faults, wrong...)
			c = &custom{pageKey(html), html, t}
		}
		here[html] = c
		one.pages = append(one.pages, c)
		return c
	}
	if c := made("", r.CustomPageHTML); c != nil {
		one.CustomPageHTML, one.Template = c.html, c.template
	}
	one.Events = slices.Clone(r.Events)
	for i := range one.Events {
		e := &one.Events[i]
		if e.CustomPageHTML == nil {
			continue
		}
		if c := made(fmt.Sprintf("events[%d].", i), *e.CustomPageHTML); c != nil {
			if one.EventTemplates == nil {
				one.EventTemplates = map[anteroom.EventID]*page.Template{}
			}
			e.CustomPageHTML, one.EventTemplates[e.ID] = &c.html, c.template
		}
	}
	if r.AccountKeys != "" && r.AccountKeysURL() == "" && r.AccountKeys != before.AccountKeys {
		if _, err := account.Fixed(r.AccountKeys); err != nil {
			faults = append(faults, anteroom.Fault{Path: "account_keys", Problem: err.Error(), Fix: `public keys like {"keys":[{"kty":"RSA","kid":"1","n":"…","e":"AQAB"}]}`})
		}
	}
	if name := r.FirstRequestList; name != "" {
		var fault *anteroom.Fault
		if one.Unbounded, fault = lists.Networks(name); fault != nil {
			fault.Path = "first_request_list"
			faults = append(faults, *fault)
		}
	}
	same := func(a, b anteroom.Rule) bool { return a.Expression == b.Expression && a.Disabled == b.Disabled }
	switch {
	case len(r.Rules) == 0:
	case before.lists == lists && slices.EqualFunc(before.Rules, r.Rules, same):
		one.Bypass = before.Bypass
	default:
		set, err := rules.NewSet(r.Rules, lists)
		if more, ok := errors.AsType[anteroom.Faults](err); ok {
			faults = append(faults, more...)
		} else if err != nil {
			return nil, err
		}
		one.Bypass = set
	}
	switch {
	case len(r.Lanes) == 0:
	case before.lists == lists && slices.Equal(before.Lanes, r.Lanes):
		one.LaneConditions = before.LaneConditions
	default:
		lanes, err := rules.NewLanes(r.Lanes, lists)
		if more, ok := errors.AsType[anteroom.Faults](err); ok {
			faults = append(faults, more...)
		} else if err != nil {
			return nil, err
		}
		one.LaneConditions = lanes
	}
	return one, faults.Err()
}

// under returns faults with their paths below another.
func under(path string, faults anteroom.Faults) anteroom.Faults {
	out := slices.Clone(faults)
	for i := range out {
		out[i].Path = path + out[i].Path
	}
	return out
}

// checkPublished returns the faults of settings that are outside of the published bounds, which
// api.strict holds rooms to. Those of an event that it does not set are nil.
func checkPublished(o anteroom.Overrides) anteroom.Faults {
	var f anteroom.Faults
	add := func(field, problem, fix string) {
		f = append(f, anteroom.Fault{Path: field, Problem: problem, Fix: fix})
	}
	for i, n := range []*int{o.TotalActiveUsers, o.NewUsersPerMinute} {
		if n != nil && *n < strictUsers {
			add([...]string{"total_active_users", "new_users_per_minute"}[i], fmt.Sprintf("%d is less than %d", *n, strictUsers), "the key api.strict of the configuration asks for the published minimum")
		}
	}
	if d := o.SessionDuration; d != nil && *d != 0 && (*d < strictMinSession || *d > strictMaxSession || *d%time.Minute != 0) {
		add("session_duration", fmt.Sprintf("%v is out of range", *d), "1 to 30 minutes, as api.strict asks for")
	}
	return f
}

// refusedEvents returns the faults of events in a room that cannot have them.
func refusedEvents(r *anteroom.Room) anteroom.Faults {
	return slices.DeleteFunc(append(r.CheckLottery(), r.CheckAccounts()...), func(f anteroom.Fault) bool { return f.Path != "events" })
}

// checkRoom returns the faults of a room as the API may set it.
func (s *State) checkRoom(r *anteroom.Room) anteroom.Faults {
	own := *r
	own.Events, own.Rules = nil, nil // changed by methods of their own, and checked there
	f := append(own.Check(), own.CheckLimits()...)
	f = append(f, refusedEvents(r)...)
	if s.strict {
		f = append(f, checkPublished(r.Overriding())...)
	}
	for i, rt := range r.Routes {
		if r.Zone != "*" && !within(rt.Host, r.Zone) {
			f = append(f, anteroom.Fault{Path: fmt.Sprintf("routes[%d].host", i), Problem: fmt.Sprintf("%.80q is not in the zone %.80q", rt.Host, r.Zone),
				Fix: "a room's hosts are its zone's name or below it"})
		}
	}
	if len(r.Routes) == 0 {
		f = append(f, anteroom.Fault{Path: "routes[0].host", Problem: "is missing", Fix: "a host name in the zone"})
	}
	return f
}

// otherRoom is how route.Check names the rooms that it was given.
var otherRoom = regexp.MustCompile(`rooms\[\d+\](\.routes\[\d+\])? \(room ("[^"]*")\)`)

// checkAmong returns the faults that a room has with the others of a state. They have the
// names of these if the caller may know them.
func (m *Manager) checkAmong(s *State, r *anteroom.Room, by Caller) anteroom.Faults {
	var f anteroom.Faults
	if id, taken := m.index.names[[2]string{r.Zone, r.Name}]; taken && id != r.ID {
		f = append(f, anteroom.Fault{Path: "name", Problem: fmt.Sprintf("%q is the name of another room", r.Name), Fix: "names are unique in a zone"})
	}
	near := m.index.near(s, r)
	other := "room $2"
	if slices.ContainsFunc(near, func(o anteroom.Room) bool {
		z, _ := s.ZoneNamed(o.Zone)
		return !by.May(Read, z.ID, o.ID)
	}) {
		other = "another room"
	}
	among := append(near, *r)
	at := fmt.Sprintf("rooms[%d].", len(among)-1)
	for _, one := range route.Check(among, s.cookieName) {
		if path, ours := strings.CutPrefix(one.Path, at); ours {
			one.Path = path
			one.Problem = otherRoom.ReplaceAllString(one.Problem, other)
			f = append(f, one)
		}
	}
	return f
}

// checkTotals holds what all rooms have together to its bounds: one zone must not take the
// space of all.
func (s *State) checkTotals() error {
	events, expressions := 0, 0
	for _, r := range s.rooms {
		events, expressions = events+len(r.Events), expressions+len(r.Rules)+len(r.Lanes)
	}
	if events > maxEvents {
		return anteroom.Faults{{Path: "events", Problem: fmt.Sprintf("all rooms together would have %d events", events), Fix: fmt.Sprintf("at most %d; delete some", maxEvents)}}.Err()
	}
	if expressions > maxRules {
		return anteroom.Faults{{Path: "rules", Problem: fmt.Sprintf("all rooms together would have %d rules and lanes", expressions), Fix: fmt.Sprintf("at most %d; lists make rules shorter and fewer", maxRules)}}.Err()
	}
	return nil
}

// checkTogether returns what does not fit among the rooms of the file and the others.
func (s *State) checkTogether() error {
	if err := s.checkTotals(); err != nil {
		return err
	}
	if len(s.rooms) > anteroom.MaxRooms {
		return anteroom.Errorf(anteroom.Invalid, "there are %d rooms in the file and the API together; at most %d", len(s.rooms), anteroom.MaxRooms)
	}
	all := make([]anteroom.Room, len(s.rooms))
	names := map[[2]string]*Served{}
	var f anteroom.Faults
	for i, r := range s.rooms {
		all[i] = r.Room
		key := [2]string{r.Zone, r.Name}
		if other := names[key]; other != nil {
			f = append(f, anteroom.Fault{Path: s.path(i), Problem: fmt.Sprintf("%q is also the name of %s", r.Name, s.pathOf(other)), Fix: "names are unique in a zone: rename one"})
		}
		names[key] = r
	}
	for _, one := range route.Check(all, s.cookieName) {
		var i int
		if n, _ := fmt.Sscanf(one.Path, "rooms[%d]", &i); n == 1 && i < len(s.rooms) && !s.rooms[i].File {
			_, rest, _ := strings.Cut(one.Path, "]")
			one.Path = s.path(i) + rest
		}
		f = append(f, one)
	}
	return f.Err()
}

// path names a room in errors: where it stands in the file, or that it is one of the API's.
func (s *State) path(i int) string {
	if s.rooms[i].File {
		return fmt.Sprintf("rooms[%d]", i)
	}
	return fmt.Sprintf("room %s of the API (%s)", s.rooms[i].Name, s.rooms[i].ID)
}

func (s *State) pathOf(r *Served) string { return s.path(slices.Index(s.rooms, r)) }

// name gives the events and rules of a room of the file what those of the API get once: ids
// and seeds. They stay the same while the text that they come from does.
func (a accountDocument) name(r anteroom.Room) anteroom.Room {
	derive := func(kind string, parts ...string) []byte {
		h := hmac.New(sha256.New, a.Secret[:])
		fmt.Fprintf(h, "anteroom-%s\x00%s\x00%s", kind, r.ID, strings.Join(parts, "\x00"))
		return h.Sum(nil)
	}
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		e := &r.Events[i]
		e.ID = anteroom.EventID(hex.EncodeToString(derive("event", e.Name)[:16]))
		copy(e.Seed[:], derive("seed", e.Name, string(e.Prequeue), string(e.Start)))
	}
	r.Rules = slices.Clone(r.Rules)
	for i := range r.Rules {
		rule := &r.Rules[i]
		rule.Version = max(1, rule.Version)
		rule.ID = anteroom.RuleID(hex.EncodeToString(derive("rule", fmt.Sprint(i), rule.Expression)[:16]))
	}
	return r
}

// copyRoom returns a room that shares nothing with another.
func copyRoom(r anteroom.Room) anteroom.Room {
	r.Routes = slices.Clone(r.Routes)
	r.EnabledOriginCommands = slices.Clone(r.EnabledOriginCommands)
	r.Lanes = slices.Clone(r.Lanes)
	r.Rules = slices.Clone(r.Rules)
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		r.Events[i] = copyEvent(r.Events[i])
	}
	return r
}

func copyEvent(e anteroom.Event) anteroom.Event {
	e.Overrides = e.Overrides.Clone()
	return e
}
