package server

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
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

// bridges are those of the configuration in force. The zero value has none.
type bridges struct {
	mu  sync.RWMutex
	ctx context.Context // nil until run
	all map[string]*runningBridge
	end sync.WaitGroup
}

// runningBridge is a bridge with what it was made of.
type runningBridge struct {
	*aws.Bridge
	url    *url.URL
	cfg    config.AWS
	client string // its secret
	secret ticket.Secret
	stop   context.CancelFunc
}

// awsSecret returns what the client secret's file holds; empty without a file.
func awsSecret(c config.AWS) (string, error) {
	if c.ClientSecretFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(c.ClientSecretFile)
	if err != nil {
		return "", anteroom.Errorf(anteroom.Invalid, "aws: client_secret_file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// useBridges puts the bridges of a configuration in force. Those that have not changed go on.
func (s *Server) useBridges(p prepared) {
	b := &s.bridges
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.all
	b.all = map[string]*runningBridge{}
	for _, cfg := range p.cfg.AWS {
		one := &runningBridge{cfg: cfg, secret: p.ring.Fixed(ticket.PurposeBridge)}
		one.client, _ = awsSecret(cfg) // prepare has read it
		if old := before[cfg.EventID]; old != nil && reflect.DeepEqual(old.cfg, cfg) && old.client == one.client && old.secret == one.secret {
			b.all[cfg.EventID] = old
			delete(before, cfg.EventID)
			continue
		}
		one.url, _ = url.Parse(cfg.URL) // config has checked it
		one.Bridge = aws.New(aws.Config{Event: cfg.EventID, URL: one.url, Issuer: cfg.Issuer, Custom: cfg.Inlet == config.InletCustom,
			ClientSecret: one.client, RedirectURIs: cfg.RedirectURIs, Room: s.bridged(cfg),
			Space: s.link, Secret: one.secret, Manager: s.manage, Log: s.log})
		b.all[cfg.EventID] = one
	}
	for _, old := range before {
		if old.stop != nil {
			old.stop()
		}
	}
	b.start()
}

// start starts the bridges that do not run yet, once there is a context for them.
func (b *bridges) start() {
	for _, one := range b.all {
		if b.ctx != nil && one.stop == nil {
			var ctx context.Context
			ctx, one.stop = context.WithCancel(b.ctx)
			b.end.Go(func() { one.Run(ctx) })
		}
	}
}

// run lets bridges work until ctx ends.
func (b *bridges) run(ctx context.Context) {
	b.mu.Lock()
	b.ctx = ctx
	b.start()
	b.mu.Unlock()
	<-ctx.Done()
	b.end.Wait()
}

// find returns the bridge of an event, or nil.
func (b *bridges) find(event string) *runningBridge {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.all[event]
}

// covering returns the bridge that a visitor's request is for, or nil.
func (b *bridges) covering(r *http.Request) *runningBridge {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, one := range b.all {
		if strings.EqualFold(one.url.Hostname(), host) && one.Covers(r) {
			return one
		}
	}
	return nil
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
					break
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
	out := map[anteroom.RoomID]gateway.FindSession{}
	for _, r := range rooms {
		for _, c := range cfg.AWS {
			if isBridged(c, &r.Room) {
				out[r.ID] = func(ctx context.Context, authorization string) (anteroom.Ticket, bool) {
					if one := s.bridges.find(c.EventID); one != nil {
						return one.Ticket(ctx, authorization)
					}
					return anteroom.Ticket{}, false
				}
			}
		}
	}
	return out
}

// withBridges answers the public APIs of bridges before the gateway sees the request.
func (s *Server) withBridges(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if one := s.bridges.covering(r); one != nil {
			one.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// privateBridges serves the private APIs of bridges at the admin address.
func (s *Server) privateBridges(w http.ResponseWriter, r *http.Request) {
	event, path := aws.Event(r.URL.EscapedPath())
	if one := s.bridges.find(event); one != nil {
		one.ServePrivate(w, r, path)
		return
	}
	aws.NoEvent(w)
}
