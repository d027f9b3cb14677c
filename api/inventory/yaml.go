package inventory

import (
	"io"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom/internal/field"
)

// YAML writes the rooms as the key "rooms" of our configuration file, with all values that differ from the defaults. A
// comment names what the file has no key for, such as a setting of the zone, so that its absence is noticed.
func (inv *Inventory) YAML(w io.Writer) error {
	rooms := &yaml.Node{Kind: yaml.SequenceNode}
	for _, z := range inv.Zones {
		for _, r := range z.Rooms {
			n, err := r.document(z)
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

// Document returns the room as a member of the key "rooms", without events and rules.
func (r *Room) Document() (*yaml.Node, error) { return section(roomFields, r.Object) }

func (r *Room) document(z *Zone) (*yaml.Node, error) {
	n, err := r.Document()
	if err != nil {
		return nil, err
	}
	if z.Name != r.Object["host"] {
		n.Content = slices.Insert(n.Content, 2, scalar("zone"), scalar(z.Name)) // behind the name
	}
	if z.Settings["search_engine_crawler_bypass"] == true {
		n.HeadComment = "Not in this file, only through the API: search_engine_crawler_bypass of the zone"
	}
	events := &yaml.Node{Kind: yaml.SequenceNode}
	for _, e := range r.Events {
		one, err := section(eventFields, e.Object)
		if err != nil {
			return nil, err
		}
		events.Content = append(events.Content, one)
	}
	rules := &yaml.Node{Kind: yaml.SequenceNode}
	for _, rule := range r.Rules {
		one, err := section(ruleFields, rule)
		if err != nil {
			return nil, err
		}
		rules.Content = append(rules.Content, one)
	}
	for i, list := range []*yaml.Node{events, rules} {
		if len(list.Content) > 0 {
			n.Content = append(n.Content, scalar([...]string{"events", "rules"}[i]), list)
		}
	}
	return n, nil
}

func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// section writes the members of an object that are not what they would be anyway.
func section(fields []field.Field, o map[string]any) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		v, has := o[f.Key]
		if !has || reflect.DeepEqual(v, f.JSONDefault()) {
			continue
		}
		value := &yaml.Node{}
		if inside, ok := v.(map[string]any); ok && f.IsSection() {
			var err error
			if value, err = section(field.Of(f.Type), inside); err != nil {
				return nil, err
			}
		} else if err := value.Encode(v); err != nil {
			return nil, err
		}
		n.Content = append(n.Content, scalar(f.Key), value)
	}
	return n, nil
}
