package inventory

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML writes the rooms as the key "rooms" of our configuration file, with what differs from
// the defaults. The file has no events, rules and settings of zones: they stand in comments,
// so that nobody believes they came along.
func (inv *Inventory) YAML(w io.Writer) error {
	rooms := &yaml.Node{Kind: yaml.SequenceNode}
	for _, z := range inv.Zones {
		for _, r := range z.Rooms {
			n, err := r.yaml(z)
			if err != nil {
				return err
			}
			rooms.Content = append(rooms.Content, n)
		}
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	doc := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "rooms"}, rooms}}
	if err := enc.Encode(doc); err != nil {
		return err
	}
	return enc.Close()
}

func (r *Room) yaml(z *Zone) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	var left []string
	add := func(key string, v any) error {
		value := &yaml.Node{}
		if err := value.Encode(v); err != nil {
			return err
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
		return nil
	}
	for _, m := range roomMembers {
		v := r.Object[m.name]
		switch {
		case reflect.DeepEqual(v, m.unset):
			continue
		case strings.HasPrefix(m.name, "turnstile_"):
			left = append(left, fmt.Sprintf("%s %v", m.name, v))
			continue
		}
		if err := add(m.name, v); err != nil {
			return nil, err
		}
		if m.name == "name" && z.Name != r.Object["host"] {
			if err := add("zone", z.Name); err != nil {
				return nil, err
			}
		}
	}
	if z.Settings["search_engine_crawler_bypass"] == true {
		left = append(left, "search_engine_crawler_bypass of the zone")
	}
	if len(r.Events) > 0 {
		left = append(left, fmt.Sprintf("%d events", len(r.Events)))
	}
	if len(r.Rules) > 0 {
		left = append(left, fmt.Sprintf("%d rules", len(r.Rules)))
	}
	if len(left) > 0 {
		n.HeadComment = "Not in this file, only through the API: " + oneLine(strings.Join(left, ", "))
	}
	return n, nil
}

// oneLine keeps what somebody wrote from leaving a comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
