package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// validation are the rules for queries. None makes suggestions, which would compare each unknown name
// with every known one. The planner finds fields that conflict: rules.OverlappingFieldsCanBeMergedRule
// compares each pair of them.
var validation = rules.NewRules(
	rules.FieldsOnCorrectTypeRuleWithoutSuggestions, rules.FragmentsOnCompositeTypesRule, rules.KnownArgumentNamesRuleWithoutSuggestions,
	rules.KnownDirectivesRule, rules.KnownFragmentNamesRule, rules.KnownRootTypeRule, rules.KnownTypeNamesRuleWithoutSuggestions,
	rules.LoneAnonymousOperationRule, rules.NoFragmentCyclesRule, rules.NoUndefinedVariablesRule, rules.NoUnusedFragmentsRule,
	rules.NoUnusedVariablesRule, rules.PossibleFragmentSpreadsRule, rules.ProvidedRequiredArgumentsRule, rules.ScalarLeafsRuleWithoutSuggestions,
	rules.UniqueArgumentNamesRule, rules.UniqueDirectivesPerLocationRule, rules.UniqueFragmentNamesRule, rules.UniqueInputFieldNamesRule,
	rules.UniqueOperationNamesRule, rules.UniqueVariableNamesRule, rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
	rules.VariablesAreInputTypesRule, rules.VariablesInAllowedPositionRule,
)

// spellings are the names that clients give to our scalars.
var spellings = map[string]string{
	"string": "string", "String": "string", "ID": "string", "Time": "Time", "time": "Time", "DateTime": "Time", "Date": "Date", "date": "Date",
	"int": "int64", "Int": "int64", "int64": "int64", "Int64": "int64", "uint64": "uint64", "Uint64": "uint64", "UInt64": "uint64", "uint32": "uint32", "Uint32": "uint32",
	"int32": "int64", "uint16": "uint64", "uint8": "uint64", "float64": "float64", "Float64": "float64", "float": "float64", "Float": "float64",
	"bool": "Boolean", "Bool": "Boolean", "boolean": "Boolean", "Boolean": "Boolean",
}

// refusal is a fault at a place in the query.
func refusal(at *ast.Position, code, format string, a ...any) fault {
	return fault{code: code, message: fmt.Sprintf(format, a...), at: []place{{at.Line, at.Column}}}
}

// read parses a query, checks it and plans its answer.
func (g *graph) read(b body) ([]*selection, error) {
	if len(b.Query) > maxQueryBytes {
		return nil, fault{code: codeLimit, message: "query is longer than 16384 bytes"}
	}
	// The parser counts comments as tokens, and a line that ends with \r\n one column too many.
	source := &ast.Source{Input: strings.ReplaceAll(b.Query, "\r\n", "\n")}
	doc, err := parser.ParseQueryWithTokenLimit(source, maxTokens+strings.Count(b.Query, "#"))
	if err != nil {
		e := gqlerror.WrapIfUnwrapped(err)
		if strings.HasPrefix(e.Message, "exceeded ") {
			return nil, fault{codeLimit, "query is too large: " + e.Message, placesOf(e)}
		}
		return nil, fault{codeInvalid, "syntax error: " + cmp.Or(lexicalError(source), e.Message), placesOf(e)}
	}
	if err := g.prepare(doc, b.Variables); err != nil {
		return nil, err
	}
	var all faults
	for _, e := range validator.ValidateWithRules(g.schema, doc, validation) {
		all = append(all, fault{codeInvalid, e.Message, placesOf(e)})
	}
	if all != nil {
		return nil, all
	}
	op, err := operationOf(doc, b.OperationName)
	if err != nil {
		return nil, err
	}
	p := planner{}
	if p.variables, err = valuesOf(op, b.Variables); err != nil {
		return nil, err
	}
	return p.add(nil, op.SelectionSet, 1)
}

// lexicalError returns what is wrong with the first token that is none, which the parser does not say.
func lexicalError(source *ast.Source) string {
	for l := lexer.New(source); ; {
		t, err := l.ReadToken()
		if err != nil {
			return gqlerror.WrapIfUnwrapped(err).Message
		}
		if t.Kind == lexer.EOF {
			return ""
		}
	}
}

func placesOf(e *gqlerror.Error) (all []place) {
	for _, at := range e.Locations {
		all = append(all, place{at.Line, at.Column})
	}
	return all
}

// prepare bounds what validation would spend too long on and spells the types of variables as the
// schema does.
func (g *graph) prepare(doc *ast.QueryDocument, values map[string]any) error {
	if n := len(doc.Operations) + len(doc.Fragments); n > maxOperations {
		return fault{code: codeLimit, message: fmt.Sprintf("query has more than %d operations and fragments", maxOperations)}
	}
	var first error
	refuse := func(at *ast.Position, code, format string, a ...any) {
		if first == nil {
			first = refusal(at, code, format, a...)
		}
	}
	uses := map[string]string{} // the type of the first place of a variable
	var see core.Events
	see.OnValue(func(_ *core.Walker, v *ast.Value) {
		var err error
		switch v.Kind {
		case ast.IntValue:
			_, err = strconv.ParseInt(v.Raw, 10, 64)
		case ast.FloatValue:
			_, err = strconv.ParseFloat(v.Raw, 64)
		case ast.Variable:
			if v.ExpectedType != nil && uses[v.Raw] == "" {
				uses[v.Raw] = v.ExpectedType.Name()
			}
		}
		if err != nil {
			refuse(v.Position, codeInvalid, "%s is not a 64-bit number", printed(v.Raw))
		}
		if deeper(v, maxNesting) {
			refuse(v.Position, codeLimit, "lists and objects are nested too deeply (at most %d)", maxNesting)
		}
	})
	core.Walk(g.schema, doc, &see)
	for _, op := range doc.Operations {
		if len(op.VariableDefinitions) > maxVariables {
			return refusal(op.VariableDefinitions[maxVariables].Position, codeLimit, "query has more than %d variables", maxVariables)
		}
		for _, v := range op.VariableDefinitions {
			spell(v, uses[v.Variable], values[v.Variable])
		}
	}
	return first
}

// deeper reports whether more lists and objects are in each other.
func deeper(v *ast.Value, than int) bool {
	return than < 0 || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return deeper(c.Value, than-1) })
}

// spell writes the type of a variable as the schema has it: a scalar as that of the place where the
// variable stands, and required when it has a value.
func spell(v *ast.VariableDefinition, position string, value any) {
	leaf := v.Type
	if v.Type.Elem != nil {
		leaf = v.Type.Elem
		items, _ := value.([]any)
		leaf.NonNull = leaf.NonNull || value != nil && !slices.Contains(items, nil)
	}
	if kind, ok := spellings[leaf.NamedType]; ok {
		leaf.NamedType = cmp.Or(position, kind)
	}
	v.Type.NonNull = v.Type.NonNull || value != nil && v.DefaultValue == nil
}

// operationOf returns the one to execute.
func operationOf(doc *ast.QueryDocument, name string) (*ast.OperationDefinition, error) {
	switch op := doc.Operations.ForName(name); {
	case len(doc.Operations) == 0:
		return nil, fault{code: codeInvalid, message: "no operations in query document"}
	case name == "" && len(doc.Operations) > 1:
		return nil, fault{code: codeInvalid, message: "more than one operation in query document and no operation name given"}
	case op == nil:
		return nil, fault{code: codeInvalid, message: fmt.Sprintf("no operation with name %s", printed(name))}
	default:
		return op, nil
	}
}

// valuesOf returns the values of an operation's variables.
func valuesOf(op *ast.OperationDefinition, given map[string]any) (map[string]any, error) {
	values := map[string]any{}
	for _, v := range op.VariableDefinitions {
		value, ok := given[v.Variable]
		if !ok && v.DefaultValue != nil {
			value, _ = v.DefaultValue.Value(nil)
			ok = true
		}
		if value == nil && v.Type.NonNull {
			return nil, refusal(v.Position, codeInvalid, "Variable %q has no value, and its type is %q.", "$"+v.Variable, v.Type)
		}
		if ok {
			values[v.Variable] = value
		}
	}
	return values, nil
}
