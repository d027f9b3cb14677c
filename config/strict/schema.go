package strict

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom/internal/field"
)

// Schema returns the JSON Schema (draft 2020-12) of files that fill a struct, under the
// address where it is published. It is stricter than [Reader.Load] nowhere.
func Schema(t reflect.Type, address, title string) []byte {
	top := schemaOfSection(t)
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = address
	top["title"] = title
	out, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		return nil // maps of strings, numbers and lists marshal
	}
	return append(out, '\n')
}

type object = map[string]any

func schemaOfSection(t reflect.Type) object {
	properties := object{}
	var required []string
	for _, f := range field.Of(t) {
		properties[f.Key] = schemaOf(f)
		if f.Required {
			required = append(required, f.Key)
		}
	}
	out := object{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		out["required"] = required
	}
	return out
}

func schemaOf(f field.Field) object {
	var out object
	switch {
	case f.IsSection():
		out = schemaOfSection(f.Type)
		out["type"] = []string{"object", "null"}
	case f.IsSections():
		out = object{"type": []string{"array", "null"}, "items": schemaOfSection(f.Type.Elem()), "maxItems": maxListMembers}
	case f.IsList():
		one := schemaOfOne(f, f.Type.Elem())
		out = object{"anyOf": []object{one, {"type": "array", "items": one, "maxItems": maxListMembers}, {"type": "null"}}}
	default:
		out = schemaOfOne(f, f.Type)
		if f.HasDefault {
			out["default"] = plain(f.Type, f.Default)
		}
		if !f.Required {
			out = object{"anyOf": []object{out, {"type": "null"}}}
		}
	}
	out["description"] = f.Doc
	return out
}

func schemaOfOne(f field.Field, t reflect.Type) object {
	if f.Enum != nil {
		values := make([]any, len(f.Enum))
		for i, v := range f.Enum {
			values[i] = plain(t, v)
		}
		return object{"enum": values}
	}
	switch {
	case t == durationType && f.Minutes:
		return object{"type": []string{"string", "integer"}, "pattern": durationPattern + `|^[0-9]+$`, "minimum": 0}
	case t == durationType: // the number 0 needs no unit
		pattern := durationPattern
		if strings.HasPrefix(f.Min, "-") {
			pattern = strings.NewReplacer(`^\+?`, `^[-+]?`, "[+]", "[-+]").Replace(pattern)
		}
		return object{"type": []string{"string", "integer"}, "pattern": pattern, "minimum": 0, "maximum": 0}
	case t.Kind() == reflect.Float64:
		return schemaOfFloat(f)
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int:
		out := object{"type": "integer"}
		if n, err := strconv.Atoi(f.Min); err == nil {
			out["minimum"] = n
		}
		if n, err := strconv.Atoi(f.Max); err == nil {
			out["maximum"] = n
		}
		return out
	}
	return object{"type": "string"}
}

// schemaOfFloat bounds numbers and leaves percentages to the decoder.
func schemaOfFloat(f field.Field) object {
	out := object{"type": "number"}
	if x, err := strconv.ParseFloat(f.Min, 64); err == nil {
		out["minimum"] = x
	}
	if x, err := strconv.ParseFloat(f.Max, 64); err == nil {
		out["maximum"] = x
	}
	if f.Share {
		return object{"anyOf": []object{out, {"type": "string", "pattern": `^[0-9.eE+-]+%$`}}}
	}
	return out
}

// durationPattern is the syntax of time.ParseDuration without a sign.
const durationPattern = `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$|^[+]?0$`

// plain gives a tag's text the type that JSON has for it.
func plain(t reflect.Type, text string) any {
	switch {
	case t == durationType:
		return text
	case t.Kind() == reflect.Bool:
		return text == "true"
	case t.Kind() == reflect.Int:
		n, _ := strconv.Atoi(text)
		return n
	case t.Kind() == reflect.Float64 && !strings.HasSuffix(text, "%"):
		x, _ := strconv.ParseFloat(text, 64)
		return x
	}
	return strings.TrimSpace(text)
}
