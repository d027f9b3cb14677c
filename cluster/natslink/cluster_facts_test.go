//go:build unix

package natslink

import (
	"strings"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	well := func() Facts {
		others := func() []ReplicaFacts {
			return []ReplicaFacts{{Server: "dublin.b", Current: true}, {Server: "dublin.c", Current: true}}
		}
		return Facts{
			Server:  "dublin.a",
			Streams: []StreamFacts{{Name: "KV", Leader: "dublin.a", Copies: 3, Replicas: others(), Bytes: 10, MaxBytes: 100}},
			Core: &CoreFacts{
				Leader: "dublin.a", Cores: others(), Size: 3, Store: 10, MaxStore: 100, Hub: true,
				Routes: []LinkFacts{{Name: "dublin.b"}, {Name: "dublin.c"}},
			},
		}
	}
	if all := well().Faults(); len(all) > 0 {
		t.Errorf("all is well, and: %v", all)
	}
	for want, harm := range map[string]func(f *Facts){
		"no core of the site answers": func(f *Facts) { f.Server = "" },
		"the disk of this core is full": func(f *Facts) { // the server's groups have ended, so it knows of no leader, and the others do not hear it
			f.Core.DiskFull, f.Core.Leader, f.Core.Cores = true, "", nil
			f.Streams[0].Leader, f.Streams[0].Replicas[0] = "dublin.b", ReplicaFacts{Server: "dublin.a", Lag: 7, Seen: time.Minute}
		},
		"this core cannot write to its disk: read-only file system": func(f *Facts) {
			f.Core.DiskBroken, f.Core.Leader = "read-only file system", ""
			f.Core.Cores = []ReplicaFacts{{Server: "dublin.b", Seen: time.Minute}, {Server: "dublin.c", Seen: time.Minute}} // it hears the others no more
			f.Streams[0].Leader, f.Streams[0].Replicas[0] = "dublin.b", ReplicaFacts{Server: "dublin.a", Lag: 7, Seen: time.Minute}
		},
		"have no leader":                 func(f *Facts) { f.Core.Leader = "" },
		"reaches 1 of the 2 other cores": func(f *Facts) { f.Core.Routes = f.Core.Routes[:1] },
		"4 cores are connected where 3":  func(f *Facts) { f.Core.Routes = append(f.Core.Routes, LinkFacts{}) },
		"core dublin.c is away": func(f *Facts) { // one finding of all its copies
			f.Core.Cores[1] = ReplicaFacts{Server: "dublin.c", Offline: true}
			f.Streams[0].Replicas[1], f.Core.Routes = f.Core.Cores[1], f.Core.Routes[:1]
			f.Streams = append(f.Streams, f.Streams[0])
		},
		"no link to the hub":               func(f *Facts) { f.Core.Hub = false },
		"the store has 95 of 100 bytes":    func(f *Facts) { f.Core.Store = 95 },
		"stream J does not exist any more": func(f *Facts) { f.Missing = []string{"J"} },
		"stream KV has no leader":          func(f *Facts) { f.Streams[0].Leader = "" },
		"stream KV has 2 of 3 copies":      func(f *Facts) { f.Streams[0].Replicas = f.Streams[0].Replicas[:1] },
		"core dublin.b is away": func(f *Facts) {
			f.Streams[0].Replicas = []ReplicaFacts{{Server: "dublin.b", Offline: true}, {Current: true}}
		},
		"at dublin.b is 7 writes behind": func(f *Facts) {
			f.Streams[0].Replicas = []ReplicaFacts{{Server: "dublin.b", Lag: 7, Seen: 1}, {Current: true}}
		},
		"core dublin.a is away": func(f *Facts) { // killed: NATS does not call it offline yet
			f.Streams[0].Replicas = []ReplicaFacts{{Server: "dublin.a", Lag: 7, Seen: time.Minute}, {Current: true}}
		},
		"core dublin.e is away": func(f *Facts) { // this core began later, and NATS does not tell it the name
			f.Core.Cores = append(f.Core.Cores, ReplicaFacts{Server: "Server name unknown at this time (peerID: " + peerID("dublin.e") + ")", Offline: true})
			f.Streams[0].Replicas = []ReplicaFacts{{Server: "dublin.e", Offline: true}, {Current: true}}
		},
		"core of unknown name is away": func(f *Facts) {
			f.Core.Cores = append(f.Core.Cores, ReplicaFacts{Server: "Server name unknown at this time (peerID: " + peerID("dublin.e") + ")", Offline: true})
		},
		"core dublin.d is away": func(f *Facts) { // killed before the leader began to lead
			f.Streams[0].Replicas = []ReplicaFacts{{Server: "dublin.d", Lag: 7}, {Current: true}}
		},
		"stream KV has 95 of 100 bytes": func(f *Facts) { f.Streams[0].Bytes = 95 },
		"NATS server n3 is away": func(f *Facts) {
			f.External, f.Core = true, nil
			f.Streams[0].Replicas = []ReplicaFacts{{Server: "n3", Offline: true}, {Current: true}}
		},
		"no NATS server of the site answers": func(f *Facts) { f.External, f.Core, f.Server = true, nil, "" },
	} {
		f := well()
		harm(&f)
		if all := f.Faults(); len(all) != 1 || !strings.Contains(all[0].What, want) || all[0].Why == "" || all[0].Fix == "" {
			t.Errorf("%v, want only %q", all, want)
		} else if f.External && strings.Contains(all[0].Fix, "core") {
			t.Errorf("%q: a site with the operator's servers has no cores: %q", want, all[0].Fix)
		}
	}

	full := well()
	full.Core.DiskFull = true
	if why := full.Faults()[0].Why; !strings.Contains(why, "the other cores record for it") {
		t.Errorf("one of three, whose disk is full: %q", why)
	}
	full.Core.Size = 1
	if why := full.Faults()[0].Why; !strings.Contains(why, "it records nothing") {
		t.Errorf("the only core, whose disk is full: %q", why)
	}
}

// TestCopiesOfAStreamThatIsWritten: while a stream is written, a copy is a write or two behind at nearly any time, and nothing is wrong. It
// is if it has not even what the stream had a moment before.
func TestCopiesOfAStreamThatIsWritten(t *testing.T) {
	stream := func(written uint64, r ReplicaFacts) StreamFacts {
		r.Server, r.Seen = "dublin.b", time.Millisecond
		return StreamFacts{Name: "KV", Leader: "dublin.a", Copies: 2, Replicas: []ReplicaFacts{r}, written: written}
	}
	for name, c := range map[string]struct {
		before, now StreamFacts
		behind      bool
	}{
		"has caught up":           {stream(10, ReplicaFacts{Lag: 1}), stream(10, ReplicaFacts{Current: true}), false},
		"is behind by later ones": {stream(10, ReplicaFacts{Lag: 1}), stream(14, ReplicaFacts{Lag: 4}), false},
		"stands still":            {stream(10, ReplicaFacts{Lag: 1}), stream(10, ReplicaFacts{Lag: 1}), true},
		"falls behind":            {stream(10, ReplicaFacts{Lag: 7}), stream(14, ReplicaFacts{Lag: 8}), true},
		"is behind at once":       {stream(10, ReplicaFacts{Current: true}), stream(14, ReplicaFacts{Lag: 40}), true},
	} {
		now := c.now.since(c.before)
		if now.behind() != c.behind || len(Facts{Server: "dublin.a", Streams: []StreamFacts{now}}.Faults()) == 1 != c.behind {
			t.Errorf("a copy that %s: %+v", name, now)
		}
	}
	other := stream(14, ReplicaFacts{Lag: 4})
	other.Leader = "dublin.c"
	if !other.since(stream(10, ReplicaFacts{Lag: 1})).behind() {
		t.Error("what another leader counts is compared")
	}
}
