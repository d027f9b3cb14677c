package gateway

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
)

// listening is a door that notes what it is asked.
type listening struct {
	door
	mu     sync.Mutex
	visits []anteroom.Visit
}

func (l *listening) note(v anteroom.Visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.visits = append(l.visits, v)
}

func (l *listening) Decide(ctx context.Context, v anteroom.Visit) anteroom.Decision {
	l.note(v)
	return l.door.Decide(ctx, v)
}

func (l *listening) Watch(ctx context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
	l.note(v)
	return l.door.Watch(ctx, v)
}

// last returns the lane of the last visit, and forgets all.
func (l *listening) last(t *testing.T) uint8 {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.visits) == 0 {
		t.Fatal("nobody asked the door")
	}
	v := l.visits[len(l.visits)-1]
	l.visits = nil
	return v.Lane
}

// listen puts a listening door before the room.
func (b booth) listen() *listening {
	rm := b.gw.live.Load().rooms[0]
	l := &listening{door: rm.door}
	rm.door = l
	return l
}

// laned gives the room lanes.
func laned(lanes ...anteroom.Lane) (edit func(*anteroom.Room), more func(*Config)) {
	return func(r *anteroom.Room) { r.Lanes = lanes }, func(c *Config) {
		set, err := rules.NewLanes(lanes, nil)
		if err != nil {
			panic(err)
		}
		c.Lanes = map[anteroom.RoomID]*rules.Lanes{c.Rooms[0].ID: set}
	}
}

// Requests that meet the expression of a lane entitle to it, whoever joins or waits: the page's own questions too, as the request without
// them. Nobody looks at requests of sessions, and at those that take no place.
func TestLaneByExpression(t *testing.T) {
	edit, more := laned(anteroom.Lane{Name: "gold", Priority: 80, Expression: `http.cookie contains "gold"`}, anteroom.Lane{Name: "vip", Priority: 90, Expression: `http.request.uri eq "/vip?a=1"`},
		anteroom.Lane{Name: "any", Priority: 7, Expression: `http.request.uri.path ne "/ordinary"`}, anteroom.Lane{Name: "codes", Priority: 100})
	inEmptyBooth(t, edit, func(b booth) {
		door, first := b.listen(), b.guest()
		if !isIn(first) || door.last(t) != 7 {
			t.Fatal("the first visitor is not in, by the lane of a newcomer")
		}
		if !isIn(first) || door.last(t) != 0 {
			t.Error("a lane is looked up for a session")
		}
		g := b.guest()
		for _, c := range []struct {
			target string
			gold   bool
			want   uint8
		}{
			{"/ordinary", false, 0}, {"/cart", false, 7}, {"/vip?a=1", false, 90}, {"/vip?a=1", true, 90}, {"/ordinary", true, 80},
			{"/vip?a=1&__anteroom=status", false, 90}, {"/vip?a=1&__anteroom=hold", false, 90}, {"/vip?__anteroom=status&a=1", false, 90},
			{"/ordinary?__anteroom=status", false, 0}, {"/%76ip/..//ordinary", false, 0}, {"/vip/..;/vip?a=1", false, 7},
		} {
			r := httptest.NewRequest("GET", c.target, nil)
			r.Header.Set("Cookie", g.cookie)
			if c.gold {
				r.Header.Set("Cookie", g.cookie+"; gold=1")
			}
			rec := httptest.NewRecorder()
			b.h.ServeHTTP(rec, r)
			if g.cookie == "" {
				g.cookie = rec.Header().Get("Set-Cookie")
			}
			if got := door.last(t); got != c.want {
				t.Errorf("%s: lane %d, not %d", c.target, got, c.want)
			}
		}
		for _, headers := range [][]string{{"Sec-Fetch-Dest", "image"}, {"Sec-Purpose", "prefetch"}} {
			r := httptest.NewRequest("GET", "/vip?a=1", nil)
			header(headers...)(r)
			b.h.ServeHTTP(httptest.NewRecorder(), r)
			if got := door.last(t); got != 0 {
				t.Errorf("%v: lane %d", headers, got)
			}
		}
		b.pass(7 * time.Hour) // the session is over, and the visitor is a newcomer
		first.get("/cart")
		if got := door.last(t); got != 7 {
			t.Errorf("a visitor whose session is over: lane %d", got)
		}
	}, more)
}

// A path that has several readings is in a lane if all of them are, as with rules; and it is read once for both.
func TestLanesBesideRules(t *testing.T) {
	edit, more := laned(anteroom.Lane{Name: "vip", Priority: 90, Expression: `starts_with(http.request.uri.path, "/vip")`})
	inEmptyBooth(t, edit, func(b booth) {
		door := b.listen()
		for target, want := range map[string]uint8{"/vip/a": 90, "/vip/..%2fa": 0, "/a": 0} {
			b.guest().get(target)
			if got := door.last(t); got != want {
				t.Errorf("%s: lane %d, not %d", target, got, want)
			}
		}
	}, more, ruled(t, `http.request.uri.path eq "/health"`))
}

// The lane that a verified token names is the visitor's, whatever way it names it; that of a token which is not good, or not any more, is
// none. The better of claim and expression counts.
func TestLaneByClaim(t *testing.T) {
	lanes := []anteroom.Lane{{Name: "gold", Priority: 80, Claim: "gold"}, {Name: "silver", Priority: 40, Claim: "silver"}, {Name: "post", Priority: 60, Expression: `http.request.uri.path eq "/post"`}}
	inMembers(t, func(r *anteroom.Room) { r.Lanes, r.AccountLaneClaim = lanes, "tier" }, func(m members) {
		set, err := rules.NewLanes(lanes, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.gw.live.Load().rooms[0].lanes = set
		if !m.device(loginOf(t, "first")).isIn() {
			t.Fatal("nobody is in")
		}
		door := m.listen()
		ann := m.device(loginOf(t, "ann"))
		ann.get("/cart")
		if got := door.last(t); got != 0 {
			t.Errorf("no claim: %d", got)
		}
		soon := time.Now().Add(time.Hour).Unix()
		for _, c := range []struct {
			what, target string
			claims       []any
			want         uint8
		}{
			{"a text", "/cart", []any{"tier", "silver"}, 40},
			{"a list", "/cart", []any{"tier", []string{"a", "gold"}}, 80},
			{"an unknown one", "/cart", []any{"tier", "platinum"}, 0},
			{"claim and a higher expression", "/post", []any{"tier", "silver"}, 60},
			{"claim and a lower expression", "/post", []any{"tier", "gold"}, 80},
			{"status", "/cart?__anteroom=status", []any{"tier", "gold", "exp", soon}, 80},
			{"expired", "/cart?__anteroom=status", []any{"tier", "gold", "exp", time.Now().Add(-time.Hour).Unix()}, 0},
		} {
			ann.token = loginOf(t, "ann", c.claims...)
			ann.get(c.target)
			if got := door.last(t); got != c.want {
				t.Errorf("%s: lane %d, not %d", c.what, got, c.want)
			}
		}
		m.set(func(r *anteroom.Room) {
			r.Lanes = []anteroom.Lane{{Name: "gold", Priority: 30, Claim: "gold"}}
			*r = r.WithDefaults()
		})
		door = m.listen()
		ann.token = loginOf(t, "ann", "tier", "gold")
		ann.get("/cart")
		if got := door.last(t); got != 30 {
			t.Errorf("after a change of the lanes: lane %d", got)
		}
		for what, claims := range map[string][]any{"of another audience": {"aud", "forum"}, "of another issuer": {"iss", "https://evil.example"}} {
			eve := m.device(loginOf(t, "eve", append(claims, "tier", "gold")...))
			if rec := eve.get("/cart"); !isUnknown(rec) || len(door.visits) > 0 {
				t.Errorf("a token %s: %d, %d visits", what, rec.Code, len(door.visits))
			}
		}
	})
}
