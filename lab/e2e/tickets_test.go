package e2e

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

func TestTamperedTicketIsANewVisitorAtTheBack(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	b := open(t)
	b.visit(g.url("/"))
	b.waits()
	reference := b.reference()
	newVisitor(t, g).wait()
	c := b.ticket(g.url("/"))
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 0x10
	do(b, network.SetCookie, network.SetCookieParams{Name: c.Name, Value: base64.RawURLEncoding.EncodeToString(raw), URL: g.url("/"), Path: c.Path})
	b.act(chromedp.Reload())
	b.waits()
	if got := b.reference(); got == reference {
		t.Errorf("the ticket with a flipped bit still has its place %s", got)
	}
	if got := b.text("#ahead"); got != "2" {
		t.Errorf("people ahead: %s, want 2: the tampered ticket's own place and the one behind it", got)
	}
	for _, r := range b.answers(g.url("/")) {
		if r.Status != http.StatusOK {
			t.Errorf("answered with %d", r.Status)
		}
	}
}

// Any change of a ticket, and any nonsense in its place, is answered as no ticket at all.
func TestForgedTicketsAreNobody(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	victim := newVisitor(t, g).wait()
	place := victim.place("/")
	good := victim.ticketValue()
	raw, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	forged := []string{"", "x", "null", strings.Repeat("A", 4000), good + "A", good + "=", good[:len(good)-1], "\"" + good + "\"",
		strings.NewReplacer("-", "+", "_", "/").Replace(good) + "==", good + "%3D"}
	for i := range raw {
		changed := append([]byte(nil), raw...)
		changed[i] ^= 1 << (i % 8)
		forged = append(forged, base64.RawURLEncoding.EncodeToString(changed))
	}
	for _, value := range forged {
		a := newVisitor(t, g).get("/?__anteroom=status", "Cookie", ticketCookie+"="+value)
		if a.StatusCode != http.StatusOK {
			t.Errorf("%.60q: %s", value, a.Status)
		}
		if text := a.text(t); strings.Contains(text, place.Ref) || strings.Contains(text, `"admitted":true`) {
			t.Errorf("%.60q was taken for a ticket: %s", value, text)
		}
	}
	if got := victim.place("/"); got.Ref != place.Ref || *got.Ahead != 0 {
		t.Errorf("the owner's place changed: %v", got)
	}
}

// T5: a queued ticket that was kept aside is worth nothing after it has been used to enter.
func TestBankedTicketJoinsAtTheBack(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	first := newVisitor(t, g).enter()
	v := newVisitor(t, g).wait()
	banked, reference := v.ticketValue(), v.place("/").Ref
	first.leave()
	eventually(t, 20*time.Second, func() string {
		if !v.get("/").admitted() {
			return "not let in"
		}
		return ""
	})
	honest := newVisitor(t, g).wait()
	v.leave()
	eventually(t, 20*time.Second, func() string {
		if !honest.get("/").admitted() {
			return "the next in line was not let in"
		}
		return ""
	})
	later := newVisitor(t, g).wait()
	again := newVisitor(t, g)
	again.hold(banked)
	if a := again.get("/"); a.admitted() || !strings.Contains(a.note(t), "already been used") {
		t.Errorf("the used ticket: %s, the page says %q", a.Status, a.note(t))
	}
	if p := again.place("/"); p.Ref == reference || p.Ahead == nil || *p.Ahead != 1 {
		t.Errorf("the used ticket's place is %v, want a new one behind %v", p, later.place("/"))
	}
}

// T6, T7: copies of a ticket are one visitor, and take one seat.
func TestClonedTicketIsOneSession(t *testing.T) {
	t.Parallel()
	g := startGate(t, strings.Replace(oneSeat, "total_active_users: 1", "total_active_users: 2", 1))
	first, second := newVisitor(t, g).enter(), newVisitor(t, g).enter()
	v := newVisitor(t, g).wait()
	clones := make([]*visitor, 10)
	for i := range clones {
		clones[i] = newVisitor(t, g)
		clones[i].hold(v.ticketValue())
	}
	first.leave()
	eventually(t, 20*time.Second, func() string {
		if !v.get("/").admitted() {
			return "not let in"
		}
		return ""
	})
	for _, c := range clones {
		c.get("/")
	}
	if got := g.room("shop"); got.Active != 2 {
		t.Errorf("%d active users, want 2: %+v", got.Active, got)
	}
	second.leave()
	if a := newVisitor(t, g).get("/"); !a.admitted() {
		t.Errorf("the copies took a second seat: %+v", g.room("shop"))
	}
}

// T14: a ticket tossed from a sibling domain does not push the visitor's own away.
func TestOfSeveralTicketsTheBestServes(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	newVisitor(t, g).enter()
	own := newVisitor(t, g).wait()
	tossed := newVisitor(t, g).wait()
	mine, theirs, want := own.ticketValue(), tossed.ticketValue(), own.place("/").Ref
	for _, cookies := range []string{
		ticketCookie + "=" + mine + "; " + ticketCookie + "=" + theirs,
		ticketCookie + "=" + theirs + "; " + ticketCookie + "=" + mine,
		ticketCookie + "=junk; " + ticketCookie + "=" + theirs + "; a=b; " + ticketCookie + "=" + mine,
	} {
		a := newVisitor(t, g).get("/?__anteroom=status", "Cookie", cookies)
		if text := a.text(t); !strings.Contains(text, `"ref":"`+want+`"`) {
			t.Errorf("the better place %s was not used: %s", want, text)
		}
	}
}

// T15: an answer that was on its way while another tab was let in overwrites the cookie.
func TestLateCookieDoesNotEndTheSession(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	first := newVisitor(t, g).enter()
	v := newVisitor(t, g).wait()
	late := v.ticketValue()
	first.leave()
	eventually(t, 20*time.Second, func() string {
		if !v.get("/").admitted() {
			return "not let in"
		}
		return ""
	})
	v.hold(late)
	for range 3 {
		if a := v.get("/"); !a.admitted() {
			t.Fatalf("the session was lost with the cookie: %s", a.Status)
		}
	}
}

func TestTooManyCookiesAreRefusedWithAHint(t *testing.T) {
	t.Parallel()
	g := startGate(t, oneSeat)
	many := strings.TrimSuffix(strings.Repeat("a=1; ", 3500), "; ")
	a := newVisitor(t, g).get("/", "Cookie", many)
	if a.StatusCode != http.StatusRequestHeaderFieldsTooLarge || !strings.Contains(string(a.body), "delete the cookies") {
		t.Errorf("3500 cookies: %s %s", a.Status, a.body)
	}
}
