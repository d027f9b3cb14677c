package natslink

import (
	"fmt"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// A core that hears no other core can win no election. NATS lets it stand all the same, in one term after the other; and
// the first message of it that arrives again ends the leaders of all others, so no store takes writes for two seconds
// more. A leader whose messages arrive while it hears nothing keeps the others from electing one for 4 to 6 s. So
// cores tell each other several times a second that they are there, and whoever hears nobody stands in no election and
// gives up what it leads.
const (
	hereEvery = 100 * time.Millisecond
	// deafAfter is how long a core hears nobody until it stands in no election: less than the shortest time after which
	// one begins (raftTimes), which counts from about the last message.
	deafAfter = 600 * time.Millisecond
	// yieldAfter is how long it hears nobody until it gives up what it leads.
	yieldAfter = time.Second

	subjectHere = "anteroom.here"
)

// raftNode returns the part that the server has in a group, or nil.
//
//go:linkname raftNode github.com/nats-io/nats-server/v2/server.(*Server).lookupRaftNode
func raftNode(s *server.Server, group string) server.RaftNode

// hearCores keeps this core out of elections while it hears no other core, until the connection is closed. A core that
// has heard nobody yet is left alone: it may be the first one to start.
func (a *attachment) hearCores() error {
	start := time.Now()
	var heard atomic.Int64 // when, since start; 0: never
	own := a.server.cfg.Node
	_, err := a.system.Subscribe(subjectHere, func(m *nats.Msg) {
		if string(m.Data) != own {
			heard.Store(int64(time.Since(start)))
		}
	})
	if err != nil {
		return fmt.Errorf("natslink: hearing of other cores: %w", err)
	}
	go func() {
		tick := time.NewTicker(hereEvery)
		defer tick.Stop()
		shy := map[string]server.RaftNode{} // groups in which it stands in no election
		yielded := false
		for range tick.C {
			if a.system.IsClosed() {
				return
			}
			a.system.Publish(subjectHere, []byte(own)) // an error means that nobody hears it
			last := time.Duration(heard.Load())
			silent := time.Since(start) - last
			switch {
			case last == 0:
			case silent < deafAfter:
				for _, n := range shy {
					n.SetObserver(false)
				}
				clear(shy)
				yielded = false
			default:
				a.server.standAside(shy)
				if silent >= yieldAfter && !yielded {
					yielded = true
					for _, n := range shy {
						if n.Leader() {
							n.StepDown()
						}
					}
				}
			}
		}
	}()
	return nil
}

// standAside takes this core out of the elections of its groups and adds those to shy.
func (s *coreServer) standAside(shy map[string]server.RaftNode) {
	srv := s.srv()
	for _, account := range []string{accountSite, accountShared, accountSystem} {
		status := srv.Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			continue
		}
		for _, groups := range *status {
			for group, is := range groups {
				if n := raftNode(srv, group); n != nil && !is.Observer && shy[group] != n {
					n.SetObserver(true)
					shy[group] = n
				}
			}
		}
	}
}
