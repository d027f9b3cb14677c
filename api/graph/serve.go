package graph

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	gqlerrors "github.com/graph-gophers/graphql-go/errors"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// body is a request.
type body struct {
	Query         string         `json:"query"`
	Variables     map[string]any `json:"variables"`
	OperationName string         `json:"operationName"`
}

// problem is an error in the answer, as published.
type problem struct {
	Message    string               `json:"message"`
	Path       []any                `json:"path"`
	Locations  []gqlerrors.Location `json:"locations,omitempty"`
	Extensions map[string]any       `json:"extensions"`
}

// answer is as published: data is null when there is any error.
type answer struct {
	Data   jsontext.Value `json:"data"`
	Errors []problem      `json:"errors"`
}

// serve answers a request of a caller who is known.
func (g *graph) serve(w http.ResponseWriter, r *api.Request) error {
	format, err := formatOf(r)
	if err != nil {
		return err
	}
	left, wait := g.budget.take(r.By.Token)
	if wait > 0 {
		seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
		w.Header().Set("Retry-After", seconds)
		return g.send(w, http.StatusTooManyRequests, g.failed(fault{codeBudget,
			fmt.Sprintf("rate limiter budget depleted: %d queries in %v; try again after %ss", MaxQueries, budgetWindow, seconds)}))
	}
	b, err := readBody(r.Body)
	if err != nil {
		status := http.StatusBadRequest
		if f, ok := errors.AsType[fault](err); ok && f.code == codeLimit {
			status = http.StatusRequestEntityTooLarge
		}
		return g.send(w, status, g.failed(err))
	}
	a, _ := g.run(r.Context(), r.By, left, b)
	if format == "csv" {
		if a.Errors != nil {
			return g.send(w, http.StatusBadRequest, a)
		}
		return writeTable(w, a.Data)
	}
	return g.send(w, http.StatusOK, a)
}

// formatOf tells in which form the answer is wanted.
func formatOf(r *api.Request) (string, error) {
	switch format := r.Query.Get("format"); {
	case format == "json" || format == "csv":
		return format, nil
	case format != "":
		return "", api.Query("format", "is not one", "json or csv")
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Accept"), ";"); strings.TrimSpace(kind) == "text/csv" {
		return "csv", nil
	}
	return "json", nil
}

// readBody reads a request within its bounds.
func readBody(from io.Reader) (body, error) {
	var b body
	text, err := io.ReadAll(io.LimitReader(from, MaxRequestBytes+1))
	if err != nil {
		return b, fault{codeInvalid, "body could not be read to its end"}
	}
	if len(text) > MaxRequestBytes {
		return b, fault{codeLimit, fmt.Sprintf("body has more than %d bytes", MaxRequestBytes)}
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fault{codeInvalid, `body is not a request: send one JSON object like {"query":"{viewer{budget}}","variables":{}}`}
	}
	if b.Query == "" {
		return b, fault{codeInvalid, `body has no member "query"`}
	}
	count := variableCount{}
	return b, count.check(b.Variables, "variables", 0)
}

// variableCount bounds the values of variables.
type variableCount struct{ values, members int }

func (n *variableCount) check(v any, path string, depth int) error {
	const mostDepth, mostText = 12, 1000
	n.values++
	switch {
	case n.values > MaxVariableValues:
		return fault{codeLimit, fmt.Sprintf("variables have too many values (at most %d)", MaxVariableValues)}
	case depth > mostDepth:
		return fault{codeLimit, fmt.Sprintf("variables are too deep (at most %d objects and lists in each other)", mostDepth)}
	}
	switch v := v.(type) {
	case string:
		if len(v) > mostText {
			return fault{codeLimit, fmt.Sprintf("%s: is longer than %d bytes", path, mostText)}
		}
	case []any:
		for i, one := range v {
			if err := n.check(one, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		if n.members += len(v); n.members > MaxVariableMembers {
			return fault{codeLimit, fmt.Sprintf("variables have too many members (at most %d)", MaxVariableMembers)}
		}
		for _, name := range sorted(v) {
			if err := n.check(v[name], path+"."+name, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// run answers a query. The work says what it cost.
func (g *graph) run(ctx context.Context, by manage.Caller, left int, b body) (answer, *work) {
	ctx, cancel := context.WithTimeout(ctx, longestQuery)
	defer cancel()
	w := &work{graph: g, by: by, now: g.Now().UTC(), left: left, cancel: cancel, zones: map[anteroom.ZoneID]bool{}}
	w.finish = w.afterField
	doc, err := read(b.Query, b.Variables)
	if err != nil {
		return g.failed(err), w
	}
	ctx = context.WithValue(ctx, workKey{}, w)
	got, errs := g.exec(ctx, doc, b)
	switch {
	case w.stopped() != nil:
		return g.failed(w.stopped()), w
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return g.failed(fault{codeLimit, fmt.Sprintf("query takes longer than %v: ask for less time, fewer rooms, or a coarser dimension", longestQuery)}), w
	case len(errs) == 0:
		return answer{Data: got}, w
	}
	a := answer{}
	for _, one := range errs[:min(len(errs), maxErrors)] {
		a.Errors = append(a.Errors, g.problem(doc, one))
	}
	return a, w
}

// exec hands a document to the library. It ends some documents with a panic, which none should
// reach that has passed read.
func (g *graph) exec(ctx context.Context, doc *document, b body) (data jsontext.Value, errs []*gqlerrors.QueryError) {
	defer func() {
		if value := recover(); value != nil {
			p := panicLog{g.Log}
			p.LogPanic(ctx, value)
			data, errs = nil, []*gqlerrors.QueryError{p.MakePanicError(ctx, value)}
		}
	}()
	r := g.schema.Exec(ctx, doc.text, b.OperationName, b.Variables)
	return jsontext.Value(r.Data), r.Errors
}

// problem translates an error of the library.
func (g *graph) problem(doc *document, e *gqlerrors.QueryError) problem {
	err := e.ResolverError
	if err == nil {
		err = fault{codeInvalid, e.Message}
	}
	p := g.problemOf(err)
	p.Path = e.Path
	for _, at := range e.Locations {
		here := doc.original(place{at.Line, at.Column})
		p.Locations = append(p.Locations, gqlerrors.Location{Line: here.line, Column: here.column})
	}
	return p
}

// problemOf translates an error of ours.
func (g *graph) problemOf(err error) problem {
	p := problem{Message: err.Error(), Extensions: map[string]any{"code": codeInternal, "timestamp": g.Now().UTC().Format(time.RFC3339Nano)}}
	if s, ok := errors.AsType[syntax](err); ok {
		p.Locations = []gqlerrors.Location{{Line: s.at.line, Column: s.at.column}}
		err = s.fault
	}
	if f, ok := errors.AsType[fault](err); ok {
		p.Extensions["code"] = f.code
		return p
	}
	switch anteroom.KindOf(err) {
	case anteroom.Invalid:
		p.Extensions["code"] = codeInvalid
	case anteroom.Denied, anteroom.NotFound:
		p.Extensions["code"] = codeAuthz
	case anteroom.Unavailable:
		p.Extensions["code"] = codeUnavailable
	default:
		g.Log.Error("a GraphQL query failed", "error", err)
		p.Message = "internal error"
	}
	return p
}

func (g *graph) failed(err error) answer { return answer{Errors: []problem{g.problemOf(err)}} }

func (g *graph) send(w http.ResponseWriter, status int, a answer) error {
	text, err := json.Marshal(a, json.FormatNilSliceAsNull(true))
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(append(text, '\n'))
	return nil
}
