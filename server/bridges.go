package server

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/bridge/aws"
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

// isBridged reports whether a bridge is for a room.
func isBridged(c config.AWS, r *anteroom.Room) bool {
	zone, name, ok := strings.Cut(c.Room, "/")
	return ok && r.Zone == zone && r.Name == name || r.Name == c.Room
}

// bridged returns what finds the room of a bridge: nil while it is not served; the id is known while there is the room.
func (s *Server) bridged(c config.AWS) func() (aws.Room, anteroom.RoomID) {
	type found struct {
		in *manage.State
		id anteroom.RoomID
	}
	var last atomic.Pointer[found] // a state with ten thousand rooms is searched once
	return func() (aws.Room, anteroom.RoomID) {
		f, state := last.Load(), s.manage.State()
		if f == nil || f.in != state {
			f = &found{in: state}
			for r := range state.Rooms() {
				if isBridged(c, &r.Room) {
					f.id = r.ID
				}
			}
			last.Store(f)
		}
		if n := s.node.Room(f.id); n != nil {
			return n, f.id
		}
		return nil, f.id
	}
}

// bridgeSessions returns, by room, what finds the session of a request that carries a token of a bridge.
func (s *Server) bridgeSessions(cfg config.Config, rooms []*manage.Served) map[anteroom.RoomID]gateway.FindSession {
	if first := s.first.Load(); first != nil {
		cfg = *first
	}
	out := map[anteroom.RoomID]gateway.FindSession{}
	for _, c := range cfg.AWS {
		for _, r := range rooms {
			if isBridged(c, &r.Room) {
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
		for _, one := range s.bridges {
			if one.Covers(r) {
				one.ServeHTTP(w, r)
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
