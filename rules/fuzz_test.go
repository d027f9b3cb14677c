package rules

import (
	"testing"

	"github.com/anteroom/anteroom"
)

// FuzzCompile: reading never panics; a fault has a place inside the expression and a fix or a
// problem to show.
func FuzzCompile(f *testing.F) {
	lists := sampleLists(f)
	f.Fuzz(func(t *testing.T, expression string) {
		_, err := Compile(expression, lists)
		if err == nil {
			return
		}
		faults, ok := err.(*anteroom.Error).Err.(anteroom.Faults)
		if !ok || len(faults) != 1 || faults[0].Column < 1 || faults[0].Column > len(expression)+1 || faults[0].Problem == "" {
			t.Fatalf("%q: %v", expression, err)
		}
	})
}

// FuzzMatch: looking at a hostile request never panics, says the same twice, and stays
// within a small multiple of the budget.
func FuzzMatch(f *testing.F) {
	lists := sampleLists(f)
	f.Fuzz(func(t *testing.T, expression, path, query, cookie, value string) {
		e, err := Compile(expression, lists)
		if err != nil || len(path)+len(query)+len(cookie)+len(value) > anteroom.MaxHeaderBytes {
			return
		}
		fresh := func() *Request {
			r := sample()
			r.Path, r.RawPath, r.Query = path, "", query
			r.Header["Cookie"], r.Header["X-Data"] = []string{cookie}, []string{value}
			return r
		}
		r := fresh()
		first := e.Match(r)
		if done := maxWork - r.work; done > maxWork+8*anteroom.MaxHeaderBytes {
			t.Fatalf("%q: %d steps", expression, done)
		}
		second := fresh()
		if e.Match(second) != first || first && e.Match(r) != first {
			t.Fatalf("%q: once %v", expression, first)
		}
	})
}
