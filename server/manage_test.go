package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

var operator = manage.Caller{Name: "test", Grants: []manage.Grant{{Permission: manage.Admin}}}

// makeRoom makes a zone and a room in it through the manager.
func (r *running) makeRoom(zone string, room anteroom.Room) (anteroom.ZoneID, anteroom.Room) {
	r.t.Helper()
	z, known := r.s.Manager().State().ZoneNamed(zone)
	var err error
	if !known {
		if z, err = r.s.Manager().CreateZone(r.t.Context(), operator, zone); err != nil {
			r.t.Fatal(err)
		}
	}
	made, err := r.s.Manager().CreateRoom(r.t.Context(), operator, z.ID, room)
	if err != nil {
		r.t.Fatal(err)
	}
	return z.ID, made
}

func localRoom(path string) anteroom.Room {
	return anteroom.Room{Name: strings.Trim(path, "/"), Routes: []anteroom.Route{{Host: "127.0.0.1", Path: path}},
		Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 1}}
}

// TestRoomsOfTheAPIAreServedAtOnce: made, changed and deleted rooms are in force when the
// call returns, they survive a reload of the file and a restart.
func TestRoomsOfTheAPIAreServedAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, "rooms: []\n")
	zone, room := r.makeRoom("127.0.0.1", localRoom("/sale"))
	first := r.visit("/sale")
	if second := r.visit("/sale"); !first.isIn() || second.isIn() {
		t.Fatalf("in %v and %v, want one of two", first.isIn(), second.isIn())
	}
	change := func(fn func(*anteroom.Room)) {
		t.Helper()
		if _, err := r.s.Manager().ChangeRoom(t.Context(), operator, zone, room.ID, func(r *anteroom.Room) error { fn(r); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	change(func(r *anteroom.Room) { r.CustomPageHTML = "<p>our own page" })
	if a := r.visit("/sale"); a.body != "<p>our own page" {
		t.Errorf("after the page was changed: %q", a.body)
	}
	r.mustReload(oneRoom)
	if a := r.visit("/sale"); a.body != "<p>our own page" {
		t.Errorf("after a reload: %q", a.body)
	}
	if a := r.visit("/"); !a.isIn() {
		t.Errorf("the file's room: %d", a.StatusCode)
	}
	if n := len(r.s.Status()); n != 2 {
		t.Errorf("%d rooms in the status", n)
	}
	r.end()
	s, err := New(t.Context(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	if a := r.visit("/sale"); a.body != "<p>our own page" {
		t.Errorf("after a restart: %q", a.body)
	}
	if a := r.visit("/sale", first.Cookies()...); !a.isIn() {
		t.Errorf("the session did not survive: %d", a.StatusCode)
	}
	change(func(r *anteroom.Room) { r.Suspended = true })
	if a := r.visit("/sale"); !a.isIn() {
		t.Errorf("after it was suspended: %d", a.StatusCode)
	}
	if err := r.s.Manager().DeleteRoom(t.Context(), operator, zone, room.ID); err != nil {
		t.Fatal(err)
	}
	if n := len(r.s.Status()); n != 1 {
		t.Errorf("%d rooms in the status after one was deleted", n)
	}
}

// TestARoomOfTheFileAgainstOneOfTheAPI: a file that takes a route of the API's is refused,
// and names the room.
func TestARoomOfTheFileAgainstOneOfTheAPI(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	r.makeRoom("127.0.0.1", localRoom("/sale"))
	r.write(listenAnywhere + "rooms: [{name: mine, host: 127.0.0.1, path: /sale, total_active_users: 1, new_users_per_minute: 1}]\n")
	if err := r.reload(); anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "sale") {
		t.Errorf("%v", err)
	}
	if r.s.Manager().State().Len() != 1 {
		t.Error("something has changed")
	}
	err := r.s.Manager().DeleteZone(t.Context(), operator, anteroom.ZoneIDOf("nowhere"))
	if anteroom.KindOf(err) != anteroom.NotFound {
		t.Error(err)
	}
}

// TestStrictAPI: api.strict holds rooms of the API to the published minima, from a reload on.
func TestStrictAPI(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	zone, _ := r.makeRoom("127.0.0.1", localRoom("/a"))
	r.mustReload("rooms: []\napi: {strict: true}\n")
	_, err := r.s.Manager().CreateRoom(t.Context(), operator, zone, localRoom("/b"))
	if anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "total_active_users") {
		t.Error(err)
	}
}

// TestAdminOverTLS: operators are served over HTTPS under the names of the certificate, and a
// new certificate is taken by a reload.
func TestAdminOverTLS(t *testing.T) {
	r := prepareServer(t, "")
	writeCertificate(t, r.dir, "ops", 1, "ops.example.com")
	r.write(listenAnywhere + "admin_tls: {cert: ops.pem, key: ops.key}\nrooms: []\n")
	r.start()
	get := func(host string) (status int, serial int64) {
		t.Helper()
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		req, err := http.NewRequestWithContext(context.Background(), "GET", "https://"+r.s.Addresses().Admin+"/-/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		io.Copy(io.Discard, res.Body)
		return res.StatusCode, res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if status, serial := get("ops.example.com:8081"); status != 200 || serial != 1 {
		t.Errorf("%d, certificate %d", status, serial)
	}
	if status, _ := get("other.example.com"); status != 421 {
		t.Errorf("another name: %d", status)
	}
	writeCertificate(t, r.dir, "ops", 2, "ops.example.com")
	if err := r.reload(); err != nil {
		t.Fatal(err)
	}
	if _, serial := get("ops.example.com"); serial != 2 {
		t.Errorf("certificate %d after the reload", serial)
	}
}

// TestFirstToken: without any token one is made, it works, it is said once and not logged.
func TestFirstToken(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	secret := r.s.FirstToken()
	if !strings.HasPrefix(secret, "anr_") || len(secret) != 53 || strings.Contains(r.log.String(), secret) {
		t.Fatalf("token %q", secret)
	}
	for _, s := range []string{secret, manage.AuthKey(secret)} {
		if by, err := r.s.Manager().Authenticate(s, operator.Address, ""); err != nil || !by.May(manage.Admin, "", "") {
			t.Errorf("%v %+v", err, by)
		}
	}
	r.end()
	t.Setenv(firstTokenEnv, "short")
	if _, err := New(t.Context(), r.options()); err == nil || !strings.Contains(err.Error(), firstTokenEnv) {
		t.Errorf("a short token: %v", err)
	}
	t.Setenv(firstTokenEnv, strings.Repeat("x", 40))
	s, err := New(t.Context(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	if s.FirstToken() != "" {
		t.Error("another token was made")
	}
	for _, text := range []string{secret, strings.Repeat("x", 40)} {
		if _, err := s.Manager().Authenticate(text, operator.Address, ""); err != nil {
			t.Error(err)
		}
	}
}

// TestEventsAndRulesOfTheFile: the file's rooms have events and rules, with what makes them
// wrong said by place.
func TestEventsAndRulesOfTheFile(t *testing.T) {
	now := time.Now()
	stamp := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	sale := fmt.Sprintf(`
rooms:
  - name: shop
    host: "*"
    total_active_users: 5
    new_users_per_minute: 5
    events: [{name: sale, event_start_time: %s, event_end_time: %s, queueing_method: reject, custom_page_html: "<p>sold out"}]
    rules: [{expression: 'http.request.uri.path eq "/health"'}]
    lanes: [{name: a, priority: 5}, {name: b, priority: 4, expression: 'http.host contains "b"'}]
`, stamp(-time.Minute), stamp(time.Hour))
	r := startServer(t, sale)
	if a := r.visit("/"); a.body != "<p>sold out" {
		t.Errorf("during the event: %d %.80q", a.StatusCode, a.body)
	}
	room := r.s.Manager().State()
	for one := range room.Rooms() {
		if len(one.Events) != 1 || one.Events[0].Seed == [32]byte{} || one.Bypass == nil || one.LaneConditions == nil || one.Settings.Lanes == nil {
			t.Errorf("%+v", one.Room)
		}
	}
	r.write(listenAnywhere + strings.ReplaceAll(sale, "eq", "equals"))
	if err := r.reload(); err == nil || !strings.Contains(err.Error(), "rooms[0].rules[0].expression") {
		t.Errorf("a wrong expression: %v", err)
	}
	r.write(listenAnywhere + strings.ReplaceAll(sale, "http.request.uri.path eq", "ip.src in $nobody or ssl and http.host eq"))
	if err := r.reload(); err == nil || !strings.Contains(err.Error(), "rooms[0].rules[0].expression") {
		t.Errorf("a list that is not there: %v", err)
	}
	r.write(listenAnywhere + strings.ReplaceAll(sale, "contains", "has"))
	if err := r.reload(); err == nil || !strings.Contains(err.Error(), "rooms[0].lanes[1].expression") {
		t.Errorf("a wrong expression of a lane: %v", err)
	}
	if f := Check("", []anteroom.Room{{Lanes: []anteroom.Lane{{Name: "a"}, {Name: "b", Priority: 1, Expression: "ip.src in $list"}, {Name: "c", Priority: 2, Expression: "x"}}}}); len(f) != 1 || f[0].Path != "rooms[0].lanes[2].expression" {
		t.Errorf("before there is a store with lists: %v", f)
	}
}

// TestTheOperatorsHandOnALine: who waits is found by the code on the page, let in while the room
// is paused, and put out again; what was done is in the log.
func TestTheOperatorsHandOnALine(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	room := localRoom("/sale")
	room.TotalActiveUsers, room.NewUsersPerMinute = 100, 100
	zone, room := r.makeRoom("127.0.0.1", room)
	m, ctx := r.s.Manager(), t.Context()
	pause := func(on bool) {
		t.Helper()
		if _, err := m.ChangeControls(ctx, operator, zone, room.ID, func(c *anteroom.Controls) error { c.Paused = on; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	pause(true)
	waits := r.visit("/sale")
	code := regexp.MustCompile(`[0-9a-f]{5}-[0-9a-f]{5}`).FindString(waits.body)
	if waits.isIn() || code == "" {
		t.Fatalf("in: %v, code %q", waits.isIn(), code)
	}
	find := func(standing string) manage.Visitor {
		t.Helper()
		found, err := m.Find(ctx, operator, zone, room.ID, code)
		if err != nil || len(found) != 1 || found[0].Standing != standing || found[0].Reference != code {
			t.Fatalf("%+v, %v, want %s", found, err, standing)
		}
		return found[0]
	}
	find(manage.Waiting)
	if n, err := m.AdmitNow(ctx, operator, zone, room.ID, 5); err != nil || n != 1 {
		t.Errorf("admitted %d, %v", n, err)
	}
	if a := r.visit("/sale", waits.Cookies()...); !a.isIn() {
		t.Errorf("after the turn was given: %d", a.StatusCode)
	}
	who := find(manage.Active)
	if st, err := m.Status(operator, zone, room.ID); err != nil || st.ActiveUsers != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if ended, err := m.Revoke(ctx, operator, zone, room.ID, who.ID); err != nil || !ended {
		t.Errorf("revoked: %v, %v", ended, err)
	}
	if a := r.visit("/sale", waits.Cookies()...); a.isIn() {
		t.Error("in after the session was ended")
	}
	if _, err := m.Shuffle(room.ID, "nothing", 0); anteroom.KindOf(err) != anteroom.NotFound {
		t.Error(err)
	}
	log, err := m.Audit(ctx, operator, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	for _, rec := range log[len(log)-3:] {
		did = append(did, rec.Operation)
	}
	if strings.Join(did, " ") != "room.controls room.admit_now session.revoke" {
		t.Errorf("the log says %q", did)
	}
}

// TestAnotherHostNameIsNoWayPastARoom: under "*", a host that nobody names is refused as soon as a room names one. The log
// and doctor say so, and open_hosts serves it.
func TestAnotherHostNameIsNoWayPastARoom(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	other := func() int {
		req, err := http.NewRequest(http.MethodGet, "http://"+r.s.Addresses().Visitors[0]+"/", nil)
		req.Host = "other.example"
		return r.do(req, err).StatusCode
	}
	warned := func() bool {
		st, err := r.s.Manager().Cluster(t.Context(), operator)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(st.Findings, func(f manage.ClusterFinding) bool { return strings.Contains(f.Fix, "open_hosts: true") })
	}
	if got := other(); got != 200 || warned() {
		t.Errorf("without rooms: %d, a finding: %v", got, warned())
	}
	mark := r.log.mark()
	r.makeRoom("127.0.0.1", localRoom("/a"))
	if got := other(); got != 421 || !warned() {
		t.Errorf("with a room for a host: %d, a finding: %v", got, warned())
	}
	r.log.await(t, mark, "rooms name hosts: other hosts get 421")
	if got := r.visit("/").StatusCode; got != 200 {
		t.Errorf("the room's own host: %d", got)
	}
	r.mustReload("rooms: []\nsites: [{hosts: \"*\", open_hosts: true, origins: \"" + r.origin.URL + "\"}]\n")
	if got := other(); got != 200 || warned() {
		t.Errorf("with open_hosts: %d, a finding: %v", got, warned())
	}
}

// TestRoomsThatNobodyReaches: a room for a host without a site is refused, as it is in the file. One that was there when its
// site went stays, can be changed otherwise, and is a finding.
func TestRoomsThatNobodyReaches(t *testing.T) {
	r := startServer(t, "sites: [{hosts: [127.0.0.1, Shop.example], origins: ORIGIN}]\nrooms: []\n")
	m := r.s.Manager()
	findings := func() []string {
		t.Helper()
		st, err := m.Cluster(t.Context(), operator)
		if err != nil {
			t.Fatal(err)
		}
		var what []string
		for _, f := range st.Findings {
			what = append(what, f.Severity+": "+f.What)
		}
		return what
	}
	zone, made := r.makeRoom("127.0.0.1", localRoom("/a"))
	r.makeRoom("shop.example", anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "shop.example", Path: "/"}}, Settings: localRoom("/").Settings})
	r.makeRoom("*", anteroom.Room{Name: "all", Routes: []anteroom.Route{{Host: "*", Path: "/all"}}, Settings: localRoom("/").Settings})
	other, err := m.CreateZone(t.Context(), operator, "other.example")
	if err != nil {
		t.Fatal(err)
	}
	lost := localRoom("/lost")
	lost.Routes[0].Host = "other.example"
	_, err = m.CreateRoom(t.Context(), operator, other.ID, lost)
	if anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), `routes[0].host: "other.example" belongs to no proxied site (add it to the hosts of a proxied site`) {
		t.Error(err)
	}
	if got := findings(); got != nil {
		t.Errorf("findings: %q", got)
	}

	r.mustReload("sites: [{hosts: [elsewhere.example], origins: \"" + r.origin.URL + "\"}]\nrooms: []\n")
	want := []string{"warning: room 127.0.0.1/a covers 127.0.0.1, which no proxied site names", "warning: room shop.example/shop covers shop.example, which no proxied site names"}
	if got := findings(); !slices.Equal(got, want) {
		t.Errorf("findings: %q", got)
	}
	if _, err := m.ChangeRoom(t.Context(), operator, zone, made.ID, func(r *anteroom.Room) error { r.TotalActiveUsers = 7; return nil }); err != nil {
		t.Errorf("the limit of an unreachable room cannot be changed: %v", err)
	}
	if _, err := m.CreateRoom(t.Context(), operator, zone, localRoom("/b")); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("after the reload: %v", err)
	}
}

// TestDoctorNamesAnUnlistedProxy: behind a proxy that is not in trusted_proxies all visitors are one, and an operator hears of it.
func TestDoctorNamesAnUnlistedProxy(t *testing.T) {
	const site = "sites: [{hosts: \"*\", origins: ORIGIN}]\nrooms: []\n"
	for name, c := range map[string]struct {
		config string
		header http.Header
		want   bool
	}{
		"a visitor":            {site, nil, false},
		"a proxy that says so": {site, http.Header{"X-Forwarded-For": {"192.0.2.7"}}, true},
		"one that is listed":   {site + "trusted_proxies: [127.0.0.1, \"::1\"]\n", http.Header{"X-Forwarded-For": {"192.0.2.7"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startServer(t, c.config)
			for range 2 {
				req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Visitors[0]+"/", nil)
				for name, values := range c.header {
					req.Header[name] = values
				}
				r.do(req, err)
			}
			if n := strings.Count(r.log.String(), "a proxy that is not in trusted_proxies"); (n == 1) != c.want || n > 1 {
				t.Errorf("the log tells of it %d times", n)
			}
			st, err := r.s.Manager().Cluster(t.Context(), operator)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(st.Findings, func(f manage.ClusterFinding) bool {
				return strings.Contains(f.What, "trusted_proxies") && strings.Contains(f.Fix, "trusted_proxies: [127.0.0.1]")
			})
			if got != c.want {
				t.Errorf("findings: %+v", st.Findings)
			}
		})
	}
}
