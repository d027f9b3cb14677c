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
	"runtime/debug"
	"strconv"
	"strings"
	"time"

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
	Message    string         `json:"message"`
	Path       []any          `json:"path"`
	Locations  []place        `json:"locations,omitempty"`
	Extensions map[string]any `json:"extensions"`
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
		return g.send(w, http.StatusTooManyRequests, g.failed(fault{code: codeBudget, message: fmt.Sprintf("rate limiter budget depleted: %d queries in %v; try again after %ss", maxQueries, budgetWindow, seconds)}))
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
	text, err := io.ReadAll(io.LimitReader(from, maxRequestBytes+1))
	if err != nil {
		return b, fault{code: codeInvalid, message: "the body ended early"}
	}
	if len(text) > maxRequestBytes {
		return b, fault{code: codeLimit, message: fmt.Sprintf("body has more than %d bytes", maxRequestBytes)}
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fault{code: codeInvalid, message: `body is not a request: send one JSON object like {"query":"{viewer{budget}}","variables":{}}`}
	}
	if b.Query == "" {
		return b, fault{code: codeInvalid, message: `body has no member "query"`}
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
	case n.values > maxVariableValues:
		return fault{code: codeLimit, message: fmt.Sprintf("variables have too many values (at most %d)", maxVariableValues)}
	case depth > mostDepth:
		return fault{code: codeLimit, message: fmt.Sprintf("variables are nested too deeply (at most %d objects and lists)", mostDepth)}
	}
	switch v := v.(type) {
	case string:
		if len(v) > mostText {
			return fault{code: codeLimit, message: fmt.Sprintf("%s: is longer than %d bytes", path, mostText)}
		}
	case []any:
		for i, one := range v {
			if err := n.check(one, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		if n.members += len(v); n.members > maxVariableMembers {
			return fault{code: codeLimit, message: fmt.Sprintf("variables have too many members (at most %d)", maxVariableMembers)}
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
func (g *graph) run(ctx context.Context, by manage.Caller, left int, b body) (a answer, w *work) {
	ctx, cancel := context.WithTimeout(ctx, longestQuery)
	defer cancel()
	w = &work{graph: g, by: by, now: g.Now().UTC(), left: left, cancel: cancel, zones: map[anteroom.ZoneID]bool{}}
	defer func() {
		if value := recover(); value != nil {
			g.Log.Error("a GraphQL query failed because of a defect in Anteroom", "request", by.RequestID, "panic", value, "stack", string(debug.Stack()))
			a = g.failed(fault{code: codeInternal, message: "internal error"})
		}
	}()
	plan, err := g.read(b)
	if err != nil {
		return g.failed(err), w
	}
	data := w.answer(ctx, plan)
	switch {
	case w.tooLarge != nil:
		return g.failed(w.tooLarge), w
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return g.failed(fault{code: codeLimit, message: fmt.Sprintf("query takes longer than %v: ask for less time, fewer rooms, or a coarser dimension", longestQuery)}), w
	case len(w.failed) == 0:
		return answer{Data: data}, w
	}
	for _, one := range w.failed[:min(len(w.failed), maxErrors)] {
		p := g.problemOf(one.error)
		p.Path = one.path
		a.Errors = append(a.Errors, p)
	}
	return a, w
}

// problemOf translates an error.
func (g *graph) problemOf(err error) problem {
	const mostText = 500
	p := problem{Message: err.Error(), Extensions: map[string]any{"code": codeInternal, "timestamp": g.Now().UTC().Format(time.RFC3339Nano)}}
	if f, ok := errors.AsType[fault](err); ok {
		if r := []rune(p.Message); len(r) > mostText {
			p.Message = string(r[:mostText]) + "…"
		}
		p.Locations, p.Extensions["code"] = f.at, f.code
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

func (g *graph) failed(err error) (a answer) {
	all, ok := errors.AsType[faults](err)
	if !ok {
		return answer{Errors: []problem{g.problemOf(err)}}
	}
	for _, one := range all[:min(len(all), maxErrors)] {
		a.Errors = append(a.Errors, g.problemOf(one))
	}
	return a
}

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
