package natslink

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	_ "github.com/nats-io/nats-server/v2/server" // whose variables these are
	"github.com/nats-io/nats-server/v2/server/ats"

	"github.com/anteroom/anteroom/internal/walltime"
)

// The times of NATS's Raft are variables of its package, which no option sets. With those that it has, a
// store whose leader falls silent takes no writes for 5 to 24 s.
// Heartbeats are not among them: a core sends its own, see [hearing.beat].
//
//go:linkname raftMinElection github.com/nats-io/nats-server/v2/server.minElectionTimeout
var raftMinElection time.Duration

//go:linkname raftMaxElection github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var raftMaxElection time.Duration

//go:linkname raftLostQuorum github.com/nats-io/nats-server/v2/server.lostQuorumInterval
var raftLostQuorum time.Duration

//go:linkname raftLostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
var raftLostQuorumCheck time.Duration

// raftTime is one of them: as nats-server 2.15 has it, and as it is here.
type raftTime struct {
	name     string
	is       *time.Duration
	was, set time.Duration
}

func raftTimes() []raftTime {
	return []raftTime{
		{"minElectionTimeout", &raftMinElection, 4 * time.Second, time.Second},
		{"maxElectionTimeout", &raftMaxElection, 9 * time.Second, 2 * time.Second},
		{"lostQuorumInterval", &raftLostQuorum, 10 * time.Second, 3 * time.Second},
		{"lostQuorumCheck", &raftLostQuorumCheck, 10 * time.Second, time.Second},
	}
}

// hastened sets the times before the first server starts, all of them or none. The error says which one
// is not what it was: another release of nats-server has changed it.
var hastened = sync.OnceValue(func() error {
	times := raftTimes()
	for _, t := range times {
		if *t.is != t.was {
			return fmt.Errorf("natslink: %s of this nats-server is %v, and %v was expected", t.name, *t.is, t.was)
		}
	}
	for _, t := range times {
		*t.is = t.set
	}
	return nil
})

// inStep makes the clock of NATS that counts tenths of a second, as long as there is a store, tick with ours: see
// [walltime.NextBeat].
var inStep = sync.OnceFunc(func() {
	const early = time.Millisecond // a sleep ends late by a part of that
	time.Sleep(walltime.NextBeat(ats.TickInterval) - early)
	for walltime.NextBeat(ats.TickInterval) <= early {
	}
	ats.Register()
})

// hasten makes the store choose another leader soon.
func hasten(log *slog.Logger) {
	if err := hastened(); err != nil {
		log.Warn("the store keeps the times that NATS has: when a core falls silent, nobody new is admitted for some 10 s more", "error", err)
	}
}
