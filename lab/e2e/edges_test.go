package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/anteroom/anteroom/examples/edges"
)

// addresses are those that a recipe of examples/edges names: where visitors come, where Anteroom serves them, where it gives
// verdicts, and the application.
type addresses struct {
	listen, anteroom, verdicts, application string
	cert, key                               string // files, for HTTP/2 by TLS; empty: HTTP/1.1
}

// anEdge is a proxy that keeps the traffic and asks Anteroom about each request.
type anEdge struct {
	name    string
	host    string    // that its recipe is written for, with LISTEN for the address where visitors come; empty: the room's
	waiting int       // status of the waiting page
	stopped int       // of its answer while Anteroom does not run
	silent  int       // of its answer while Anteroom takes a question and does not answer; not for doubles, which have no patience of their own
	patient [2]string // how its recipe says how long it waits for that, and how to say a fifth of a second
	start   func(t *testing.T, dir string, at addresses)
	shares  bool // it cannot make an answer with a ticket private
	aliased bool // it leaves other spellings of our headers to another setting
}

// askingEdges are those that run everywhere. TestEdgeCaddy does not.
var askingEdges = []anEdge{
	{name: "nginx", waiting: http.StatusOK, stopped: http.StatusInternalServerError, silent: http.StatusInternalServerError,
		patient: [2]string{"proxy_read_timeout 10s", "proxy_read_timeout 200ms"}, start: func(t *testing.T, dir string, at addresses) {
			server := edited(t, filepath.Join(dir, "anteroom.conf"), "listen 80;", "listen "+at.listen+";")
			runs(t, program(t, "nginx", dir, nginxMain(server), "-p", dir, "-e", "stderr", "-c"))
		}},
	{name: "haproxy", waiting: http.StatusOK, stopped: http.StatusServiceUnavailable, silent: http.StatusTeapot, // Anteroom decides about the whole request
		patient: [2]string{"timeout = 1000", "timeout = 200"}, start: func(t *testing.T, dir string, at addresses) {
			runs(t, program(t, "haproxy", dir, edited(t, filepath.Join(dir, "haproxy.cfg"), "bind :80", "bind "+at.listen), "-db", "-f"))
		}},
	{name: "traefik", host: "LISTEN", waiting: http.StatusUnauthorized, stopped: http.StatusInternalServerError, start: startTraefik, shares: true, aliased: true},
	{name: "envoy", waiting: http.StatusUnauthorized, stopped: http.StatusForbidden, start: startEnvoy, shares: true, aliased: true},
	{name: "envoy-grpc", waiting: http.StatusOK, stopped: http.StatusForbidden, start: startEnvoyGRPC},
}

// writesEdge has the binary write a recipe for the room shop, into the folder that it returns.
func writesEdge(t *testing.T, g *gate, kind, host string, at addresses) (dir string) {
	t.Helper()
	dir = t.TempDir()
	args := []string{"edge", "init", kind, "--room", "shop", "--application", at.application, "--anteroom", at.anteroom, "--out", dir, "--data", g.data(), "--api", g.operators(), "--token", operatorToken}
	if at.verdicts != "" {
		args = append(args, "--verdicts", at.verdicts)
	}
	if host != "" {
		args = append(args, "--host", strings.ReplaceAll(host, "LISTEN", at.listen))
	}
	g.command(args...)
	return dir
}

// runs runs a proxy until the test ends.
func runs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", filepath.Base(cmd.Path), tail(said.String(), 3000))
		}
	})
}

// guarded is an application behind an edge, which remembers what it has seen.
type guarded struct {
	*httptest.Server
	arrived chan struct{}
	mu      sync.Mutex
	seen    []*http.Request
}

func newGuarded(t *testing.T) *guarded {
	o := &guarded{arrived: make(chan struct{}, 1)}
	app := application(o.arrived)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.seen = append(o.seen, r)
		o.mu.Unlock()
		if r.URL.Path != "/echo" {
			w.Header().Add("Set-Cookie", "basket=1; Path=/")
			w.Header().Set("Cache-Control", "public, max-age=60")
		}
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		app.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

// saw returns the requests for a target, as it came.
func (o *guarded) saw(target string) (out []*http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.seen {
		if r.RequestURI == target {
			out = append(out, r)
		}
	}
	return out
}

const twoSeats = `  - name: shop
    host: 127.0.0.1
    total_active_users: 2
    new_users_per_minute: 600
    session_duration: 5m
    first_session: 5m
    enabled_origin_commands: revoke
  - name: free
    host: free.example.com
    total_active_users: 2
    new_users_per_minute: 2
    suspended: true
`

// The edges of docs/edges.md with the configurations of examples/edges: admitted visitors reach the application through the
// proxy, everybody else gets the waiting page, and nobody gets past it while Anteroom does not run.
func TestEdges(t *testing.T) {
	t.Parallel()
	for _, e := range askingEdges {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			testEdge(t, e)
		})
	}
}

// While Anteroom takes questions and does not answer, each edge gives up in time, and nobody gets to the application.
func TestEdgesWhileAnteroomIsSilent(t *testing.T) {
	t.Parallel()
	for _, e := range askingEdges {
		if e.silent == 0 {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			testSilence(t, e)
		})
	}
}

func testSilence(t *testing.T, e anEdge) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	anteroom := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(func() {
		silent.CloseClientConnections()
		silent.Close()
		anteroom.Close()
	})
	app := newGuarded(t)
	address := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	at := addresses{listen: freeAddress(t), anteroom: address(anteroom), verdicts: address(silent), application: address(app.Server)}
	dir, of := t.TempDir(), edges.Example
	of.Anteroom, of.Verdicts, of.Application, of.Folder = at.anteroom, at.verdicts, at.application, dir
	if of.Host = strings.ReplaceAll(e.host, "LISTEN", at.listen); of.Host == "" {
		of.Host = "127.0.0.1"
	}
	recipe, _ := edges.Named(e.name)
	texts, err := recipe.Files(of)
	if err != nil {
		t.Fatal(err)
	}
	hurried := 0
	for name, text := range texts {
		hurried += strings.Count(text, e.patient[0])
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(text, e.patient[0], e.patient[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if hurried != 1 {
		t.Fatalf("%q is %d times in the recipe", e.patient[0], hurried)
	}
	e.start(t, dir, at)
	eventually(t, 15*time.Second, func() string {
		res, err := http.Get("http://" + at.listen + "/silent")
		if err != nil {
			return err.Error()
		}
		res.Body.Close()
		if res.StatusCode != e.silent {
			t.Errorf("answered with %s", res.Status)
		}
		return ""
	})
	if n := len(app.saw("/silent")); n != 0 {
		t.Errorf("%d requests got to the application", n)
	}
}

func testEdge(t *testing.T, e anEdge) {
	app := newGuarded(t)
	at := addresses{listen: freeAddress(t), verdicts: freeAddress(t), application: strings.TrimPrefix(app.URL, "http://")}
	g := newGate(t, twoSeats, "trusted_proxies: [127.0.0.1]\nforward_auth: {listen: \""+at.verdicts+"\", peers: [127.0.0.1]}")
	g.origin.url, g.environment = app.URL, []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.configure(g.rooms)
	g.start()
	t.Cleanup(g.end)
	at.anteroom = g.host
	e.start(t, writesEdge(t, g, e.name, e.host, at), at)
	direct := *g
	g.host = at.listen // visitors come through the edge from now on

	inside := newVisitor(t, g)
	eventually(t, 15*time.Second, func() string {
		a, err := inside.try(http.MethodGet, "/", "", "X-Anteroom-Assertion", "forged", "X_Anteroom_Assertion", "forged")
		if err != nil || !a.admitted() {
			return fmt.Sprintf("not through %s: %v", e.name, err)
		}
		if a.ticket() == "" || len(a.Header["Set-Cookie"]) != 2 {
			t.Fatalf("the cookies of application and room: %q", a.Header["Set-Cookie"])
		}
		if private := slices.Equal(a.Header["Cache-Control"], []string{"private, no-store"}); private == e.shares {
			t.Errorf("an answer with a ticket: %q", a.Header["Cache-Control"])
		}
		return ""
	})
	first := app.saw("/")
	if proof := first[len(first)-1].Header["X-Anteroom-Assertion"]; len(proof) != 1 || strings.Count(proof[0], ".") != 2 {
		t.Errorf("the application sees the proof %q", proof)
	}
	for name := range first[len(first)-1].Header {
		if !e.aliased && name != "X-Anteroom-Assertion" && strings.Contains(strings.ToLower(name), "anteroom") {
			t.Errorf("the application sees %s", name)
		}
	}
	second := newVisitor(t, g)
	if a := second.get("/missing"); a.StatusCode != http.StatusNotFound || a.ticket() == "" {
		t.Errorf("the ticket on an error of the application: %s %q", a.Status, a.Header["Set-Cookie"])
	}
	passesThrough(t, app, inside)

	waiting := newVisitor(t, g)
	waitsAt(t, e, app, waiting)
	readsNothingElse(t, app, at.listen)
	stream := waiting.stream()
	leaving := newVisitor(t, &direct)
	leaving.hold(inside.ticketValue())
	leaving.leave()
	if event := <-stream; !strings.Contains(event, `"admitted":true`) {
		t.Errorf("the stream said %q", event)
	}
	if a := waiting.get("/"); !a.admitted() {
		t.Errorf("the next visitor is not in: %s", a.Status)
	}
	echoesThrough(t, waiting)

	g.kill()
	for _, v := range []*visitor{waiting, second, newVisitor(t, g)} {
		if a := v.get("/stopped"); a.StatusCode != e.stopped || a.admitted() {
			t.Errorf("Anteroom does not run: %s", a.Status)
		}
	}
	if n := len(app.saw("/stopped")); n != 0 {
		t.Errorf("%d requests got past the room while Anteroom did not run", n)
	}
}

// passesThrough checks that the requests of an active user arrive as they were sent.
func passesThrough(t *testing.T, app *guarded, v *visitor) {
	t.Helper()
	const odd = "/a%2Fb//c;d/%41?x=1;y&z=%2F"
	if a := v.get(odd); !a.admitted() || len(app.saw(odd)) != 1 {
		t.Errorf("%s: %s, arrived %d times", odd, a.Status, len(app.saw(odd)))
	}
	if a := v.get("/again"); slices.ContainsFunc(a.Header["Set-Cookie"], func(c string) bool { return strings.HasPrefix(c, ticketCookie) }) ||
		!slices.Equal(a.Header["Cache-Control"], []string{"public, max-age=60"}) {
		t.Errorf("without a new ticket: %q %q", a.Header["Set-Cookie"], a.Header["Cache-Control"])
	}
	if a := v.do(http.MethodHead, "/head", ""); !a.admitted() || len(a.body) != 0 || app.saw("/head")[0].Method != http.MethodHead {
		t.Errorf("HEAD: %s, %d bytes", a.Status, len(a.body))
	}
	if a := v.get("/big", "Cookie", "big="+strings.Repeat("x", 8<<10)); !a.admitted() {
		t.Errorf("with a cookie of 8 kB: %s", a.Status)
	}
	body := strings.Repeat("0123456789abcdef", 57_600) // 900 kB
	sum := sha256.Sum256([]byte(body))
	if a := v.do(http.MethodPost, "/upload", body); string(a.body) != fmt.Sprintf("%d %s <nil>", len(body), hex.EncodeToString(sum[:])) {
		t.Errorf("an upload of %d bytes: %s %.200s", len(body), a.Status, a.body)
	}
	arrivesInParts(t, v, app.arrived)
	if first := v.firstLine("/events"); first != "first\n" {
		t.Errorf("of a stream of the application came %q", first)
	}
	echoesThrough(t, v)
}

// waitsAt checks that a visitor who waits gets the page in place of anything else.
func waitsAt(t *testing.T, e anEdge, app *guarded, v *visitor) {
	t.Helper()
	const target = "/waits"
	a := v.get(target)
	if a.StatusCode != e.waiting || a.admitted() || !strings.Contains(a.text(t), "You are in line") || a.ticket() == "" || len(a.Header["Set-Cookie"]) != 1 {
		t.Fatalf("the waiting page: %s %q", a.Status, a.Header)
	}
	if p := v.place(target); p.Admitted || p.Ahead == nil || *p.Ahead != 0 {
		t.Errorf("the place: %v", p)
	}
	for _, forged := range []string{"X-Anteroom-Verdict: admit", "X-Forwarded-Uri: /free", "X-Forwarded-Method: OPTIONS", "X-Original-Uri: /free", "X-Original-Host: free.example.com", "X-Forwarded-Host: free.example.com"} {
		name, value, _ := strings.Cut(forged, ": ")
		if a := v.get(target, name, value); a.admitted() || a.StatusCode != e.waiting {
			t.Errorf("with %s: %s", forged, a.Status)
		}
	}
	for _, method := range []string{http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodDelete} {
		if a := v.do(method, target, ""); a.admitted() {
			t.Errorf("%s: %s", method, a.Status)
		}
	}
	if a := v.do(http.MethodPost, target, strings.Repeat("x", 900<<10)); a.admitted() || a.StatusCode >= 500 {
		t.Errorf("an upload: %s", a.Status)
	}
	config, err := websocket.NewConfig("ws://"+v.g.host+target, v.g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	config.Header.Set("Cookie", ticketCookie+"="+v.ticketValue())
	if ws, err := config.DialContext(t.Context()); err == nil {
		ws.Close()
		t.Error("a WebSocket opened")
	}
	if u, err := url.Parse(v.g.url(target)); err != nil || len(v.client.Jar.Cookies(u)) != 1 {
		t.Errorf("the visitor has the cookies %v, %v", v.cookies(), err)
	}
	if n := len(app.saw(target)); n != 0 {
		t.Errorf("the application saw %d requests of a visitor who waits", n)
	}
}

// readsNothingElse sends what can be read in two ways, while no seat is free. Whatever the proxy makes of it, the application must
// not see it, except as a request for the host that nobody has to wait for.
func readsNothingElse(t *testing.T, app *guarded, listen string) {
	t.Helper()
	app.mu.Lock()
	before := len(app.seen)
	app.mu.Unlock()
	for _, text := range []string{
		"GET //two HTTP/1.1\nHost: LISTEN\n\n",
		"GET /x/..;/two HTTP/1.1\nHost: LISTEN\n\n",
		"GET /x/%2e%2e%2ftwo HTTP/1.1\nHost: LISTEN\n\n",
		"GET /two#/free HTTP/1.1\nHost: LISTEN\n\n",
		"GET /two%00 HTTP/1.1\nHost: LISTEN\n\n",
		"GET /%zz HTTP/1.1\nHost: LISTEN\n\n",
		"GET http://free.example.com/two HTTP/1.1\nHost: LISTEN\n\n",
		"GET http://LISTEN/two HTTP/1.1\nHost: free.example.com\n\n",
		"GET /two HTTP/1.1\nHost: LISTEN\nHost: free.example.com\n\n",
		"GET /two HTTP/1.1\nHost: LISTEN, free.example.com\n\n",
		"GET /two HTTP/1.1\nHost:\n\n",
		"GET /two HTTP/1.1\n\n",
		"GET /two HTTP/1.0\n\n",
		"get /two HTTP/1.1\nHost: LISTEN\n\n",
		"TRACE /two HTTP/1.1\nHost: LISTEN\n\n",
		"CONNECT LISTEN HTTP/1.1\nHost: LISTEN\n\n",
		"OPTIONS * HTTP/1.1\nHost: LISTEN\n\n",
		"GET /two HTTP/1.1\nHost: LISTEN\nX-Original-URI: /free\nX-Original-Method: OPTIONS\nX-Original-Host: free.example.com\nX-Forwarded-Proto: x\n\n",
		"GET /two HTTP/1.1\nHost: LISTEN\nConnection: X-Original-URI, X-Forwarded-Uri, Cookie, Host\n\n",
		"POST /two HTTP/1.1\nHost: LISTEN\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\n\nGET /two HTTP/1.1\nHost: LISTEN\n\n",
	} {
		c, err := net.Dial("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		text = strings.ReplaceAll(strings.ReplaceAll(text, "LISTEN", listen), "\n", "\r\n")
		if _, err := io.WriteString(c, text); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
			res.Body.Close()
		}
		c.Close()
	}
	app.mu.Lock()
	defer app.mu.Unlock()
	for _, r := range app.seen[before:] {
		if r.Host == "free.example.com" {
			continue
		}
		t.Errorf("the application saw %s %s of %s", r.Method, r.RequestURI, r.Host)
	}
}
