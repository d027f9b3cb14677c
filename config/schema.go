package config

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// SchemaURL is where the schema of this version is published: put it into the first line
// of a file, as "# yaml-language-server: $schema=…", for help while writing.
const SchemaURL = "https://raw.githubusercontent.com/anteroom/anteroom/main/config/schema.json"

// Schema returns the JSON Schema (draft 2020-12) of the file. It is stricter than [Load]
// nowhere, and Load sees more: files, and values that must fit each other.
func Schema() []byte {
	top := schemaOfSection(reflect.TypeFor[document]())
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$id"] = SchemaURL
	top["title"] = "Anteroom configuration"
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
	for _, f := range fieldsOf(t) {
		properties[f.key] = f.schema()
		if f.required {
			required = append(required, f.key)
		}
	}
	out := object{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		out["required"] = required
	}
	return out
}

func (f field) schema() object {
	var out object
	switch {
	case f.isSection():
		out = schemaOfSection(f.typ)
		out["type"] = []string{"object", "null"}
	case f.isSections():
		out = object{"type": []string{"array", "null"}, "items": schemaOfSection(f.typ.Elem()), "maxItems": maxListMembers}
	case f.isList():
		one := f.schemaOfOne(f.typ.Elem())
		out = object{"anyOf": []object{one, {"type": "array", "items": one, "maxItems": maxListMembers}, {"type": "null"}}}
	default:
		out = f.schemaOfOne(f.typ)
		if f.hasFallback {
			out["default"] = f.plain(f.typ, f.fallback)
		}
		if !f.required {
			out = object{"anyOf": []object{out, {"type": "null"}}}
		}
	}
	out["description"] = f.doc
	return out
}

func (f field) schemaOfOne(t reflect.Type) object {
	if f.enum != nil {
		values := make([]any, len(f.enum))
		for i, v := range f.enum {
			values[i] = f.plain(t, v)
		}
		return object{"enum": values}
	}
	switch {
	case t == durationType && f.minutes:
		return object{"type": []string{"string", "integer"}, "pattern": durationPattern + `|^[0-9]+$`, "minimum": 0}
	case t == durationType:
		return object{"type": "string", "pattern": durationPattern}
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int:
		out := object{"type": "integer"}
		if n, err := strconv.Atoi(f.min); err == nil {
			out["minimum"] = n
		}
		if n, err := strconv.Atoi(f.max); err == nil {
			out["maximum"] = n
		}
		return out
	}
	return object{"type": "string"}
}

// durationPattern is the syntax of time.ParseDuration without a sign.
const durationPattern = `^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$|^[+]?0$`

// plain gives a tag's text the type that JSON has for it.
func (f field) plain(t reflect.Type, text string) any {
	switch {
	case t == durationType:
		return text
	case t.Kind() == reflect.Bool:
		return text == "true"
	case t.Kind() == reflect.Int:
		n, _ := strconv.Atoi(text)
		return n
	}
	return strings.TrimSpace(text)
}
