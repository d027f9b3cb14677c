package graph

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/internal/packed"
)

var update = flag.Bool("update", false, "write schema.graphql anew")

// text of a schema, made from the tables.
type text struct{ strings.Builder }

func (t *text) line(format string, a ...any) { fmt.Fprintf(t, format+"\n", a...) }

func (t *text) block(about, head string, body func()) {
	if t.Len() > 0 {
		t.line("")
	}
	if about != "" {
		t.line("%q", about)
	}
	t.line("%s {", head)
	body()
	t.line("}")
}

func (t *text) field(about, name, kind string) {
	if about != "" {
		t.line("  %q", about)
	}
	t.line("  %s: %s", name, kind)
}

func (t *text) filter(name string, keys map[string]key) {
	t.block("Conditions that all hold", "input "+name, func() {
		t.field("All of these hold, too", "AND", "["+name+"!]")
		t.field("One of these holds, too", "OR", "["+name+"!]")
		for _, one := range sorted(keys) {
			for _, suffix := range suffixes {
				if kind, ok := inputType(keys[one], suffix); ok {
					t.field("", one+suffix, kind)
				}
			}
		}
	})
}

func (t *text) orders(name string, keys map[string]key) {
	t.block("Orders of rows", "enum "+name, func() {
		for _, one := range sorted(keys) {
			t.line("  %s_ASC", one)
			t.line("  %s_DESC", one)
		}
	})
}

func (t *text) node(name, about string) {
	of := "ZoneW" + strings.TrimPrefix(name, "w")
	t.line("  %q", about)
	t.line("  %s(filter: %sFilter_InputObject!, limit: uint64!, orderBy: [%sOrderBy!]): [%s!]!", name, of, of, of)
}

// The names of the types of filters.
const (
	rawFilterType    = "ZoneWaitingRoomAnalyticsAdaptiveFilter_InputObject"
	groupsFilterType = "ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject"
)

func published() string {
	const (
		raw    = "ZoneWaitingRoomAnalyticsAdaptive"
		groups = raw + "Groups"
	)
	var t text
	for _, s := range []struct{ name, about string }{
		{"Date", "A day, like 2026-11-27"}, {"Time", "A moment in RFC 3339, like 2026-11-27T09:00:00Z"}, {"bool", "True or false"},
		{"float64", "A number"}, {"int64", "A whole number"}, {"string", "A text"}, {"uint32", "A whole number from 0 on"}, {"uint64", "A whole number from 0 on"},
	} {
		t.line("%q\nscalar %s\n", s.about, s.name)
	}
	t.line("schema {\n  query: Query\n}")
	t.block("", "type Query", func() {
		t.field("What the query takes from the token's budget", "cost", "uint64!")
		t.field("The caller", "viewer", "viewer")
	})
	t.block("The caller", "type viewer", func() {
		t.field("Queries that the token has left for now", "budget", "uint64!")
		t.field("Zones that the token may read", "zones(filter: ZoneFilter_InputObject, limit: uint64)", "[zone!]!")
	})
	t.block("Conditions that all hold", "input ZoneFilter_InputObject", func() {
		t.field("", "zoneTag", "string")
		t.field("", "zoneTag_gt", "string")
		t.field("", "zoneTag_in", "[string!]")
	})
	t.block("A zone", "type zone", func() {
		t.field("Limits of the nodes", "settings", "ZoneSettings!")
		t.node("waitingRoomAnalyticsAdaptive", "What was recorded of waiting rooms, minute by minute")
		t.node("waitingRoomAnalyticsAdaptiveGroups", "What was recorded of waiting rooms, added up")
		t.field("ID of the zone", "zoneTag", "string!")
	})
	t.block("Limits of the nodes of a zone", "type ZoneSettings", func() {
		t.field("", "waitingRoomAnalyticsAdaptive", "Settings!")
		t.field("", "waitingRoomAnalyticsAdaptiveGroups", "Settings!")
	})
	t.block("Limits of a node", "type Settings", func() {
		t.field("Fields that can be asked for", "availableFields", "[string!]!")
		t.field("Whether the node can be asked", "enabled", "bool!")
		t.field("Longest time that one query is about, in seconds", "maxDuration", "int64!")
		t.field("Fields of one query", "maxNumberOfFields", "int64!")
		t.field("Rows of one answer", "maxPageSize", "int64!")
		t.field("How long rows are kept, in seconds", "notOlderThan", "int64!")
	})
	t.block("A waiting room in a minute. Negative: no data", "type "+raw, func() {
		for _, d := range rawDimensions {
			t.field(d.about, d.name, d.kind+"!")
		}
		for _, m := range measures {
			t.field(m.about, m.name, "int64!")
		}
		for _, p := range percentiles {
			t.field(p.about, p.name, "int64!")
		}
	})
	t.filter(rawFilterType, rawFilterKeys)
	t.orders(raw+"OrderBy", rawOrders)
	t.block("Rows added up", "type "+groups, func() {
		for _, o := range []string{"Avg", "AvgWeighted", "Dimensions", "Max", "Min", "Sum"} {
			t.field("", strings.ToLower(o[:1])+o[1:], groups+o)
		}
	})
	t.block("Means. Negative: no data", "type "+groups+"Avg", func() {
		for _, m := range measures {
			t.field(m.about, m.name, "int64!")
		}
		t.field("Always 1: nothing is sampled", "sampleInterval", "float64!")
	})
	t.block("Means of the minutes, weighted by users. Negative: no data", "type "+groups+"AvgWeighted", func() {
		for _, p := range percentiles {
			t.field(p.about, p.name, "float64!")
		}
	})
	t.block("What tells groups apart", "type "+groups+"Dimensions", func() {
		for _, d := range dimensions {
			t.field(d.about, d.name, d.kind+"!")
		}
	})
	for _, o := range []struct{ name, about string }{{"Max", "Highest values. Negative: no data"}, {"Min", "Lowest values. Negative: no data, or passthrough"}} {
		t.block(o.about, "type "+groups+o.name, func() {
			for _, m := range measures {
				t.field(m.about, m.name, "int64!")
			}
		})
	}
	t.block("Sums. Negative: no data", "type "+groups+"Sum", func() {
		for _, m := range measures {
			if m.summed {
				t.field(m.about, m.name, "int64!")
			}
		}
	})
	t.filter(groupsFilterType, groupsFilterKeys)
	t.orders(groups+"OrderBy", groupsOrders)
	return t.String()
}

func TestTheSchemaIsThatOfTheTables(t *testing.T) {
	want := published()
	if *update {
		for name, content := range map[string][]byte{"schema.graphql": []byte(want), "schema.graphql.gz": packed.Pack([]byte(want))} {
			if err := os.WriteFile(name, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	if read, err := os.ReadFile("schema.graphql"); err != nil || string(read) != want || string(packed.Unpack(packedSchema)) != want {
		t.Error("schema.graphql or schema.graphql.gz differs; go test ./api/graph -run TestTheSchema -update rewrites it")
	}
}
