package own

import (
	"net/http"
	"reflect"

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
	is        string // JSON Schema's type, or date-time
	enum      []string
	min, max  int // of a number
	required  bool
}

// handling is what an operation does, with the types that it takes and answers with: they are those
// of the function that does it, so that no description can be of another type.
type handling struct {
	do           func(*api.Request) (api.Answer, error)
	write        func(http.ResponseWriter, *api.Request) error // where do is nil
	body, result reflect.Type                                  // nil for none
	info         reflect.Type                                  // of result_info; nil for none
	takes        string                                        // media type of a body that is no JSON
	media        []medium                                      // of answers other than result
}

// medium is a form of an answer that is no JSON.
type medium struct {
	name, doc string
	binary    bool
}

// op is an operation; tagged gives it its tag.
func op(method, path, id, summary string, h handling, query ...parameter) operation {
	return operation{Route: api.Route{Method: method, Path: path, Do: h.do, Write: h.write}, id: id, summary: summary, query: query, handling: h}
}

// noted is the operation with a longer description.
func (o operation) noted(text string) operation {
	o.note = text
	return o
}

// tagged gives operations their tag.
func tagged(tag string, all ...operation) []operation {
	for i := range all {
		all[i].tag = tag
	}
	return all
}

// gives is an operation without a body.
func gives[R any](do func(*api.Request) (R, error)) handling {
	return handling{result: reflect.TypeFor[R](), do: func(r *api.Request) (api.Answer, error) {
		result, err := do(r)
		return api.Answer{Result: result}, err
	}}
}

// takes is an operation with a body.
func takes[B, R any](do func(*api.Request, B) (R, error)) handling {
	return changes(func(r *api.Request, p patch[B]) (result R, err error) {
		var body, none B
		if err := p.over(&body, none); err != nil {
			return result, err
		}
		return do(r, body)
	})
}

// patch is a body that changes a B.
type patch[B any] struct{ members api.Object }

// over sets what the body names; null sets what is in defaults.
func (p patch[B]) over(to *B, defaults B) error { return api.Read(p.members, to, defaults) }

// changes is an operation with a body in which it matters what was left out.
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

// pages is an operation that gives a list in pages. Of the members of other pages no form is made.
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

// counts is an operation that gives a list of a length of its own.
func counts[R any](do func(*api.Request) ([]R, error)) handling {
	return handling{result: reflect.TypeFor[[]R](), info: reflect.TypeFor[schema.Count](), do: func(r *api.Request) (api.Answer, error) {
		all, err := do(r)
		return api.Answer{Result: all, Info: schema.Count{Count: len(all)}}, err
	}}
}

// writes is an operation that writes its answer itself: an R in the envelope, or one of the media.
func writes[R any](do func(http.ResponseWriter, *api.Request) error, media ...medium) handling {
	return handling{result: reflect.TypeFor[R](), write: do, media: media}
}

// sends is an operation that only writes another medium.
func sends(do func(http.ResponseWriter, *api.Request) error, as medium) handling {
	return handling{write: do, media: []medium{as}}
}
