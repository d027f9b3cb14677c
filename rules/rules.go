// Package rules is the Rules language: conditions under which a request bypasses a waiting room, as in
//
//	ip.src in $office or starts_with(http.request.uri.path, "/health")
//
// [Compile] reads an expression, checks its types and turns it into a tree of small typed nodes; [Expression.Match] walks
// the tree. Reading is bounded by the Max… constants, and a walk by maxWork: an expression that would take longer does
// not match, whatever it says, so that no request can force a bypass by being expensive. docs/rules.md is the page for
// operators.
package rules

import (
	"fmt"

	"github.com/anteroom/anteroom"
)

// Bounds of one expression, beside [anteroom.MaxExpressionLength].
const (
	maxNodes         = 256 // fields, values, comparisons, calls and logical operators
	maxDepth         = 32  // parentheses, calls and nots inside each other
	maxSetItems      = 1000
	maxRegexps       = 16
	maxRegexpLength  = 512
	maxRegexpProgram = 2000 // instructions of one compiled regular expression

	// maxWork bounds one evaluation in steps of at most some 10 ns: a few bytes searched, a
	// value compared, one instruction of a regular expression.
	maxWork = 100_000
	// maxSetWork bounds all rules of a room and all readings of the path together, for one
	// request.
	maxSetWork = 5 * maxWork
)

// Expression is a compiled condition. It does not change and may be used by many goroutines.
type Expression struct {
	root boolNode
}

// Compile reads an expression. The lists are those that it may name as $list; nil is none.
// An error is of kind Invalid and holds [anteroom.Faults] with the path "expression" and the
// column (bytes, from 1) of the first thing that is wrong.
func Compile(expression string, lists *Lists) (*Expression, error) {
	root, fault := parse(expression, lists)
	if fault != nil {
		return nil, anteroom.Faults{*fault}.Err()
	}
	return &Expression{root: root}, nil
}

// Match reports whether the condition holds for the request. It is false when the evaluation
// would take more than maxWork.
func (e *Expression) Match(r *Request) bool { return e.within(r, maxWork) }

// within evaluates with a budget, and reports no match when that is used up.
func (e *Expression) within(r *Request, budget int) bool {
	r.work = budget
	yes := e.root.truth(r, 0)
	r.exhausted = r.exhausted || r.work < 0
	return yes && r.work >= 0
}

// Set is the rules of one room.
type Set struct {
	enabled []*Expression
}

// NewSet compiles the rules. Disabled ones are checked as well, and then do nothing. The
// faults of an error have paths like "rules[0].expression".
func NewSet(rules []anteroom.Rule, lists *Lists) (*Set, error) {
	s := &Set{}
	var faults anteroom.Faults
	for i, rule := range rules {
		root, fault := parse(rule.Expression, lists)
		if fault != nil {
			fault.Path = fmt.Sprintf("rules[%d].%s", i, fault.Path)
			faults = append(faults, *fault)
			continue
		}
		if !rule.Disabled {
			s.enabled = append(s.enabled, &Expression{root: root})
		}
	}
	if err := faults.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

// Bypass reports whether an enabled rule matches. A nil set has none. All calls for one
// request, which may be one for each reading of its path, take maxSetWork together; rules
// that come after that do not match.
func (s *Set) Bypass(r *Request) bool {
	if s == nil {
		return false
	}
	for _, e := range s.enabled {
		share := min(maxSetWork-r.used, maxWork)
		if share <= 0 {
			return false
		}
		yes := e.within(r, share)
		r.used += share - r.work
		if yes {
			return true
		}
	}
	return false
}
