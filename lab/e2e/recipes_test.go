package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/anteroom/anteroom/sim/demo/shop"
)

// recipe is a file below examples/, with the addresses of a test in the place of its own.
func recipe(t *testing.T, name string, addresses ...string) string {
	t.Helper()
	return edited(t, "../../examples/"+name, addresses...)
}

// edited is the text of a file in which every other text stands in the place of the one before it.
func edited(t *testing.T, name string, addresses ...string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i := 0; i+1 < len(addresses); i += 2 {
		if strings.Count(text, addresses[i]) != 1 {
			t.Fatalf("%s has %q not exactly once", name, addresses[i])
		}
		text = strings.Replace(text, addresses[i], addresses[i+1], 1)
	}
	return text
}

// application is what the proxies' recipes are for: it takes uploads, opens WebSockets, and reports the client's address.
// Where an upload's first byte arrived, arrived is told.
func application(arrived chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /upload", func(w http.ResponseWriter, r *http.Request) {
		body := bufio.NewReader(r.Body)
		if _, err := body.Peek(1); err == nil && r.ContentLength < 0 {
			arrived <- struct{}{}
		}
		sum := sha256.New()
		n, err := io.Copy(sum, body)
		fmt.Fprintf(w, "%d %x %v", n, sum.Sum(nil), err)
	})
	mux.HandleFunc("POST /leave", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cf-Waiting-Room-Command", "revoke") })
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "first\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done() // until the visitor has read it
	})
	mux.HandleFunc("GET /client", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-For"), " ", r.Header.Get("X-Forwarded-Proto"), " ", r.Host)
	})
	mux.HandleFunc("GET /cookies", func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = []string{"basket=1; Path=/", "theme=dark; Path=/"}
		w.WriteHeader(http.StatusInternalServerError) // as errors have them, too
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the shop") })
	socket := websocket.Handler(func(ws *websocket.Conn) { io.Copy(ws, ws) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/echo" {
			socket.ServeHTTP(w, r)
			return
		}
		w.Header().Set(shop.Mark, "1")
		mux.ServeHTTP(w, r)
	})
}

// The proxies' recipes that docs/deploy.md shows, with the real proxies: large uploads arrive whole and while they are
// sent, WebSockets open, the waiting page's stream is not held back, and Anteroom knows the visitor's address.
func TestRecipesOfProxies(t *testing.T) {
	t.Parallel()
	for _, proxy := range []struct {
		name  string
		start func(t *testing.T, dir, listen, anteroom string) *exec.Cmd
	}{
		{"nginx", func(t *testing.T, dir, listen, anteroom string) *exec.Cmd {
			server := recipe(t, "nginx/anteroom.conf", "listen 80;", "listen "+listen+";", "server 127.0.0.1:8080;", "server "+anteroom+";")
			return program(t, "nginx", dir, nginxMain(server), "-p", dir, "-e", "stderr", "-c")
		}},
		{"haproxy", func(t *testing.T, dir, listen, anteroom string) *exec.Cmd {
			return program(t, "haproxy", dir, recipe(t, "haproxy/haproxy.cfg", "bind :80", "bind "+listen, "server one 127.0.0.1:8080", "server one "+anteroom), "-db", "-f")
		}},
	} {
		t.Run(proxy.name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan struct{}, 1)
			origin := httptest.NewServer(application(arrived))
			t.Cleanup(origin.Close)
			trusted := regexp.MustCompile(`(?m)^trusted_proxies: .*$`).FindString(recipe(t, "nginx/anteroom.yaml"))
			g := newGate(t, oneSeat, trusted)
			g.origin.url = origin.URL
			g.configure(g.rooms)
			g.start()
			t.Cleanup(g.end)
			listen := freeAddress(t)
			var said bytes.Buffer
			cmd := proxy.start(t, t.TempDir(), listen, g.host)
			cmd.Stdout, cmd.Stderr = &said, &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				cmd.Process.Kill()
				cmd.Wait()
			})
			g.host = listen // visitors come through the proxy from now on
			inside := newVisitor(t, g)
			eventually(t, 15*time.Second, func() string {
				a, err := inside.try(http.MethodGet, "/", "")
				if err != nil || !a.admitted() {
					return fmt.Sprintf("not through %s: %v\n%s", proxy.name, err, said.String())
				}
				return ""
			})

			body := strings.Repeat("0123456789abcdef", 300_000) // 4.8 MB
			sum := sha256.Sum256([]byte(body))
			if a := inside.do(http.MethodPost, "/upload", body); string(a.body) != fmt.Sprintf("%d %s <nil>", len(body), hex.EncodeToString(sum[:])) {
				t.Errorf("an upload of %d bytes: %s %.200s", len(body), a.Status, a.body)
			}
			arrivesInParts(t, inside, arrived)
			if first := inside.firstLine("/events"); first != "first\n" {
				t.Errorf("of a stream of the application came %q", first)
			}

			if a := inside.get("/client", "X-Forwarded-For", "203.0.113.9"); string(a.body) != "203.0.113.9, 127.0.0.1, 127.0.0.1 http "+listen {
				t.Errorf("the application sees %q", a.body)
			}
			_, metrics := g.ask("/metrics")
			if ignored := regexp.MustCompile(`(?m)^anteroom_ignored_forwarding_headers_total (.*)$`).FindStringSubmatch(metrics); ignored == nil || ignored[1] != "0" {
				t.Errorf("forwarding headers were ignored: %q", ignored)
			}
			echoesThrough(t, inside)

			waiting := newVisitor(t, g).wait()
			stream := waiting.stream()
			inside.leave()
			if event := <-stream; !strings.Contains(event, `"admitted":true`) {
				t.Errorf("the stream said %q", event)
			}
			if a := waiting.get("/"); !a.admitted() {
				t.Errorf("the next visitor is not in: %s", a.Status)
			}
		})
	}
}

// nginxMain is an nginx.conf around a server, for an nginx that keeps to its folder.
func nginxMain(server string) string {
	return "daemon off; master_process off; pid pid; error_log stderr; events {}\nhttp { access_log off; client_body_temp_path body; proxy_temp_path proxy;\n" +
		"fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n" + server + "}\n"
}

// program is a proxy that runs with a configuration, whose file's name is the last argument.
func program(t *testing.T, name, dir, configuration string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := find(name)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "configuration")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, append(args, file)...)
}

// arrivesInParts sends an upload of which the second part follows when the first has arrived.
func arrivesInParts(t *testing.T, v *visitor, arrived <-chan struct{}) {
	t.Helper()
	r, w := io.Pipe()
	go func() {
		w.Write(bytes.Repeat([]byte("a"), 1<<16))
		select {
		case <-arrived:
			w.Write([]byte("b"))
			w.Close()
		case <-time.After(10 * time.Second):
			w.CloseWithError(fmt.Errorf("the first part of the upload did not arrive"))
		}
	}()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.g.url("/upload"), r)
	if err != nil {
		t.Fatal(err)
	}
	res, err := v.client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(res.Body); err != nil || !strings.HasPrefix(string(answer), "65537 ") {
		t.Errorf("an upload in two parts: %s %v %s", res.Status, err, answer)
	}
}

// firstLine reads the first line of an answer that does not end.
func (v *visitor) firstLine(path string) string {
	v.t.Helper()
	ctx, stop := context.WithTimeout(v.t.Context(), 10*time.Second)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.g.url(path), nil)
	if err != nil {
		v.t.Fatal(err)
	}
	res, err := v.client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return line
}

// echoesThrough opens a WebSocket of an admitted visitor.
func echoesThrough(t *testing.T, v *visitor) {
	t.Helper()
	config, err := websocket.NewConfig("ws://"+v.g.host+"/echo", v.g.url("/"))
	if err != nil {
		t.Fatal(err)
	}
	config.Header.Set("Cookie", ticketCookie+"="+v.ticketValue())
	ws, err := config.DialContext(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	defer ws.Close()
	got := make([]byte, 5)
	if _, err := ws.Write([]byte("hello")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(ws, got); err != nil || string(got) != "hello" {
		t.Errorf("the WebSocket said %q, %v", got, err)
	}
}

// stream opens the waiting page's stream and returns what it says about the visitor's turn.
func (v *visitor) stream() <-chan string {
	v.t.Helper()
	ctx, stop := context.WithTimeout(v.t.Context(), 30*time.Second)
	v.t.Cleanup(stop)
	said := make(chan string, 1)
	opened := make(chan error, 1)
	go func() {
		defer close(said)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.g.url("/?"+url.Values{"__anteroom": {"stream"}}.Encode()), nil)
		if err != nil {
			opened <- err
			return
		}
		res, err := v.client.Do(req)
		if err == nil && !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
			err = fmt.Errorf("%s %s", res.Status, res.Header.Get("Content-Type"))
		}
		opened <- err
		if err != nil {
			return
		}
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"admitted":true`) {
				said <- lines.Text()
				return
			}
		}
	}()
	if err := <-opened; err != nil {
		v.t.Fatal(err)
	}
	return said
}
