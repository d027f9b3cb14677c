package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/examples/edges"
	passes "github.com/anteroom/anteroom/ticket/pass"
)

// passEdge is an edge that verifies passes. Its recipe, if it has one, is in dir. Now is its clock, in seconds; 0: the machine's.
type passEdge struct {
	name    string
	recipe  string // empty: it takes zone and room from its caller
	stopped int    // its answer while Anteroom does not run
	start   func(t *testing.T, dir string, at addresses, now int64, zone, room string)
	fetches bool   // the public keys while it runs, from Anteroom
	ahead   bool   // has the key that comes next, too
	leeway  bool   // a pass is good for a second before and after its time
	whole   bool   // the application gets the visitor's cookies as they were sent
	edge    string // pass_edge of the room, for passes with HS256
}

// passEdges are those that run here.
var passEdges = []passEdge{
	{name: "haproxy", recipe: "haproxy-pass", stopped: http.StatusServiceUnavailable, start: func(t *testing.T, dir string, at addresses, now int64, _, _ string) {
		clock := "date()"
		if now != 0 {
			clock = fmt.Sprintf("int(%d)", now)
		}
		bind := "bind " + at.listen
		if at.cert != "" {
			both := ""
			for _, name := range []string{at.cert, at.key} {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				both += string(text)
			}
			file := filepath.Join(dir, "both.pem")
			if err := os.WriteFile(file, []byte(both), 0o600); err != nil {
				t.Fatal(err)
			}
			bind += " ssl crt " + file + " alpn h2"
		}
		runs(t, program(t, "haproxy", dir, edited(t, filepath.Join(dir, "haproxy.cfg"), "bind :80", bind, "set-var(txn.now) date()", "set-var(txn.now) "+clock), "-db", "-f"))
	}},
	{name: "nginx", recipe: "nginx-pass", stopped: http.StatusBadGateway, edge: "nginx", start: startNginxPass},
	{name: "nginx-es256", recipe: "nginx-pass-es256", stopped: http.StatusBadGateway, ahead: true, start: startNginxPass},
	{name: "cloudfront", recipe: "cloudfront", stopped: http.StatusBadGateway, edge: "cloudfront", start: inNode("cloudfront")},
	{name: "envoy", recipe: "envoy-pass", stopped: http.StatusBadGateway, ahead: true, leeway: true, whole: true, start: startEnvoyPass},
	{name: "worker", recipe: "worker", stopped: http.StatusBadGateway, fetches: true, start: inNode("worker")},
	{name: "workerd", recipe: "worker", stopped: http.StatusInternalServerError, fetches: true, start: inWorkerd},
	{name: "traefik", recipe: "traefik-pass", stopped: http.StatusBadGateway, fetches: true, start: startTraefikPlugin},
	{name: "go", stopped: http.StatusBadGateway, fetches: true, start: inGo(false)},
	{name: "node", stopped: http.StatusBadGateway, fetches: true, start: inNode("node")},
	{name: "express", stopped: http.StatusBadGateway, fetches: true, start: inNode("express")},
	{name: "fastify", stopped: http.StatusBadGateway, fetches: true, start: inNode("fastify")},
}

func startNginxPass(t *testing.T, dir string, at addresses, now int64, _, _ string) {
	clock := "Date.now()"
	if now != 0 {
		clock = fmt.Sprintf("%d", now*1000)
	}
	script := filepath.Join(dir, "pass.js")
	if err := os.WriteFile(script, []byte(edited(t, script, "Date.now()", clock)), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := "listen " + at.listen + ";"
	if at.cert != "" {
		listen = "listen " + at.listen + " ssl http2; ssl_certificate " + at.cert + "; ssl_certificate_key " + at.key + ";"
	}
	const module = "/usr/lib/nginx/modules/ngx_http_js_module.so" // of Debian
	runs(t, program(t, "nginx", dir, "load_module "+module+";\n"+nginxMain(edited(t, filepath.Join(dir, "anteroom.conf"), "listen 80;", listen)), "-p", dir, "-e", "stderr", "-c"))
}

// inNode starts an edge of clients/edge.mjs, with further variables of its environment.
func inNode(kind string, more ...string) func(t *testing.T, dir string, at addresses, now int64, zone, room string) {
	return func(t *testing.T, dir string, at addresses, now int64, zone, room string) {
		node, err := find("node", "nodejs")
		if err != nil {
			t.Fatal(err)
		}
		if kind == "express" || kind == "fastify" {
			npmPackages(t)
		}
		cmd := exec.Command(node, "clients/edge.mjs")
		cmd.Env = append(os.Environ(), "KIND="+kind, "LISTEN="+at.listen, "DIR="+dir, "ANTEROOM="+at.anteroom, "APPLICATION="+at.application, "ZONE="+zone, "ROOM="+room)
		cmd.Env = append(cmd.Env, more...)
		if now != 0 {
			cmd.Env = append(cmd.Env, fmt.Sprintf("NOW=%d", now))
		}
		if dir != "" { // or Node takes the files for CommonJS
			if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type": "module"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		runs(t, cmd)
	}
}

// inWorkerd starts the worker in its own runtime.
func inWorkerd(t *testing.T, dir string, at addresses, now int64, _, _ string) {
	node, err := find("node", "nodejs")
	if err != nil {
		t.Fatal(err)
	}
	npmPackages(t)
	cmd := exec.Command(node, "clients/workerd.mjs")
	cmd.Env = append(os.Environ(), "LISTEN="+at.listen, "DIR="+dir, "ANTEROOM="+at.anteroom, "APPLICATION="+at.application)
	if now != 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("NOW=%d", now))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // workerd is a child of its own, and has to end with it
	runs(t, cmd)
	t.Cleanup(func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
}

// inGo starts an edge in Go before the application.
func inGo(revoked bool) func(t *testing.T, dir string, at addresses, now int64, zone, room string) {
	return func(t *testing.T, _ string, at addresses, now int64, zone, room string) {
		h := &passes.Handler{Origin: through(at.application, nil), Anteroom: &url.URL{Scheme: "http", Host: at.anteroom}, Want: passes.Want{Audience: zone, Room: anteroom.RoomID(room)}, Ends: []string{"/checkout/done"}, Revoked: revoked}
		if now != 0 {
			h.Now = func() time.Time { return time.Unix(now, 0) }
		}
		serveEdge(t, at.listen, h.ServeHTTP)
	}
}

// setting is the room's for this edge.
func (e passEdge) setting() string {
	if e.edge == "" {
		return ""
	}
	return "    pass_edge: " + e.edge + "\n"
}

// startPassEdge starts an edge for the room of a gate.
func startPassEdge(t *testing.T, e passEdge, g *gate, at addresses) {
	t.Helper()
	dir := ""
	if e.recipe != "" {
		dir = writesEdge(t, g, e.recipe, "", at)
	}
	e.start(t, dir, at, 0, "127.0.0.1", string(anteroom.RoomIDOf("127.0.0.1", "shop")))
}

// behindPassEdge starts an application, Anteroom, and an edge in front of both. It fills in their addresses.
func behindPassEdge(t *testing.T, e passEdge, at addresses) (*counted, *gate, addresses) {
	t.Helper()
	app := newCounted(t)
	at.listen, at.application = freeAddress(t), strings.TrimPrefix(app.URL, "http://")
	g := newGate(t, passingSeat+e.setting(), "trusted_proxies: [127.0.0.1]")
	g.origin.url, g.environment = app.URL, []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.configure(g.rooms)
	g.start()
	t.Cleanup(g.end)
	at.anteroom = g.host
	startPassEdge(t, e, g, at)
	return app, g, at
}

// upstream is one that answers its name, and has the public keys of passes, for one host only, if there are any.
func upstream(t *testing.T, name, host string, jwks []byte) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if jwks != nil && r.Host == host && r.URL.Path == "/.well-known/anteroom/jwks.json" {
			w.Write(jwks)
			return
		}
		io.WriteString(w, name)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// The vectors of package pass, at the edges' own verification: a good pass leads to the application, every other to Anteroom.
func TestVectorsOfPassesAtEdges(t *testing.T) {
	t.Parallel()
	var vectors struct {
		Issuer, Audience, Room, PEM string
		JWKS                        json.RawMessage
		Now                         int64
		Secrets                     []struct{ Kid, Secret string }
		Cases                       []struct {
			Name, Alg, Cookie string
			Good              bool
		}
	}
	text, err := os.ReadFile("../../ticket/pass/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{}
	for _, s := range vectors.Secrets {
		secrets[s.Kid] = s.Secret
	}
	for _, e := range passEdges {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			alg := map[bool]string{true: "HS256", false: "ES256"}[e.edge != ""]
			at := addresses{listen: freeAddress(t), application: upstream(t, "the application", "", nil), anteroom: upstream(t, "Anteroom", vectors.Audience, vectors.JWKS)}
			dir := t.TempDir()
			recipe, _ := edges.Named(e.recipe)
			written, err := recipe.Files(edges.Installation{Host: vectors.Audience, Anteroom: at.anteroom, Verdicts: at.anteroom, Application: at.application, Folder: dir,
				Zone: vectors.Audience, Room: vectors.Room, Pass: 30 * time.Second, Issuer: vectors.Issuer, Kid: firstKey(vectors.PEM), Secrets: secrets})
			if err != nil {
				t.Fatal(err)
			}
			if recipe.Keys {
				written["pass.pem"] = vectors.PEM
			}
			for name, text := range written {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			e.start(t, dir, at, vectors.Now, vectors.Audience, vectors.Room)
			ask := func(cookie string) (string, error) {
				r, err := http.NewRequest(http.MethodGet, "http://"+at.listen+"/", nil)
				if err != nil {
					return "", err
				}
				r.Header.Set("Cookie", cookie)
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					return "", err
				}
				defer res.Body.Close()
				body, err := io.ReadAll(res.Body)
				return string(body), err
			}
			eventually(t, 15*time.Second, func() string {
				if _, err := ask(""); err != nil {
					return err.Error()
				}
				return ""
			})
			passed := 0
			for _, c := range vectors.Cases {
				// Where one key is in a file, Anteroom is asked after a rotation until the file has the next.
				want := "Anteroom"
				good := c.Good || e.leeway && (c.Name == "expired" || c.Name == "not yet valid")
				if good && c.Alg == alg && (e.fetches || e.ahead || e.edge != "" || !strings.Contains(c.Name, "key that comes next")) {
					want = "the application"
					passed++
				}
				if got, err := ask(c.Cookie); got != want {
					t.Errorf("%s %s: answered by %q, %v; want %q", c.Alg, c.Name, got, err, want)
				}
			}
			if passed < 4 {
				t.Errorf("%d vectors are good", passed)
			}
		})
	}
}

// firstKey is the name of the first key in what "anteroom key pass --pem" prints.
func firstKey(pem string) string {
	kid := regexp.MustCompile(`(?m)^kid: (\S+)$`).FindStringSubmatch(pem)
	if kid == nil {
		return ""
	}
	return kid[1]
}

// counted is an application that remembers which requests came past Anteroom, and what they carried.
type counted struct {
	*httptest.Server
	arrived chan struct{}
	mu      sync.Mutex
	seen    []*http.Request
}

func newCounted(t *testing.T) *counted {
	o := &counted{arrived: make(chan struct{}, 1)}
	app := application(o.arrived)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.seen = append(o.seen, r)
		o.mu.Unlock()
		app.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

// last returns the newest request for a target, and whether it came straight from the edge.
func (o *counted) last(t *testing.T, target string) (r *http.Request, direct bool) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r = range slices.Backward(o.seen) {
		if r.RequestURI == target {
			return r, len(r.Header["Anteroom-Hop"]) == 0
		}
	}
	t.Fatalf("%s did not arrive", target)
	return nil, false
}

const passingSeat = `  - name: shop
    host: 127.0.0.1
    total_active_users: 1
    new_users_per_minute: 600
    session_duration: 5m
    first_session: 5m
    enabled_origin_commands: revoke
    pass: 30s
`

// passCookie is the name of the pass, without a room's suffix.
const passCookie = "__anteroom_pass"

// holdPass sets the visitor's pass; an empty one removes it.
func (v *visitor) holdPass(value string) {
	v.t.Helper()
	u, err := url.Parse(v.g.url("/"))
	if err != nil {
		v.t.Fatal(err)
	}
	c := &http.Cookie{Name: passCookie, Value: value, Path: "/"}
	if value == "" {
		c.MaxAge = -1
	}
	v.client.Jar.SetCookies(u, []*http.Cookie{c})
}

// pass is the visitor's pass, or "".
func (v *visitor) pass() string {
	for _, c := range v.cookies() {
		if c.Name == passCookie {
			return c.Value
		}
	}
	return ""
}

// The edges that verify passes, with the configurations of examples/edges: the requests of an active user go straight to the
// application as they were sent, Anteroom sees the others, and nobody who waits gets past it.
func TestEdgesWithPasses(t *testing.T) {
	t.Parallel()
	for _, e := range passEdges {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			testPassEdge(t, e)
		})
	}
}

func testPassEdge(t *testing.T, e passEdge) {
	app, g, at := behindPassEdge(t, e, addresses{})
	g.host = at.listen

	inside := newVisitor(t, g)
	eventually(t, 15*time.Second, func() string {
		if a, err := inside.try(http.MethodGet, "/", ""); err != nil || !a.admitted() {
			return fmt.Sprintf("not through %s: %v", e.name, err)
		}
		return ""
	})
	if inside.pass() != "" {
		t.Fatal("a visitor on probation has a pass")
	}
	inside.get("/second")
	if _, direct := app.last(t, "/second"); direct || inside.pass() == "" {
		t.Fatalf("the second request came past Anteroom, or brought no pass: %v", inside.cookies())
	}
	pastAnteroom(t, e, app, inside)

	waiting := newVisitor(t, g)
	if a := waiting.get("/"); a.admitted() || !strings.Contains(a.text(t), "You are in line") {
		t.Fatalf("the waiting page: %s", a.Status)
	}
	if a := waiting.get("/forged", "Cookie", "__anteroom_pass=x; __anteroom_pass="+inside.pass()); a.admitted() {
		t.Error("two passes, one of them copied, let a visitor in")
	}
	if a := waiting.do(http.MethodPost, "/upload", strings.Repeat("x", 900<<10)); a.admitted() || a.StatusCode >= 500 {
		t.Errorf("an upload of a visitor who waits: %s", a.Status)
	}

	// After a rotation an edge may not know the key of new passes: then Anteroom sees every request, and nothing is lost.
	kept := inside.pass()
	rotated, load := make(chan struct{}), sync.WaitGroup{}
	rotate := sync.OnceFunc(func() { close(rotated) })
	t.Cleanup(rotate)
	for range 4 {
		load.Go(func() {
			for done := false; !done; {
				select {
				case <-rotated:
					done = true // one more, with the new key
				default:
				}
				if a, err := inside.try(http.MethodGet, "/load", ""); err != nil || !a.admitted() {
					t.Errorf("under load while the key is rotated: %v, %v", a, err)
					return
				}
			}
		})
	}
	g.command("key", "rotate", "--data", g.data())
	eventually(t, 15*time.Second, func() string {
		inside.holdPass("")
		if a := inside.get("/rotated"); !a.admitted() {
			t.Fatalf("while the key is rotated: %s", a.Status)
		}
		if head, _, _ := strings.Cut(kept, "."); inside.pass() == "" || strings.HasPrefix(inside.pass(), head) {
			return "no pass of the new key"
		}
		return ""
	})
	rotate()
	load.Wait()
	if a := inside.get("/new"); !a.admitted() {
		t.Errorf("a pass whose key the edge does not have: %s", a.Status)
	}
	if _, direct := app.last(t, "/new"); direct && !e.fetches && !e.ahead {
		t.Error("a pass whose key the edge does not have led straight to the application")
	}
	inside.holdPass(kept)

	// While Anteroom is silent, passes are good, and visitors who wait stay where they are.
	g.stands()
	if a := inside.get("/silent"); !a.admitted() {
		t.Errorf("Anteroom is silent, and a good pass got %s", a.Status)
	}
	impatient := *waiting.client
	impatient.Timeout = time.Second
	if res, err := impatient.Get(g.url("/silent-too")); err == nil {
		res.Body.Close()
		t.Errorf("Anteroom is silent: %s for a visitor who waits", res.Status)
	}
	g.signal(syscall.SIGCONT)
	if a := waiting.get("/"); a.admitted() || !strings.Contains(a.text(t), "You are in line") {
		t.Errorf("when Anteroom answers again: %s for a visitor who waits", a.Status)
	}

	g.kill()
	if a := inside.get("/stopped"); !a.admitted() {
		t.Errorf("Anteroom does not run, and a good pass got %s", a.Status)
	}
	if a := waiting.get("/stopped"); a.admitted() || a.StatusCode != e.stopped {
		t.Errorf("Anteroom does not run: %s for a visitor who waits", a.Status)
	}
}

// With HTTP/2 in front, where a browser's cookies come in fields of their own, edges decide as with HTTP/1.1.
func TestEdgesWithPassesByHTTP2(t *testing.T) {
	t.Parallel()
	for _, e := range passEdges {
		if e.name != "haproxy" && !strings.HasPrefix(e.name, "nginx") {
			continue // the others have no HTTP/2 here
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var at addresses
			at.cert, at.key = certificate(t)
			app, _, at := behindPassEdge(t, e, at)

			newClient := func() func(method, target, body string) (*http.Response, string, error) {
				jar, err := cookiejar.New(nil)
				if err != nil {
					t.Fatal(err)
				}
				trust := &tls.Config{InsecureSkipVerify: true} // the edge's certificate is not what is tested
				client := &http.Client{Jar: jar, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: trust}, Timeout: 20 * time.Second}
				t.Cleanup(client.CloseIdleConnections)
				return func(method, target, body string) (*http.Response, string, error) {
					r, err := http.NewRequest(method, "https://"+at.listen+target, strings.NewReader(body))
					if err != nil {
						return nil, "", err
					}
					r.Header.Set("Accept", "text/html")
					r.Header.Add("Cookie", "theme=dark; basket=1")
					res, err := client.Do(r)
					if err != nil {
						return nil, "", err
					}
					defer res.Body.Close()
					if res.ProtoMajor != 2 {
						return nil, "", fmt.Errorf("%s answers by %s", at.listen, res.Proto)
					}
					text, err := io.ReadAll(res.Body)
					return res, string(text), err
				}
			}
			inside, waiting := newClient(), newClient()
			eventually(t, 15*time.Second, func() string {
				if _, _, err := inside(http.MethodGet, "/", ""); err != nil {
					return err.Error()
				}
				return ""
			})
			inside(http.MethodGet, "/second", "") // brings the pass
			upload := strings.Repeat("x", 900<<10)
			if _, text, err := inside(http.MethodPost, "/upload", upload); err != nil || !strings.HasPrefix(text, fmt.Sprintf("%d ", len(upload))) {
				t.Errorf("an upload: %.100s, %v", text, err)
			}
			if r, direct := app.last(t, "/upload"); !direct {
				t.Errorf("a good pass did not lead straight to the application: %v", r.Header)
			} else if cookies := r.Header["Cookie"]; !e.whole && !slices.Equal(cookies, []string{"theme=dark; basket=1"}) {
				t.Errorf("the application sees the cookies %q", cookies)
			}
			if _, text, err := waiting(http.MethodGet, "/", ""); err != nil || !strings.Contains(text, "You are in line") {
				t.Errorf("the waiting page: %.100s, %v", text, err)
			}
			if res, text, err := waiting(http.MethodPost, "/upload", upload); err != nil || res.StatusCode >= 500 || strings.HasPrefix(text, fmt.Sprint(len(upload))) {
				t.Errorf("an upload of a visitor who waits: %.100s, %v", text, err)
			}
		})
	}
}

// pastAnteroom checks that requests with a pass arrive as they were sent, straight from the edge, and those that Anteroom has to
// see through it.
func pastAnteroom(t *testing.T, e passEdge, app *counted, v *visitor) {
	t.Helper()
	const odd = "/a%2Fb//c;d/%41?x=1;y&z=%2F"
	a := v.get(odd, "X-Anteroom-Assertion", "forged", "X_Anteroom_Assertion", "forged", "Sec-Fetch-Mode", "navigate")
	r, direct := app.last(t, odd)
	if !a.admitted() || !direct {
		t.Errorf("%s: %s, straight %v", odd, a.Status, direct)
	}
	for name, values := range r.Header {
		if name == "Cookie" && e.whole {
			continue
		}
		if strings.Contains(strings.ToLower(name), "anteroom") || strings.Contains(strings.Join(values, " "), "__") {
			t.Errorf("the application sees %s: %q", name, values)
		}
	}
	if a := v.do(http.MethodHead, "/head", ""); !a.admitted() || len(a.body) != 0 {
		t.Errorf("HEAD: %s, %d bytes", a.Status, len(a.body))
	}
	if _, direct := app.last(t, "/head"); !direct {
		t.Error("HEAD came through Anteroom")
	}
	body := strings.Repeat("0123456789abcdef", 57_600) // 900 kB
	if a := v.do(http.MethodPost, "/upload", body); !strings.HasPrefix(string(a.body), fmt.Sprintf("%d ", len(body))) || !strings.HasSuffix(string(a.body), "<nil>") {
		t.Errorf("an upload: %s %.200s", a.Status, a.body)
	}
	if _, direct := app.last(t, "/upload"); !direct {
		t.Error("an upload came through Anteroom")
	}
	arrivesInParts(t, v, app.arrived)
	if first := v.firstLine("/events"); first != "first\n" {
		t.Errorf("of a stream of the application came %q", first)
	}
	if a := v.get("/big", "Cookie", "big="+strings.Repeat("x", 8<<10)); !a.admitted() {
		t.Errorf("with a cookie of 8 kB: %s", a.Status)
	}
	if r, direct := app.last(t, "/big"); !direct || !e.whole && len(r.Header.Get("Cookie")) != len("big=")+8<<10 {
		t.Errorf("with a cookie of 8 kB: straight %v, the cookie has %d bytes", direct, len(r.Header.Get("Cookie")))
	}
	for _, through := range []string{"", "bad"} { // straight, and through Anteroom, which adds a pass of its own
		good := v.pass()
		v.holdPass(good + through)
		a := v.get("/cookies")
		if own := slices.DeleteFunc(slices.Clone(a.Header["Set-Cookie"]), func(c string) bool { return strings.HasPrefix(c, "__") }); a.StatusCode != http.StatusInternalServerError ||
			!slices.Equal(own, []string{"basket=1; Path=/", "theme=dark; Path=/"}) {
			t.Errorf("two cookies of the application, with the pass %q: %s %q", through, a.Status, a.Header["Set-Cookie"])
		}
		if _, direct := app.last(t, "/cookies"); direct != (through == "") {
			t.Errorf("/cookies with the pass %q came straight: %v", through, direct)
		}
		v.holdPass(good)
	}
	config, err := websocket.NewConfig("ws://"+v.g.host+"/echo", v.g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	config.Header.Set("Cookie", ticketCookie+"="+v.ticketValue()+"; "+passCookie+"="+v.pass())
	if ws, err := config.DialContext(t.Context()); err != nil {
		t.Error(err)
	} else {
		ws.Close()
	}
	if _, direct := app.last(t, "/echo"); direct {
		t.Error("a WebSocket came past Anteroom")
	}
	v.get("/checkout/done")
	if _, direct := app.last(t, "/checkout/done"); direct {
		t.Error("the path at which sessions end came past Anteroom")
	}
	good := v.pass()
	v.holdPass(good + "x")
	if a := v.get("/bad"); !a.admitted() {
		t.Errorf("a bad pass beside a good ticket: %s", a.Status)
	}
	v.holdPass(good)
	if _, direct := app.last(t, "/bad"); direct {
		t.Error("a bad pass led straight to the application")
	}
}

// The files for applications in other languages read the vectors as they are meant. In Python, those of ES256 need a package besides.
func TestVectorsOfPassesInOtherLanguages(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{
		{"python3", "-B", "anteroom_pass.py", vectorsOfPasses, "--hs256"},
		{"php", "anteroom_pass.php", vectorsOfPasses},
		{"ruby", "anteroom_pass.rb", vectorsOfPasses},
	} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			path, err := find(command[0])
			if err != nil {
				t.Fatal(err)
			}
			run := exec.Command(path, command[1:]...)
			run.Dir = "../../examples/edges/snippets"
			if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), " vectors, 0 wrong") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// vectorsOfPasses are there from the folder of the snippets.
const vectorsOfPasses = "../../../ticket/pass/testdata/vectors.json"
