package graph

import (
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
)

// selection is a field of the answer. No type of the schema has subtypes, so what is selected is the same
// for all objects of a list.
type selection struct {
	*ast.Field // the first of those with its key
	arguments  map[string]any
	question   *question // of a node of a zone
	below      []*selection
}

// planner puts fragments into selections, and those with the same key together.
type planner struct {
	variables                             map[string]any
	selections, arguments, schemas, types int
}

// add puts what a set selects to selections that are fields in each other.
func (p *planner) add(to []*selection, set ast.SelectionSet, depth int) ([]*selection, error) {
	for _, one := range set {
		if p.selections++; p.selections > maxSelections {
			return nil, fault{code: codeLimit, message: fmt.Sprintf("query expands to too many selections (limit %d)", maxSelections)}
		}
		var err error
		switch one := one.(type) {
		case *ast.Field:
			to, err = p.field(to, one, depth)
		case *ast.InlineFragment:
			to, err = p.fragment(to, one.Directives, one.SelectionSet, depth)
		case *ast.FragmentSpread:
			to, err = p.fragment(to, one.Directives, one.Definition.SelectionSet, depth)
		}
		if err != nil {
			return nil, err
		}
	}
	return to, nil
}

func (p *planner) fragment(to []*selection, directives ast.DirectiveList, set ast.SelectionSet, depth int) ([]*selection, error) {
	if ok, err := p.includes(directives); err != nil || !ok {
		return to, err
	}
	return p.add(to, set, depth)
}

func (p *planner) field(to []*selection, f *ast.Field, depth int) ([]*selection, error) {
	if err := p.bound(f, depth); err != nil {
		return nil, err
	}
	if ok, err := p.includes(f.Directives); err != nil || !ok {
		return to, err
	}
	var s *selection
	for _, one := range to {
		if one.Alias == f.Alias {
			s = one
		}
	}
	var err error
	switch {
	case s == nil:
		s = &selection{Field: f, arguments: f.ArgumentMap(p.variables)}
		if n, ok := nodes[f.Name]; ok && f.ObjectDefinition.Name == "zone" {
			if s.question, err = newQuestion(s.arguments, n.filters, n.orders); err != nil {
				return nil, placed(f, err)
			}
		}
		to = append(to, s)
	case s.Name != f.Name:
		return nil, conflict(s.Field, f, "they are different fields")
	case !sameArguments(s.Arguments, f.Arguments):
		return nil, conflict(s.Field, f, "they have differing arguments")
	}
	s.below, err = p.add(s.below, f.SelectionSet, depth+1)
	return to, err
}

// placed gives an error about a field's arguments the field's place.
func placed(f *ast.Field, err error) error {
	if wrong, ok := errors.AsType[fault](err); ok {
		wrong.at = []place{{f.Position.Line, f.Position.Column}}
		return wrong
	}
	return err
}

// bound counts what a field costs wherever its fragment stands.
func (p *planner) bound(f *ast.Field, depth int) error {
	if depth > maxDepth {
		return refusal(f.Position, codeLimit, "fields are nested too deeply (at most %d)", maxDepth)
	}
	if max(len(f.Name), len(f.Alias)) > maxNameBytes {
		return refusal(f.Position, codeLimit, "name is longer than %d characters", maxNameBytes)
	}
	if len(f.Arguments) > 0 {
		p.arguments++
	}
	switch f.Name {
	case "__schema":
		p.schemas++
	case "__type":
		p.types++
	}
	switch {
	case p.arguments > maxArguments:
		return refusal(f.Position, codeLimit, "query has more than %d lists of arguments", maxArguments)
	case p.schemas > 1 || p.types > 5:
		return refusal(f.Position, codeLimit, "query asks for the schema too often (__schema once, __type 5 times)")
	}
	return nil
}

// includes reports whether @include and @skip let a selection in.
func (p *planner) includes(all ast.DirectiveList) (bool, error) {
	for _, d := range all {
		v, _ := d.Arguments.ForName("if").Value.Value(p.variables)
		yes, ok := v.(bool)
		if !ok {
			return false, refusal(d.Position, codeInvalid, "@%s: %s is not true or false", d.Name, printed(v))
		}
		if yes != (d.Name == "include") {
			return false, nil
		}
	}
	return true, nil
}

func conflict(a, b *ast.Field, why string) error {
	f := refusal(a.Position, codeInvalid, "Fields %q conflict because %s. Use different aliases on the fields to fetch both if this was intentional.", a.Alias, why)
	f.at = append(f.at, place{b.Position.Line, b.Position.Column})
	return f
}

func sameArguments(a, b ast.ArgumentList) bool {
	for _, one := range a {
		if other := b.ForName(one.Name); other == nil || one.Value.String() != other.Value.String() {
			return false
		}
	}
	return len(a) == len(b)
}
