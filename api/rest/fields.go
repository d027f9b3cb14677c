package rest

import (
	"time"

	"github.com/anteroom/anteroom/api"
)

// text is a field that is a text; "" is its default.
func text[T any](name string, at func(*T) *string) api.Field[T] {
	return field(name, at, api.Value.Text)
}

// flag is a field that is false by default.
func flag[T any](name string, at func(*T) *bool) api.Field[T] {
	return field(name, at, api.Value.Bool)
}

// number is a field that is a whole number; 0 is its default.
func number[T any](name string, at func(*T) *int) api.Field[T] {
	return field(name, at, api.Value.Int)
}

// duration is a field of ours: a text with units.
func duration[T any](name string, at func(*T) *time.Duration) api.Field[T] {
	f := field(name, at, api.Value.Duration)
	f.Get = func(t *T) any { return at(t).String() }
	return f
}

func field[T, V any](name string, at func(*T) *V, read func(api.Value) (V, error)) api.Field[T] {
	return api.Field[T]{
		Name: name,
		Get:  func(t *T) any { return *at(t) },
		Set: func(t *T, v api.Value) (err error) {
			*at(t), err = read(v)
			return err
		},
		Reset: func(t *T) {
			var zero V
			*at(t) = zero
		},
	}
}

// override is a field of an event: null inherits the room's value.
func override[T, V any](name string, at func(*T) **V, read func(api.Value) (V, error), show func(V) any) api.Field[T] {
	return api.Field[T]{
		Name: name,
		Get: func(t *T) any {
			if p := *at(t); p != nil {
				return show(*p)
			}
			return nil
		},
		Set: func(t *T, v api.Value) error {
			x, err := read(v)
			*at(t) = &x
			return err
		},
		Reset: func(t *T) { *at(t) = nil },
	}
}

// asIs shows a value as it is.
func asIs[V any](v V) any { return v }

// unlessEmpty inherits for 0 and "", which are no values of the field, as for null.
func unlessEmpty[T any](f api.Field[T]) api.Field[T] {
	set := f.Set
	f.Set = func(t *T, v api.Value) error {
		if v.Empty() {
			f.Reset(t)
			return nil
		}
		return set(t, v)
	}
	return f
}

// required is a field without default.
func required[T any](f api.Field[T]) api.Field[T] {
	f.Required, f.Reset = true, nil
	return f
}

// kept is a field that a replacement keeps unless it names it.
func kept[T any](f api.Field[T]) api.Field[T] {
	f.Reset = nil
	return f
}
