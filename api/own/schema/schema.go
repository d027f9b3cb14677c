// Package schema is what goes over the wire at /anteroom/v1: a Go type for each JSON object that the
// API takes or answers with. Package own fills and reads them, the command line decodes them, and
// the OpenAPI document is made from them, so they are written down once.
//
// The tags of a field say what its Go type does not:
//
//	doc       one or two sentences about it; on a blank field, about the type
//	setting   room, event, repeat or zone: sentence and bounds are those of the table of settings
//	enum      the values allowed, separated by commas
//	min, max  bounds of a number, or of the number of values in a list; a whole number is at least 0
//	max       of a text: its longest length, in characters
//	pattern   of a text
//	optional  in a body it may be left out or null
//	single    in a body a single value may stand for a list of one
//
// An answer has every member, unless json's omitzero or omitempty leaves it out; a nil pointer is null.
package schema

import "github.com/anteroom/anteroom"

// Deleted is the answer to a deletion.
type Deleted struct {
	ID string `json:"id" pattern:"^[0-9a-f]{32}$"`
}

// Removed is the answer to the removal of a node.
type Removed struct {
	ID string `json:"id" doc:"Name of the node."`
}

// None is the answer of an operation that has nothing to tell: null.
type None = *struct{}

// Count is the result_info of a list that has no pages.
type Count struct {
	Count int `json:"count"`
}

// ZoneName says which zone.
type ZoneName struct {
	ID   anteroom.ZoneID `json:"id"`
	Name string          `json:"name"`
}

// Optional is a pointer to a value; nil for the zero value, which stands for none.
func Optional[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}
