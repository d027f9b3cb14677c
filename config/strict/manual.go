package strict

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/anteroom/anteroom/internal/field"
)

// Manual returns the reference of the keys of a struct in Markdown: a heading and a table,
// and below them the same for each section in it.
func Manual(title string, t reflect.Type) string {
	var b strings.Builder
	section(&b, title, "", t)
	return b.String()
}

// section writes the keys of a struct and then, each under its own heading, the sections
// in it.
func section(b *strings.Builder, title, path string, t reflect.Type) {
	fields := field.Of(t)
	fmt.Fprintf(b, "## %s\n\n", title)
	b.WriteString(Table(fields, func(f field.Field) string { return f.Key }))
	for _, f := range fields {
		at := Under(path, f.Key)
		switch {
		case f.IsSection():
			section(b, "`"+at+"`", at, f.Type)
		case f.IsSections():
			section(b, "`"+at+"[]`", at+"[]", f.Type.Elem())
		}
	}
}

// Table returns a table of keys, with their names as name gives them.
func Table(fields []field.Field, name func(field.Field) string) string {
	var b strings.Builder
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		fallback := "–"
		switch {
		case f.Required:
			fallback = "required"
		case f.HasDefault:
			fallback = "`" + f.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name(f), values(f), fallback, strings.ReplaceAll(f.Doc, "|", `\|`))
	}
	b.WriteString("\n")
	return b.String()
}

// values says in a few words what a key takes.
func values(f field.Field) string {
	t, many := f.Type, ""
	switch {
	case f.IsSection():
		return "section"
	case f.IsSections():
		return "list of sections"
	case f.IsList():
		t, many = t.Elem(), "list of "
	}
	if len(f.Enum) > 0 && len(f.Enum) < 10 {
		return many + "`" + strings.Join(f.Enum, "`, `") + "`"
	}
	bounds := ""
	if span := f.Span(); span != "" {
		bounds = ", " + span
	}
	switch {
	case f.Enum != nil:
		return many + "`" + strings.Join(f.Enum, "` `") + "`"
	case f.File:
		return many + "path"
	case t == durationType:
		return many + "duration" + bounds
	case t == prefixType:
		return many + "networks"
	case t.Kind() == reflect.Bool:
		return many + "`true`, `false`"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Float64:
		return many + "number" + bounds
	}
	return many + "text"
}
