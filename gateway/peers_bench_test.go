package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/examples/edges"
	"github.com/anteroom/anteroom/ticket/pass"
)

// peers are the proxies that Anteroom is compared with, each with one process on one core, connections kept open on both
// sides and no log. scripts/bench-peers installs them.
var peers = map[string]struct {
	file string
	args []string
	text func(port int, origin string) string
}{
	"nginx": {"nginx.conf", []string{"-p", ".", "-c", "nginx.conf", "-e", "stderr"}, func(port int, origin string) string {
		return fmt.Sprintf(`daemon off; master_process off; pid nginx.pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream origin { server %s; keepalive 256; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:%d;
    location / {
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`, origin, port)
	}},
	"haproxy": {"haproxy.cfg", []string{"-db", "-f", "haproxy.cfg"}, func(port int, origin string) string {
		return fmt.Sprintf(`global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  http-reuse always
  option forwardfor
frontend visitors
  bind 127.0.0.1:%d
  default_backend origin
backend origin
  server origin %s pool-max-conn 256
`, port, origin)
	}},
}

// startPeer runs one of peers before an origin. The processor time is that of its one process, by Linux' scheduler.
func startPeer(b *testing.B, name, origin string) role {
	b.Helper()
	p := peers[name]
	return startPeerIn(b, name, b.TempDir(), p.file, p.args, func(port int) string { return p.text(port, origin) })
}

// startFastHTTP runs a proxy of fasthttp, which is a program of its own so that we do not depend on that library.
func startFastHTTP(b *testing.B, origin string) role {
	b.Helper()
	return startListener(b, "anteroom-peer-fasthttp", b.TempDir(), func(address string) []string { return []string{address, origin} })
}

// startPeerIn runs a proxy in a folder, with a configuration that listens on a port.
func startPeerIn(b *testing.B, name, dir, file string, args []string, text func(port int) string) role {
	b.Helper()
	return startListener(b, name, dir, func(address string) []string {
		port := netip.MustParseAddrPort(address).Port()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text(int(port))), 0o600); err != nil {
			b.Fatal(err)
		}
		return args
	})
}

// startListener runs a program in a folder, with arguments that have it listen on an address.
func startListener(b *testing.B, name, dir string, args func(address string) []string) role {
	b.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if path = "/usr/sbin/" + name; exec.Command(path, "-v").Run() != nil {
			b.Fatalf("%s is not installed (scripts/bench-peers does it): %v", name, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	cmd := exec.Command(path, args(address)...)
	cmd.Dir, cmd.Stderr, cmd.Env = dir, os.Stderr, append(os.Environ(), "GOMAXPROCS=1")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			b.Fatalf("%s does not listen: %v", name, err)
		}
	}
	threads := fmt.Sprintf("/proc/%d/task/*/schedstat", cmd.Process.Pid)
	return role{addr: address, ask: func() (u usage) {
		stats, err := filepath.Glob(threads)
		if err != nil || len(stats) == 0 {
			b.Fatalf("%s: no processor time of %s: %v", threads, name, err)
		}
		for _, stat := range stats {
			text, err := os.ReadFile(stat)
			if err != nil {
				b.Fatal(err)
			}
			n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			u.cpu += time.Duration(n)
		}
		return u
	}}
}

// BenchmarkPeers reports the processor time of an admitted request beside that of nginx and HAProxy in the same run, as
// ratios of times: on/nginx of 1.6 says that Anteroom, with a room and a proof, needs 1.6 times what nginx needs (budgets:
// 1 kB 1.6, POST of 640 bytes 2, 64 kB 1.5). The role "reverseproxy" is httputil.ReverseProxy with nothing but our buffers
// and net/http's transport.
func BenchmarkPeers(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
		body string
		many int // requests of a round
	}{{"1kB", 1 << 10, "", 6400}, {"POST", 1 << 10, strings.Repeat("x", 640), 6400}, {"64kB", 64 << 10, "", 6400}, {"1MB", 1 << 20, "", 640}} {
		b.Run(c.name, func(b *testing.B) {
			origin := startRole(b, fmt.Sprint("bare ", c.size)).addr
			on := startRole(b, "room-on "+origin)
			on.body = c.body
			roles := map[string]role{"on": on}
			others := []string{"nginx", "haproxy", "fasthttp", "off", "reverseproxy", "nethttp"}
			for _, name := range others {
				var r role
				switch name {
				case "off":
					r = startRole(b, "room-off "+origin)
				case "nethttp":
					r = startRole(b, "room-on-nethttp "+origin)
				case "reverseproxy":
					r = startRole(b, "plain "+origin)
				case "fasthttp":
					r = startFastHTTP(b, origin)
				default:
					r = startPeer(b, name, origin)
				}
				if name != "nethttp" {
					r.cookies = on.cookies // the same requests for all
				}
				r.body = c.body
				roles[name] = r
			}
			for b.Loop() {
				m := rounds(b, c.many, 64, roles)
				for _, other := range others {
					var list []float64
					for i, t := range m.of("on") {
						list = append(list, float64(t)/float64(m[other][i].cpu))
					}
					slices.Sort(list)
					b.ReportMetric(list[len(list)/2], "on/"+other)
				}
			}
		})
	}
}

// requestsPerPass is how many requests a pass is for in BenchmarkPeersPass: the last one goes to Anteroom, and renews it.
const requestsPerPass = 10

// BenchmarkPeersPass reports what passes cost where nginx verifies them by njs (HS256), beside the same nginx that only forwards: over-µs is
// what nginx and Anteroom need more for a request, together, and anteroom-µs what of that is Anteroom's, one of ten requests being its. The
// tenth request has a ticket and no pass, and Anteroom forwards it with a proof; the signature of the next pass is not in it
// (BenchmarkIssue of ticket/pass). Goals: 50 and 2.
func BenchmarkPeersPass(b *testing.B) {
	const module = "/usr/lib/nginx/modules/ngx_http_js_module.so" // of Debian
	if _, err := os.Stat(module); err != nil {
		b.Fatalf("njs is not installed (apt-get install libnginx-mod-http-js): %v", err)
	}
	origin := startRole(b, "bare 1024").addr
	anteroom := startRole(b, "room-on "+origin)
	keys, err := pass.NewKeys(pass.Key{ID: "1", Seed: pass.Seed{1}})
	if err != nil {
		b.Fatal(err)
	}
	secrets, err := keys.Edge("nginx")
	if err != nil {
		b.Fatal(err)
	}
	dir, of := b.TempDir(), edges.Example
	of.Host, of.Anteroom, of.Application, of.Folder, of.Secrets = testHost, anteroom.addr, origin, dir, map[string]string{secrets[0].ID: secrets[0].Text}
	issuer, err := keys.Issuer(of.Issuer, of.Zone, "0123456789abcdef0123456789abcdef", "nginx")
	if err != nil {
		b.Fatal(err)
	}
	token, err := issuer.Issue("session", time.Now(), time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	recipe, _ := edges.Named("nginx-pass")
	files, err := recipe.Files(of)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pass.js"), []byte(files["pass.js"]), 0o600); err != nil {
		b.Fatal(err)
	}
	edge := startPeerIn(b, "nginx", dir, "nginx.conf", []string{"-p", ".", "-c", "nginx.conf", "-e", "stderr"}, func(port int) string {
		return "load_module " + module + ";\ndaemon off; master_process off; pid nginx.pid; error_log stderr error; events { worker_connections 4096; }\n" +
			"http { access_log off; keepalive_requests 100000000; keepalive_timeout 600s; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n" +
			strings.Replace(files["anteroom.conf"], "listen 80;", "listen 127.0.0.1:"+strconv.Itoa(port)+";", 1) + "}\n"
	})
	for i, ticket := range anteroom.cookies {
		if i%requestsPerPass != 0 {
			ticket += "; " + pass.Cookie + "=" + token
		}
		edge.cookies = append(edge.cookies, ticket)
	}
	alone := edge.ask
	edge.ask = func() usage { return usage{cpu: alone().cpu + anteroom.ask().cpu} }
	plain := startPeer(b, "nginx", origin)
	plain.cookies = edge.cookies // the same requests for both
	for i, want := range []bool{true, false} {
		before := anteroom.ask().cpu
		for range 200 {
			edge.answer(b, i)
		}
		if took := anteroom.ask().cpu - before; (took > 2*time.Millisecond) != want {
			b.Fatalf("request %d: Anteroom needed %v for 200 of them; asked: want %v", i, took, want)
		}
	}
	for b.Loop() {
		begun := anteroom.ask().cpu
		const n, connections = 6400, 60 // connections in proportion: each sends the same request all the time
		m := rounds(b, n, connections, map[string]role{"edge": edge, "plain": plain})
		b.ReportMetric(float64(anteroom.ask().cpu-begun)/1e3/float64(n*(len(m["edge"])+1)), "anteroom-µs") // with the round that warms up
		var over, times []float64
		for i, t := range m.of("edge") {
			over = append(over, float64(t-m["plain"][i].cpu)/1e3)
			times = append(times, float64(t)/float64(m["plain"][i].cpu))
		}
		slices.Sort(over)
		slices.Sort(times)
		b.ReportMetric(over[len(over)/2], "over-µs")
		b.ReportMetric(times[len(times)/2], "edge/plain")
	}
}
