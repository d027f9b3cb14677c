package graph

import (
	"fmt"
	"math"
	"time"
)

// The scalars of the schema, whose names are lower-case as published. Those that are arguments by
// themselves are read here; the ones in filters in filter.go.
type (
	scalarString  string
	scalarBool    bool
	scalarInt64   int64
	scalarUint64  uint64
	scalarUint32  uint32
	scalarFloat64 float64
	scalarTime    time.Time
	scalarDate    time.Time
)

func (scalarString) ImplementsGraphQLType(name string) bool  { return name == "string" }
func (scalarBool) ImplementsGraphQLType(name string) bool    { return name == "bool" }
func (scalarInt64) ImplementsGraphQLType(name string) bool   { return name == "int64" }
func (scalarUint64) ImplementsGraphQLType(name string) bool  { return name == "uint64" }
func (scalarUint32) ImplementsGraphQLType(name string) bool  { return name == "uint32" }
func (scalarFloat64) ImplementsGraphQLType(name string) bool { return name == "float64" }
func (scalarTime) ImplementsGraphQLType(name string) bool    { return name == "Time" }
func (scalarDate) ImplementsGraphQLType(name string) bool    { return name == "Date" }

// UnmarshalGraphQL takes a text.
func (s *scalarString) UnmarshalGraphQL(input any) error {
	text, ok := input.(string)
	if !ok {
		return fmt.Errorf("%s is not a string", printed(input))
	}
	*s = scalarString(text)
	return nil
}

// UnmarshalGraphQL takes a whole number that is not negative.
func (s *scalarUint64) UnmarshalGraphQL(input any) error {
	n, ok := whole(input)
	if !ok || n < 0 {
		return fmt.Errorf("%s is not a whole number from 0 on", printed(input))
	}
	*s = scalarUint64(n)
	return nil
}

// The others are no arguments.
func (*scalarBool) UnmarshalGraphQL(any) error    { return errOutput }
func (*scalarInt64) UnmarshalGraphQL(any) error   { return errOutput }
func (*scalarUint32) UnmarshalGraphQL(any) error  { return errOutput }
func (*scalarFloat64) UnmarshalGraphQL(any) error { return errOutput }
func (*scalarTime) UnmarshalGraphQL(any) error    { return errOutput }
func (*scalarDate) UnmarshalGraphQL(any) error    { return errOutput }

var errOutput = fmt.Errorf("is no argument of its own")

// MarshalJSON writes RFC 3339 in UTC.
func (t scalarTime) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02T15:04:05Z"`), nil
}

// MarshalJSON writes the day.
func (t scalarDate) MarshalJSON() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, `"2006-01-02"`), nil
}

// whole returns an input's whole number.
func whole(input any) (int64, bool) {
	switch n := input.(type) {
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), true
		}
	}
	return 0, false
}

// printed shows an input in an error, cut.
func printed(input any) string {
	const most = 60
	text := fmt.Sprintf("%v", input)
	if s, ok := input.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
