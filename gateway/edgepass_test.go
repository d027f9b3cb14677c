package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/pass"
	"github.com/anteroom/anteroom/ticket/proof"
)

// passing is a room with passes of half a minute.
func passing(more ...func(*anteroom.Room)) option {
	return withRoom(func(r *anteroom.Room) {
		r.Pass = 30 * time.Second
		for _, change := range more {
			change(r)
		}
	})
}

// passOf returns the pass that an answer sets, and the whole line; empty without one.
func passOf(res *http.Response) (token, line string) {
	for _, c := range res.Header["Set-Cookie"] {
		if rest, ok := strings.CutPrefix(c, pass.Cookie); ok {
			token, _, _ = strings.Cut(rest[strings.IndexByte(rest, '=')+1:], ";")
			return token, c
		}
	}
	return "", ""
}

// verify reads a pass with the published keys.
func (w *world) verify(token string) pass.Claims {
	w.t.Helper()
	_, set := w.do("GET", jwksPath, nil)
	v, err := pass.NewVerifier([]byte(set), pass.Want{Audience: w.room.Zone, Room: w.room.ID})
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := v.Verify(token, time.Now())
	if err != nil {
		w.t.Fatalf("%q: %v", token, err)
	}
	return c
}

// aged returns the cookie of a pass that was issued some time ago.
func (w *world) aged(ago time.Duration) string {
	w.t.Helper()
	token, err := w.gw.live.Load().rooms[0].passes.Issue("s", time.Now().Add(-ago), 30*time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	return pass.Cookie + "=" + token
}

func TestPassOfAnActiveUser(t *testing.T) {
	w := newWorld(t, admit, passing())
	tk := session()
	res, _ := w.do("GET", "/", header("Cookie", w.seal(tk), "Sec-Fetch-Mode", "navigate"))
	token, line := passOf(res)
	c := w.verify(token)
	subject := proof.Subject(proof.Seed(w.keys.Fixed(ticket.PurposeSubject)), w.room.ID, tk.ID)
	if c.Session != subject || c.Expiry-c.IssuedAt != 30 {
		t.Errorf("claims %+v, want the session %s for 30 s", c, subject)
	}
	if _, attributes, _ := strings.Cut(line, ";"); attributes != " Max-Age=30; Path=/; HttpOnly; SameSite=Lax" {
		t.Errorf("attributes %q", attributes)
	}
	if got := res.Header.Get("Cache-Control"); got != "private" {
		t.Errorf("Cache-Control %q", got)
	}
	if n := w.gw.Stats().Passes; n != 1 {
		t.Errorf("%d passes are counted", n)
	}
}

// A pass is issued with pages and data, when there is none or half of it is over, and then with pages only; never where
// somebody else could get it, or before the session is certain to last as long.
func TestWhenAPassIsIssued(t *testing.T) {
	page, data, picture := []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, []string{"Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, []string{"Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}
	for _, c := range []struct {
		name    string
		headers []string
		before  time.Duration // age of the visitor's pass; negative: none
		answer  string        // Cache-Control of the origin
		want    bool
	}{
		{"a page without a pass", page, -1, "", true},
		{"a client that says nothing of itself", nil, -1, "", true},
		{"data without a pass", data, -1, "", true},
		{"a picture without a pass", picture, -1, "", false},
		{"a page with a young pass", page, 5 * time.Second, "", false},
		{"a page past half of the pass", page, 20 * time.Second, "", true},
		{"data past half of the pass", data, 20 * time.Second, "", false},
		{"data after the pass", data, 40 * time.Second, "", true},
		{"a page that others get too", page, -1, "public, max-age=60", false},
		{"a private page", page, -1, "no-cache", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, admit, passing(), withOrigin(func(w http.ResponseWriter, _ *http.Request) {
				if c.answer != "" {
					w.Header().Set("Cache-Control", c.answer)
				}
				io.WriteString(w, "origin")
			}))
			cookie := w.seal(session())
			if c.before >= 0 {
				cookie += "; " + w.aged(c.before)
			}
			res, _ := w.do("GET", "/", header(append(c.headers, "Cookie", cookie)...))
			if token, _ := passOf(res); (token != "") != c.want {
				t.Errorf("got the pass %q", token)
			}
			if c.answer != "" && c.want && res.Header.Get("Cache-Control") != c.answer {
				t.Errorf("Cache-Control became %q", res.Header.Get("Cache-Control"))
			}
		})
	}
}

// Requests that come with a pass are counted by what is left of it: so an operator sees whether the edge verifies passes.
func TestPassesThatComeAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		cookie func(*world) string
		want   [passStates]uint64
	}{
		"none":                   {func(*world) string { return "a=b" }, [passStates]uint64{}},
		"a young one":            {func(w *world) string { return w.aged(5 * time.Second) }, [passStates]uint64{PassFresh: 1}},
		"one past its half":      {func(w *world) string { return w.aged(20 * time.Second) }, [passStates]uint64{PassLate: 1}},
		"an expired one":         {func(w *world) string { return w.aged(40 * time.Second) }, [passStates]uint64{PassOver: 1}},
		"one of another kind":    {func(*world) string { return pass.Cookie + "=x" }, [passStates]uint64{PassOver: 1}},
		"an old and a young one": {func(w *world) string { return w.aged(40*time.Second) + "; " + w.aged(0) }, [passStates]uint64{PassFresh: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, admit, passing())
			w.do("GET", "/", header("Cookie", w.seal(session())+"; "+c.cookie(w)))
			if got := w.gw.Stats().PassesShown; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestNoPass(t *testing.T) {
	none := func(w *world, name string, edit func(*http.Request)) {
		t.Helper()
		res, _ := w.do("GET", "/", edit)
		if token, _ := passOf(res); token != "" {
			t.Errorf("%s: got the pass %q", name, token)
		}
	}
	w := newWorld(t, admit, passing())
	none(w, "the first request, on probation", nil)
	none(w, "a ticket that waited until now", header("Cookie", w.seal(waiting())))
	none(w, "no room", func(r *http.Request) { r.Host = "open.example.com" })
	tk := session()
	w.door.program(func(v anteroom.Visit) anteroom.Decision {
		d := admit(v)
		d.Ticket = session() // in the place of one that is over
		return d
	})
	none(w, "another session", header("Cookie", w.seal(tk)))
	none(newWorld(t, line, passing()), "a visitor who waits", header("Cookie", w.seal(waiting())))
	none(newWorld(t, admit, passing(), knownSession(session())), "a session in a header", header("Authorization", "token"))
	w = newWorld(t, admit)
	none(w, "a room without passes", header("Cookie", w.seal(session())))
}

// With sessions that are not renewed, every pass is over before its session ends, also at an edge whose clock is behind.
func TestPassEndsWithTheSession(t *testing.T) {
	w := newWorld(t, admit, passing(func(r *anteroom.Room) { r.DisableSessionRenewal = true }))
	for left, want := range map[time.Duration]time.Duration{time.Minute: 30 * time.Second, 20 * time.Second: 15 * time.Second, 5 * time.Second: 0} {
		tk := session()
		tk.AcceptedAt = tk.AcceptedAt.Add(left - w.room.SessionDuration)
		res, _ := w.do("GET", "/", header("Cookie", w.seal(tk)))
		token, _ := passOf(res)
		if token == "" {
			if want != 0 {
				t.Errorf("%v before the end: no pass", left)
			}
			continue
		}
		life := time.Until(time.Unix(w.verify(token).Expiry, 0))
		if life > want || life < want-3*time.Second {
			t.Errorf("%v before the end: a pass for %v, want %v", left, life, want)
		}
	}
}

func TestPassForAnEdge(t *testing.T) {
	w := newWorld(t, admit, passing(func(r *anteroom.Room) { r.PassEdge, r.CookieSuffix = "cdn", "big" }))
	res, _ := w.do("GET", "/", header("Cookie", w.seal(session())))
	token, line := passOf(res)
	if !strings.HasPrefix(line, "__anteroom_pass_big=") {
		t.Errorf("the cookie is %q", line)
	}
	secrets, err := w.gw.live.Load().passes.keys.Edge("cdn")
	if err != nil {
		t.Fatal(err)
	}
	v, err := pass.NewEdgeVerifier(secrets, pass.Want{Audience: w.room.Zone, Room: w.room.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(token, time.Now()); err != nil {
		t.Error(err)
	}
}

// Origins neither see passes nor set them.
func TestPassStaysBetweenEdgeAndAnteroom(t *testing.T) {
	w := newWorld(t, admit, passing(), withOrigin(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = []string{"__anteroom_pass=x", "__anteroom_pass_a=x; Path=/", "__anteroom_passport=mine"}
	}))
	res, _ := w.do("GET", "/", header("Cookie", "a=b; "+w.seal(session())+"; "+w.aged(5*time.Second)+"; __anteroom_pass_other=x; __anteroom_passport=1"))
	if got := w.origin.last(t).Header.Get("Cookie"); got != "a=b; __anteroom_passport=1" {
		t.Errorf("the origin saw %q", got)
	}
	if got := res.Header["Set-Cookie"]; len(got) != 1 || got[0] != "__anteroom_passport=mine" {
		t.Errorf("the visitor got %q", got)
	}
}

func TestRevocationTakesThePass(t *testing.T) {
	w := newWorld(t, admit, passing(func(r *anteroom.Room) { r.EnabledOriginCommands = []string{anteroom.CommandRevoke} }), withOrigin(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cf-Waiting-Room-Command", "revoke")
	}))
	res, _ := w.do("GET", "/", header("Cookie", w.seal(session())))
	if token, line := passOf(res); token != "" || !strings.Contains(line, "Max-Age=0; Path=/") {
		t.Errorf("the answer sets %q", line)
	}
}

// The keys of proofs and passes are one set, and who looks for either finds it.
func TestPublishedKeysOfPasses(t *testing.T) {
	signer, err := proof.New(proof.Config{Keys: []proof.Key{{ID: "k", Seed: proof.Seed{1}}}, SubjectKey: proof.Seed{2}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, admit, passing(), withConfig(func(c *Config) { c.Proof = signer }))
	_, text := w.do("GET", jwksPath, nil)
	var set struct {
		Keys []map[string]string
	}
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	kinds := ""
	for _, k := range set.Keys {
		kinds += k["kty"] + " " + k["alg"] + " "
		if k["d"] != "" {
			t.Errorf("a private key is published: %v", k)
		}
	}
	if kinds != "EC ES256 OKP EdDSA " {
		t.Errorf("the set is %s", kinds)
	}
	if _, err := proof.NewVerifier([]byte(text), "", "zone"); err != nil {
		t.Error(err)
	}
	res, text := w.do("GET", passPEMPath, nil)
	if res.StatusCode != 200 || strings.Count(text, "BEGIN PUBLIC KEY") != 1 || strings.Contains(text, "PRIVATE") || !strings.Contains(res.Header.Get("Cache-Control"), "max-age=300") {
		t.Errorf("%d %s", res.StatusCode, text)
	}
	w = newWorld(t, admit)
	for _, path := range []string{jwksPath, passPEMPath, passPath} {
		if _, text := w.do("GET", path, nil); text != "origin" {
			t.Errorf("%s without passes: %s", path, text)
		}
	}
}

func TestRenewalOfThePass(t *testing.T) {
	w := newWorld(t, admit, passing())
	ask := func(cookie string) (status int, token string) {
		res, body := w.do("GET", passPath, header("Cookie", cookie, "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"))
		if body != "" || !strings.Contains(res.Header.Get("Cache-Control"), "no-store") {
			t.Errorf("body %q, Cache-Control %q", body, res.Header.Get("Cache-Control"))
		}
		token, _ = passOf(res)
		return res.StatusCode, token
	}
	if status, token := ask(w.seal(session()) + "; " + w.aged(time.Second)); status != 204 || token == "" {
		t.Errorf("an active user got %d, %q", status, token)
	}
	for name, cookie := range map[string]string{"nobody": "", "a visitor who waits": w.seal(waiting()), "whoever has but a pass": w.aged(time.Second)} {
		if status, token := ask(cookie); status != 401 || token != "" {
			t.Errorf("%s got %d, %q", name, status, token)
		}
	}
	if n := len(w.door.seen()); n != 1 {
		t.Errorf("the door was asked %d times; only active users are decided about", n)
	}
	w.door.program(func(v anteroom.Visit) anteroom.Decision {
		return anteroom.Decision{Verdict: anteroom.Wait, Reason: anteroom.ReasonSessionOver, At: testNow(), Ticket: waiting(), SetCookie: true}
	})
	if status, token := ask(w.seal(session())); status != 401 || token != "" {
		t.Errorf("a visitor whose session is over got %d, %q", status, token)
	}
	if n := len(w.origin.requests()); n != 0 {
		t.Errorf("%d requests got to the origin", n)
	}
}

// A proxy that asks about every request needs no pass, and the ticket stays the only cookie of its answer.
func TestForwardAuthIssuesNoPass(t *testing.T) {
	w := newWorld(t, admit, passing())
	res := w.asks(question("caddy", "GET", testHost, "/", "Cookie", w.seal(session())))
	says(t, res, "admit")
	if token, _ := passOf(res); token != "" {
		t.Errorf("got the pass %q", token)
	}
}
