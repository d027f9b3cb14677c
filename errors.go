package anteroom

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Kind sorts errors by what the receiver can do about them.
type Kind uint8

const (
	// Other is an error without a kind: ours to fix.
	Other Kind = iota
	// Invalid: the input is wrong; the message says what, where and how to fix it.
	Invalid
	// NotFound: what was named does not exist.
	NotFound
	// Conflict: the state has changed since it was read.
	Conflict
	// Denied: the caller may not do this.
	Denied
	// Unavailable: try again later.
	Unavailable
	// Elsewhere: this process does it for nobody; the message says which one does.
	Elsewhere
)

// Error is an error with a kind.
type Error struct {
	Kind Kind
	Msg  string // the whole message, the cause's included
	Err  error  // cause; nil when there is none
}

func (e *Error) Error() string { return e.Msg }

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a kind. It understands %w.
func Errorf(k Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// KindOf returns the kind of the first [Error] in err's chain, or Other.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Other
}

// Fault is one thing wrong with an input.
type Fault struct {
	Path    string `json:"path"`           // dotted path of the field, like "rooms[0].routes[1].host"
	Problem string `json:"problem"`        // what is wrong, with the value
	Fix     string `json:"fix,omitempty"`  // what to write instead; may be empty
	Line    int    `json:"line,omitempty"` // 1-based; 0 when there is no file
	Column  int    `json:"column,omitempty"`
}

func (f Fault) String() string {
	s := f.Path + ": " + f.Problem
	if f.Fix != "" {
		s += " (" + f.Fix + ")"
	}
	return s
}

// Faults is a list of faults as an error of kind Invalid. A nil list is no error.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns nil for an empty list, else an error of kind Invalid that wraps it.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Msg: f.Error(), Err: f}
}

// Nearest returns the first of the known words that takes the fewest bytes to change, add or drop to
// become word, at most so many of them, in any case of letters; "" when no word is that near. Words of
// more than 64 bytes are near nothing.
func Nearest(word string, known []string, most int) string {
	best, least := "", most+1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return math.MaxInt
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, row[j]+1, above+1)
		}
	}
	return row[len(b)]
}
