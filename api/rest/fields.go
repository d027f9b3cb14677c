package rest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/internal/field"
)

// members are the JSON form of a struct: its fields, as their table has them.
func members[T any](fields []field.Field) api.Fields[T] {
	out := make(api.Fields[T], len(fields))
	for i, f := range fields {
		out[i] = member[T](f)
	}
	return out
}

// member is one field. A replacement keeps those that published clients do not know.
func member[T any](f field.Field) api.Field[T] {
	in := func(t *T) reflect.Value { return reflect.ValueOf(t).Elem() }
	out := api.Field[T]{Name: f.Key, Required: f.Required,
		Get: func(t *T) any {
			if v, ok := f.In(in(t)); ok {
				return jsonOf(f, v)
			}
			return nil
		},
		Set: func(t *T, v api.Value) error {
			if v.Null() || f.Pointer && v.Empty() && !zeroIsAValue(f) {
				f.Clear(in(t))
				return nil
			}
			return read(f, f.Make(in(t)), v)
		}}
	if !f.Required && !f.Ours {
		out.Reset = func(t *T) { f.Clear(in(t)) }
	}
	return out
}

// zeroIsAValue reports whether 0 or "" can be meant: where it cannot, an event inherits.
func zeroIsAValue(f field.Field) bool { return f.Enum == nil && (f.Min == "" || f.Min == "0") }

// jsonOf is a value's JSON form.
func jsonOf(f field.Field, v reflect.Value) any {
	switch {
	case f.IsSection() && v.IsZero():
		return nil
	case f.IsSection():
		return section(f.Type, v)
	case f.IsSections():
		out := []api.Members{}
		for i := range v.Len() {
			out = append(out, section(f.Type.Elem(), v.Index(i)))
		}
		return out
	case f.Minutes:
		return minutes(v.Interface().(time.Duration))
	case f.IsDuration():
		return v.Interface().(time.Duration).String()
	case f.Moment && v.IsZero():
		return nil
	}
	return v.Interface()
}

func section(t reflect.Type, v reflect.Value) api.Members {
	var out api.Members
	for _, f := range field.Of(t) {
		member, _ := f.In(v)
		out = append(out, api.Member{Name: f.Key, Value: jsonOf(f, member)})
	}
	return out
}

// read puts a value that is not null into to.
func read(f field.Field, to reflect.Value, v api.Value) error {
	switch {
	case f.IsSection():
		return readSection(to, v)
	case f.IsList():
		return readList(f, to, v)
	case f.Minutes:
		return set(to, v, minutesOf)
	case f.IsDuration():
		return set(to, v, api.Value.Duration)
	case f.Moment:
		return set(to, v, momentOf)
	case f.Type == reflect.TypeFor[anteroom.QueueingMethod]():
		return set(to, v, func(v api.Value) (string, error) {
			s, err := v.Text()
			return strings.ToLower(s), err
		})
	}
	switch f.Type.Kind() {
	case reflect.Bool:
		return set(to, v, api.Value.Bool)
	case reflect.Int:
		return set(to, v, api.Value.Int)
	}
	return set(to, v, api.Value.Text)
}

func set[V any](to reflect.Value, v api.Value, read func(api.Value) (V, error)) error {
	x, err := read(v)
	if err == nil {
		to.Set(reflect.ValueOf(x).Convert(to.Type()))
	}
	return err
}

// readSection changes the fields that an object names, and leaves the others.
func readSection(to reflect.Value, v api.Value) error {
	o, err := v.Object()
	if err != nil {
		return err
	}
	var faults anteroom.Faults
	for _, f := range field.Of(to.Type()) {
		member := o.Get(f.Key)
		if !member.Sent() {
			continue
		}
		if f.Clear(to); !member.Null() {
			err = read(f, f.Make(to), member)
		}
		if more, ok := api.FaultsOf(err); ok {
			faults = append(faults, more...)
		} else if err != nil {
			return err
		}
	}
	return faults.Err()
}

// readList replaces a list. A text that stands in it twice counts once.
func readList(f field.Field, to reflect.Value, v api.Value) error {
	most := max(10, len(f.Enum))
	if f.IsSections() {
		most = anteroom.MaxRoutesPerRoom
	}
	values, err := v.Array(most)
	if err != nil {
		return err
	}
	list := reflect.New(f.Type).Elem() // nil when there are none, as where nobody set it
	var seen []string
	for _, one := range values {
		item := reflect.New(f.Type.Elem()).Elem()
		if f.IsSections() {
			err = readSection(item, one)
		} else if err = set(item, one, api.Value.Text); err == nil && slices.Contains(seen, item.String()) {
			continue
		} else {
			seen = append(seen, item.String())
		}
		if err != nil {
			return err
		}
		list = reflect.Append(list, item)
	}
	to.Set(list)
	return nil
}

// minutes shows a session's duration in whole minutes, as published. What a file says in
// seconds is rounded up.
func minutes(d time.Duration) int { return int((d + time.Minute - 1) / time.Minute) }

func minutesOf(v api.Value) (time.Duration, error) {
	n, err := v.Int()
	if err != nil {
		return 0, err
	}
	if most := minutes(anteroom.MaxSessionDuration); n < 0 || n > most {
		return 0, v.Fault(fmt.Sprintf("%d is out of range", n), fmt.Sprintf("1 to %d minutes", most))
	}
	return time.Duration(n) * time.Minute, nil
}

// momentOf takes what is RFC 3339 to the letter, which is all that every client can read. It is
// given back as it was written.
func momentOf(v api.Value) (anteroom.Stamp, error) {
	s, err := v.Text()
	if err != nil || s == "" {
		return "", err
	}
	var strict time.Time
	if strict.UnmarshalText([]byte(s)) != nil {
		return "", v.Fault("is not a moment", "write it like 2026-11-27T10:00:00Z")
	}
	return anteroom.Stamp(s), nil
}
