package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
)

// Difference is a key that two configurations give different values.
type Difference struct {
	// Key is its path: "rooms[example.com/checkout].total_active_users". Members of lists go by their names.
	Key string `json:"key"`
	// Old and New are the values, in one line; nil where one has none.
	Old *string `json:"old"`
	New *string `json:"new"`
}

// Compare returns how two texts of [Config.Effective] differ, in their order. A value that is not in the file is followed
// by where it comes from: "500 (default)". Two defaults do not differ.
func Compare(before, after string) ([]Difference, error) {
	var docs [2]yaml.Node
	for i, text := range []string{before, after} {
		if err := yaml.Unmarshal([]byte(text), &docs[i]); err != nil {
			return nil, anteroom.Errorf(anteroom.Invalid, "is not YAML: %w", err)
		}
	}
	var out []Difference
	compare("", content(&docs[0]), content(&docs[1]), &out)
	return out, nil
}

func content(doc *yaml.Node) *yaml.Node {
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}
	}
	return doc.Content[0]
}

// compare adds the differences of two values, either of which may be nil.
func compare(path string, a, b *yaml.Node, out *[]Difference) {
	switch {
	case a != nil && b != nil && a.Kind == b.Kind && a.Kind == yaml.MappingNode:
		compareMembers(keys(a), keys(b), out, func(key string) string { return strings.TrimPrefix(path+"."+key, ".") })
	case a != nil && b != nil && sections(a) && sections(b):
		compareMembers(labels(a), labels(b), out, func(label string) string { return path + "[" + label + "]" })
	case a == nil || b == nil || oneLine(a) != oneLine(b) && !(a.LineComment == isDefault && b.LineComment == isDefault):
		*out = append(*out, Difference{Key: path, Old: described(a), New: described(b)})
	}
}

// member is a value under its name.
type member struct {
	name  string
	value *yaml.Node
}

func compareMembers(a, b []member, out *[]Difference, at func(name string) string) {
	for _, m := range a {
		i := slices.IndexFunc(b, func(o member) bool { return o.name == m.name })
		if i < 0 {
			compare(at(m.name), m.value, nil, out)
		} else {
			compare(at(m.name), m.value, b[i].value, out)
		}
	}
	for _, m := range b {
		if !slices.ContainsFunc(a, func(o member) bool { return o.name == m.name }) {
			compare(at(m.name), nil, m.value, out)
		}
	}
}

func keys(n *yaml.Node) []member {
	var out []member
	for i := 0; i+1 < len(n.Content); i += 2 {
		out = append(out, member{n.Content[i].Value, n.Content[i+1]})
	}
	return out
}

// sections reports whether a value is a list of sections.
func sections(n *yaml.Node) bool {
	return n.Kind == yaml.SequenceNode && len(n.Content) > 0 && n.Content[0].Kind == yaml.MappingNode
}

// labels names the members of a list by what tells them apart, or by their numbers.
func labels(list *yaml.Node) []member {
	var out []member
	seen := map[string]bool{}
	for i, n := range list.Content {
		values := map[string]string{}
		for _, m := range keys(n) {
			values[m.name] = oneLine(m.value)
		}
		label := cmp.Or(values["name"], strings.Trim(values["hosts"], "[]"), values["host"], values["expression"], values["cert"])
		if zone := values["zone"]; zone != "" && values["name"] != "" {
			label = zone + "/" + label
		}
		if label == "" || seen[label] {
			label = fmt.Sprint(i)
		}
		seen[label] = true
		out = append(out, member{label, n})
	}
	return out
}

// described is a value with where it comes from.
func described(n *yaml.Node) *string {
	if n == nil {
		return nil
	}
	text := oneLine(n)
	if from := strings.TrimPrefix(n.LineComment, "# "); from != "" {
		text += " (" + from + ")"
	}
	return &text
}

// oneLine is a value as it would be in brackets.
func oneLine(n *yaml.Node) string {
	var inside []string
	switch n.Kind {
	case yaml.MappingNode:
		for _, m := range keys(n) {
			inside = append(inside, m.name+": "+oneLine(m.value))
		}
		return "{" + strings.Join(inside, ", ") + "}"
	case yaml.SequenceNode:
		for _, one := range n.Content {
			inside = append(inside, oneLine(one))
		}
		return "[" + strings.Join(inside, ", ") + "]"
	}
	return n.Value
}
