package own

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
)

// operation is a route with everything that the OpenAPI document says of it.
type operation struct {
	api.Route
	id, tag, summary, note string
	query                  []parameter
	handling
}

// parameter is a parameter of the query.
type parameter struct {
	name, doc string
	is        string   // string, boolean, integer or date-time; empty with an enum
	enum      []string // the allowed values
	min, max  int      // of an integer; max 0 means unlimited
	required  bool
}

// check refuses a value that the parameter does not allow.
func (p parameter) check(r *api.Request) error {
	value := r.Query.Get(p.name)
	switch {
	case p.enum != nil && (value != "" || p.required) && !slices.Contains(p.enum, value):
		return api.Query(p.name, "is not one of the allowed values", strings.Join(p.enum, ", "))
	case p.is == "boolean" && value != "" && value != "true" && value != "false":
		return api.Query(p.name, "is neither true nor false", p.doc)
	case !r.Query.Has(p.name):
	case p.is == "integer":
		n, err := strconv.ParseUint(value, 10, 63)
		fix := fmt.Sprintf("%d to %d", p.min, p.max)
		if p.max == 0 {
			fix = fmt.Sprintf("a whole number, at least %d", p.min)
		}
		if err != nil || n < uint64(p.min) || p.max > 0 && n > uint64(p.max) {
			return api.Query(p.name, "is out of range", fix)
		}
	case p.is == "date-time":
		if t, err := time.Parse(time.RFC3339, value); err != nil || t.Year() < 1970 || t.Year() > 9999 {
			return api.Query(p.name, "is not a moment", "RFC 3339, like 2026-11-27T09:00:00Z")
		}
	}
	return nil
}

// integer returns a checked parameter, or the default if the query does not have it.
func integer(r *api.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.Query.Get(name)); err == nil {
		return n
	}
	return otherwise
}

// dateTime returns a checked parameter in UTC, or the default if the query does not have it.
func dateTime(r *api.Request, name string, otherwise time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339, r.Query.Get(name)); err == nil {
		return t.UTC()
	}
	return otherwise
}

// handling is the code of an operation with the types of its body and result. The types come from
// the function's signature, so the document cannot describe others.
type handling struct {
	do           func(*api.Request) (api.Answer, error)
	write        func(http.ResponseWriter, *api.Request) error // where do is nil
	body, result reflect.Type                                  // nil for none
	optional     bool                                          // the body may be left out
	info         reflect.Type                                  // of result_info; nil for none
	takes        string                                        // media type of a body other than JSON
	media        []medium                                      // other forms of the answer
}

// medium is a form of an answer other than JSON.
type medium struct {
	name, doc string
	binary    bool
}

// op returns an operation without a tag. It checks the query before the operation begins.
func op(method, path, id, summary string, h handling, query ...parameter) operation {
	checked := func(r *api.Request) error {
		for _, p := range query {
			if err := p.check(r); err != nil {
				return err
			}
		}
		return nil
	}
	route := api.Route{Method: method, Path: path}
	if h.do != nil {
		route.Do = func(r *api.Request) (api.Answer, error) {
			if err := checked(r); err != nil {
				return api.Answer{}, err
			}
			return h.do(r)
		}
	} else {
		route.Write = func(w http.ResponseWriter, r *api.Request) error {
			if err := checked(r); err != nil {
				return err
			}
			return h.write(w, r)
		}
	}
	return operation{Route: route, id: id, summary: summary, query: query, handling: h}
}

// noted returns the operation with a longer description.
func (o operation) noted(text string) operation {
	o.note = text
	return o
}

// tagged sets the tag of operations.
func tagged(tag string, all ...operation) []operation {
	for i := range all {
		all[i].tag = tag
	}
	return all
}

// gives handles an operation without a body.
func gives[R any](do func(*api.Request) (R, error)) handling {
	return handling{result: reflect.TypeFor[R](), do: func(r *api.Request) (api.Answer, error) {
		result, err := do(r)
		return api.Answer{Result: result}, err
	}}
}

// takes handles an operation with a body.
func takes[B, R any](do func(*api.Request, B) (R, error)) handling {
	return changes(func(r *api.Request, p patch[B]) (result R, err error) {
		var body, none B
		if err := p.over(&body, none); err != nil {
			return result, err
		}
		return do(r, body)
	})
}

// mayTake handles an operation whose body may be left out.
func mayTake[B, R any](do func(*api.Request, B) (R, error)) handling {
	h := takes(do)
	with := h.do
	h.optional, h.do = true, func(r *api.Request) (api.Answer, error) {
		if r.ContentLength != 0 {
			return with(r)
		}
		var none B
		result, err := do(r, none)
		return api.Answer{Result: result}, err
	}
	return h
}

// patch is a body that changes some members of a B.
type patch[B any] struct{ members api.Object }

// over sets the members that the body has; null sets the value of defaults.
func (p patch[B]) over(to *B, defaults B) error { return api.Read(p.members, to, defaults) }

// changes handles an operation whose body may leave out members that it does not change.
func changes[B, R any](do func(*api.Request, patch[B]) (R, error)) handling {
	return handling{body: reflect.TypeFor[B](), result: reflect.TypeFor[R](), do: func(r *api.Request) (api.Answer, error) {
		o, err := r.Object()
		if err != nil {
			return api.Answer{}, err
		}
		result, err := do(r, patch[B]{o})
		return api.Answer{Result: result}, err
	}}
}

// pages handles an operation that returns a list in pages. It converts only the requested page with form.
func pages[T, R any](do func(*api.Request) (all []T, form func(T) R, err error)) handling {
	return handling{result: reflect.TypeFor[[]R](), info: reflect.TypeFor[api.PageInfo](), do: func(r *api.Request) (api.Answer, error) {
		all, form, err := do(r)
		if err != nil {
			return api.Answer{}, err
		}
		p, err := api.PageOf(r.Query)
		if err != nil {
			return api.Answer{}, err
		}
		some, info := api.Part(all, p)
		out := make([]R, len(some))
		for i := range some {
			out[i] = form(some[i])
		}
		return api.Answer{Result: out, Info: info}, nil
	}}
}

// counts handles an operation that returns a list without pages, with the number of its items.
func counts[R any](do func(*api.Request) ([]R, error)) handling {
	return handling{result: reflect.TypeFor[[]R](), info: reflect.TypeFor[schema.Count](), do: func(r *api.Request) (api.Answer, error) {
		all, err := do(r)
		return api.Answer{Result: all, Info: schema.Count{Count: len(all)}}, err
	}}
}

// writes handles an operation that writes its answer itself: an R in the envelope, or one of the media.
func writes[R any](do func(http.ResponseWriter, *api.Request) error, media ...medium) handling {
	return handling{result: reflect.TypeFor[R](), write: do, media: media}
}

// sends handles an operation that answers only with another medium.
func sends(do func(http.ResponseWriter, *api.Request) error, as medium) handling {
	return handling{write: do, media: []medium{as}}
}
