package gateway

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// peers are the proxies that Anteroom is compared with, each with one process, connections kept open on both sides and no
// log.
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
	path, err := exec.LookPath(name)
	if err != nil {
		if path = "/usr/sbin/" + name; exec.Command(path, "-v").Run() != nil {
			b.Fatalf("%s is not installed: %v", name, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p := peers[name]
	cmd := exec.Command(path, p.args...)
	cmd.Dir, cmd.Stderr = b.TempDir(), os.Stderr
	if err := os.WriteFile(filepath.Join(cmd.Dir, p.file), []byte(p.text(port, origin)), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	address := "127.0.0.1:" + strconv.Itoa(port)
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
	stat := fmt.Sprintf("/proc/%d/schedstat", cmd.Process.Pid)
	return role{addr: address, ask: func() (u usage) {
		text, err := os.ReadFile(stat)
		if err != nil {
			b.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		return usage{cpu: time.Duration(n)}
	}}
}

// BenchmarkPeers reports the processor time of an admitted request beside that of nginx and HAProxy in the same run, as
// ratios of times: on/nginx of 1.6 says that Anteroom, with a room and a proof, needs 1.6 times what nginx needs (budgets:
// 1 kB 1.6, POST of 640 bytes 2, 64 kB 1.5).
func BenchmarkPeers(b *testing.B) {
	for _, c := range []struct {
		name string
		size int
		body string
	}{{"1kB", 1 << 10, ""}, {"POST", 1 << 10, strings.Repeat("x", 640)}, {"64kB", 64 << 10, ""}} {
		b.Run(c.name, func(b *testing.B) {
			origin := startRole(b, fmt.Sprint("bare ", c.size)).addr
			on := startRole(b, "room-on "+origin)
			on.body = c.body
			roles := map[string]role{"on": on}
			for _, name := range []string{"nginx", "haproxy", "off", "nethttp"} {
				var r role
				switch name {
				case "off":
					r = startRole(b, "room-off "+origin)
				case "nethttp":
					r = startRole(b, "room-on-nethttp "+origin)
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
				m := rounds(b, 6400, 64, roles)
				for _, other := range []string{"nginx", "haproxy", "off", "nethttp"} {
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
