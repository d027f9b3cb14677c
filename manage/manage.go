// Package manage is what operators can do: zones, rooms, events, rules, lists, tokens, keys, backups. It is the one
// place for permission, validation, audit and persistence; every face (REST, command line, dashboard) only calls it.
//
// A [Manager] holds an immutable [State] behind a pointer. A change works on a copy and takes these steps, one change
// at a time:
//
//  1. The caller's function changes a copy. Permission and all checks come here.
//  2. [Config.Prepare] prepares what the doors need for it, which may fail.
//  3. The audit record is created. It holds the writes that follow from the change: from now on the change has
//     happened, whatever comes.
//  4. The writes are done. Writes that the end of the process leaves undone are done at the next start.
//  5. The doors follow, the State is replaced, and the caller gets its answer.
//
// If several processes share the link, [Manager.Follow] puts in force what the others change. A change that another one
// has overtaken is repeated on the new state. docs/adr/0008-audit-is-the-write-ahead-log.md says why.
package manage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/rules"
)

// Config says what a manager works with. Only Link is required.
type Config struct {
	// Link stores everything. Keys that do not begin with "manage." are left alone.
	Link cluster.Link
	// CookieName of the tickets, for the check that rooms do not overwrite each other's; empty
	// means the published one.
	CookieName string
	// Strict holds rooms of the API to the published minima: limits of 200 and more, sessions
	// of 1 to 30 minutes, five events.
	Strict bool
	// Hosts are those of the proxied sites; new hosts of rooms have to be among them. None, or
	// "*", means that requests for every host arrive.
	Hosts []string
	// FileRooms are those of the configuration: checked already, and read-only here but for
	// their controls. SetFile replaces them.
	FileRooms []anteroom.Room
	// FileName is the configuration file as operators know it; empty means that flags and
	// environment made the rooms.
	FileName string
	// Prepare makes the doors ready for a state; nil means that there are none.
	Prepare Prepare
	// Doors is the live side of the rooms; nil means that none is served.
	Doors Doors
	// Crowds sends simulated visitors; nil means that none can be sent.
	Crowds Crowds
	// Keys are the ticket keys; nil means that there are none.
	Keys Keys
	// Webhooks sends; nil means that nothing is sent and webhooks cannot be made.
	Webhooks Webhooks
	// Cluster returns the state of the cluster; nil means that this process serves no rooms.
	Cluster func(ctx context.Context) (ClusterStatus, error)
	// Machine returns what this process knows of its clock and certificates; nil means that it serves no rooms.
	Machine func() Machine
	// Configuration returns what the process was started or last reloaded with; nil means nothing.
	Configuration func() Configuration
	// Origins tells what this process knows of the origins; nil means that it forwards nothing.
	Origins func() []ProxiedSite
	// Sites changes the nodes and sites of the cluster; nil means that there is none.
	Sites Sites
	// Edge says that this process may read the store and not write it: changes and backups are for other processes.
	Edge bool
	// Analytics keeps what happened in the rooms; nil means that nothing is kept.
	Analytics analytics.Reader
	// FirstToken is a token with every permission that is never stored; empty means none. It
	// has 40 to 80 letters, digits, _ and -.
	FirstToken string
	// ScrapeToken is one with the permission Scrape.
	ScrapeToken string
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Log; nil means none.
	Log *slog.Logger
}

// Prepare makes everything ready that the doors need for a state and that can fail. The
// returned function is called once, and soon: with true it puts the state in force and must
// not fail; with false it drops what was prepared, for the change could not be stored.
type Prepare func(ctx context.Context, s *State) (finish func(ok bool), err error)

// Doors is the live side of the rooms.
type Doors interface {
	// Status returns a room's live numbers, and whether the room is served.
	Status(id anteroom.RoomID) (anteroom.Status, bool)
	// AdmitNow calls the first n visitors of the queue now, even while admissions are stopped, but never beyond the
	// limits, and returns how many were called.
	AdmitNow(ctx context.Context, id anteroom.RoomID, n int) (admitted int, err error)
	// Find returns the visitors with a reference code or a full id in hexadecimal digits.
	Find(ctx context.Context, id anteroom.RoomID, reference string) ([]Visitor, error)
	// Revoke ends a session, and reports whether there was one.
	Revoke(ctx context.Context, id anteroom.RoomID, visitor anteroom.ID) (bool, error)
	// Touch takes requests that edges have let in by a pass, and says what came of each: TouchTaken, or why it was refused.
	Touch(id anteroom.RoomID, touches []Touch) (results []string, err error)
	// Shuffle returns what is known of the shuffle of an event's occurrence, and whether there is one.
	Shuffle(id anteroom.RoomID, event anteroom.EventID, number int) (*anteroom.Shuffle, bool, error)
}

// Touch is a request that an edge has let in by a pass.
type Touch struct {
	Ticket string        // value of the ticket cookie that came with it
	Ago    time.Duration // when it came
}

// TouchTaken is the result of one that counts.
const TouchTaken = "taken"

// Keys are the ticket keys.
type Keys interface {
	// Rotate makes a new key. With forget, no earlier one opens tickets any more.
	Rotate(ctx context.Context, forget bool) error
	// Export returns the keys for a backup, Check says whether something is such a copy, and
	// Import puts it in their place.
	Export() ([]byte, error)
	Check(keys []byte) error
	Import(ctx context.Context, keys []byte) error
}

// Standings of a [Visitor].
const (
	Waiting = "waiting"
	Active  = "active"
	Used    = "used"
)

// Visitor is a visitor who waits or has a session.
type Visitor struct {
	ID         anteroom.ID
	Reference  string
	Standing   string // Waiting, Active or Used
	Arrival    anteroom.Time
	AcceptedAt anteroom.Time // zero while waiting
	LastSeen   anteroom.Time
	Ahead      int // in line; valid when AheadKnown
	AheadKnown bool
}

// Bounds of an installation.
const (
	maxZones         = 1_000
	maxRules         = 20_000 // of all rooms together
	maxEvents        = 20_000 // of all rooms together
	MaxListItems     = rules.MaxListItems
	MaxTokens        = 1_000
	maxLent          = 1_000
	MaxGrants        = 100       // of a token
	MaxNetworks      = 100       // of a token
	maxPages         = 128 << 20 // bytes of all custom pages together
	maxAuditRecords  = 10_000
	MaxAuditPage     = 1_000 // records returned at once
	MaxAdmitNow      = 1_000_000
	MaxTokenOverlap  = 30 * 24 * time.Hour
	DefaultTokenLife = 90 * 24 * time.Hour

	// MaxFailedLogins is the number of failed authentications that one address has answered
	// in a minute.
	MaxFailedLogins = 10
)

// Manager is the one way to change what the doors do. Safe for concurrent use.
type Manager struct {
	cfg     Config
	log     *slog.Logger
	state   atomic.Pointer[State]
	first   string // the secret of the token made by Open
	env     *token // of Config.FirstToken
	scraper *token // of Config.ScrapeToken
	fails   failures
	used    lastUses
	lent    lent
	// redeeming has room for one in each: visitors who enter one code at the same moment take turns here, and only those at
	// other nodes are in each other's way.
	redeeming [64]chan struct{}

	// changing has room for one: the goroutine that puts something in may change what follows.
	changing chan struct{}
	index    index
	pages    map[string]pageUse // by their keys
	custom   map[string]*custom // by their texts
	log0     uint64             // records before this number are gone or may go
	logFirst uint64             // the oldest record that is there
	pending  []write            // of the last record: still to be done
	doubt    bool               // whether the last record was created is not known
	alone    bool               // no other process writes here
	original *Manager           // of a rehearsal: it knows who calls
	copied   []string           // keys of the documents in force, if they come from a copy that may be old
	spares   map[string]spare   // pages to be removed, where others may be about to use them
	stages   []stagedSince      // to be removed when nobody reads them any more
}

// Open loads everything, finishes a change that was interrupted, and puts the state in force.
// Without any token it makes one, see [Manager.FirstToken].
func Open(ctx context.Context, cfg Config) (*Manager, error) {
	if cfg.Link == nil {
		return nil, errors.New("manage: Config.Link is missing")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	m := &Manager{cfg: cfg, log: cfg.Log, changing: make(chan struct{}, 1), alone: cfg.Link.Health().Alone, spares: map[string]spare{}}
	for i := range m.redeeming {
		m.redeeming[i] = make(chan struct{}, 1)
	}
	if cfg.Now == nil {
		m.cfg.Now = time.Now
	}
	var err error
	if m.env, err = m.givenToken("ANTEROOM_API_TOKEN", Admin, cfg.FirstToken); err != nil {
		return nil, err
	}
	if m.scraper, err = m.givenToken("ANTEROOM_SCRAPE_TOKEN", Scrape, cfg.ScrapeToken); err != nil {
		return nil, err
	}
	s, err := m.load(ctx)
	if err != nil {
		return nil, err
	}
	finish, err := m.prepare(ctx, s)
	if err != nil {
		return nil, err
	}
	finish(true)
	m.put(s)
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Manager) prepare(ctx context.Context, s *State) (func(bool), error) {
	if m.cfg.Prepare == nil {
		return func(bool) {}, nil
	}
	return m.cfg.Prepare(ctx, s)
}

// put exchanges the state and everything that is derived from it.
func (m *Manager) put(s *State) {
	m.index = indexOf(s)
	m.countAllPages(s)
	m.state.Store(s)
}

// State returns the state in force. It never changes; a change makes another one.
func (m *Manager) State() *State { return m.state.Load() }

// Account returns the id, 32 hexadecimal digits, and the name of the one account.
func (m *Manager) Account() (id, name string) {
	a := m.State().account
	return a.ID, a.Name
}

// FirstToken returns the secret of the token that Open had to make, for the operator's eyes
// and no log; empty when there was one.
func (m *Manager) FirstToken() string { return m.first }

// File holds the rooms of the configuration file.
type File struct {
	Name       string // as in Config.FileName
	Rooms      []anteroom.Room
	CookieName string
	Strict     bool
	Hosts      []string // as Config.Hosts
}

// SetFile replaces what the configuration file said, and how doors are prepared from now on.
// On an error nothing has changed.
func (m *Manager) SetFile(ctx context.Context, f File, prepare Prepare) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	if err := m.settleDoubt(ctx); err != nil {
		return err
	}
	next, err := m.State().withFile(f, m.now())
	if err != nil {
		return err
	}
	finish := func(bool) {}
	if prepare != nil {
		if finish, err = prepare(ctx, next); err != nil {
			return err
		}
	}
	finish(true)
	m.cfg.FileName, m.cfg.FileRooms, m.cfg.CookieName, m.cfg.Strict, m.cfg.Hosts, m.cfg.Prepare = f.Name, f.Rooms, f.CookieName, f.Strict, f.Hosts, prepare
	m.put(next)
	return nil
}

func (m *Manager) lock(ctx context.Context) error {
	select {
	case m.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return anteroom.Errorf(anteroom.Unavailable, "another change is in progress: %w", ctx.Err())
	}
}

func (m *Manager) unlock() { <-m.changing }

// now is the wall clock as it is stored: UTC, in microseconds.
func (m *Manager) now() time.Time { return m.cfg.Now().UTC().Truncate(time.Microsecond) }

// Permission is what a token may do. Each includes those before it.
type Permission string

const (
	// Scrape sees the metrics and the live figures of a process, and nothing of the APIs. It is
	// for everything or not at all.
	Scrape Permission = "scrape"
	// Read sees zones, rooms and their live numbers.
	Read Permission = "read"
	// Edit changes them.
	Edit Permission = "edit"
	// Admin manages tokens and keys, reads the audit log, makes and restores backups. It is
	// for everything or not at all.
	Admin Permission = "admin"
)

var permissions = []Permission{Scrape, Read, Edit, Admin}

// Grant is a permission in a zone, or in one room.
type Grant struct {
	Zone       anteroom.ZoneID `json:"zone,omitempty"` // empty means all
	Room       anteroom.RoomID `json:"room,omitempty"` // empty means all
	Permission Permission      `json:"permission"`
}

// Caller is the one who asks. [Manager.Authenticate] returns it.
type Caller struct {
	Token     TokenID // empty for the token of the environment
	Name      string
	Grants    []Grant
	Address   netip.Addr
	RequestID string
}

// May reports whether the caller may do something in a room; an empty room means the whole
// zone, an empty zone everything.
func (by Caller) May(p Permission, zone anteroom.ZoneID, room anteroom.RoomID) bool {
	want := slices.Index(permissions, p)
	return want >= 0 && slices.ContainsFunc(by.Grants, func(g Grant) bool {
		return slices.Index(permissions, g.Permission) >= want && (g.Zone == "" || g.Zone == zone) && (g.Room == "" || g.Room == room)
	})
}

// sees reports whether the caller may read the zone or a room of it.
func (s *State) sees(by Caller, zone anteroom.Zone) bool {
	return slices.ContainsFunc(by.Grants, func(g Grant) bool {
		if g.Permission == Scrape {
			return false
		}
		if g.Zone != "" || g.Room == "" {
			return g.Zone == "" || g.Zone == zone.ID
		}
		r := s.byID[g.Room]
		return r != nil && r.Zone == zone.Name
	})
}

func (by Caller) need(p Permission, zone anteroom.ZoneID, room anteroom.RoomID) error {
	if by.May(p, zone, room) {
		return nil
	}
	return denied(p)
}

func denied(p Permission) error {
	return anteroom.Errorf(anteroom.Denied, "this token may not do that; it needs the permission %q here", p)
}
