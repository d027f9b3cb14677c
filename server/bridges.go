package server

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/bridge/aws"
	"github.com/anteroom/anteroom/bridge/fastly"
	"github.com/anteroom/anteroom/bridge/queueit"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/ticket"
)

// bridges are those of the configuration at the start, by event id.
type bridges map[string]*aws.Bridge

// openBridges makes the bridges of the configuration.
func (s *Server) openBridges(ctx context.Context, cfg config.Config) error {
	for _, c := range cfg.AWS {
		secret := ""
		if c.ClientSecretFile != "" {
			text, err := os.ReadFile(c.ClientSecretFile)
			if err != nil {
				return anteroom.Errorf(anteroom.Invalid, "aws: client_secret_file: %w", err)
			}
			secret = strings.TrimSpace(string(text))
		}
		at, err := url.Parse(c.URL)
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "aws: url: %w", err)
		}
		s.bridges[c.EventID], err = aws.Open(ctx, aws.Config{Event: c.EventID, URL: at, Issuer: c.Issuer, Custom: c.Inlet == config.InletCustom,
			ClientSecret: secret, RedirectURIs: c.RedirectURIs, Room: s.bridged(c), Space: s.link,
			Networks: func(r *http.Request) anteroom.Networks { return s.gateway.Networks(r) }, // there is no gateway yet
			Secret:   s.keyring.Load().Fixed(ticket.PurposeBridge), Manager: s.manage, Log: s.log})
		if err != nil {
			return err
		}
	}
	return nil
}

// run lets bridges work until ctx ends.
func (b bridges) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range b {
		all.Go(func() { one.Run(ctx) })
	}
	all.Wait()
}

// isNamed reports whether the section of a bridge names a room.
func isNamed(in string, r *anteroom.Room) bool {
	zone, name, ok := strings.Cut(in, "/")
	return ok && r.Zone == zone && r.Name == name || r.Name == in
}

// namedRoom returns what finds the room that the section of a bridge names: nil while there is none.
func (s *Server) namedRoom(name string) func() *anteroom.Room {
	type found struct {
		in *manage.State
		it *anteroom.Room
	}
	var last atomic.Pointer[found] // a state with ten thousand rooms is searched once
	return func() *anteroom.Room {
		f, state := last.Load(), s.manage.State()
		if f == nil || f.in != state {
			f = &found{in: state}
			for r := range state.Rooms() {
				if isNamed(name, &r.Room) {
					f.it = &r.Room
				}
			}
			last.Store(f)
		}
		return f.it
	}
}

// bridged returns what finds the room of a bridge: nil while it is not served; the id is known while there is the room.
func (s *Server) bridged(c config.AWS) func() (aws.Room, anteroom.RoomID) {
	named := s.namedRoom(c.Room)
	return func() (aws.Room, anteroom.RoomID) {
		r := named()
		if r == nil {
			return nil, ""
		}
		if n := s.node.Room(r.ID); n != nil && r.AccountIssuer == "" { // its clients have no account
			return n, r.ID
		}
		return nil, r.ID
	}
}

// openQueueIt makes the bridge for connectors of Queue-it, unless there are no events for it. The first rooms are served after it.
func (s *Server) openQueueIt(cfg config.Config, keys *ticket.Keyring) error {
	connectors := queueit.Config{CookieName: cfg.CookieName, Space: s.link, Secret: keys.Fixed(ticket.PurposeBridge), Log: s.log,
		Gateway: func() *gateway.Gateway { return s.gateway }, Keys: s.keyring.Load}
	for _, c := range cfg.QueueIt {
		secret, err := os.ReadFile(c.SecretFile)
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "queue_it: secret_file: %w", err)
		}
		at, err := url.Parse(c.URL)
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "queue_it: url: %w", err)
		}
		named := s.namedRoom(c.Room)
		connectors.Events = append(connectors.Events, queueit.Event{Customer: c.CustomerID, ID: c.EventID, URL: at, Secret: strings.TrimSpace(string(secret)),
			Redeem: c.Redeem, FreeCanceled: c.Cancel == config.CancelFree, InviteOnly: c.InviteOnly,
			Room: func() (*anteroom.Room, queueit.Live) {
				r := named()
				if r != nil {
					if n := s.node.Room(r.ID); n != nil {
						return r, n
					}
				}
				return r, nil
			}})
	}
	for i := range connectors.Events { // which grows no more
		s.connected = append(s.connected, connected{cfg.QueueIt[i].Room, &connectors.Events[i]})
	}
	if len(connectors.Events) > 0 {
		s.queueIt = queueit.New(connectors)
	}
	return nil
}

// former is a waiting room of Fastly with the name of the room that takes over.
type former struct {
	room   string
	reader *fastly.Reader
}

// openFastly makes the readers of the cookies of Fastly's starters.
func (s *Server) openFastly(cfg config.Config, keys *ticket.Keyring) error {
	for _, c := range cfg.Fastly {
		secret, err := os.ReadFile(c.SecretFile)
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "fastly: secret_file: %w", err)
		}
		since, err := time.Parse(time.RFC3339, c.Since)
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "fastly: since: %w", err)
		}
		r, err := fastly.New(c.Starter, secret, since, c.Length, bridge.Derive(keys.Fixed(ticket.PurposeBridge), "fastly", 0))
		if err != nil {
			return anteroom.Errorf(anteroom.Invalid, "fastly: secret_file: %s %w", c.SecretFile, err)
		}
		s.former = append(s.former, former{c.Room, r})
	}
	return nil
}

// formerRooms returns, by room, what reads the cookies of a waiting room that it takes over from.
func (s *Server) formerRooms(rooms []*manage.Served) map[anteroom.RoomID]gateway.Former {
	out := map[anteroom.RoomID]gateway.Former{}
	for _, f := range s.former {
		for _, r := range rooms {
			if isNamed(f.room, &r.Room) {
				out[r.ID] = gateway.Former{Cookie: f.reader.Cookie, Read: f.reader.Read}
			}
		}
	}
	return out
}

// connected is an event for connectors with the name of its room.
type connected struct {
	room  string
	event *queueit.Event
}

// served returns a room as node and gateway serve it.
func (s *Server) served(r anteroom.Room) anteroom.Room {
	for _, c := range s.connected {
		if isNamed(c.room, &r) {
			return c.event.Bridged(r)
		}
	}
	return r
}

// bridgeSessions returns, by room, what finds the session of a request that carries a token of a bridge.
func (s *Server) bridgeSessions(cfg config.Config, rooms []*manage.Served) map[anteroom.RoomID]gateway.FindSession {
	if first := s.first.Load(); first != nil {
		cfg = *first
	}
	out := map[anteroom.RoomID]gateway.FindSession{}
	for _, c := range cfg.AWS {
		for _, r := range rooms {
			if isNamed(c.Room, &r.Room) {
				out[r.ID] = func(ctx context.Context, authorization string) (anteroom.Ticket, bool) {
					return s.bridges[c.EventID].Ticket(ctx, authorization)
				}
			}
		}
	}
	return out
}

// withBridges answers the public APIs of bridges before the gateway sees the request.
func (s *Server) withBridges(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.queueIt != nil && s.queueIt.Covers(r) {
			s.queueIt.ServeHTTP(w, r)
			return
		}
		for _, one := range s.bridges {
			if one.Covers(r) {
				s.gateway.Beside(one).ServeHTTP(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// privateBridges serves the private APIs of bridges at the admin address.
func (s *Server) privateBridges(w http.ResponseWriter, r *http.Request) {
	event, path := aws.Event(r.URL.EscapedPath())
	if one := s.bridges[event]; one != nil {
		one.ServePrivate(w, r, path)
		return
	}
	aws.NoEvent(w)
}
