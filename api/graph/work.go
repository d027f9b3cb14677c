package graph

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// What extensions.code of an error can be.
const (
	codeInvalid     = "invalid" // the query, a variable or an argument
	codeLimit       = "limit"
	codeAuthz       = "authz"
	codeBudget      = "budget"
	codeUnavailable = "unavailable"
	codeInternal    = "internal"
)

// fault is an error with a code and its places in the query.
type fault struct {
	code, message string
	at            []place
}

func (f fault) Error() string { return f.message }

// place is where something is in a query.
type place struct {
	Line   int `json:"line"`   // from 1
	Column int `json:"column"` // in characters, from 1
}

// faults are several; all but the first 20 are left out of the answer.
type faults []fault

func (f faults) Error() string { return f[0].message }

// object answers a field: with nil, a string, bool, int64 or float64, an object, or a list of strings or
// objects.
type object func(*selection) (any, error)

// work is what one query has done, over all its fields.
type work struct {
	graph  *graph
	by     manage.Caller
	now    time.Time
	left   int // queries of the token's budget
	cancel context.CancelFunc

	out    *jsontext.Encoder
	path   []any // of the field that is answered: keys and indexes
	failed []failure

	fields, meta  int
	zones         map[anteroom.ZoneID]bool
	rows, scanned int
	tooLarge      error // the first bound that was met
}

// failure is a field that could not be answered.
type failure struct {
	error
	path []any
}

// answer writes what is selected of the type Query.
func (w *work) answer(ctx context.Context, set []*selection) jsontext.Value {
	var text bytes.Buffer
	w.out = jsontext.NewEncoder(&text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	w.object(ctx, w.query(ctx), set)
	return bytes.TrimSpace(text.Bytes())
}

// object writes an object. What it writes is no JSON once a bound is met, and goes nowhere.
func (w *work) object(ctx context.Context, o object, set []*selection) {
	w.out.WriteToken(jsontext.BeginObject)
	for _, s := range set {
		if w.tooLarge != nil || ctx.Err() != nil {
			return
		}
		w.count(s)
		w.out.WriteToken(jsontext.String(s.Alias))
		w.path = append(w.path, s.Alias)
		if s.Name == "__typename" {
			w.out.WriteToken(jsontext.String(s.ObjectDefinition.Name))
		} else {
			v, err := o(s)
			if err != nil {
				v = nil
				w.failed = append(w.failed, failure{err, slices.Clone(w.path)})
			}
			w.value(ctx, v, s)
		}
		w.path = w.path[:len(w.path)-1]
	}
	w.out.WriteToken(jsontext.EndObject)
}

func (w *work) value(ctx context.Context, v any, s *selection) {
	switch v := v.(type) {
	case nil:
		w.out.WriteToken(jsontext.Null)
	case string:
		w.out.WriteToken(jsontext.String(v))
	case bool:
		w.out.WriteToken(jsontext.Bool(v))
	case int64:
		w.out.WriteToken(jsontext.Int(v))
	case float64:
		w.out.WriteToken(jsontext.Float(v))
	case object:
		w.object(ctx, v, s.below)
	case []string:
		w.out.WriteToken(jsontext.BeginArray)
		for _, one := range v {
			w.out.WriteToken(jsontext.String(one))
		}
		w.out.WriteToken(jsontext.EndArray)
	case []object:
		w.out.WriteToken(jsontext.BeginArray)
		for i, one := range v {
			w.path = append(w.path, i)
			w.object(ctx, one, s.below)
			w.path = w.path[:len(w.path)-1]
		}
		w.out.WriteToken(jsontext.EndArray)
	default:
		panic(fmt.Sprintf("field %s has a value of type %T", s.Name, v))
	}
}

// count counts a field that is answered.
func (w *work) count(s *selection) {
	if w.fields++; strings.HasPrefix(s.ObjectDefinition.Name, "__") {
		w.meta++
	}
	if w.fields > maxFields || w.meta > maxMetaFields {
		w.stop("answer has more than %d fields, or more than %d about the schema: ask for fewer rows or fields", maxFields, maxMetaFields)
	}
}

// stop ends the query because of a bound.
func (w *work) stop(format string, a ...any) error {
	if w.tooLarge == nil {
		w.tooLarge = fault{code: codeLimit, message: fmt.Sprintf(format, a...)}
	}
	w.cancel()
	return w.tooLarge
}

// visit counts a zone.
func (w *work) visit(id anteroom.ZoneID) error {
	if w.zones[id] = true; len(w.zones) > maxZones {
		return w.stop("query covers more than %d zones", maxZones)
	}
	return nil
}

// scan counts rows that were read.
func (w *work) scan(n int) error {
	if w.scanned += n; w.scanned > maxScanned {
		return w.stop("query needs more than %d rows: ask for less time, fewer rooms, or a coarser dimension like datetimeHour", maxScanned)
	}
	return nil
}

// give counts rows that are returned.
func (w *work) give(n int) error {
	if w.rows += n; w.rows > maxPageSize {
		return w.stop("answer has more than %d rows in all", maxPageSize)
	}
	return nil
}
