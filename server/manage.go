package server

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/account"
)

// firstTokenEnv is the environment variable with a token that is never stored.
const firstTokenEnv = "ANTEROOM_API_TOKEN"

// scrapeTokenEnv is one with a token that may only read metrics and status.
const scrapeTokenEnv = "ANTEROOM_SCRAPE_TOKEN"

// openManager opens the manager on the node's link, which puts all rooms in force: those of
// the configuration and those of the API.
func (s *Server) openManager(ctx context.Context, p prepared) (err error) {
	s.webhooks = s.newWebhooks(p)
	s.pushes = s.newPushes(p)
	s.accounts = &account.Sources{Fetch: s.webhooks.guard.Get, Log: s.log}
	s.manage, err = manage.Open(ctx, manage.Config{
		Link: s.link, CookieName: p.cfg.CookieName, Strict: p.cfg.API.Strict, Hosts: proxiedHosts(p.cfg), FileName: p.cfg.File, FileRooms: p.cfg.Rooms,
		Prepare: s.prepareDoors(p), Doors: doors{s}, Crowds: &s.crowds, Webhooks: s.webhooks, Keys: keys{s}, Cluster: s.clusterStatus, Machine: s.machine, Origins: s.origins, Configuration: s.configuration, Sites: sites{s}, Analytics: s.analyticsReader(p.cfg), Edge: s.ring != nil && s.ring.edge, FirstToken: os.Getenv(firstTokenEnv), ScrapeToken: os.Getenv(scrapeTokenEnv), Log: s.log,
	})
	return err
}

// proxiedHosts are the hosts that requests can arrive for.
func proxiedHosts(cfg config.Config) (hosts []string) {
	for _, site := range cfg.Sites {
		hosts = append(hosts, site.Hosts...)
	}
	return hosts
}

// configuration is what operators see of the configuration in force.
func (s *Server) configuration() manage.Configuration {
	cfg := s.Config()
	c := manage.Configuration{File: cfg.File, YAML: cfg.Effective(), NeedsRestart: []string{}}
	if s.first.Load() != nil {
		c.NeedsRestart = append(c.NeedsRestart, s.needRestart(cfg)...)
	}
	return c
}

// FirstToken returns the secret of the API token that the start had to make, for the
// operator's eyes and no log; empty when there was one.
func (s *Server) FirstToken() string { return s.manage.FirstToken() }

// Manager is how operators change rooms.
func (s *Server) Manager() *manage.Manager { return s.manage }

// inForce is what node and gateway serve. The manager sees to it that one state at a time is
// prepared.
type inForce struct {
	by     *prepared        // the configuration
	rooms  []*manage.Served // in the state's order
	bypass map[string]bool  // the zones that crawlers pass
}

// prepareDoors returns how node and gateway are made ready for a state under a configuration.
func (s *Server) prepareDoors(p prepared) manage.Prepare {
	return func(ctx context.Context, st *manage.State) (func(bool), error) {
		next := inForce{by: &p, rooms: slices.Collect(st.Rooms()), bypass: map[string]bool{}}
		for _, z := range st.Zones() {
			if z.SearchEngineCrawlerBypass {
				next.bypass[z.Name] = true
			}
		}
		if changed, ok := s.inForce.changed(next); ok {
			if finish, ok, err := s.prepareRooms(ctx, changed, next); ok || err != nil {
				return finish, err
			}
		}
		return s.prepareAll(ctx, p, next)
	}
}

// changed returns the rooms that differ, and whether all else is the same.
func (now inForce) changed(next inForce) (rooms []*manage.Served, ok bool) {
	if now.by != next.by || len(now.rooms) != len(next.rooms) || !maps.Equal(now.bypass, next.bypass) {
		return nil, false
	}
	for i, r := range next.rooms {
		if before := now.rooms[i]; before.ID != r.ID {
			return nil, false
		} else if before != r {
			rooms = append(rooms, r)
		}
	}
	return rooms, true
}

// prepareRooms prepares rooms that have changed among others that have not; with false they
// have changed too much for that.
func (s *Server) prepareRooms(ctx context.Context, changed []*manage.Served, next inForce) (finish func(bool), ok bool, err error) {
	changes := make([]gateway.RoomChange, len(changed))
	for i, r := range changed {
		changes[i] = gateway.RoomChange{Room: s.served(r.Room), Template: r.Template, EventTemplates: r.EventTemplates, Rules: enabled(r), Lanes: r.LaneConditions, Unbounded: r.Unbounded}
	}
	put, ok := s.gateway.PrepareRooms(changes)
	if !ok {
		return nil, false, nil
	}
	for _, r := range changed {
		if err := s.node.PrepareRoom(ctx, s.served(r.Room)); err != nil {
			return nil, false, err
		}
	}
	return func(ok bool) {
		if !ok {
			return
		}
		put()
		for _, r := range changed {
			s.node.SettleRoom(s.served(r.Room))
		}
		s.inForce = next
	}, true, nil
}

// enabled returns the compiled rules of a room; nil when none of them does anything.
func enabled(r *manage.Served) *rules.Set {
	if slices.ContainsFunc(r.Rules, func(one anteroom.Rule) bool { return !one.Disabled }) {
		return r.Bypass
	}
	return nil
}

// prepareAll prepares everything anew.
func (s *Server) prepareAll(ctx context.Context, p prepared, next inForce) (func(bool), error) {
	gw, err := s.gatewayConfig(p)
	if err != nil {
		return nil, err
	}
	gw.Rules, gw.CrawlerBypass = map[anteroom.RoomID]*rules.Set{}, next.bypass
	gw.Unbounded, gw.Lanes = map[anteroom.RoomID]*rules.Networks{}, map[anteroom.RoomID]*rules.Lanes{}
	gw.Templates, gw.EventTemplates = map[anteroom.RoomID]*page.Template{}, map[gateway.EventKey]*page.Template{}
	for _, r := range next.rooms {
		gw.Rooms = append(gw.Rooms, s.served(r.Room))
		if set := enabled(r); set != nil {
			gw.Rules[r.ID] = set
		}
		if r.LaneConditions != nil {
			gw.Lanes[r.ID] = r.LaneConditions
		}
		if r.Unbounded != nil {
			gw.Unbounded[r.ID] = r.Unbounded
		}
		if r.Template != nil {
			gw.Templates[r.ID] = r.Template
		}
		for event, t := range r.EventTemplates {
			gw.EventTemplates[gateway.EventKey{Room: r.ID, Event: event}] = t
		}
	}
	gw.Redeem = func(ctx context.Context, r gateway.Redemption) (uint8, error) {
		placed := manage.AnyCode
		if r.Placed {
			placed = int(r.Lane)
		}
		return s.manage.Redeem(ctx, r.Room, r.Event, r.Code, r.By, placed) // there is no manager yet
	}
	gw.LaneCodes = func(room anteroom.RoomID) bool { return s.manage.HasLaneCodes(room) }
	gw.Push = gateway.Push{Book: s.pushes.book, Key: s.pushes.key.Load(), CheckURL: s.pushes.CheckURL, Webhook: s.pushes.hears}
	gw.Accounts, gw.AccountKeys = account.Places{Space: s.link}, s.accounts
	gw.Sessions, gw.Former = s.bridgeSessions(p.cfg, next.rooms), s.formerRooms(next.rooms)
	before := s.rooms()
	if err := s.node.Prepare(ctx, gw.Rooms); err != nil {
		return nil, err
	}
	swap, err := s.prepareGateway(gw)
	if err != nil {
		s.node.Settle(ctx, before)
		return nil, err
	}
	return func(ok bool) {
		if !ok {
			s.node.Settle(s.life, before)
			return
		}
		swap()
		s.node.Settle(s.life, gw.Rooms)
		s.inForce = next
	}, nil
}

func (s *Server) prepareGateway(gw gateway.Config) (swap func(), err error) {
	if s.gateway != nil {
		return s.gateway.Prepare(gw)
	}
	g, err := gateway.New(gw)
	return func() { s.gateway = g }, err
}

// rooms returns the rooms in force, those of the file first.
func (s *Server) rooms() (rooms []anteroom.Room) {
	if s.manage == nil {
		return nil
	}
	for r := range s.manage.State().Rooms() {
		rooms = append(rooms, s.served(r.Room))
	}
	return rooms
}

// doors is the live side of the rooms: the node's.
type doors struct{ s *Server }

func (d doors) room(id anteroom.RoomID) (*node.Room, error) {
	if r := d.s.node.Room(id); r != nil {
		return r, nil
	}
	return nil, anteroom.Errorf(anteroom.Unavailable, "the room is not being served yet")
}

// Status returns a room's live numbers.
func (d doors) Status(id anteroom.RoomID) (anteroom.Status, bool) {
	r, err := d.room(id)
	if err != nil {
		return anteroom.Status{}, false
	}
	return r.Status(), true
}

// AdmitNow calls the next visitors in the queue.
func (d doors) AdmitNow(ctx context.Context, id anteroom.RoomID, n int) (int, error) {
	r, err := d.room(id)
	if err != nil {
		return 0, err
	}
	return r.AdmitNow(ctx, n)
}

// standings are the engine's in the words of operators.
var standings = map[engine.Standing]string{engine.Waiting: manage.Waiting, engine.Seated: manage.Active, engine.Used: manage.Used}

// Find returns the visitors with a reference.
func (d doors) Find(ctx context.Context, id anteroom.RoomID, reference string) ([]manage.Visitor, error) {
	r, err := d.room(id)
	if err != nil {
		return nil, err
	}
	found, err := r.Find(ctx, reference)
	out := make([]manage.Visitor, len(found))
	for i, v := range found {
		out[i] = manage.Visitor{ID: v.ID, Reference: v.ID.Reference(), Standing: standings[v.Standing], Arrival: v.Arrival,
			AcceptedAt: v.AcceptedAt, LastSeen: v.LastSeen, Ahead: v.Ahead, AheadKnown: v.AheadKnown}
	}
	return out, err
}

// Revoke ends a session.
func (d doors) Revoke(ctx context.Context, id anteroom.RoomID, visitor anteroom.ID) (bool, error) {
	r, err := d.room(id)
	if err != nil {
		return false, err
	}
	if r.Settings().Redeem > 0 {
		return false, anteroom.Errorf(anteroom.Conflict, "the application accepts the token of this session until its end; only the connector can cancel it")
	}
	return r.EndSession(ctx, visitor)
}

// Touch takes requests that edges have let in by a pass.
func (d doors) Touch(id anteroom.RoomID, touches []manage.Touch) ([]string, error) {
	list := make([]gateway.Touch, len(touches))
	for i, one := range touches {
		list[i] = gateway.Touch(one)
	}
	results, ok := d.s.gateway.Touch(id, list)
	if !ok {
		return nil, anteroom.Errorf(anteroom.Conflict, "the room issues no passes: set pass, or report to another room")
	}
	words := make([]string, len(results))
	for i, result := range results {
		words[i] = gateway.TouchWords[result]
	}
	return words, nil
}

// Shuffle returns the shuffle of an event's occurrence.
func (d doors) Shuffle(id anteroom.RoomID, event anteroom.EventID, number int) (*anteroom.Shuffle, bool, error) {
	r, err := d.room(id)
	if err != nil {
		return nil, false, err
	}
	sh, ok := r.Shuffle(event, number)
	return sh, ok, nil
}

// keys are the ticket keys as operators see them.
type keys struct{ s *Server }

// Rotate makes a new key and puts it in force; in a cluster, when every node knows it, unless the earlier ones are to be
// forgotten.
func (k keys) Rotate(ctx context.Context, forget bool) error {
	if k.s.ring != nil {
		return k.s.ring.rotate(ctx, forget)
	}
	keep := time.Duration(0)
	if forget {
		keep = -1
	}
	if _, err := ticket.RotateFile(KeyFile(k.s.first.Load().Data), time.Now(), keep); err != nil {
		return err
	}
	return k.s.Reload(ctx, "keys rotated")
}

// Export returns the keys as a key file has them.
func (k keys) Export() ([]byte, error) {
	if k.s.ring != nil {
		return k.s.ring.export()
	}
	return ticket.ExportFile(KeyFile(k.s.first.Load().Data))
}

// Check says whether something is a copy of a key file.
func (k keys) Check(copied []byte) error { return ticket.CheckExport(copied) }

// Import restores a copy of a key file, as [ticket.Keyring.Restore] does.
func (k keys) Import(ctx context.Context, copied []byte) error {
	var err error
	if k.s.ring != nil {
		err = k.s.ring.restore(ctx, copied)
	} else {
		err = ticket.ImportFile(KeyFile(k.s.first.Load().Data), copied, time.Now())
	}
	if err != nil {
		return err
	}
	return k.s.Reload(ctx, "keys restored")
}
