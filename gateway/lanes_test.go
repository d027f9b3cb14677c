package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/invite"
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
	if testing.Short() {
		t.Skip("long")
	}
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

// A visitor who waits enters a code for a lane and rises to it, with the same ticket; the code is spent once, and not at all by those whom
// it does not raise.
func TestLaneByCode(t *testing.T) {
	lanes := []anteroom.Lane{{Name: "gold", Priority: 80}, {Name: "silver", Priority: 40}, {Name: "everyone"}}
	uses := map[string]int{}
	gold, silver := invite.NewCode(), invite.NewCode()
	redeem := func(_ context.Context, r Redemption) (uint8, error) {
		for code, lane := range map[string]uint8{gold: 80, silver: 40} {
			if h, _ := invite.Read(code); h != r.Code {
				continue
			}
			if !r.Placed || lane > r.Lane {
				uses[code]++
			}
			return lane, nil
		}
		return 0, anteroom.Errorf(anteroom.Denied, "no such code")
	}
	inEmptyBooth(t, func(r *anteroom.Room) { r.Lanes = lanes }, func(b booth) {
		p, first := presale{booth: b}, b.guest()
		if !isIn(first) {
			t.Fatal("nobody is in")
		}
		door, g := b.listen(), b.guest()
		g.get("/cart")
		before := b.ticketOf(g)
		page := g.get("/cart?id=5&__anteroom=invite." + gold)
		if text := page.Body.String(); page.Code != 200 || !strings.Contains(text, `action="?id=5&amp;__anteroom=invite"`) || !strings.Contains(text, `value="`+gold+`"`) || !strings.Contains(text, `<a href="?id=5">`) ||
			strings.Contains(text, "By invitation only") || len(uses) > 0 {
			t.Errorf("the page with a link's code: %d, %v\n%s", page.Code, uses, text)
		}
		if rec := p.enters(g, "0000-0000-0000-0000"); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "not valid") {
			t.Errorf("a wrong code: %d", rec.Code)
		}
		if rec := p.enters(g, silver, "Sec-Fetch-Site", "cross-site"); rec.Code != http.StatusForbidden || len(uses) > 0 {
			t.Errorf("from another site: %d", rec.Code)
		}
		door.visits = nil
		for _, c := range []struct {
			code string
			lane uint8
			uses int
		}{{silver, 40, 1}, {silver, 40, 1}, {gold, 80, 1}, {silver, 80, 1}} {
			rec := p.enters(g, c.code)
			after := b.ticketOf(g)
			if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?id=5" || after.Lane != c.lane || after.ID != before.ID || after.Arrival != before.Arrival || uses[c.code] != c.uses {
				t.Errorf("%s: %d %v, %+v, used %v", c.code, rec.Code, rec.Header(), after, uses)
			}
			if got := door.last(t); got != 40 && got != 80 {
				t.Errorf("the door is told of lane %d", got)
			}
		}
		// A site out of reach does not know of the code that was spent: the ticket does.
		rm := b.gw.live.Load().rooms[0]
		rm.door = forgetting{rm.door}
		p.enters(g, gold)
		if rm.door = door; b.ticketOf(g).Lane != 80 {
			t.Errorf("the code is lost: %+v", b.ticketOf(g))
		}
		fresh := b.guest()
		if rec := p.enters(fresh, gold); rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "cookies") || uses[gold] != 1 {
			t.Errorf("a visitor without a ticket: %d, used %v", rec.Code, uses)
		}
		if rec := p.enters(first, gold); rec.Code != http.StatusSeeOther || uses[gold] != 1 {
			t.Errorf("an active user: %d, used %v", rec.Code, uses)
		}
		if rec := first.get("/cart?__anteroom=invite"); rec.Code != http.StatusSeeOther {
			t.Errorf("the page for an active user: %d", rec.Code)
		}
		if got := b.gw.Stats().Invites; got != [inviteResults]uint64{5, 1, 0, 0} {
			t.Errorf("accepted, refused, limited, failed: %v", got)
		}
		for range inviteTries {
			p.enters(g, "0000-0000-0000-0000")
		}
		if rec := p.enters(g, gold); rec.Code != http.StatusTooManyRequests {
			t.Errorf("after many wrong codes: %d", rec.Code)
		}
	}, func(c *Config) { c.Redeem = redeem })
}

// In a room without lanes, a code is nothing to a visitor who waits; in one for invited visitors only, a code with a lane does both.
func TestCodesOfOtherRooms(t *testing.T) {
	code, uses := invite.NewCode(), 0
	redeem := func(_ context.Context, r Redemption) (uint8, error) {
		if !r.Placed || r.Lane < 80 {
			uses++
		}
		return 80, nil
	}
	inEmptyBooth(t, nil, func(b booth) {
		p, g := presale{booth: b}, b.guest()
		isIn(b.guest())
		g.get("/cart")
		if rec := p.enters(g, code); rec.Code != http.StatusSeeOther || uses != 0 || g.get("/cart?__anteroom=invite").Code != http.StatusSeeOther {
			t.Errorf("without lanes: %d, %d used", rec.Code, uses)
		}
	}, func(c *Config) { c.Redeem = redeem })
	inEmptyBooth(t, func(r *anteroom.Room) {
		r.InviteOnly, r.Lanes = true, []anteroom.Lane{{Name: "gold", Priority: 80}}
	}, func(b booth) {
		p, g := presale{booth: b}, b.guest()
		if !asks(g.get("/cart")) {
			t.Fatal("a visitor without an invitation is not asked")
		}
		if rec := g.get("/cart?__anteroom=invite"); !asks(rec) || !strings.Contains(rec.Body.String(), "By invitation only") {
			t.Errorf("a visitor without an invitation is taken for one in line: %d", rec.Code)
		}
		before := b.ticketOf(g)
		if rec := p.enters(g, code); rec.Code != http.StatusSeeOther || uses != 1 {
			t.Errorf("%d, %d used", rec.Code, uses)
		}
		if after := b.ticketOf(g); after.Lane != 80 || after.ID == before.ID {
			t.Errorf("%+v", after)
		}
		if !isIn(g) {
			t.Error("an invited visitor waits although a seat is free")
		}
		h := b.guest()
		h.get("/cart")
		p.enters(h, code)
		if rec := h.get("/cart"); rec.Code != http.StatusOK || uses != 2 {
			t.Fatalf("an invited visitor does not wait for the one seat: %d, %d used", rec.Code, uses)
		}
		if rec := h.get("/cart?__anteroom=invite"); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), `name="code"`) {
			t.Errorf("the page for another lane: %d", rec.Code)
		}
		if rec := p.enters(h, code); rec.Code != http.StatusSeeOther || uses != 2 || b.ticketOf(h).Lane != 80 {
			t.Errorf("the same again: %d, %d used", rec.Code, uses)
		}
	}, func(c *Config) { c.Redeem = redeem })
}

// ticketOf is the ticket in a visitor's cookie.
func (b booth) ticketOf(g *guest) anteroom.Ticket {
	b.t.Helper()
	_, value, _ := strings.Cut(g.cookie, "=")
	t, result := b.gw.live.Load().rooms[0].sealer.Open(value)
	if result != ticket.OK {
		b.t.Fatalf("%q: %v", g.cookie, result)
	}
	return t
}

// The page, its status and the JSON say the lane; and the page leads to the field for codes while there are some.
func TestPagesSayTheLane(t *testing.T) {
	edit, more := laned(anteroom.Lane{Name: "gold", Priority: 80, Expression: `http.cookie contains "gold"`}, anteroom.Lane{Name: "every-one"})
	codes := false
	inEmptyBooth(t, func(r *anteroom.Room) { edit(r); r.JSONResponse = true }, func(b booth) {
		isIn(b.guest())
		rm := b.gw.live.Load().rooms[0]
		g := b.guest()
		get := func(target string, gold bool, headers ...string) string {
			r := httptest.NewRequest("GET", target, nil)
			header(headers...)(r)
			r.Header.Set("Cookie", g.cookie)
			if gold {
				r.Header.Set("Cookie", g.cookie+"; gold=1")
			}
			rec := httptest.NewRecorder()
			b.h.ServeHTTP(rec, r)
			for _, line := range rec.Header()["Set-Cookie"] {
				g.cookie, _, _ = strings.Cut(line, ";")
			}
			return rec.Body.String()
		}
		const link = `<a href="?__anteroom=invite"`
		if page := get("/cart", false); !strings.Contains(page, `<b id="lane" dir="auto">every-one</b>`) || strings.Contains(page, link) {
			t.Errorf("the lane of all others:\n%s", page)
		}
		codes = true
		if page := get("/cart", true); !strings.Contains(page, `<b id="lane" dir="auto">gold</b>`) || !strings.Contains(page, link) {
			t.Errorf("a lane, with codes:\n%s", page)
		}
		if status := get("/cart?__anteroom=status", false); !strings.Contains(status, `,"lane":"gold"`) {
			t.Errorf("status: %s", status)
		}
		if object := get("/cart", false, "Accept", "application/json"); !strings.HasSuffix(object, `,"infiniteQueue":false,"lane":"gold"}}`) {
			t.Errorf("JSON: %s", object)
		}
		here := anteroom.Ticket{ID: anteroom.ID{1}, Lane: 80}
		rec := httptest.NewRecorder()
		live := &stream{g: b.gw, room: rm, eventWriter: eventWriter{w: rec, rc: http.NewResponseController(rec), within: time.Second}}
		if live.event(&anteroom.Decision{Ticket: here}); !strings.Contains(rec.Body.String(), `,"lane":"gold"`) {
			t.Errorf("the stream: %s", rec.Body)
		}
		ill := anteroom.Decision{Ticket: here, Reason: anteroom.ReasonOrigin} // the origin does not answer an active user
		if ill.Ticket.AcceptedAt = 1; !rm.risesByCode(&anteroom.Decision{Ticket: here}) || rm.risesByCode(&ill) {
			t.Error("a code is for those who wait, and for nobody else")
		}
		rm.Lanes = rm.Lanes[1:]
		if page := get("/cart", false); strings.Contains(page, `id="lane"`) || strings.Contains(page, link) {
			t.Errorf("the lane is gone:\n%s", page)
		}
		back := rm.laneShown(&anteroom.Decision{Ticket: anteroom.Ticket{ID: anteroom.ID{1}, Lane: anteroom.LaneBack}})
		if in := rm.laneShown(&anteroom.Decision{Verdict: anteroom.Admit, Ticket: anteroom.Ticket{ID: anteroom.ID{1}}}); in+back != "" {
			t.Errorf("an active user, and one who comes back: %q %q", in, back)
		}
	}, more, func(c *Config) { c.LaneCodes = func(anteroom.RoomID) bool { return codes } })
}

// An account rises by a code as well, with its ticket.
func TestAnAccountRisesByCode(t *testing.T) {
	code, placed := invite.NewCode(), 0
	inMembers(t, func(r *anteroom.Room) { r.Lanes = []anteroom.Lane{{Name: "gold", Priority: 80}} }, func(m members) {
		m.gw.live.Load().Redeem = func(_ context.Context, r Redemption) (uint8, error) {
			if r.Placed && r.Lane == 0 {
				placed++
			}
			return 80, nil
		}
		if !m.device(loginOf(t, "first")).isIn() {
			t.Fatal("nobody is in")
		}
		ann := m.device(loginOf(t, "ann"))
		ann.get("/cart")
		before := m.ticketOf(ann.guest)
		rec := m.enters(ann.guest, code, "Sec-Fetch-Site", "same-origin", "Authorization", "Bearer "+ann.token)
		if after := m.ticketOf(ann.guest); rec.Code != http.StatusSeeOther || after.ID != before.ID || after.Lane != 80 || placed != 1 {
			t.Errorf("%d, %d, %+v", rec.Code, placed, after)
		}
		if rec := ann.get("/cart"); !strings.Contains(rec.Body.String(), `<b id="lane" dir="auto">gold</b>`) {
			t.Errorf("the page: %d", rec.Code)
		}
	})
}

// forgetting is a door that knows of no lanes.
type forgetting struct{ door }

func (f forgetting) Decide(ctx context.Context, v anteroom.Visit) anteroom.Decision {
	d := f.door.Decide(ctx, v)
	d.Ticket.Lane = 0
	return d
}
