package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/coordinator"
)

// healthy is a site of three cores and an edge in which nothing is wrong.
func healthy() View {
	v := View{Node: "a", Site: "dublin", Cores: 3, Health: cluster.Health{Site: cluster.Touch{OK: true}, Shared: cluster.Touch{OK: true, Lag: 40 * time.Millisecond}},
		Sites:    []coordinator.SiteSummary{{Name: "dublin", Rooms: 2, Heard: time.Second, Granted: 20}},
		Journals: []Journal{{Shard: 3, Node: "b"}}}
	for i, node := range []string{"a", "b", "c", "edge"} {
		v.Members = append(v.Members, cluster.Member{Node: node, Version: "1.4", Wire: [2]int{3, 4}, Core: i < 3, State: "same", Offset: time.Duration(i) * 100 * time.Millisecond})
	}
	v.Members[3].State = "" // has no rooms of its own
	for i := range 16 {
		v.Roles = append(v.Roles, Role{Name: fmt.Sprintf("site.%02d", i), Node: v.Members[i%4].Node})
	}
	return v
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		harm func(*View)
		want []string // severity and what, in order; empty: nothing is wrong
	}{
		{"healthy", func(v *View) {}, nil},
		{"alone", func(v *View) {
			*v = View{Node: "a", Health: cluster.Health{Alone: true}, Members: []cluster.Member{{Node: "a", Core: true}}}
		}, nil},
		{"a clock a little wrong", func(v *View) { v.Members[1].Offset = -1500 * time.Millisecond },
			[]string{"warning the clock of node b is 1.5s behind the others"}},
		{"a clock wrong", func(v *View) { v.Members[3].Offset = 5 * time.Second },
			[]string{"error the clock of node edge is 4.9s ahead of the others"}},
		{"the clock of the node that looks", func(v *View) {
			for i := 1; i < 4; i++ {
				v.Members[i].Offset -= 3 * time.Second
			}
		}, []string{"error the clock of node a is 2.8s ahead of the others"}},
		{"two versions", func(v *View) { v.Members[0].Version, v.Members[0].Wire = "1.5", [2]int{4, 5} },
			[]string{"note several versions run together: 1.4 at b, c, edge; 1.5 at a"}},
		{"versions too far apart", func(v *View) { v.Members[0].Version, v.Members[0].Wire = "3.0", [2]int{5, 6} },
			[]string{"error nodes a (3.0) and b (1.4) do not understand each other: they use message formats 5 to 6 and 3 to 4", "error nodes a (3.0) and c", "error nodes a (3.0) and edge",
				"note several versions"}},
		{"two sites of one name", func(v *View) { v.Namesake = true },
			[]string{"error another site of the cluster has the name dublin"}},
		{"two hubs", func(v *View) { v.Hubs = []string{"dublin", "tokyo"} },
			[]string{"error several sites are the hub: dublin, tokyo"}},
		{"two nodes of one name", func(v *View) { v.Namesakes = []string{"b", "edge"} },
			[]string{"error several processes have the name of node b", "error several processes have the name of node edge"}},
		{"free roles", func(v *View) { v.Roles[2].Node, v.Roles[9].Node = "", "" },
			[]string{"error no node holds 2 of 16 roles: site.02, site.09"}},
		{"no roles at all", func(v *View) {
			for i := range v.Roles {
				v.Roles[i].Node = ""
			}
		}, []string{"error no node holds 16 of 16 roles: site.00, site.01, site.02, site.03, site.04, site.05, site.06, site.07 and 8 more"}},
		{"a role that is not served", func(v *View) { v.Roles[2].Error = "the journal cannot be read" },
			[]string{"error node c holds site.02 but does not serve: the journal cannot be read"}},
		{"a node that serves no role", func(v *View) {
			for i := range v.Roles {
				if v.Roles[i].Node == "b" {
					v.Roles[i].Error = "no space left"
				}
			}
		}, []string{"error node b holds site.01, site.05, site.09, site.13 but does not serve: no space left"}},
		{"a node that is cut off", func(v *View) {
			v.Health.Site = cluster.Touch{Detail: "no core answers"}
			v.Journals[0].Failing = true
			for i := range v.Roles {
				v.Roles[i].Error = "nobody answers"
			}
		}, []string{"error node a does not reach the store of its site dublin: no core answers"}},
		{"no coordinator", func(v *View) { v.Silent = []int{4, 11} },
			[]string{"error 2 of 16 coordinators do not answer: coordinator.04, coordinator.11"}},
		{"the journal", func(v *View) { v.Journals[0].Failing = true },
			[]string{"error the journal of shard 03 cannot be written at node b"}},
		{"a slow journal", func(v *View) { v.Journals[0].Lost = 7 }, []string{"warning 7 events of shard 03 are not in any journal (node b)"}},
		{"files", func(v *View) { v.Members[1].State = "other" },
			[]string{"warning configuration files define different proxied sites or rooms: same at a, c; other at b"}},
		{"the site's store", func(v *View) { v.Health.Site = cluster.Touch{Detail: "no core answers"} },
			[]string{"error node a does not reach the store of its site dublin: no core answers"}},
		{"the operator's own NATS", func(v *View) {
			v.External, v.Health.Site = true, cluster.Touch{Detail: "nats: Authorization Violation"}
		},
			[]string{"error node a does not reach the store of its site dublin: nats: Authorization Violation"}},
		{"the NATS of the hub", func(v *View) { v.External, v.Health.Shared = true, cluster.Touch{Since: time.Unix(0, 0)} },
			[]string{"error site dublin does not reach the hub since 1970-01-01T00:00:00Z"}},
		{"the hub", func(v *View) { v.Health.Shared = cluster.Touch{Since: time.Unix(0, 0)} },
			[]string{"error site dublin does not reach the hub since 1970-01-01T00:00:00Z"}},
		{"copies are late", func(v *View) { v.Health.Shared.Lag = 20 * time.Second },
			[]string{"warning node a reads data from the shared store that is 20s old"}},
		{"copies are old", func(v *View) { v.Health.Shared.Lag = time.Hour },
			[]string{"error node a reads data from the shared store that is 1h0m0s old"}},
		{"what the store says", func(v *View) { v.Store = []Finding{{Warning, "stream x has 2 of 3 copies", "w", "f"}} },
			[]string{"warning stream x has 2 of 3 copies"}},
		{"a silent site", func(v *View) { v.Sites[0].Silent, v.Sites[0].Heard = 1, time.Minute },
			[]string{"warning site dublin is silent in 1 of 2 rooms, the longest for 1m0s, and has 20 seats"}},
		{"a site where nobody is", func(v *View) { v.Sites[0].Heard = time.Hour }, nil},
		{"one core", func(v *View) { v.Cores, v.Members[1].Core, v.Members[2].Core = 1, false, false },
			[]string{"note site dublin has one core"}},
		{"two of three cores", func(v *View) { v.Members = slices.Delete(v.Members, 2, 3) }, nil}, // the store says who is away
		{"the operator's own store", func(v *View) { v.Members[0].Core, v.Members[1].Core, v.Members[2].Core = false, false, false }, nil},
		{"much at once", func(v *View) {
			v.Members[2].Offset, v.Members[1].Version, v.Journals[0].Failing = -1500*time.Millisecond, "1.5", true
		}, []string{"error the journal", "warning the clock of node c", "note several versions"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := healthy()
			c.harm(&v)
			got := Findings(v)
			for i, f := range got {
				if f.What == "" || f.Why == "" || f.Fix == "" {
					t.Errorf("%+v says too little", f)
				}
				if v.External && strings.Contains(f.Fix, "core") {
					t.Errorf("%+v speaks of cores", f)
				}
				if line := string(f.Severity) + " " + f.What; i < len(c.want) && !strings.HasPrefix(line, c.want[i]) {
					t.Errorf("%q, want %q", line, c.want[i])
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("%d findings, want %d: %+v", len(got), len(c.want), got)
			}
		})
	}
}
