package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/anteroom/anteroom/internal/freeport"
	"github.com/anteroom/anteroom/lab/child"
)

const (
	// startWithin is how long the gateway may take until it is ready.
	startWithin = 30 * time.Second
	// stopWithin is how long it may take to end when asked to.
	stopWithin = 40 * time.Second
)

// process is the anteroom binary as a child.
type process struct {
	o             Options
	listen, admin string
	before        string    // where the proxy before it listens, if there is one
	ports         io.Closer // holds these for it
	origin        *http.Server
	log           *os.File
	gateway       *child.Process // nil while there is none
	cpu           time.Duration  // of those that ended
	edge          *exec.Cmd      // the proxy before it, if there is one
	mounted       bool           // the data has a file system of its own
}

func newProcess(o Options) *process { return &process{o: o} }

// configuration is the whole file: one room before one origin, everything else as shipped.
func (p *process) configuration(origin string) string {
	host, trust := "*", ""
	if p.o.Edge != "" { // recipes are for one host
		host, trust = "127.0.0.1", "trusted_proxies: [127.0.0.1]\n"
	}
	return fmt.Sprintf(`listen: %q
admin: %q
data: %q
log: {level: info, format: json}
sites:
  - hosts: ["*"]
    origins: [%q]
rooms:
  - name: load
    zone: load.test
    host: %q
    total_active_users: %d
    new_users_per_minute: %d
    session_duration: %s
    json_response_enabled: true
%s`, p.listen, p.admin, p.data(), origin, host, p.o.Active, p.o.PerMinute, p.o.SessionDuration, p.roomAtEdge()) + trust
}

func (p *process) open(ctx context.Context, origin http.Handler) (string, error) {
	var err error
	if p.o.Binary == "" {
		return "", errors.New("load: no binary: build one (go build -o bin/anteroom ./cmd/anteroom) and name it with -binary")
	}
	if p.o.Binary, err = filepath.Abs(p.o.Binary); err != nil {
		return "", fmt.Errorf("load: %w", err)
	}
	if p.o.Dir, err = filepath.Abs(p.o.Dir); err != nil {
		return "", fmt.Errorf("load: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(p.o.Dir, dataDir)); err != nil { // of an earlier run
		return "", fmt.Errorf("load: %w", err)
	}
	if p.o.onDisk() {
		if err := p.mount(); err != nil {
			return "", err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("load: the origin: %w", err)
	}
	p.origin = &http.Server{Handler: origin, ReadHeaderTimeout: 10 * time.Second}
	go p.origin.Serve(l)
	// The gateway has to come back at the same ports after a kill, so it cannot choose them itself.
	first, ports, err := freeport.Claim(3)
	if err != nil {
		return "", fmt.Errorf("load: %w", err)
	}
	p.ports, p.listen, p.admin = ports, freeport.Addr(first), freeport.Addr(first+1)
	p.before = freeport.Addr(first + 2)
	if err := os.WriteFile(filepath.Join(p.o.Dir, configFile), []byte(p.configuration("http://"+l.Addr().String())), 0o644); err != nil {
		return "", fmt.Errorf("load: %w", err)
	}
	if p.log, err = os.Create(filepath.Join(p.o.Dir, gatewayLog)); err != nil {
		return "", fmt.Errorf("load: %w", err)
	}
	if err := p.restart(ctx); err != nil {
		p.close()
		return "", err
	}
	if p.o.Edge == "" {
		return "http://" + p.listen, nil
	}
	edge, err := p.startEdge(l.Addr().String())
	if err != nil {
		p.close()
		return "", err
	}
	return "http://" + edge, nil
}

func (p *process) restart(ctx context.Context) error {
	cmd := exec.Command(p.o.Binary, "run", "--config", filepath.Join(p.o.Dir, configFile))
	cmd.Stdout, cmd.Stderr = p.log, p.log
	var token []string
	if p.o.Edge != "" {
		token = []string{"ANTEROOM_API_TOKEN=" + edgeToken}
	}
	var err error
	if p.gateway, err = child.Start(cmd, (*exec.Cmd).Start, nil, token...); err != nil {
		return fmt.Errorf("load: the gateway: %w", err)
	}
	if err := p.gateway.Ready(ctx, p.admin, startWithin); err != nil {
		return fmt.Errorf("load: the gateway %w: see %s", err, p.log.Name())
	}
	return nil
}

// endedItself is the error of a gateway that nobody has asked to end.
func (p *process) endedItself() error {
	return fmt.Errorf("the gateway has ended by itself (%v): see %s", p.gateway.ProcessState, p.log.Name())
}

func (p *process) kill() error {
	if !p.gateway.Running() {
		return fmt.Errorf("load: %w", p.endedItself())
	}
	err := p.gateway.Process.Kill()
	p.ended()
	if err != nil {
		return fmt.Errorf("load: kill: %w", err)
	}
	return nil
}

// ended waits for the child and counts what it cost.
func (p *process) ended() {
	<-p.gateway.Exited
	if s := p.gateway.ProcessState; s != nil {
		p.cpu += s.UserTime() + s.SystemTime()
	}
	p.gateway = nil
}

func (p *process) close() (time.Duration, error) {
	var fault error
	edge := p.stopEdge()
	if p.gateway != nil {
		if !p.gateway.Running() {
			fault = p.endedItself()
		} else if err := p.gateway.Stop(os.Interrupt, stopWithin); err != nil {
			fault = fmt.Errorf("the gateway %w: see %s", err, p.log.Name())
		}
		p.ended()
	}
	if p.origin != nil {
		p.origin.Close()
	}
	if p.log != nil {
		p.log.Close()
	}
	if p.ports != nil {
		p.ports.Close()
	}
	return p.cpu + edge, errors.Join(fault, p.unmount())
}
