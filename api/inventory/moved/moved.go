// Package moved turns what other waiting rooms export into a configuration file of ours, with a report: what each value became,
// what the export does not say, and what has no counterpart and why.
//
// An export is untrusted. It has at most [MaxBytes]; errors in it name the line and column. Secrets that it holds go neither
// into the file nor into the report.
package moved

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// MaxBytes is the maximum size of an export.
const MaxBytes = 4 << 20

// Outcome says what became of a value.
type Outcome string

const (
	// Mapped: the configuration has it.
	Mapped Outcome = "mapped"
	// Choose: the export does not say it, or not in a way that we can use. The configuration has a guess.
	Choose Outcome = "choose"
	// Left: the configuration does not have it.
	Left Outcome = "left out"
)

// Note is a line of the report.
type Note struct {
	Outcome Outcome `json:"outcome"`
	Theirs  string  `json:"theirs,omitempty"` // name and value in the export
	Ours    string  `json:"ours,omitempty"`   // key and value in the configuration
	Why     string  `json:"why,omitempty"`
}

// Config is a configuration file with its report. The zero value is empty.
type Config struct {
	Notes []Note

	sites, rooms, aws, queueIt, fastly []*yaml.Node
}

// Systems are the names of the systems, and what reads their exports.
var Systems = map[string]func([]byte) (*Config, error){"aws": AWS, "queue-it": QueueIt, "fastly": Fastly, "cloudflare": Cloudflare}

// Placeholders for what exports do not say. The names are reserved: nobody can have them.
const (
	shopHost  = "shop.example.com"
	queueURL  = "https://wait.example.com"
	someLimit = 500
)

// YAML writes the configuration file.
func (c *Config) YAML(w io.Writer) error {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for _, part := range []struct {
		key  string
		list []*yaml.Node
	}{{"sites", c.sites}, {"rooms", c.rooms}, {"aws", c.aws}, {"queue_it", c.queueIt}, {"fastly", c.fastly}} {
		if len(part.list) > 0 {
			doc.Content = append(doc.Content, scalar(part.key), &yaml.Node{Kind: yaml.SequenceNode, Content: part.list})
		}
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return err
	}
	return enc.Close()
}

func (c *Config) note(o Outcome, theirs, ours, why string) {
	c.Notes = append(c.Notes, Note{o, theirs, ours, why})
}

// origin adds a proxied site for all hosts of rooms.
func (c *Config) origin() {
	c.sites = append(c.sites, mapping(pair{"hosts", []string{"*"}, ""}, pair{"origins", []string{"http://127.0.0.1:3000"}, "choose"}))
	c.note(Choose, "", "sites", "where your application is; the export does not contain it")
}

// pair is a key with its value. A nil value is left out.
type pair struct {
	key    string
	value  any
	remark string
}

// limits are the pairs of both limits where the export has none.
func (c *Config) limits(room string) []pair {
	c.note(Choose, "", room+".total_active_users, "+room+".new_users_per_minute", "the export has no limits; \"anteroom simulate\" with the log of a past sale helps")
	return []pair{{"total_active_users", someLimit, "choose"}, {"new_users_per_minute", someLimit, "choose"}}
}

func mapping(pairs ...pair) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range pairs {
		if p.value == nil {
			continue
		}
		value, ready := p.value.(*yaml.Node)
		if !ready {
			value = &yaml.Node{}
			if err := value.Encode(p.value); err != nil {
				panic(err) // texts, numbers, truth values and lists of them
			}
		}
		if value.Kind == yaml.SequenceNode && value.Content[0].Kind == yaml.ScalarNode {
			value.Style = yaml.FlowStyle
		}
		value.LineComment = p.remark
		n.Content = append(n.Content, scalar(p.key), value)
	}
	return n
}

func scalar(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

// decode reads JSON. Its errors name the place.
func decode(data []byte, into any) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	err := json.Unmarshal(data, into)
	at := int64(-1)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = e.Offset
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = e.Offset
		err = fmt.Errorf("%s is of another kind: %s", field.Quote(e.Field), e.Value)
	}
	if err == nil {
		return nil
	}
	before := data[:max(0, min(int64(len(data)), at-1))]
	return anteroom.Errorf(anteroom.Invalid, "line %d, column %d: %w", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'), err)
}

// word returns a name that rooms and events may have: letters, digits, _ and -.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), anteroom.MaxNameLength)]
}

// named shows a value of the export.
func named(name, value string) string { return name + ": " + field.Quote(value) }
