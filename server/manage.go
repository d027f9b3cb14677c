package server

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
)

// firstTokenEnv is the environment variable with a token that is never stored.
const firstTokenEnv = "ANTEROOM_API_TOKEN"

// openManager opens the manager on the node's link, which puts all rooms in force: those of
// the configuration and those of the API.
func (s *Server) openManager(ctx context.Context, p prepared) (err error) {
	s.manage, err = manage.Open(ctx, manage.Config{
		Link: s.link, CookieName: p.cfg.CookieName, Strict: p.cfg.API.Strict, FileRooms: p.cfg.Rooms,
		Prepare: s.prepareDoors(p), Keys: keys{s}, FirstToken: os.Getenv(firstTokenEnv), Log: s.log,
	})
	return err
}

// FirstToken returns the secret of the API token that the start had to make, for the
// operator's eyes and no log; empty when there was one.
func (s *Server) FirstToken() string { return s.manage.FirstToken() }

// Manager is how operators change rooms.
func (s *Server) Manager() *manage.Manager { return s.manage }

// prepareDoors returns how node and gateway are made ready for a state under a configuration.
func (s *Server) prepareDoors(p prepared) manage.Prepare {
	return func(ctx context.Context, st *manage.State) (func(bool), error) {
		gw, err := s.gatewayConfig(p)
		if err != nil {
			return nil, err
		}
		gw.Rules, gw.CrawlerBypass = map[anteroom.RoomID]*rules.Set{}, map[string]bool{}
		for _, z := range st.Zones() {
			gw.CrawlerBypass[z.Name] = z.SearchEngineCrawlerBypass
		}
		gw.Templates, gw.EventTemplates = map[anteroom.RoomID]*page.Template{}, map[gateway.EventKey]*page.Template{}
		for r := range st.Rooms() {
			gw.Rooms = append(gw.Rooms, r.Room)
			if slices.ContainsFunc(r.Rules, func(one anteroom.Rule) bool { return !one.Disabled }) {
				gw.Rules[r.ID] = r.Bypass
			}
			if r.Template != nil {
				gw.Templates[r.ID] = r.Template
			}
			for event, t := range r.EventTemplates {
				gw.EventTemplates[gateway.EventKey{Room: r.ID, Event: event}] = t
			}
		}
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
		}, nil
	}
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
		rooms = append(rooms, r.Room)
	}
	return rooms
}

// keys are the ticket keys as operators see them.
type keys struct{ s *Server }

// Rotate makes a new key and puts it in force.
func (k keys) Rotate(ctx context.Context) error {
	if _, err := ticket.RotateFile(KeyFile(k.s.first.Load().Data), time.Now(), 0); err != nil {
		return err
	}
	return k.s.Reload(ctx, "the keys were rotated")
}

// Export returns the key file.
func (k keys) Export() ([]byte, error) { return ticket.ExportFile(KeyFile(k.s.first.Load().Data)) }

// Check says whether something is a copy of a key file.
func (k keys) Check(copied []byte) error { return ticket.CheckExport(copied) }

// Import puts a copy of a key file in the place of ours, and in force.
func (k keys) Import(ctx context.Context, copied []byte) error {
	if err := ticket.ImportFile(KeyFile(k.s.first.Load().Data), copied); err != nil {
		return err
	}
	return k.s.Reload(ctx, "the keys were restored")
}
