package api

import (
	"encoding/json/jsontext"
	"encoding/json/v2"

	"github.com/anteroom/anteroom"
)

// Field is one member of the JSON form of a T.
type Field[T any] struct {
	Name string
	// Get returns the value for an answer.
	Get func(*T) any
	// Set takes a value; null only if there is no Reset. It is nil for fields that callers cannot set; these are
	// ignored.
	Set func(*T, Value) error
	// Reset gives the field its default: for null, and before a replacement. A replacement
	// keeps a field without: one that published clients do not know.
	Reset func(*T)
	// Required says that a new or replaced T must name the field, and that null is none.
	Required bool
}

// Fields is the JSON form of a T, in the order of its members.
type Fields[T any] []Field[T]

// Merge sets what the object names. The error holds every fault.
func (fs Fields[T]) Merge(to *T, o Object) error {
	var faults anteroom.Faults
	for _, f := range fs {
		v := o.Get(f.Name)
		if !v.Sent() || f.Set == nil {
			continue
		}
		var err error
		switch {
		case !v.Null():
			err = f.Set(to, v)
		case f.Required:
			err = v.Fault("is null", "send a value")
		case f.Reset != nil:
			f.Reset(to)
		default:
			err = f.Set(to, v)
		}
		if faults = add(faults, err); len(faults) >= maxFaults {
			break
		}
	}
	return faults.Err()
}

// Replace gives every field its default that the object does not name, and sets the others.
func (fs Fields[T]) Replace(to *T, o Object) error {
	var faults anteroom.Faults
	for _, f := range fs {
		if v := o.Get(f.Name); f.Required && !v.Sent() {
			faults = add(faults, v.Fault("is missing", ""))
		}
		if f.Reset != nil {
			f.Reset(to)
		}
	}
	return add(faults, fs.Merge(to, o)).Err()
}

func add(faults anteroom.Faults, err error) anteroom.Faults {
	if err == nil {
		return faults
	}
	if more, ok := FaultsOf(err); ok {
		return append(faults, more...)
	}
	return append(faults, anteroom.Fault{Problem: err.Error()})
}

// Of returns the JSON form.
func (fs Fields[T]) Of(t *T) Members {
	out := make(Members, len(fs))
	for i, f := range fs {
		out[i] = Member{f.Name, f.Get(t)}
	}
	return out
}

// Member is a name with a value.
type Member struct {
	Name  string
	Value any
}

// Members is a JSON object with an order.
type Members []Member

// MarshalJSONTo writes the object.
func (ms Members) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range ms {
		if err := e.WriteToken(jsontext.String(m.Name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(e, m.Value); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}
