package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/gateway/h1"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/invite"
	"github.com/anteroom/anteroom/ticket/pass"
)

// setup is a Config made ready. It does not change.
type setup struct {
	Config
	table     *route.Table
	rooms     []*room                 // by route.Match.Index
	byID      map[anteroom.RoomID]int // where in rooms
	sites     map[string]*site
	inOrder   []*site // of Config.Sites
	anySite   *site
	trusted   []netip.Prefix
	askers    []netip.Prefix // of forward-auth
	transport *http.Transport
	fast      *h1.Transport // around transport
	turned    chan struct{} // holds a value after an origin has fallen ill or recovered
	void      chan struct{} // is closed when the keys that seal now are forgotten
	preflight *budget
	drawings  *budget // of lists of ids
	receipts  *budget
	invites   *budget
	moves     *budget // of places to other devices
	pushes    *budget // of subscriptions to web push
	now       func() anteroom.Time
	log       *slog.Logger

	cookieName  string
	proofHeader string // canonical
	proofFolded string
	passes      *passes
	policy      []string // Content-Security-Policy of the built-in page
	challenge   *challenger
	maxInFlight int64
	bodyRate    float64 // least bytes per second; zero: none
}

// room is a room as the gateway needs it.
type room struct {
	*anteroom.Room      // shared with the table of routes
	door           door // of the node, or a byLottery in front of it
	sealer         *ticket.Sealer
	scope          route.Scope
	widePath       string
	tail           cookieTail
	wide           cookieTail // for spellings of the path that a browser would not send the ticket back to
	template       *page.Template
	brand          *page.Brand                         // nil: none
	events         map[anteroom.EventID]*page.Template // those with a page of their own
	revoke         bool                                // the origin may end sessions
	passes         *pass.Issuer                        // nil: it issues none
	passName       string                              // of the cookie
	denied         *denyList
	touching       *touching
	bind           bool
	rules          *rules.Set   // nil: no rules
	lanes          *rules.Lanes // nil: no lane has an expression
	crawlers       bool         // verified crawlers pass
	session        FindSession  // nil: sessions are in cookies

	former *Former // nil: no other waiting room was here

	invited bool        // there are times in which only invited visitors join
	mark    invite.Mark // of their tickets

	accounts *accounts // nil: nobody is asked for one

	unbounded *rules.Networks // whose first requests have no bound; nil: none
}

// door is what the gateway asks of a room: [node.Room], and in tests of single answers a
// door that says what they tell it to.
type door interface {
	Decide(ctx context.Context, v anteroom.Visit) anteroom.Decision
	Best(tickets []anteroom.Ticket) int
	Watch(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision)
	Touch(id anteroom.ID) bool
	Reported(t anteroom.Ticket) bool
	Revoke(id anteroom.ID) bool
	// Revoked returns the revoked sessions whose passes may be valid still, and whether these are all.
	Revoked(ctx context.Context) (ids []anteroom.ID, complete bool)
	Ended(ctx context.Context, id anteroom.ID) <-chan struct{}
	Settings() anteroom.Settings
	// Origin takes what this gateway sees of the origins of a room that protects them.
	Origin(f engine.OriginFacts)
	// Recorder returns what records the room; nil: nothing does.
	Recorder() *analytics.Recorder
	// Shuffle returns what is public of the shuffle of an event's occurrence; false before its
	// prequeue and when it is not known any more.
	Shuffle(event anteroom.EventID, number int) (*anteroom.Shuffle, bool)
}

var _ door = (*node.Room)(nil)

// doors says where to find the rooms' doors and the time.
type doors struct {
	of  func(anteroom.RoomID) door
	now func() anteroom.Time
}

func nodeDoors(n *node.Node) doors {
	if n == nil {
		return doors{}
	}
	return doors{now: n.Now, of: func(id anteroom.RoomID) door {
		if r := n.Room(id); r != nil {
			return r
		}
		return nil
	}}
}

// site is an application and its origins.
type site struct {
	pool
	preserve       bool
	maxConnections int // to each origin; 0: no bound
}

// newSetup builds what serves cfg. From the old setup it takes the transport with its open
// connections and what is known of the origins.
func newSetup(cfg Config, old *setup, d doors) (*setup, error) {
	var faults anteroom.Faults
	add := func(path, problem, fix string) {
		faults = append(faults, anteroom.Fault{Path: path, Problem: problem, Fix: fix})
	}
	if d.of == nil {
		add("node", "is missing", "a gateway needs a node that decides")
	}
	if cfg.Keys == nil {
		add("keys", "are missing", "a gateway needs a keyring to seal tickets")
	}
	if cfg.MaxInFlight < 0 {
		add("max_in_flight", "is negative", "leave it 0 for 50,000")
	}
	t := &cfg.Timeouts
	for _, one := range []struct {
		name string
		time time.Duration
	}{{"Dial", t.Dial}, {"ResponseHeader", t.ResponseHeader}, {"IdleOrigin", t.IdleOrigin}, {"Write", t.Write}, {"Stall", t.Stall}, {"Body", t.Body},
		{"Page", t.Page}, {"IdleWaiting", t.IdleWaiting}} {
		if one.time < 0 {
			add("timeouts."+one.name, "is negative", "leave it 0 for its default")
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	s := &setup{
		Config:      cfg,
		sites:       make(map[string]*site),
		turned:      make(chan struct{}, 1),
		now:         d.now,
		log:         cfg.Log,
		cookieName:  cmp.Or(cfg.CookieName, route.DefaultCookieName),
		proofHeader: http.CanonicalHeaderKey(cmp.Or(cfg.ProofHeader, defaultProofHeader)),
		maxInFlight: int64(cmp.Or(cfg.MaxInFlight, 50_000)),
	}
	s.bodyRate = float64(max(0, cmp.Or(cfg.BodyRate, 500)))
	s.policy = []string{page.ContentSecurityPolicy(page.View{})}
	s.challenge = newChallenger(s)
	s.Timeouts = cfg.Timeouts.withDefaults()
	s.proofFolded = fold(s.proofHeader)
	rate := float64(cmp.Or(cfg.PreflightsPerSecond, 50))
	s.preflight = newBudget(rate, 4*rate)
	s.drawings = newBudget(drawsPerSecond, drawsBurst)
	s.receipts = newBudget(receiptsPerSecond, receiptsBurst)
	s.invites = newBudget(invitesPerMinute/60., inviteTries)
	s.moves = newBudget(movesPerMinute/60., movesAtOnce)
	s.pushes = newBudget(pushesPerMinute/60., pushesAtOnce)
	if s.void = make(chan struct{}); old != nil && cfg.Keys.Reads(old.Keys) {
		s.void = old.void
	}
	var err error
	if s.passes, err = newPasses(&cfg); err != nil {
		return nil, err
	}
	for _, p := range cfg.TrustedProxies {
		s.trusted = append(s.trusted, p.Masked())
	}
	s.askers = loopback
	if cfg.ForwardAuthPeers != nil {
		s.askers = cfg.ForwardAuthPeers
	}
	hosts := s.addSites(old, add)
	open := slices.ContainsFunc(cfg.Sites, func(one Site) bool { return one.OpenHosts })
	if len(cfg.Sites) == 0 {
		hosts, open = []string{"*"}, true
	}
	table, err := route.NewTable(route.Config{Rooms: cfg.Rooms, Hosts: hosts, OpenHosts: open, CookieName: s.cookieName})
	if err != nil {
		if more, ok := errors.AsType[anteroom.Faults](err); ok {
			faults = append(faults, more...)
		} else {
			add("rooms", err.Error(), "")
		}
		return nil, faults.Err()
	}
	s.Rooms = nil // the table has them
	s.table = table
	s.addRooms(d, add)
	if err := faults.Err(); err != nil {
		return nil, err
	}
	if old != nil && old.Timeouts == s.Timeouts {
		s.transport, s.fast = old.transport, old.fast
	} else {
		s.transport = newTransport(s.Timeouts)
		s.fast = h1.Over(s.transport)
	}
	return s, nil
}

// addSites makes the sites and returns the hosts that they name.
func (s *setup) addSites(old *setup, add func(path, problem, fix string)) (hosts []string) {
	known := make(map[string]*origin)
	if old != nil {
		for _, one := range old.inOrder {
			for _, o := range one.origins {
				known[o.url.String()] = o
			}
		}
	}
	for i, cfg := range s.Sites {
		path := fmt.Sprintf("sites[%d]", i)
		one := &site{preserve: cfg.PreserveHost, maxConnections: cfg.MaxConnections, pool: pool{health: cfg.Health, epoch: processStart(old), turned: s.originTurned}}
		s.inOrder = append(s.inOrder, one)
		if len(cfg.Hosts) == 0 {
			add(path+".hosts", "are missing", "name the hosts, or \"*\" for all")
		}
		if len(cfg.Origins) == 0 {
			add(path+".origins", "are missing", "give at least one URL like http://127.0.0.1:3000")
		}
		for j, u := range cfg.Origins {
			at := fmt.Sprintf("%s.origins[%d]", path, j)
			switch {
			case u == nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
				add(at, "is not an http or https URL with a host", "write it like http://127.0.0.1:3000")
				continue
			case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil || u.Fragment != "":
				add(at, "has more than scheme and host", "leave out path, query and user: visitors' paths are passed on unchanged")
				continue
			}
			o := known[u.String()]
			if o == nil {
				o = &origin{url: u}
			}
			one.origins = append(one.origins, o)
		}
		if p := cfg.Health.Path; p != "" && !strings.HasPrefix(p, "/") {
			add(path+".health.path", fmt.Sprintf("%.60q does not start with /", p), "write it like /healthz")
		}
		for j, h := range cfg.Hosts {
			name := h
			if h != "*" {
				canonical, err := route.Host(h)
				if err != nil {
					add(fmt.Sprintf("%s.hosts[%d]", path, j), fmt.Sprintf("%.60q is not a host name", h), "write it like shop.example.com")
					continue
				}
				name = canonical
			}
			if name == "*" && s.anySite != nil || s.sites[name] != nil {
				add(fmt.Sprintf("%s.hosts[%d]", path, j), fmt.Sprintf("%.60q already belongs to another proxied site", h), "name every host once")
				continue
			}
			if name == "*" {
				s.anySite = one
			} else {
				s.sites[name] = one
			}
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// processStart is the moment from which pools count; a swap keeps it, as origins do.
func processStart(old *setup) time.Time {
	if old != nil && len(old.inOrder) > 0 {
		return old.inOrder[0].epoch
	}
	return time.Now()
}

func (s *setup) addRooms(d doors, add func(path, problem, fix string)) {
	s.rooms = make([]*room, len(s.table.Rooms()))
	s.byID = make(map[anteroom.RoomID]int, len(s.rooms))
	events := map[anteroom.RoomID]map[anteroom.EventID]*page.Template{}
	for key, t := range s.EventTemplates {
		if events[key.Room] == nil {
			events[key.Room] = map[anteroom.EventID]*page.Template{}
		}
		events[key.Room][key.Event] = t
	}
	for i, m := range s.table.Rooms() {
		dr := d.of(m.Room.ID)
		if dr == nil {
			add(fmt.Sprintf("rooms[%d]", i), "is not served by the node", "apply the rooms to the node first")
			continue
		}
		one := &room{
			door:     dr,
			scope:    m.Cookie,
			widePath: m.WidePath,
			crawlers: s.CrawlerBypass[m.Room.Zone],
			session:  s.Sessions[m.Room.ID],
			denied:   new(denyList),
			touching: new(touching),
		}
		if f, ok := s.Former[m.Room.ID]; ok {
			one.former = &f
		}
		one.set(s, m.Room, &RoomChange{Template: s.Templates[m.Room.ID], EventTemplates: events[m.Room.ID], Rules: s.Rules[m.Room.ID], Lanes: s.Lanes[m.Room.ID], Unbounded: s.Unbounded[m.Room.ID]})
		s.rooms[i], s.byID[m.Room.ID] = one, i
	}
}

// set makes what follows from a room's settings, and what was compiled of them.
func (r *room) set(s *setup, settings *anteroom.Room, c *RoomChange) {
	r.Room = settings
	r.tail = tailOf(r.CookieAttributes, r.scope, r.scope.Path)
	r.wide = tailOf(r.CookieAttributes, r.scope, r.widePath)
	r.brand = page.NewBrand(r.Room)
	r.template, r.events, r.rules, r.lanes, r.unbounded = c.Template, c.EventTemplates, c.Rules, c.Lanes, c.Unbounded
	r.revoke = slices.Contains(r.EnabledOriginCommands, anteroom.CommandRevoke)
	r.passes, r.passName = s.passes.issuerOf(r.Room), passCookie(r.CookieSuffix)
	r.invited, r.mark = asksInvited(r.Room), InviteMark(s.Keys, r.ID)
	r.accounts = s.accountsOf(r)
	r.bind = r.Bind == anteroom.BindIPPrefix
	r.door, r.sealer = s.byLottery(r)
}

// RoomChange is a room with other settings and what was compiled of them.
type RoomChange struct {
	Room           anteroom.Room // with its defaults
	Template       *page.Template
	EventTemplates map[anteroom.EventID]*page.Template
	Rules          *rules.Set
	Lanes          *rules.Lanes
	Unbounded      *rules.Networks
}

// PrepareRooms is [Gateway.Prepare] when nothing but settings, events and rules of some rooms
// has changed. It costs what these rooms cost, however many others there are. It returns false
// when more has changed: another zone, route or cookie suffix, or a room that is not served.
func (g *Gateway) PrepareRooms(changes []RoomChange) (put func(), ok bool) {
	next := *g.live.Load()
	next.rooms = slices.Clone(next.rooms)
	for _, c := range changes {
		i, served := next.byID[c.Room.ID]
		if !served {
			return nil, false
		}
		one := *next.rooms[i]
		if c.Room.Zone != one.Zone || c.Room.CookieSuffix != one.CookieSuffix || c.Room.RouteSuffixes != one.RouteSuffixes || !slices.Equal(c.Room.Routes, one.Routes) {
			return nil, false
		}
		one.set(&next, &c.Room, &c)
		next.rooms[i] = &one
	}
	return func() { g.put(&next) }, true
}

// shadowIn reports whether the room is in shadow mode in another setup.
func (r *room) shadowIn(s *setup) bool {
	i, served := s.byID[r.ID]
	return served && s.rooms[i].Shadow
}

// find looks up room and site of a request.
func (s *setup) find(x *exchange) refusal {
	target := x.r.RequestURI
	if target == "" {
		target = x.r.URL.RequestURI()
	}
	m, err := s.table.Lookup(x.r.Host, target)
	if err != nil {
		switch {
		case errors.Is(err, route.ErrUnknownHost):
			return misdirected()
		case errors.Is(err, route.ErrHost):
			return refusal{http.StatusBadRequest, "The host is not valid", true}
		}
		return refusal{http.StatusBadRequest, "The address is not valid", true}
	}
	if m != nil {
		x.room = s.rooms[m.Index]
	}
	if x.next != nil {
		return refusal{}
	}
	x.site = s.anySite
	if len(s.sites) > 0 {
		host, _ := route.Host(x.r.Host)
		if one := s.sites[host]; one != nil {
			x.site = one
		}
	}
	if x.site == nil {
		return misdirected()
	}
	return refusal{}
}

func misdirected() refusal {
	return refusal{http.StatusMisdirectedRequest, "This host is not served here", false}
}
