package natslink

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/anteroom/anteroom/internal/walltime"
)

// A core that hears no other core can win no election. NATS lets it stand all the same, in one term after the other; and
// the first message of it that arrives again ends the leaders of all others, so no store takes writes for two seconds
// more. A leader whose messages arrive while it hears nothing keeps the others from electing one for 4 to 6 s. And when a
// leader is gone, the others wait for 1 to 2 s, each for a time of its own, and again if two of them stand at once.
// So cores tell each other several times a second that they are there. Whoever hears nobody stands in no election,
// gives up what it leads and writes nothing, for it would not hear the answer. Whoever hears others, but not a leader, or
// hears of one that it hears nobody, has another one elected at once.
const (
	hereEvery = 200 * time.Millisecond
	// beatEvery is how often a core sends the heartbeats of all groups that it leads, at the same moment as that it is there. NATS
	// itself sends each when a clock of that group says so, every second or two, which is too seldom for raftTimes.
	beatEvery = 2 * hereEvery
	// groupsEvery is how often a core looks which groups it is in.
	groupsEvery = time.Second
	// deafAfter is how long a core is not heard until it counts as gone: less than the shortest time after which an
	// election begins by itself (raftTimes), which counts from about the last message.
	deafAfter = 700 * time.Millisecond
	// standStep is how much later each further core stands in the election for a leader that is gone, for those before it may
	// lack records.
	standStep = 300 * time.Millisecond
	// goneFor is how long a core is not heard until it is forgotten: by then it leads nothing.
	goneFor = 10 * time.Second

	// doubtAfter is how long a core hears nobody until it says so.
	doubtAfter = 2 * hereEvery

	subjectHere = "anteroom.here"
	// subjectRemoved carries the name of a core that was removed. NATS says so only in the log of the group, and sends that only to
	// members: a core that was standing in an election at that moment would never hear of it.
	subjectRemoved = "anteroom.removed"
	// hearsNobody ends the message of a core that has not heard any other for a moment.
	hearsNobody = " hears nobody"
)

// raftNode returns the part that the server has in a group, or nil.
//
//go:linkname raftNode github.com/nats-io/nats-server/v2/server.(*Server).lookupRaftNode
func raftNode(s *server.Server, group string) server.RaftNode

// hearing is what a core hears of the others. Cores are named as in Raft groups.
type hearing struct {
	att   *attachment
	own   string
	start time.Time

	mu    sync.Mutex
	heard map[string]time.Duration // when last, since start
	last  time.Duration            // when any; 0: never

	beaten, listed time.Time                // when heartbeats were sent, and groups looked up
	listing        atomic.Bool              // they are looked up now
	in             atomic.Pointer[[]string] // the groups that this core is in
	beating        map[string]*atomic.Bool  // by group: its heartbeat is on its way

	aside map[string]server.RaftNode // groups in which it stands in no election
	stood map[string]string          // by group: the leader that was gone when it stood last
}

// hearCores follows which other cores are there until the connection is closed. A core that has heard nobody yet stands in
// elections: it may be the first one to start.
func (a *attachment) hearCores() error {
	h := &hearing{att: a, own: a.server.srv().Node(), start: time.Now(), heard: map[string]time.Duration{},
		aside: map[string]server.RaftNode{}, stood: map[string]string{}, beating: map[string]*atomic.Bool{}}
	h.list()
	for subject, says := range map[string]func(string){subjectHere: h.hear, subjectRemoved: h.removed} {
		if _, err := a.system.Subscribe(subject, func(m *nats.Msg) { says(string(m.Data)) }); err != nil {
			return fmt.Errorf("natslink: hearing of other cores: %w", err)
		}
	}
	go func() {
		for {
			time.Sleep(walltime.NextBeat(hereEvery))
			if a.system.IsClosed() {
				return
			}
			a.system.Publish(subjectHere, h.here()) // an error means that nobody hears it
			h.look()
			h.beat()
		}
	}()
	return nil
}

// here is what this core says.
func (h *hearing) here() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != 0 && time.Since(h.start)-h.last >= doubtAfter {
		return []byte(h.own + hearsNobody)
	}
	return []byte(h.own)
}

// hear takes what another core says. One that hears nobody is as good as gone.
func (h *hearing) hear(says string) {
	core, deaf := strings.CutSuffix(says, hearsNobody)
	if core == h.own {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = time.Since(h.start)
	if !deaf {
		h.heard[core] = h.last
	}
}

// removed hears that the others have removed a core, which may be this one.
func (h *hearing) removed(core string) {
	if core == h.own {
		h.att.server.retire()
	}
}

// look acts on what is heard now.
func (h *hearing) look() {
	h.mu.Lock()
	now, last := time.Since(h.start), h.last
	silent := map[string]time.Duration{h.own: 0} // for how long
	gone := false
	for core, at := range h.heard {
		silent[core] = now - at
		gone = gone || now-at >= deafAfter
		if now-at >= goneFor {
			delete(h.heard, core)
		}
	}
	h.mu.Unlock()
	alone := last == 0 || len(h.att.coreList()) < 2
	deaf := !alone && now-last >= deafAfter
	h.att.deaf.Store(deaf)
	switch {
	case alone:
	case deaf:
		h.groups(h.standAside)
	default:
		for _, n := range h.aside {
			n.SetObserver(false)
		}
		clear(h.aside)
		if gone {
			h.groups(func(group string, is server.RaftzGroup) { h.stand(group, is, silent) })
		} else {
			clear(h.stood)
		}
	}
}

// beat has the heartbeats of the groups that this core leads sent. A group whose record is being synced keeps its heartbeat waiting,
// one at most, and neither that of another group nor what this core says.
func (h *hearing) beat() {
	now := time.Now()
	if now.Sub(h.beaten) < beatEvery-hereEvery/2 {
		return
	}
	h.beaten = now
	if now.Sub(h.listed) >= groupsEvery && h.listing.CompareAndSwap(false, true) {
		h.listed = now
		go h.list()
	}
	srv := h.att.server.srv()
	for _, group := range *h.in.Load() {
		if n := raftNode(srv, group); n != nil && n.State() == server.Leader {
			if h.beating[group] == nil {
				h.beating[group] = new(atomic.Bool)
			}
			if waits := h.beating[group]; waits.CompareAndSwap(false, true) {
				go func() {
					n.SendHeartbeat()
					waits.Store(false)
				}()
			}
		}
	}
}

// list notes which groups this core is in.
func (h *hearing) list() {
	var in []string
	h.groups(func(group string, _ server.RaftzGroup) { in = append(in, group) })
	h.in.Store(&in)
	h.listing.Store(false)
}

// groups calls do with each group that this core is in.
func (h *hearing) groups(do func(group string, is server.RaftzGroup)) {
	for _, account := range []string{accountSite, accountShared, accountSystem} {
		status := h.att.server.srv().Raftz(&server.RaftzOptions{AccountFilter: account})
		if status == nil {
			continue
		}
		for _, groups := range *status {
			for group, is := range groups {
				do(group, is)
			}
		}
	}
}

// standAside takes this core out of the elections of a group, and gives up its lead.
func (h *hearing) standAside(group string, is server.RaftzGroup) {
	n := raftNode(h.att.server.srv(), group)
	if n == nil || is.Observer || h.aside[group] == n {
		return
	}
	n.SetObserver(true)
	h.aside[group] = n
	if n.Leader() {
		n.StepDown()
	}
}

// stand makes this core stand in a group's election, once for each leader that is gone.
func (h *hearing) stand(group string, is server.RaftzGroup, silent map[string]time.Duration) {
	if stood, ok := h.stood[group]; is.Observer || ok && stood == is.Leader || !stands(h.own, group, is, silent) {
		return
	}
	if n := raftNode(h.att.server.srv(), group); n != nil && n.CampaignImmediately() == nil {
		h.stood[group] = is.Leader
	}
}

// stands reports whether the leader of a group is gone, most members are heard, and this core is the next of those to
// stand. The order differs from group to group, so that one core does not lead all. silent says for how long each core has
// not been heard.
func stands(own, group string, is server.RaftzGroup, silent map[string]time.Duration) bool {
	since, known := silent[is.Leader]
	if is.Leader == "" { // the one before stood in vain
		since, known = slices.Max(slices.Collect(maps.Values(silent))), true
	}
	members := []string{own}
	for core := range is.Peers {
		if s, known := silent[core]; core != own && known && s < deafAfter {
			members = append(members, core)
		}
	}
	slices.SortFunc(members, func(a, b string) int { return cmp.Compare(turn(group, a), turn(group, b)) })
	return known && len(members) >= is.QuorumNeeded && since >= deafAfter+time.Duration(slices.Index(members, own))*standStep
}

// turn orders the cores of a group.
func turn(group, core string) uint64 {
	f := fnv.New64a()
	f.Write([]byte(core + " " + group))
	return f.Sum64()
}
