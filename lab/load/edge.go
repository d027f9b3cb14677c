package load

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// Edges are the proxies that may stand before the gateway and verify passes: recipes of examples/edges.
var Edges = []string{"nginx-pass", "haproxy-pass"}

const (
	edgePass  = 10 * time.Second                               // how long a pass is valid: the shortest there is
	edgeToken = "load-run-load-run-load-run-load-run-load-run" // of the API, for the command that writes the recipe
	njsModule = "/usr/lib/nginx/modules/ngx_http_js_module.so"
	// connectionsAtEdge is enough for the crowd's workers and streams, on both sides.
	connectionsAtEdge = 8192
)

// counts counts what the origin sees: all requests, and those that did not come through the gateway, which marks its own.
type counts struct {
	all, straight atomic.Uint64
	next          http.Handler
}

func (c *counts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.all.Add(1)
	if len(r.Header["Anteroom-Hop"]) == 0 {
		c.straight.Add(1)
	}
	c.next.ServeHTTP(w, r)
}

// roomAtEdge are the settings of a room whose passes the edge verifies.
func (p *process) roomAtEdge() string {
	switch p.o.Edge {
	case "":
		return ""
	case "nginx-pass":
		return fmt.Sprintf("    pass: %s\n    pass_edge: nginx\n", edgePass)
	}
	return fmt.Sprintf("    pass: %s\n", edgePass)
}

// startEdge has the binary write the recipe, and starts the proxy with it. It returns where visitors come.
func (p *process) startEdge(origin string) (string, error) {
	dir := filepath.Join(p.o.Dir, "edge")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	init := exec.Command(p.o.Binary, "edge", "init", p.o.Edge, "--room", "load", "--host", "127.0.0.1", "--application", origin, "--anteroom", p.listen, "--out", dir,
		"--data", p.data(), "--api", "http://"+p.admin, "--token", edgeToken)
	if out, err := init.CombinedOutput(); err != nil {
		return "", fmt.Errorf("load: anteroom edge init: %w: %s", err, out)
	}
	file, change := "anteroom.conf", [2]string{"listen 80;", "listen " + p.before + ";"}
	if p.o.Edge == "haproxy-pass" {
		file, change = "haproxy.cfg", [2]string{"bind :80", "bind " + p.before}
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return "", err
	}
	recipe := string(text)
	if strings.Count(recipe, change[0]) != 1 {
		return "", fmt.Errorf("load: %s has not %q once", file, change[0])
	}
	recipe = strings.Replace(recipe, change[0], change[1], 1)
	var args []string
	program := "haproxy"
	if p.o.Edge == "nginx-pass" {
		program, args = "nginx", []string{"-p", dir, "-e", "stderr", "-c"}
		recipe = fmt.Sprintf("load_module %s;\ndaemon off; master_process off; pid pid; error_log stderr; worker_rlimit_nofile %d; events { worker_connections %d; }\n"+
			"http { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n%s}\n", njsModule, 2*connectionsAtEdge, connectionsAtEdge, recipe)
	} else {
		args = []string{"-db", "-n", fmt.Sprint(connectionsAtEdge), "-f"}
	}
	whole := filepath.Join(dir, "configuration")
	if err := os.WriteFile(whole, []byte(recipe), 0o600); err != nil {
		return "", err
	}
	path, err := exec.LookPath(program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + program); err != nil {
			return "", fmt.Errorf("load: %s is not installed: %w", program, err)
		}
	}
	p.edge = exec.Command(path, append(args, whole)...)
	p.edge.Stdout, p.edge.Stderr = p.log, p.log
	if err := p.edge.Start(); err != nil {
		p.edge = nil
		return "", fmt.Errorf("load: %s: %w", program, err)
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", p.before)
		if err == nil {
			c.Close()
			return p.before, nil
		}
		if time.Since(began) > startWithin {
			return "", errors.Join(fmt.Errorf("load: %s does not listen: see %s", program, p.log.Name()), err)
		}
	}
}

// stopEdge ends the proxy and says what it cost.
func (p *process) stopEdge() (cpu time.Duration) {
	if p.edge == nil {
		return 0
	}
	p.edge.Process.Kill()
	p.edge.Wait()
	return p.edge.ProcessState.UserTime() + p.edge.ProcessState.SystemTime()
}
