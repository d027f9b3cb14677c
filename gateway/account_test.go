package gateway

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/ticket/account"
	"github.com/anteroom/anteroom/ticket/invite"
)

// issuerKey signs the tokens of the tests.
var issuerKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))

// loginOf is a token of the issuer for an account, with some claims changed.
func loginOf(t testing.TB, name string, claims ...any) string {
	t.Helper()
	all := map[string]any{"iss": "https://login.example.com", "aud": "shop", "sub": name, "exp": time.Now().Add(time.Hour).Unix()}
	for i := 0; i < len(claims); i += 2 {
		all[claims[i].(string)] = claims[i+1]
	}
	encode := base64.RawURLEncoding.EncodeToString
	payload, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	text := encode([]byte(`{"alg":"EdDSA","kid":"1"}`)) + "." + encode(payload)
	return text + "." + encode(ed25519.Sign(issuerKey, []byte(text)))
}

// members is a room with accounts and one seat.
type members struct {
	presale // for its set
	link    *brittle
}

// brittle is a store that fails when it is told to.
type brittle struct {
	cluster.Space
	err      error
	readOnly bool
}

func (b *brittle) Get(ctx context.Context, key string) (cluster.Entry, error) {
	if b.err != nil {
		return cluster.Entry{}, b.err
	}
	return b.Space.Get(ctx, key)
}

func (b *brittle) Lease(ctx context.Context, key string, value []byte, revision uint64, ttl time.Duration) (uint64, error) {
	if b.err != nil || b.readOnly {
		return 0, errors.Join(b.err, cluster.ErrUnavailable)
	}
	return b.Space.Lease(ctx, key, value, revision, ttl)
}

func inMembers(t *testing.T, edit func(*anteroom.Room), f func(members)) {
	jwks := `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"` + base64.RawURLEncoding.EncodeToString(issuerKey.Public().(ed25519.PublicKey)) + `"}]}`
	m := members{presale: presale{cfg: new(Config)}, link: new(brittle)}
	inEmptyBooth(t, func(r *anteroom.Room) {
		r.Accounts = anteroom.Accounts{AccountIssuer: "https://login.example.com", AccountAudience: "shop", AccountKeys: jwks, AccountCookie: "login", AccountSignIn: "/login?a=1&b"}
		r.JSONResponse = true
		if edit != nil {
			edit(r)
		}
	}, func(b booth) {
		m.booth = b
		f(m)
	}, func(c *Config) {
		m.link.Space = memlink.New()
		c.Accounts = account.Places{Space: m.link}
		*m.cfg = *c
	})
}

// device is a browser in which somebody is signed in, or nobody.
type device struct {
	*guest
	token string
}

func (m members) device(token string) *device { return &device{m.guest(), token} }

func (d *device) get(target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	r.RemoteAddr = d.from + ":1234"
	header(headers...)(r)
	var pairs []string
	for _, one := range []string{d.cookie, "login=" + d.token} {
		if one != "" && one != "login=" {
			pairs = append(pairs, one)
		}
	}
	if len(pairs) > 0 {
		r.Header.Set("Cookie", strings.Join(pairs, "; "))
	}
	rec := httptest.NewRecorder()
	d.h.ServeHTTP(rec, r)
	for _, line := range rec.Header()["Set-Cookie"] {
		d.cookie, _, _ = strings.Cut(line, ";")
		d.set++
	}
	return rec
}

func (d *device) isIn() bool { return d.get("/cart").Header().Get("X-Origin") == "shop" }

// ask is what the page of the device asks.
func (d *device) ask() (p place) {
	d.t.Helper()
	if err := json.Unmarshal(d.get("/?__anteroom=status").Body.Bytes(), &p); err != nil {
		d.t.Fatal(err)
	}
	return p
}

// waits says that the device is shown the waiting page.
func (d *device) waits() bool {
	rec := d.get("/cart")
	return rec.Code == http.StatusOK && rec.Header().Get("X-Origin") == "" && rec.Header().Get("Refresh") != ""
}

// ticket is the one in the device's cookie.
func (d *device) ticket() anteroom.Ticket {
	d.t.Helper()
	rm := d.gw.live.Load().rooms[0]
	_, value, _ := strings.Cut(d.cookie, "=")
	t, _ := rm.sealer.Open(value)
	return t
}

func isUnknown(rec *httptest.ResponseRecorder) bool {
	return rec.Code == http.StatusUnauthorized && rec.Header().Get("X-Origin") == "" && rec.Header().Get("Www-Authenticate") == "Bearer" && rec.Header().Get("Set-Cookie") == ""
}

func TestAccountsOnly(t *testing.T) {
	inMembers(t, nil, func(m members) {
		nobody := m.device("")
		rec := nobody.get("/cart")
		if !isUnknown(rec) || !strings.Contains(rec.Body.String(), `<a href="/login?a=1&amp;b" rel="nofollow">Sign in</a>`) {
			t.Fatalf("%d %v\n%s", rec.Code, rec.Header(), rec.Body)
		}
		if rec := nobody.get("/cart", "Accept", "application/json"); !isUnknown(rec) || !json.Valid(rec.Body.Bytes()) || rec.Body.Len() == 0 {
			t.Errorf("an app: %d %s", rec.Code, rec.Body)
		}
		if rec := nobody.get("/logo.png", "Sec-Fetch-Dest", "image"); !isUnknown(rec) {
			t.Errorf("a picture: %d", rec.Code)
		}
		if !nobody.ask().Admitted { // so that a page goes to its address, which asks to sign in
			t.Error("a page of somebody who has signed out stays")
		}
		for ask, code := range map[string]int{"stream": 204, "hold": 303, "invite": 303, "leave": 303, "left": 200, "languages": 200, "nonsense": 400} {
			if rec := nobody.get("/cart?__anteroom=" + ask); rec.Code != code || rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s: %d", ask, rec.Code)
			}
		}
		ann := m.device(loginOf(t, "ann"))
		if !ann.isIn() {
			t.Error("an account does not get the free seat, which nobody has taken")
		}
		by := m.guest()
		r := httptest.NewRequest("GET", "/cart", nil)
		r.RemoteAddr = by.from + ":1"
		r.Header.Set("Authorization", "bearer "+loginOf(t, "ann"))
		rec = httptest.NewRecorder()
		m.h.ServeHTTP(rec, r)
		if rec.Header().Get("X-Origin") != "shop" {
			t.Errorf("the token in the header: %d", rec.Code)
		}
		s := m.gw.Stats()
		if s.AccountTokens[account.Valid] != 2 || s.AccountTokens[account.None] < 4 {
			t.Errorf("%v", s.AccountTokens)
		}
	})
}

// An account has one session, whatever its devices, and one place in line: that of the device which came first.
func TestOnePlaceForAnAccount(t *testing.T) {
	inMembers(t, func(r *anteroom.Room) { r.SessionDuration, r.FirstSession = time.Minute, time.Minute }, func(m members) {
		phone, laptop := m.device(loginOf(t, "ann")), m.device(loginOf(t, "ann", "jti", "another"))
		if !phone.isIn() || !laptop.isIn() || phone.ticket().ID != laptop.ticket().ID {
			t.Fatal("two devices of an account are not in one session")
		}
		if live := m.room.Status(); live.ActiveUsers != 1 {
			t.Errorf("%d seats are taken", live.ActiveUsers)
		}
		bobs, other, cid := m.device(loginOf(t, "bob")), m.device(loginOf(t, "bob")), m.device(loginOf(t, "cid"))
		if !bobs.waits() {
			t.Fatal("bob does not wait")
		}
		m.pass(time.Second)
		if !cid.waits() {
			t.Fatal("cid does not wait")
		}
		m.pass(5 * time.Second)
		bobs.ask()
		cid.ask()
		if !other.waits() || other.ticket().ID != bobs.ticket().ID || other.ticket().Arrival != bobs.ticket().Arrival {
			t.Errorf("bob's second device has another place: %+v %+v", other.ticket(), bobs.ticket())
		}
		if live := m.room.Status(); live.Waiting != 2 {
			t.Errorf("%d wait", live.Waiting)
		}
		// The place moves with bob: the device that had it is gone, and the one that came later gets in before cid.
		if took := other.entersSoon(cid); took < 0 {
			t.Error("bob is not before cid")
		}
		if !bobs.isIn() || bobs.ticket().ID != other.ticket().ID {
			t.Error("bob's session is not on the first device")
		}
	})
}

// entersSoon polls with both devices until the first is in; -1 if the other is in before.
func (d *device) entersSoon(before *device) int {
	for n := range 200 {
		d.pass(5 * time.Second)
		if d.isIn() {
			return n
		}
		if before.isIn() {
			return -1
		}
	}
	return -1
}

// Whose session is over goes on with the next place, the same one on all devices, also on one that was asleep for two of them.
// The waiting page's link to another device makes none here: the place is wherever the account signs in.
func TestPlaceOfAnAccountIsNotMoved(t *testing.T) {
	inMembers(t, nil, func(m members) {
		if !m.device(loginOf(t, "ann")).isIn() {
			t.Fatal("the first one waits")
		}
		phone, laptop := m.device(loginOf(t, "bob")), m.device(loginOf(t, "bob"))
		if !phone.waits() {
			t.Fatal("the second one is in")
		}
		before := phone.ticket()
		for _, ask := range []string{"move", "move.1." + phone.cookie} {
			if rec := phone.get("/cart?__anteroom=" + ask); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?" {
				t.Errorf("%s: %d %v", ask, rec.Code, rec.Header())
			}
		}
		if !laptop.waits() || !phone.waits() || phone.ticket().ID != before.ID || laptop.ticket().ID != before.ID || phone.ticket().Arrival != before.Arrival {
			t.Error("a device of the account has another place")
		}
	})
}

func TestAccountAfterItsSession(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	inMembers(t, func(r *anteroom.Room) {
		r.SessionDuration, r.FirstSession = time.Minute, time.Minute
		r.TotalActiveUsers = 5
	}, func(m members) {
		token := loginOf(t, "ann", "exp", time.Now().Add(100*time.Hour).Unix())
		phone, laptop := m.device(token), m.device(token)
		if !phone.isIn() || !laptop.isIn() {
			t.Fatal("ann is not in")
		}
		for i := range 3 {
			m.pass(20 * time.Minute)
			before := laptop.ticket().ID
			if !laptop.isIn() || laptop.ticket().ID == before {
				t.Fatalf("session %d does not begin", i)
			}
		}
		if !phone.isIn() || phone.ticket().ID != laptop.ticket().ID {
			t.Error("the phone has another session")
		}
		if live := m.room.Status(); live.ActiveUsers != 1 {
			t.Errorf("%d seats are taken", live.ActiveUsers)
		}
		// A browser without cookies is the account all the same.
		if app := m.device(token); !app.isIn() || m.room.Status().ActiveUsers != 1 {
			t.Error("a third device has a session of its own")
		}
		for range 20 { // the store is told again before it forgets
			m.pass(50 * time.Second)
			laptop.isIn()
		}
		end := time.Now().Add(8 * time.Hour)
		for time.Now().Before(end) {
			m.pass(40 * time.Second)
			if !laptop.isIn() {
				t.Fatal("a session that goes on has ended")
			}
		}
		if late := m.device(token); !late.isIn() || m.room.Status().ActiveUsers != 1 {
			t.Error("the store has forgotten the account of a long session")
		}
	})
}

// A copy of a ticket is worth nothing without the account's token.
func TestCopiedTicketOfAnAccount(t *testing.T) {
	inMembers(t, nil, func(m members) {
		ann := m.device(loginOf(t, "ann"))
		if !ann.isIn() {
			t.Fatal("ann is not in")
		}
		thief, bob := m.device(""), m.device(loginOf(t, "bob"))
		thief.cookie, bob.cookie = ann.cookie, ann.cookie
		if rec := thief.get("/cart"); !isUnknown(rec) {
			t.Errorf("without a token: %d", rec.Code)
		}
		if bob.isIn() || !bob.waits() || bob.ticket().ID == ann.ticket().ID {
			t.Error("another account has the session")
		}
		if thief.token = loginOf(t, "ann", "aud", "forum"); !isUnknown(thief.get("/cart")) {
			t.Error("a token for another application will do")
		}
	})
}

// Nor is there a pass for it, with which an edge lets visitors in without asking.
func TestPassForACopiedTicketOfAnAccount(t *testing.T) {
	inMembers(t, func(r *anteroom.Room) { r.Pass = 10 * time.Second }, func(m members) {
		ann := m.device(loginOf(t, "ann"))
		if !ann.isIn() {
			t.Fatal("ann is not in")
		}
		thief, bob := m.device(""), m.device(loginOf(t, "bob"))
		thief.cookie, bob.cookie = ann.cookie, ann.cookie
		for name, c := range map[string]struct {
			device *device
			want   int
		}{"the account": {ann, http.StatusNoContent}, "without a token": {thief, http.StatusUnauthorized}, "another account": {bob, http.StatusUnauthorized}} {
			rec := c.device.get("/.well-known/anteroom/pass")
			if passed := strings.Contains(strings.Join(rec.Header()["Set-Cookie"], " "), "__anteroom_pass="); rec.Code != c.want || passed != (c.want == http.StatusNoContent) {
				t.Errorf("%s: %d %v", name, rec.Code, rec.Header())
			}
		}
	})
}

// An expired token is no way in, but takes nothing from those who have come with it.
func TestExpiredToken(t *testing.T) {
	inMembers(t, func(r *anteroom.Room) { r.SessionDuration, r.FirstSession = time.Hour, time.Hour }, func(m members) {
		short := time.Now().Add(2 * time.Minute).Unix()
		ann, bob := m.device(loginOf(t, "ann", "exp", short)), m.device(loginOf(t, "bob", "exp", short))
		if !ann.isIn() || !bob.waits() {
			t.Fatal("ann is not in, or bob does not wait")
		}
		arrival := bob.ticket().Arrival
		for range 20 {
			m.pass(time.Minute)
			bob.ask()
		}
		if !ann.isIn() {
			t.Error("a session is over with its token")
		}
		if !bob.waits() || bob.ticket().Arrival != arrival {
			t.Error("a place is lost with its token")
		}
		if late := m.device(bob.token); !isUnknown(late.get("/cart")) {
			t.Error("an expired token lets another device in")
		}
	})
}

func TestAccountsWithoutStore(t *testing.T) {
	inMembers(t, func(r *anteroom.Room) { r.SessionDuration, r.FirstSession = time.Hour, time.Hour }, func(m members) {
		ann, bob := m.device(loginOf(t, "ann")), m.device(loginOf(t, "bob"))
		if !ann.isIn() || !bob.waits() {
			t.Fatal("ann is not in, or bob does not wait")
		}
		m.link.err = errors.New("no majority")
		place := bob.ticket()
		m.pass(time.Minute)
		if !ann.isIn() || !bob.waits() || bob.ticket().ID != place.ID {
			t.Error("somebody has lost a session or a place")
		}
		late := m.device(bob.token)
		if rec := late.get("/cart"); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || rec.Header().Get("Set-Cookie") != "" {
			t.Errorf("a new device: %d %v", rec.Code, rec.Header())
		}
		m.link.err = nil
		if !late.waits() || late.ticket().ID != place.ID {
			t.Error("the device has another place afterwards")
		}
		m.link.readOnly = true // as at a site that is cut off
		one, two := m.device(loginOf(t, "cid")), m.device(loginOf(t, "cid"))
		if !one.waits() || !two.waits() || one.ticket().ID != two.ticket().ID {
			t.Error("an account does not join, or has two places")
		}
	})
}

// Who was in line before the room asked for accounts keeps the place by signing in, once: the earlier one of two.
func TestAccountTakesFormerPlace(t *testing.T) {
	inMembers(t, nil, func(m members) {
		with := m.cfg.Rooms[0].Accounts
		m.set(func(r *anteroom.Room) { r.Accounts = anteroom.Accounts{} })
		in, early, later := m.device(""), m.device(""), m.device("")
		if !in.isIn() || !early.waits() {
			t.Fatal("somebody is not in, or nobody waits")
		}
		m.pass(5 * time.Second)
		if !later.waits() {
			t.Fatal("nobody waits")
		}
		m.pass(5 * time.Second)
		early.ask()
		later.ask()
		m.set(func(r *anteroom.Room) { r.Accounts = with })
		if !in.isIn() {
			t.Error("a session from before is over")
		}
		if !isUnknown(early.get("/cart")) {
			t.Error("a place of nobody goes on")
		}
		phone := m.device(loginOf(t, "ann"))
		m.pass(5 * time.Second)
		if !phone.waits() { // behind both
			t.Fatal("ann does not wait")
		}
		arrival := early.ticket().Arrival
		stolen := m.device(loginOf(t, "bob"))
		stolen.cookie = early.cookie
		early.token = loginOf(t, "ann")
		if !early.waits() || early.ticket().Arrival != arrival {
			t.Errorf("ann has not got the earlier place: %v, not %v", early.ticket().Arrival, arrival)
		}
		places := func(want int) {
			t.Helper()
			if live := m.room.Status(); live.Waiting+live.Dormant != want {
				t.Errorf("%d places are kept, not %d", live.Waiting+live.Dormant, want)
			}
		}
		places(2) // ann's, and the one that nobody has claimed
		m.pass(2 * time.Minute)
		phone.ask()
		if phone.ticket().ID != early.ticket().ID || phone.ticket().Arrival != arrival {
			t.Error("the phone has not got it")
		}
		if !stolen.waits() || stolen.ticket().Arrival <= arrival {
			t.Error("two accounts have one former place")
		}
		later.token = loginOf(t, "ann") // and no second one
		if !later.waits() || later.ticket().ID != early.ticket().ID {
			t.Error("ann has two places")
		}
		places(2) // ann's and bob's

		m.set(func(r *anteroom.Room) { r.Accounts = anteroom.Accounts{} })
		copied := m.device("")
		if !copied.waits() {
			t.Fatal("nobody waits")
		}
		m.set(func(r *anteroom.Room) { r.Accounts = with })
		former := copied.ticket()
		// Another node has just given it to another account, and this one does not know.
		err := invite.Spend(t.Context(), m.link, invite.Use{Key: "accounts." + string(m.cfg.Rooms[0].ID) + ".merged." + hex.EncodeToString(former.ID[:]), Most: 1, By: "another", Until: time.Now().Add(time.Hour), Now: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		m.pass(5 * time.Second)
		copied.token = loginOf(t, "cid")
		if !copied.waits() || copied.ticket().Arrival <= former.Arrival {
			t.Error("a former place is taken twice")
		}
	})
}

// While nobody has to wait, nobody is asked.
func TestAccountsWhereNobodyWaits(t *testing.T) {
	for name, edit := range map[string]func(*anteroom.Room){
		"passthrough": func(r *anteroom.Room) { r.QueueingMethod = anteroom.Passthrough },
		"suspended":   func(r *anteroom.Room) { r.Suspended = true },
		"shadow":      func(r *anteroom.Room) { r.Shadow = true },
	} {
		t.Run(name, func(t *testing.T) {
			inMembers(t, edit, func(m members) {
				if !m.device("").isIn() {
					t.Error("a visitor without an account does not pass")
				}
			})
		})
	}
}

// Several devices come at once, through two gateways: all devices of the account have the same place.
func TestTwoDevicesAtOnce(t *testing.T) {
	inMembers(t, nil, func(m members) {
		first, token := m.device(loginOf(t, "first")), loginOf(t, "ann")
		if !first.isIn() {
			t.Fatal("the seat is not free")
		}
		devices := make([]*device, 8)
		var all sync.WaitGroup
		for i := range devices {
			devices[i] = m.device(token)
			if i%2 == 1 { // another gateway with the same keys and store
				other, err := New(*m.cfg)
				if err != nil {
					t.Fatal(err)
				}
				devices[i].h = other.Middleware(http.NotFoundHandler())
			}
			all.Go(func() { devices[i].get("/cart") })
		}
		all.Wait()
		for _, d := range devices {
			if d.ticket().ID != devices[0].ticket().ID || d.ticket().ID.IsZero() {
				t.Error("two devices have two places")
			}
		}
		if live := m.room.Status(); live.Waiting != 1 {
			t.Errorf("%d wait", live.Waiting)
		}
	})
}

// At a proxy that asks, a visitor who is not signed in waits, so that the proxy sends the request here for the page; an account gets in.
func TestAccountsAtAnEdge(t *testing.T) {
	inMembers(t, nil, func(m members) {
		ask := func(token string) *httptest.ResponseRecorder {
			q := httptest.NewRequest("GET", "/check/nginx", nil)
			q.RemoteAddr, q.Host = "127.0.0.1:9", "shop.example.com"
			header("X-Original-Method", "GET", "X-Original-Host", "shop.example.com", "X-Original-Uri", "/cart", "X-Forwarded-Proto", "https", "X-Forwarded-For", "192.0.2.1")(q)
			if token != "" {
				q.Header.Set("Cookie", "login="+token)
			}
			rec := httptest.NewRecorder()
			m.gw.ForwardAuth().ServeHTTP(rec, q)
			return rec
		}
		if rec := ask(""); rec.Code != http.StatusUnauthorized || rec.Header().Get(verdictHeader) != "wait" {
			t.Errorf("nobody: %d %v", rec.Code, rec.Header())
		}
		if rec := ask(loginOf(t, "ann")); rec.Code != http.StatusOK || rec.Header().Get(verdictHeader) != "admit" || rec.Header().Get(ticketHeader) == "" {
			t.Errorf("ann: %d %v", rec.Code, rec.Header())
		}
	})
}
