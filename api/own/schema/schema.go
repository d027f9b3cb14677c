// Package schema has a Go type for each JSON object in the requests and responses of /anteroom/v1.
// Package own serves them, the command line decodes them, and the OpenAPI document is made from them.
//
// The tags of a field say what its Go type does not:
//
//	doc       one or two sentences about the field; on a blank field, about the type
//	setting   room, repeat or zone: take doc, bounds and enum from that table of settings
//	enum      the allowed values, separated by commas
//	min, max  bounds of a number, of the length of a text in characters, or of the number of values in
//	          a list; a whole number without min is at least 0
//	pattern   regular expression that a text matches
//	optional  a request may leave it out or send null
//	required  every response has it, although json's options could leave it out
//	single    a request may send a single value instead of a list
//
// A response has every member that json's omitzero or omitempty does not leave out; a nil pointer is null.
package schema

import "github.com/anteroom/anteroom"

// Deleted is the result of a deletion.
type Deleted struct {
	ID string `json:"id" pattern:"^[0-9a-f]{32}$"`
}

// Removed is the result of removing a node.
type Removed struct {
	ID string `json:"id" doc:"Name of the node."`
}

// Replacement names the core that has taken the place of another.
type Replacement struct {
	By    string `json:"by" min:"1" doc:"Name of the core that has taken its place. It must run."`
	Force bool   `json:"force" optional:"true" doc:"Replace the core even if it still runs."`
}

// Replaced is the result of replacing a core.
type Replaced struct {
	ID       string `json:"id" doc:"Name of the core that was replaced."`
	By       string `json:"by" doc:"Name of the core that has taken its place."`
	Complete bool   `json:"complete" doc:"Whether all cores have a complete copy of everything. If not, copying continues."`
}

// None is the result of an operation that returns nothing: null.
type None = *struct{}

// Count is the result_info of a list without pages.
type Count struct {
	Count int `json:"count"`
}

// ZoneName identifies a zone.
type ZoneName struct {
	ID   anteroom.ZoneID `json:"id"`
	Name string          `json:"name"`
}

// Value returns what a pointer points to, or the zero value for nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Optional returns a pointer to a value, or nil for the zero value.
func Optional[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
