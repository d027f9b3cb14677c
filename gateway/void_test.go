package gateway

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

// TestForgottenKeysEndStreams: a page near the front hears of its place by a stream and asks for nothing else. When its ticket's key
// is forgotten, the visitor has to join again like everybody, and not only when a turn comes that is void. A key that is replaced
// ends no stream.
func TestForgottenKeysEndStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rm := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}, Settings: anteroom.Settings{QueueAll: true, TotalActiveUsers: 1, NewUsersPerMinute: 600}}.WithDefaults()
		n, _ := bubbleGateway(t, rm, http.NotFoundHandler())
		keys := ticket.NewKeyring(time.Now())
		cfg := Config{Rooms: []anteroom.Room{rm}, Node: n, Keys: keys}
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		bob := &customer{t: t, shop: g.Middleware(http.NotFoundHandler())}
		bob.ask("/")
		over := make(chan string, 1)
		go func() {
			body, _ := bob.ask("/?__anteroom=stream")
			over <- body
		}()
		synctest.Wait()
		for _, step := range []struct {
			keep time.Duration
			ends bool
		}{{time.Hour, false}, {time.Hour, false}, {-1, true}} {
			if cfg.Keys, err = cfg.Keys.Rotate(time.Now(), step.keep); err != nil {
				t.Fatal(err)
			}
			if err := g.Swap(cfg); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(over) == 1 != step.ends {
				t.Fatalf("keys kept for %v: the stream has ended: %v", step.keep, len(over) == 1)
			}
		}
		if body := <-over; !strings.Contains(body, "retry: ") || strings.Contains(body, "event: go\n") {
			t.Errorf("the stream said %q", body)
		}
	})
}
