package config

import (
	"strings"
	"testing"
)

// Differences are named by keys, rooms and sites by their names; where a value comes from is said.
func TestCompare(t *testing.T) {
	const before = `listen: [":80"]
admin: "a:1" # from --admin
data: /x # default
sites:
  - {hosts: [a], origins: [http://1, http://2]}
rooms:
  - {name: one, zone: z, total_active_users: 5}
  - {name: two, zone: z, total_active_users: 5}
  - {name: two, zone: y, total_active_users: 5}
`
	const after = `listen: [":81"]
admin: "127.0.0.1:8081" # default
data: /y # default
proof:
  enabled: true
sites:
  - {hosts: [a], origins: [http://1]}
rooms:
  - {name: two, zone: y, total_active_users: 6}
  - {name: two, zone: z, total_active_users: 5}
  - {name: three, zone: z}
`
	got, err := Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range got {
		side := func(s *string) string {
			if s == nil {
				return "nothing"
			}
			return *s
		}
		lines = append(lines, d.Key+": "+side(d.Old)+" -> "+side(d.New))
	}
	const want = `listen: [:80] -> [:81]
admin: a:1 (from --admin) -> 127.0.0.1:8081 (default)
sites[a].origins: [http://1, http://2] -> [http://1]
rooms[z/one]: {name: one, zone: z, total_active_users: 5} -> nothing
rooms[y/two].total_active_users: 5 -> 6
rooms[z/three]: nothing -> {name: three, zone: z}
proof: nothing -> {enabled: true}`
	if text := strings.Join(lines, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	if same, err := Compare(before, before); err != nil || same != nil {
		t.Errorf("a configuration differs from itself: %v, %v", same, err)
	}
	if _, err := Compare(before, "a: ["); err == nil {
		t.Error("what is not YAML was compared")
	}
}
