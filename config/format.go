package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// Format returns a configuration file in its canonical form: keys in the order of the manual, indented by two, an empty line
// around what takes more than one line at the top. Comments stay with what they are about, quotes, brackets and block
// scalars as they were written. It changes the order of nothing in a file with aliases, which have to follow their anchors.
// The error is of kind Invalid where the text is not YAML, and where a comment would be lost.
func Format(text []byte) ([]byte, error) {
	const most = 5 // a comment may belong to something else once an empty line is before it
	for range most {
		next, err := format(text)
		if err != nil || bytes.Equal(next, text) {
			return next, err
		}
		text = next
	}
	return text, nil
}

func format(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "%w (anteroom validate shows what to change, and where)", err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return text, nil // nothing but comments, or no configuration
	}
	top := doc.Content[0]
	if !slices.ContainsFunc(everyNode(&doc), func(n *yaml.Node) bool { return n.Kind == yaml.AliasNode }) {
		inOrder(top, reflect.TypeFor[document]())
	}
	var out bytes.Buffer
	part := func(text []byte, apart bool) {
		if out.Len() > 0 && apart {
			out.WriteByte('\n')
		}
		out.Write(text)
	}
	comment := func(text string) {
		if text != "" {
			part([]byte(text+"\n"), true)
		}
	}
	comment(doc.HeadComment)
	comment(top.HeadComment)
	before := doc.HeadComment != "" || top.HeadComment != "" // something of several lines
	for i := 0; i+1 < len(top.Content); i += 2 {
		text, err := encode(&yaml.Node{Kind: yaml.MappingNode, Content: top.Content[i : i+2]})
		if err != nil {
			return nil, err
		}
		long := bytes.Count(text, []byte("\n")) > 1
		part(text, before || long)
		before = long
	}
	comment(top.FootComment)
	comment(doc.FootComment)
	if err := sameMeaning(text, out.Bytes()); err != nil {
		return nil, anteroom.Errorf(anteroom.Invalid, "cannot be formatted: %w", err)
	}
	return out.Bytes(), nil
}

// inOrder puts the keys of a section, and of those inside, into the order of the struct's fields. Unknown keys follow.
func inOrder(n *yaml.Node, t reflect.Type) {
	if n.Kind != yaml.MappingNode {
		return
	}
	type pair struct {
		key, value *yaml.Node
		rank       int
	}
	fields := field.Of(t)
	var pairs []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		p := pair{n.Content[i], n.Content[i+1], len(fields)}
		if rank := slices.IndexFunc(fields, func(f field.Field) bool { return f.Key == p.key.Value }); rank >= 0 {
			p.rank = rank
			switch f := fields[rank]; {
			case f.IsSection():
				inOrder(p.value, f.Type)
			case f.IsSections():
				for _, member := range p.value.Content {
					inOrder(member, f.Type.Elem())
				}
			}
		}
		pairs = append(pairs, p)
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return a.rank - b.rank })
	n.Content = n.Content[:0]
	for _, p := range pairs {
		n.Content = append(n.Content, p.key, p.value)
	}
}

// everyNode returns a tree's nodes.
func everyNode(n *yaml.Node) []*yaml.Node {
	all := []*yaml.Node{n}
	for _, inside := range n.Content {
		all = append(all, everyNode(inside)...)
	}
	return all
}

// sameMeaning returns an error unless two texts have the same values and comments.
func sameMeaning(a, b []byte) error {
	var before, after yaml.Node
	if err := yaml.Unmarshal(a, &before); err != nil {
		return err
	}
	if err := yaml.Unmarshal(b, &after); err != nil {
		return err
	}
	if values(&before) != values(&after) {
		return errors.New("it would mean something else; please report it with the file")
	}
	was, is := comments(a), comments(b)
	for i, line := range was {
		if i >= len(is) || is[i] != line {
			return fmt.Errorf("the comment %q would be lost; move it to a line of its own before a key", line)
		}
	}
	return nil
}

// values writes what a tree says, with keys sorted.
func values(n *yaml.Node) string {
	var inside []string
	for i := 0; i < len(n.Content); i++ {
		text := values(n.Content[i])
		if n.Kind == yaml.MappingNode {
			i++
			text += values(n.Content[i])
		}
		inside = append(inside, text)
	}
	if n.Kind == yaml.MappingNode {
		slices.Sort(inside)
	}
	tag := n.ShortTag()
	if tag == "!!timestamp" {
		tag = "!!str" // in brackets it gets quotes
	}
	return fmt.Sprintf("(%d %s %q %q %s)", n.Kind, tag, n.Anchor, n.Value, strings.Join(inside, " "))
}

// comments returns what follows each "#" that may begin a comment, sorted.
func comments(text []byte) []string {
	var all []string
	for line := range strings.Lines(string(text)) {
		line = " " + strings.TrimSpace(line)
		if _, comment, found := strings.Cut(line, " #"); found {
			all = append(all, "#"+comment)
		}
	}
	slices.Sort(all)
	return all
}
