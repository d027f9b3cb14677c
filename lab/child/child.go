// Package child runs the product's binary as a child process: with none of the caller's settings, waited for until it is
// ready, asked to end, or killed.
package child

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/walltime"
)

// Process is a process that was started.
type Process struct {
	*exec.Cmd
	// Exited is closed when it has ended.
	Exited chan struct{}
}

// Start starts a command by start, which is (*exec.Cmd).Start or does more. Of the caller's environment, what would set up
// the product is left out; more is what is added. When the process ends, ended is called before Exited is closed; nil
// does nothing.
func Start(cmd *exec.Cmd, start func(*exec.Cmd) error, ended func(*Process), more ...string) (*Process, error) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ANTEROOM_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, more...)
	if err := start(cmd); err != nil {
		return nil, err
	}
	p := &Process{Cmd: cmd, Exited: make(chan struct{})}
	go func() {
		cmd.Wait()
		if ended != nil {
			ended(p)
		}
		close(p.Exited)
	}()
	return p, nil
}

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// Ready waits until the process says at its admin address that it is ready. Errors say that it has ended, or is not ready
// within the time.
func (p *Process) Ready(ctx context.Context, admin string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for {
		said := ""
		if resp, err := client.Get("http://" + admin + "/-/ready"); err == nil {
			b := make([]byte, 200)
			n, _ := resp.Body.Read(b)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			said = strings.TrimSpace(string(b[:n]))
		} else {
			said = err.Error()
		}
		if !p.Running() {
			return fmt.Errorf("ended (%v) before it was ready", p.ProcessState)
		}
		if !walltime.Sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("was not ready within %v (%s)", within, said)
		}
	}
}

// Stop asks the process to end by a signal, and kills it if it has not within the time, which is an error.
func (p *Process) Stop(by os.Signal, within time.Duration) error {
	if err := p.Process.Signal(by); err != nil {
		return err
	}
	select {
	case <-p.Exited:
		return nil
	case <-time.After(within):
		p.Process.Kill()
		return fmt.Errorf("did not end within %v of %v", within, by)
	}
}
