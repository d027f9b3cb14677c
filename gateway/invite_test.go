package gateway

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/ticket/invite"
)

// presale is a room for invited visitors, with three seats, and with codes.
type presale struct {
	booth
	cfg    *Config
	codes  []string
	broken *error // of the store
}

// earlyCode is a good code, of an event that is not active.
const earlyCode = "0000-0000-0000-EARN"

func inPresale(t *testing.T, edit func(*anteroom.Room), f func(presale)) {
	var broken error
	early, _ := invite.Read(earlyCode)
	codes := map[invite.Hash]bool{}
	p := presale{broken: &broken, cfg: new(Config)}
	for range 4 {
		code := invite.NewCode()
		h, _ := invite.Read(code)
		codes[h], p.codes = true, append(p.codes, code)
	}
	inEmptyBooth(t, func(r *anteroom.Room) {
		r.InviteOnly, r.TotalActiveUsers = true, 3
		if edit != nil {
			edit(r)
		}
	}, func(b booth) {
		p.booth = b
		f(p)
	}, func(c *Config) {
		link := memlink.New()
		c.Redeem = func(ctx context.Context, r Redemption) (uint8, error) {
			switch {
			case broken != nil:
				return 0, broken
			case r.Code == early:
				return 0, anteroom.Errorf(anteroom.Conflict, "its event is not active")
			}
			err := anteroom.Errorf(anteroom.Denied, "no such code")
			if codes[r.Code] {
				err = invite.Spend(ctx, link, invite.Use{Key: "invites." + hex.EncodeToString(r.Code[:]), Most: 1, By: hex.EncodeToString(r.By[:]), Now: time.Now()})
			}
			if errors.Is(err, invite.ErrSpent) {
				return 0, anteroom.Errorf(anteroom.Denied, "it was used")
			}
			return 0, err
		}
		*p.cfg = *c
	})
}

// set changes the room.
func (p presale) set(edit func(*anteroom.Room)) {
	p.t.Helper()
	rm := p.cfg.Rooms[0]
	edit(&rm)
	if err := p.cfg.Node.Apply(p.t.Context(), []anteroom.Room{rm}); err != nil {
		p.t.Fatal(err)
	}
	put, ok := p.gw.PrepareRooms([]RoomChange{{Room: rm}})
	if !ok {
		p.t.Fatal("the change is refused")
	}
	put()
}

// enters posts a code on the page that asks for it, and keeps the cookie of the answer.
func (p presale) enters(g *guest, code string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/cart?id=5&__anteroom=invite", strings.NewReader(url.Values{"code": {code}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", g.cookie)
	if len(headers) == 0 {
		headers = []string{"Sec-Fetch-Site", "same-origin"}
	}
	header(headers...)(r)
	rec := httptest.NewRecorder()
	p.h.ServeHTTP(rec, r)
	if line := rec.Header().Get("Set-Cookie"); line != "" {
		g.cookie, _, _ = strings.Cut(line, ";")
	}
	return rec
}

// isIn reports whether a request reaches the shop.
func isIn(g *guest) bool { return g.get("/cart").Header().Get("X-Origin") == "shop" }

// asks reports whether an answer is the page that asks for a code.
func asks(rec *httptest.ResponseRecorder) bool {
	return rec.Code == http.StatusForbidden && strings.Contains(rec.Body.String(), `name="code"`) && rec.Header().Get("X-Origin") == ""
}

// A visitor without an invitation gets no seat, although all are free; one with a code joins the queue with it, once.
func TestInvitedVisitorsOnly(t *testing.T) {
	inPresale(t, nil, func(p presale) {
		ann, bob := p.guest(), p.guest()
		asked := ann.get("/cart?id=5&x=%3Cb")
		if !asks(asked) || !strings.Contains(asked.Body.String(), `<form method="post" action="?id=5&amp;x=%3Cb&amp;__anteroom=invite">`) || asked.Header().Get("Refresh") != "" ||
			strings.Contains(asked.Header().Get("Content-Security-Policy"), "form-action") { // redirects count for it, and the application may send one
			t.Fatalf("%d %v\n%s", asked.Code, asked.Header(), asked.Body)
		}
		for range 3 {
			p.pass(10 * time.Second)
			if !asks(ann.get("/cart")) {
				t.Fatal("a visitor without an invitation gets something else by waiting")
			}
		}
		if rec := p.enters(ann, "0000-0000-0000-0000"); !asks(rec) || !strings.Contains(rec.Body.String(), "not valid") || !strings.Contains(rec.Body.String(), `value="0000-0000-0000-0000"`) {
			t.Errorf("a wrong code: %d %s", rec.Code, rec.Body)
		}
		rec := p.enters(ann, " "+strings.ToLower(p.codes[0])+" ")
		if rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?id=5" {
			t.Fatalf("a good code: %d %v", rec.Code, rec.Header())
		}
		if !isIn(ann) {
			t.Error("an invited visitor waits although seats are free")
		}
		bob.get("/cart")
		if rec := p.enters(bob, p.codes[0]); !asks(rec) || isIn(bob) {
			t.Errorf("the code of another: %d", rec.Code)
		}
		if got := p.gw.Stats().Invites; got != [inviteResults]uint64{1, 2, 0, 0} {
			t.Errorf("accepted, refused, limited, failed: %v", got)
		}
	})
}

// Who presses the button twice, or loses the answer, has the same place, and nobody has another.
func TestACodeIsSpentOnce(t *testing.T) {
	inPresale(t, nil, func(p presale) {
		ann := p.guest()
		ann.get("/cart")
		again := *ann
		p.enters(ann, p.codes[0])
		p.enters(&again, p.codes[0])
		if !isIn(ann) || !isIn(&again) {
			t.Fatal("the visitor is not in")
		}
		if got := p.room.Status().ActiveUsers; got != 1 {
			t.Errorf("%d seats for one code", got)
		}
		p.pass(time.Minute)
		before := *ann
		before.cookie = again.cookie
		late := p.guest()
		late.get("/cart")
		if rec := p.enters(late, p.codes[0]); !asks(rec) {
			t.Errorf("later: %d", rec.Code)
		}
	})
}

// A spent invitation is worth nothing after the session: neither the ticket of the session nor the one from before it.
func TestAnInvitationIsForOneSession(t *testing.T) {
	inPresale(t, func(r *anteroom.Room) { r.SessionDuration, r.FirstSession = time.Minute, time.Minute }, func(p presale) {
		ann := p.guest()
		ann.get("/cart")
		p.enters(ann, p.codes[0])
		before := *ann
		if !isIn(ann) {
			t.Fatal("the visitor is not in")
		}
		const over = "Your session has ended."
		p.pass(2 * time.Minute)
		back := *ann
		if rec := back.get("/cart"); !asks(rec) || !strings.Contains(rec.Body.String(), over) || strings.Contains(rec.Body.String(), "You have a new place") {
			t.Errorf("the page does not say why it asks: %d %s", rec.Code, rec.Body)
		}
		if rec := p.guest().get("/cart"); !asks(rec) || strings.Contains(rec.Body.String(), over) {
			t.Errorf("a visitor who is new hears of a session: %d %s", rec.Code, rec.Body)
		}
		for _, wait := range []time.Duration{0, time.Minute, 10 * time.Minute, time.Hour} {
			p.pass(wait)
			for name, g := range map[string]*guest{"of the session": ann, "from before": &before} {
				copied := *g
				if rec := copied.get("/cart"); !asks(rec) {
					t.Errorf("%v later the ticket %s: %d", wait, name, rec.Code)
				}
			}
		}
	})
}

// A code is taken only from the page's form, and only from a browser that keeps the ticket.
func TestCodesAreNotLost(t *testing.T) {
	inPresale(t, nil, func(p presale) {
		ann := p.guest()
		link := "/cart?__anteroom=invite." + p.codes[0]
		if rec := ann.get(link); !asks(rec) || !strings.Contains(rec.Body.String(), `value="`+p.codes[0]+`"`) || ann.cookie == "" {
			t.Errorf("the link: %d, cookie %q", rec.Code, ann.cookie)
		}
		if rec := p.guest().get(`/cart?__anteroom=invite.%22%3E%3Cscript`); !asks(rec) || !strings.Contains(rec.Body.String(), `value=""`) {
			t.Errorf("a link with something else: %s", rec.Body)
		}
		for _, foreign := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}, {"X-Nothing", "x"}} {
			if rec := p.enters(ann, p.codes[0], foreign...); rec.Code != http.StatusForbidden || asks(rec) {
				t.Errorf("%q: %d", foreign, rec.Code)
			}
		}
		if rec := p.enters(p.guest(), p.codes[0]); !asks(rec) || !strings.Contains(rec.Body.String(), "allow cookies") {
			t.Errorf("a browser without cookies: %d %s", rec.Code, rec.Body)
		}
		// One that has kept the page open for longer than its cookie gets another.
		late := p.guest()
		if p.enters(late, p.codes[2]); late.cookie == "" {
			t.Error("the answer has no cookie")
		}
		if rec := p.enters(late, p.codes[2]); rec.Code != http.StatusSeeOther {
			t.Errorf("at the second press: %d %s", rec.Code, rec.Body)
		}
		*p.broken = errors.New("no majority")
		if rec := p.enters(ann, p.codes[0]); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") != "60" {
			t.Errorf("a store that does not answer: %d", rec.Code)
		}
		*p.broken = nil
		if p.enters(ann, p.codes[0]); !isIn(ann) {
			t.Error("the code was lost")
		}
		// Who is in, or invited, spends no other.
		if rec := p.enters(ann, p.codes[1]); rec.Code != http.StatusSeeOther {
			t.Errorf("a second code: %d", rec.Code)
		}
		bob := p.guest()
		bob.get("/cart")
		if p.enters(bob, p.codes[1]); !isIn(bob) {
			t.Error("the second code was spent by one who needed none")
		}
	})
}

// Ten wrong codes from an address, then five per minute; good ones count as nothing.
func TestGuessesOfCodesAreBounded(t *testing.T) {
	inPresale(t, func(r *anteroom.Room) { r.TotalActiveUsers = 10 }, func(p presale) {
		enter := func(code string) int {
			g := p.guest()
			g.get("/cart")
			return p.enters(g, code).Code
		}
		for i := range inviteTries {
			if got := enter("0000-0000-0000-000" + string(rune('0'+i))); got != http.StatusForbidden {
				t.Fatalf("try %d: %d", i, got)
			}
		}
		if got := enter(p.codes[0]); got != http.StatusTooManyRequests {
			t.Errorf("after them: %d", got)
		}
		p.pass(13 * time.Second)
		for i, code := range p.codes {
			if got := enter(code); got != http.StatusSeeOther {
				t.Errorf("good code %d: %d", i, got)
			}
		}
		for range 2 * inviteTries {
			if got := enter(earlyCode); got != http.StatusForbidden {
				t.Errorf("a code of another event: %d", got)
			}
		}
		if got := enter("x"); got != http.StatusForbidden {
			t.Errorf("one more: %d", got)
		}
		if got := enter("x"); got != http.StatusTooManyRequests {
			t.Errorf("and another: %d", got)
		}
	})
}

// An event begins that only invited visitors may join: who has a session stays, who waits is asked for a code, and after the event the
// queue is as before it.
func TestAPresaleIsAnEvent(t *testing.T) {
	yes := true
	inPresale(t, func(r *anteroom.Room) {
		r.InviteOnly, r.TotalActiveUsers = false, 2
		at := time.Now()
		r.Events = []anteroom.Event{{ID: "00000000000000000000000000000001", Name: "presale", Start: anteroom.StampOf(at.Add(time.Minute)), End: anteroom.StampOf(at.Add(4 * time.Minute)), Overrides: anteroom.Overrides{InviteOnly: &yes}}}
	}, func(p presale) {
		inside, ann, bob := p.guest(), p.guest(), p.guest()
		if !isIn(inside) || !isIn(p.guest()) {
			t.Fatal("the first visitors wait")
		}
		ann.get("/cart")
		if rec := p.enters(ann, p.codes[0]); rec.Code != http.StatusSeeOther || p.gw.Stats().Invites != [inviteResults]uint64{} {
			t.Errorf("a code before the event: %d", rec.Code)
		}
		for range 7 {
			p.pass(10 * time.Second)
			ann.get("/cart")
		}
		if !asks(ann.get("/cart")) || !strings.Contains(ann.get("/cart?__anteroom=status.0").Body.String(), `"admitted":true`) {
			t.Error("who waits is not asked for a code, or the page does not go there")
		}
		if !isIn(inside) {
			t.Error("a session has ended with the start of the presale")
		}
		bob.get("/cart")
		if rec := p.enters(bob, p.codes[1]); rec.Code != http.StatusSeeOther {
			t.Fatalf("a code in the event: %d", rec.Code)
		}
		if rec := bob.get("/cart"); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "You are in line") {
			t.Errorf("an invited visitor without a free seat: %d %.300s", rec.Code, rec.Body)
		}
		for range 13 {
			p.pass(15 * time.Second)
			ann.get("/cart")
			bob.get("/cart")
		}
		if rec := ann.get("/cart"); asks(rec) || !strings.Contains(rec.Body.String(), "You are in line") {
			t.Errorf("after the event: %d %.300s", rec.Code, rec.Body)
		}
	})
}

// While nobody may join the queue, codes are not spent.
func TestCodesOutliveADrain(t *testing.T) {
	for name, edit := range map[string]func(*anteroom.Room){
		"drained":     func(r *anteroom.Room) { r.Controls.Draining = true },
		"sold out":    func(r *anteroom.Room) { r.Controls.Remaining = anteroom.Remaining{Told: true} },
		"reject":      func(r *anteroom.Room) { r.QueueingMethod = anteroom.Reject },
		"suspended":   func(r *anteroom.Room) { r.Suspended = true },
		"passthrough": func(r *anteroom.Room) { r.QueueingMethod = anteroom.Passthrough },
	} {
		t.Run(name, func(t *testing.T) {
			inPresale(t, nil, func(p presale) {
				ann := p.guest()
				ann.get("/cart")
				was := ann.cookie
				p.set(edit)
				open := name == "suspended" || name == "passthrough"
				rec := p.enters(ann, p.codes[0])
				if open != (rec.Code == http.StatusSeeOther) || p.gw.Stats().Invites != [inviteResults]uint64{} || ann.cookie != was {
					t.Errorf("%d, %v", rec.Code, p.gw.Stats().Invites)
				}
				if got := isIn(ann); got != open {
					t.Errorf("in the shop: %v", got)
				}
			})
		})
	}
}

// A decision without a ticket says nothing of invitations: its visitor gets the waiting page, which comes back.
func TestAnAnswerWithoutATicketAsksForNoCode(t *testing.T) {
	r := room{Room: &anteroom.Room{}, invited: true}
	d := anteroom.Decision{Verdict: anteroom.Wait, Ticket: anteroom.Ticket{ID: anteroom.ID{1}}, InForce: &anteroom.InForce{Settings: anteroom.Settings{InviteOnly: true}}}
	if !r.isUninvited(&d) {
		t.Error("a ticket for no invitation")
	}
	d.Ticket = anteroom.Ticket{}
	if r.isUninvited(&d) {
		t.Error("no ticket")
	}
}

// A program gets a status instead of the page.
func TestUninvitedPrograms(t *testing.T) {
	inPresale(t, func(r *anteroom.Room) { r.JSONResponse = true }, func(p presale) {
		for name, c := range map[string]struct {
			headers []string
			status  int
			kind    string
		}{
			"an app":   {[]string{"Accept", "application/json"}, http.StatusForbidden, "application/json"},
			"a script": {[]string{"Sec-Fetch-Dest", "script"}, http.StatusTooManyRequests, "text/plain"},
		} {
			r := httptest.NewRequest("GET", "/cart", nil)
			header(c.headers...)(r)
			rec := httptest.NewRecorder()
			p.h.ServeHTTP(rec, r)
			if rec.Code != c.status || !strings.HasPrefix(rec.Header().Get("Content-Type"), c.kind) {
				t.Errorf("%s: %d %v", name, rec.Code, rec.Header())
			}
		}
	})
}
