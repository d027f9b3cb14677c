package field

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// JSONDefault is what the field has in the API's JSON when nobody has set it, with whole numbers as
// int64: nil for what is required, for a moment, and for a section without defaults.
func (f Field) JSONDefault() any {
	switch {
	case f.Required || f.Pointer || f.Moment:
		return nil
	case f.IsSection():
		var out map[string]any
		for _, one := range Of(f.Type) {
			if one.HasDefault {
				if out == nil {
					out = map[string]any{}
				}
				out[one.Key] = one.JSONDefault()
			}
		}
		if out == nil {
			return nil
		}
		return out
	case f.IsList():
		return []any{}
	case f.IsDuration():
		d, _ := time.ParseDuration(f.Default) // a default parses; without one it is 0
		if f.Minutes {
			return int64(d / time.Minute)
		}
		return d.String()
	}
	switch f.Type.Kind() {
	case reflect.Bool:
		return f.Default == "true"
	case reflect.Int:
		n, _ := strconv.ParseInt(f.Default, 10, 64)
		return n
	}
	return f.Default
}

// Flag is the field's name on a command line.
func (f Field) Flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(f.Key) }
