package config

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/anteroom/anteroom"
)

// sharedKeys are what a node of a cluster may take from the others: what has to be the same
// everywhere, and no path of one machine.
var sharedKeys = []string{"cookie_name", "sites", "rooms"}

// Shared returns what the configuration gives to nodes that have no sites of their own: a file
// with those keys, custom pages in it. The zero Config gives an empty one.
func (c Config) Shared() []byte {
	if c.shown == nil {
		return nil
	}
	s := c.shown()
	s.brief = true
	doc, where := s.doc, s.where
	for i := range doc.Rooms {
		if doc.Rooms[i].CustomPageFile != "" {
			at := fmt.Sprintf("rooms[%d].custom_page_", i)
			where[at+"html"] = where[at+"file"]
			doc.Rooms[i].CustomPageHTML, doc.Rooms[i].CustomPageFile = c.Rooms[i].CustomPageHTML, ""
		}
	}
	all := s.section(reflect.ValueOf(doc).Elem(), "")
	some := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(all.Content); i += 2 {
		if slices.Contains(sharedKeys, all.Content[i].Value) {
			some.Content = append(some.Content, all.Content[i], all.Content[i+1])
		}
	}
	out, err := encode(some)
	if err != nil {
		return nil // a tree of plain nodes encodes
	}
	return out
}

// WithShared returns the configuration with what another node's Shared gave. Every fault of
// that is one here, with its place in it.
func (c Config) WithShared(shared []byte, check func(cookieName string, rooms []anteroom.Room) anteroom.Faults) (Config, error) {
	const name = "cluster" // what the faults are in
	other, err := Load(LoadOptions{File: name, Check: check,
		Open: func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(shared)), nil }})
	if err != nil {
		return Config{}, err
	}
	c.CookieName, c.Sites, c.Rooms = other.CookieName, other.Sites, other.Rooms
	if own := c.shown; own != nil {
		c.shown = func() shown {
			s, theirs := own(), other.shown()
			s.doc.CookieName, s.doc.Sites, s.doc.Rooms = theirs.doc.CookieName, theirs.doc.Sites, theirs.doc.Rooms
			for path, place := range theirs.where {
				place.Source = "the cluster"
				s.where[path] = place
			}
			return s
		}
	}
	return c, nil
}
