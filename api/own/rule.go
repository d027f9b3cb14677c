package own

import (
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/rules"
)

// testRule tells what an expression, which is that of no rule yet, would do with a request.
func (f *face) testRule(r *api.Request, b schema.RuleTest) (schema.RuleResult, error) {
	d := b.Request
	described := rules.Described{Method: d.Method, Version: d.Version, URL: d.URL, Address: d.IP, Header: d.Headers,
		Place: rules.Place{Country: d.Country, Continent: d.Continent, ASN: uint32(d.ASN)}, Time: f.now(), Bot: d.Bot}
	if d.Time != nil {
		described.Time = *d.Time
	}
	request, err := described.Request(f.geo)
	if err != nil {
		return schema.RuleResult{}, api.Rename(err, func(path string) string { return "request." + path })
	}
	tried, err := f.manage.TryRule(r.By, b.Room, b.Expression, request)
	if faults, ok := api.FaultsOf(err); ok && len(faults) > 0 && faults[0].Path == "expression" {
		return schema.RuleResult{Error: &schema.RuleError{Message: faults[0].Problem, Fix: faults[0].Fix, Position: positionOf(b.Expression, faults[0].Column)}}, nil
	}
	out := schema.RuleResult{Valid: true, Matches: &tried.Matches, Exhausted: tried.Exhausted, Wide: tried.Wide, Fields: tried.Fields}
	for _, one := range tried.Readings {
		out.Readings = append(out.Readings, schema.Reading{Path: one.Path, Matches: one.Matches})
	}
	return out, err
}

// positionOf is a column, in bytes from 1, in characters; nil without one.
func positionOf(text string, column int) *int {
	if column < 1 {
		return nil
	}
	return new(len([]rune(text[:min(column-1, len(text))])) + 1)
}
