package config

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/internal/field"
)

// shown is what [Config.Effective] shows, and what it needs beyond the values.
type shown struct {
	doc   *document
	where map[string]strict.Place
	brief bool // without defaults that nobody gave, and without remarks
}

// Effective returns the configuration as a file that gives the same one: every key that
// has a value, marked where the value is a default, from the environment or from a flag.
// Paths are absolute. No key of the configuration is a secret: keys and tokens live in
// the data directory. The zero Config gives an empty file.
func (c Config) Effective() string {
	if c.shown == nil {
		return ""
	}
	s := c.shown()
	top := s.section(reflect.ValueOf(s.doc).Elem(), "")
	out, err := encode(top)
	if err != nil {
		return "# " + err.Error() + "\n" // a tree of plain nodes encodes
	}
	return string(out)
}

func (s shown) section(v reflect.Value, path string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range field.Of(v.Type()) {
		at, value := strict.Under(path, f.Key), v.FieldByIndex(f.Index)
		if f.Pointer {
			if value.IsNil() {
				continue
			}
			value = value.Elem()
		}
		if _, given := s.where[at]; value.IsZero() && !f.HasDefault && !f.Required && (!given || f.IsList()) {
			continue
		}
		if _, given := s.where[at]; s.brief && f.HasDefault && !given {
			continue
		}
		member := s.value(value, f, at)
		if f.IsSection() && len(member.Content) == 0 {
			continue
		}
		if !f.IsSection() && !f.IsSections() {
			s.remark(member, at)
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Key}, member)
	}
	return n
}

func (s shown) value(v reflect.Value, f field.Field, path string) *yaml.Node {
	switch {
	case f.IsSection():
		return s.section(v, path)
	case f.IsList():
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			if f.IsSections() {
				list.Content = append(list.Content, s.section(v.Index(i), fmt.Sprintf("%s[%d]", path, i)))
			} else {
				list.Content = append(list.Content, scalarNode(v.Index(i), f))
			}
		}
		if !f.IsSections() {
			list.Style = yaml.FlowStyle
		}
		return list
	}
	return scalarNode(v, f)
}

func scalarNode(v reflect.Value, f field.Field) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch x := v.Interface().(type) {
	case time.Duration:
		n.Value = field.Short(x)
	case float64:
		n.Value = strconv.FormatFloat(x, 'g', -1, 64)
	case netip.Prefix:
		n.Value = x.String()
	case bool:
		n.Value = strconv.FormatBool(x)
	case int:
		n.Value = strconv.Itoa(x)
	default:
		text := v.String()
		if f.File && text != "" {
			if abs, err := filepath.Abs(text); err == nil {
				text = abs // the same from wherever the output is read
			}
		}
		n.SetString(text)
		if n.Tag == "!!str" && n.Style == 0 {
			n.Tag, n.Style = "", yaml.DoubleQuotedStyle
		}
	}
	return n
}

// isDefault is the remark on a value that nobody gave.
const isDefault = "# default"

// remark notes where a value came from when the file does not have it.
func (s shown) remark(n *yaml.Node, path string) {
	switch from, given := s.where[path]; {
	case s.brief:
	case !given:
		n.LineComment = isDefault
	case from.Source != "":
		n.LineComment = "# from " + from.Source
	}
}
