package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket/pass"
)

// toyRoom is an edge with a room behind it that admits everybody: it tells a request that a room decided about by the ticket in
// the answer. Each fault makes it one of the installations that doctor is for.
type toyRoom struct {
	keys     *pass.Keys
	issuer   *pass.Issuer
	verifier *pass.Verifier
	now      time.Time
	tickets  int
	asked    int

	open, cached, public, trusting, blind, anything, unverified, waits bool
}

func newToyRoom(t *testing.T) *toyRoom {
	keys, err := pass.NewKeys(pass.Key{ID: "one", Seed: pass.Seed{1}})
	if err != nil {
		t.Fatal(err)
	}
	const room = anteroom.RoomID("0123456789abcdef0123456789abcdef")
	issuer, err := keys.Issuer("", "shop.example.com", room, "")
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := pass.NewVerifier(keys.JWKS(), pass.Want{Audience: "shop.example.com", Room: room})
	if err != nil {
		t.Fatal(err)
	}
	return &toyRoom{keys: keys, issuer: issuer, verifier: verifier, now: time.Unix(1_772_438_400, 0)}
}

func (r *toyRoom) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.asked++
	_, err := r.verifier.Cookies(q.Header["Cookie"], pass.Cookie, r.now)
	claimed := strings.HasPrefix(q.Header.Get("Cookie"), pass.Cookie+"=")
	switch {
	case strings.HasPrefix(q.URL.Path, "/.well-known/") && r.blind:
		http.NotFound(w, q)
	case strings.HasSuffix(q.URL.Path, "jwks.json"):
		w.Write(r.keys.JWKS())
	case strings.HasSuffix(q.URL.Path, "pass.pem"):
		w.Write(r.keys.PEM())
	case r.open, r.trusting && q.Header.Get("X-Anteroom-Verdict") == "admit", r.anything && claimed, err == nil && !r.unverified:
		io.WriteString(w, "the shop")
	default:
		if r.tickets++; r.cached {
			r.tickets = 1
		}
		w.Header().Set("Cache-Control", "private, no-store")
		if r.public {
			w.Header().Set("Cache-Control", "max-age=60")
		}
		w.Header().Add("Set-Cookie", fmt.Sprintf("__cfwaitingroom=%d; Path=/", r.tickets))
		if strings.HasPrefix(q.Header.Get("Cookie"), "__cfwaitingroom=") && !r.waits {
			token, err := r.issuer.Issue("session", r.now, 30*time.Second)
			if err != nil {
				panic(err)
			}
			w.Header().Add("Set-Cookie", pass.Cookie+"="+token)
		}
		io.WriteString(w, "through Anteroom")
	}
}

// lookAt examines an edge, and an application beside it if there is one.
func lookAt(t *testing.T, r *toyRoom, application string) string {
	t.Helper()
	s := httptest.NewServer(r)
	defer s.Close()
	at, err := url.Parse(s.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	o := outside{url: at, cookie: "__cfwaitingroom", wait: true, transport: &http.Transport{DisableKeepAlives: true}, now: func() time.Time { return r.now },
		sleep: func(_ context.Context, d time.Duration) bool {
			r.now = r.now.Add(d)
			return true
		}}
	if application != "" {
		if o.origin, err = url.Parse(application); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.asked > maxAsked {
		t.Errorf("%d requests", r.asked)
	}
	var text bytes.Buffer
	if err := showOutside(&text, o.checks); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// Doctor looks at installations from outside: a good one, and one for each fault.
func TestDoctorLooksFromOutside(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(*toyRoom)
		want  []string // of these, the first is a line's beginning
		bad   int      // errors
	}{
		"a good edge": {func(*toyRoom) {}, []string{"ok       a room is in front", "ok       answers with tickets are not cached", "ok       forged headers", "ok       the paths below",
			"bad passes: another signature", "bad passes: an hour added", "bad passes: alg none", "bad passes: HS256", "bad passes: two cookies", "bad passes: an expired one"}, 0},
		"no room":                {func(r *toyRoom) { r.open = true }, []string{"error    no room is in front"}, 1},
		"a cache":                {func(r *toyRoom) { r.cached = true }, []string{"error    a cache answers for the room"}, 1},
		"an answer for everyone": {func(r *toyRoom) { r.public = true }, []string{`warning  an answer with a ticket may be cached: Cache-Control is "max-age=60"`}, 0},
		"trust in visitors":      {func(r *toyRoom) { r.trusting = true }, []string{"error    a visitor with forged headers bypasses the room"}, 1},
		"paths that are lost":    {func(r *toyRoom) { r.blind = true }, []string{"warning  /.well-known/anteroom/jwks.json answers 404"}, 0},
		"any pass":               {func(r *toyRoom) { r.anything = true }, []string{"error    the edge accepts bad passes: another signature", "accepts bad passes: alg none", "accepts bad passes: an expired one"}, 6},
		"no verification":        {func(r *toyRoom) { r.unverified = true }, []string{"warning  the edge does not verify passes"}, 0},
		"a full room":            {func(r *toyRoom) { r.waits = true }, []string{"unknown  whether the edge verifies passes"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newToyRoom(t)
			c.fault(r)
			got := lookAt(t, r, "")
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
			if n := strings.Count("\n"+got, "\nerror "); n != c.bad {
				t.Errorf("%d errors, want %d:\n%s", n, c.bad, got)
			}
		})
	}
}

// The application beside the room must not answer.
func TestDoctorFindsTheApplicationBesideTheRoom(t *testing.T) {
	status := http.StatusOK
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer app.Close()
	if got := lookAt(t, newToyRoom(t), app.URL); !strings.Contains(got, "error    visitors can bypass the room") {
		t.Error(got)
	}
	status = http.StatusForbidden
	if got := lookAt(t, newToyRoom(t), app.URL); !strings.Contains(got, "ok       the application refuses visitors who bypass the room") {
		t.Error(got)
	}
	app.Close()
	if got := lookAt(t, newToyRoom(t), app.URL); !strings.Contains(got, "ok       visitors cannot bypass the room") {
		t.Error(got)
	}
}

// The command says what it found by its exit code.
func TestDoctorFromOutsideExits(t *testing.T) {
	r := newToyRoom(t)
	r.open = true
	s := httptest.NewServer(r)
	defer s.Close()
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"doctor", "--url", s.URL}, exitFailed},
		{[]string{"doctor", "--url", "shop.example.com"}, exitUsage},
		{[]string{"doctor", "--url", s.URL, "--origin", "ftp://x"}, exitUsage},
		{[]string{"doctor", "--wait"}, exitUsage},
		{[]string{"doctor", "--url", "http://127.0.0.1:1"}, exitFailed},
	} {
		if code := run(c.args); code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.args, code, c.code)
		}
	}
	r.open, r.now = false, time.Now()
	if code := run([]string{"doctor", "--url", s.URL}); code != exitOK {
		t.Errorf("a good installation: exit code %d", code)
	}
}
