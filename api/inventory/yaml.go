package inventory

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML writes the rooms as the key "rooms" of our configuration file, with what differs from
// the defaults. What the file has no key for stands in a comment, so that nobody believes it
// came along.
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
	var left []string
	n, err := section(roomMembers, r.Object, &left)
	if err != nil {
		return nil, err
	}
	if z.Name != r.Object["host"] {
		n.Content = slices.Insert(n.Content, 2, scalar("zone"), scalar(z.Name)) // behind the name
	}
	if z.Settings["search_engine_crawler_bypass"] == true {
		left = append(left, "search_engine_crawler_bypass of the zone")
	}
	var events, rules []Object
	for _, e := range r.Events {
		events = append(events, e.Object)
	}
	rules = r.Rules
	for _, part := range []struct {
		key     string
		members []member
		objects []Object
	}{{"events", eventMembers, events}, {"rules", ruleMembers, rules}} {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, o := range part.objects {
			one, err := section(part.members, o, &left)
			if err != nil {
				return nil, err
			}
			list.Content = append(list.Content, one)
		}
		if len(list.Content) > 0 {
			n.Content = append(n.Content, scalar(part.key), list)
		}
	}
	if len(left) > 0 {
		n.HeadComment = "Not in this file, only through the API: " + oneLine(strings.Join(left, ", "))
	}
	return n, nil
}

func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// section writes the members of an object that are not what they would be anyway, and notes
// those for which the file has no key.
func section(members []member, o Object, left *[]string) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, m := range members {
		v := o[m.name]
		switch {
		case reflect.DeepEqual(v, m.unset):
			continue
		case strings.HasPrefix(m.name, "turnstile_"):
			*left = append(*left, fmt.Sprintf("%s %v", m.name, v))
			continue
		}
		value := &yaml.Node{}
		if err := value.Encode(v); err != nil {
			return nil, err
		}
		n.Content = append(n.Content, scalar(m.name), value)
	}
	return n, nil
}

// oneLine keeps what somebody wrote from leaving a comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
