package graph

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// aboutSchema answers the fields of __Schema.
func (g *graph) aboutSchema(s *selection) (any, error) {
	switch s.Name {
	case "types":
		var all []object
		for _, name := range sorted(g.schema.Types) {
			all = append(all, g.aboutType(g.schema.Types[name]))
		}
		return all, nil
	case "queryType":
		return g.aboutType(g.schema.Query), nil
	case "directives":
		var all []object
		for _, name := range sorted(g.schema.Directives) {
			all = append(all, g.aboutDirective(g.schema.Directives[name]))
		}
		return all, nil
	}
	return nil, nil // no description, mutations or subscriptions
}

// aboutType answers the fields of __Type for a type with a name.
func (g *graph) aboutType(d *ast.Definition) object {
	return func(s *selection) (any, error) {
		switch {
		case s.Name == "kind":
			return string(d.Kind), nil
		case s.Name == "name":
			return d.Name, nil
		case s.Name == "description":
			return orNull(d.Description), nil
		case s.Name == "fields" && d.Kind == ast.Object:
			all := []object{}
			for _, f := range d.Fields {
				if !strings.HasPrefix(f.Name, "__") {
					all = append(all, g.aboutField(f))
				}
			}
			return all, nil
		case s.Name == "interfaces" && d.Kind == ast.Object:
			return []object{}, nil
		case s.Name == "inputFields" && d.Kind == ast.InputObject:
			all := []object{}
			for _, f := range d.Fields {
				all = append(all, g.aboutInput(f.Name, f.Description, f.Type, f.DefaultValue))
			}
			return all, nil
		case s.Name == "enumValues" && d.Kind == ast.Enum:
			all := []object{}
			for _, v := range d.EnumValues {
				all = append(all, named(v.Name, v.Description, nil))
			}
			return all, nil
		case s.Name == "isOneOf" && d.Kind == ast.InputObject:
			return false, nil
		}
		return nil, nil
	}
}

// typeOf is aboutType for the type of a field or argument.
func (g *graph) typeOf(t *ast.Type) object {
	kind, of := "LIST", t.Elem
	switch {
	case t.NonNull:
		nullable := *t
		nullable.NonNull = false
		kind, of = "NON_NULL", &nullable
	case t.Elem == nil:
		return g.aboutType(g.schema.Types[t.NamedType])
	}
	return func(s *selection) (any, error) {
		switch s.Name {
		case "kind":
			return kind, nil
		case "ofType":
			return g.typeOf(of), nil
		}
		return nil, nil
	}
}

// named answers the fields that most have. Nothing in the schema is deprecated.
func named(name, description string, others object) object {
	return func(s *selection) (any, error) {
		switch s.Name {
		case "name":
			return name, nil
		case "description":
			return orNull(description), nil
		case "isDeprecated":
			return false, nil
		case "deprecationReason":
			return nil, nil
		}
		return others(s)
	}
}

func (g *graph) aboutField(f *ast.FieldDefinition) object {
	return named(f.Name, f.Description, func(s *selection) (any, error) {
		if s.Name == "args" {
			return g.aboutArguments(f.Arguments), nil
		}
		return g.typeOf(f.Type), nil
	})
}

func (g *graph) aboutArguments(list ast.ArgumentDefinitionList) []object {
	all := []object{}
	for _, a := range list {
		all = append(all, g.aboutInput(a.Name, a.Description, a.Type, a.DefaultValue))
	}
	return all
}

func (g *graph) aboutInput(name, description string, t *ast.Type, byDefault *ast.Value) object {
	return named(name, description, func(s *selection) (any, error) {
		if s.Name == "type" {
			return g.typeOf(t), nil
		}
		if byDefault == nil {
			return nil, nil
		}
		return byDefault.String(), nil
	})
}

func (g *graph) aboutDirective(d *ast.DirectiveDefinition) object {
	return named(d.Name, d.Description, func(s *selection) (any, error) {
		switch s.Name {
		case "args":
			return g.aboutArguments(d.Arguments), nil
		case "isRepeatable":
			return d.IsRepeatable, nil
		}
		var all []string
		for _, l := range d.Locations {
			all = append(all, string(l))
		}
		return all, nil
	})
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
