package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns a JSON document as YAML, a line for each value, members in their order.
func YAML(data []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil { // JSON is YAML
		return nil, err
	}
	var unfold func(*yaml.Node)
	unfold = func(n *yaml.Node) {
		n.Style = 0 // quotes come back where they are needed
		if strings.Contains(n.Value, "\n") {
			n.Style = yaml.LiteralStyle
		}
		for _, inside := range n.Content {
			unfold(inside)
		}
	}
	unfold(&doc)
	return encode(&doc)
}

// JSON returns a YAML document as JSON, members sorted by name.
func JSON(text string) (json.RawMessage, error) {
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// encode writes a tree of YAML, indented by two.
func encode(n *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
