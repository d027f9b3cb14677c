package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Manual returns the reference page of the configuration in Markdown, docs/config.md.
func Manual() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Made from the structs in config/config.go by: go test ./config -update -->

One YAML file, the environment over it, flags over both. Every key is optional unless it says required; unknown keys,
keys given twice and values of the wrong type are faults, and all faults are reported at once with line and column.
` + "`anteroom validate`" + ` loads exactly as ` + "`anteroom run`" + ` does and starts nothing.

The first line gives help in editors:

` + "```yaml\n# yaml-language-server: $schema=" + SchemaURL + "\n```" + `

- **Environment.** ` + "`tls.acme.email` is `ANTEROOM_TLS_ACME_EMAIL`; `ANTEROOM_TLS_ACME_EMAIL_FILE`" + ` names a file that holds the
  value. An empty variable counts as not set. Lists are separated by commas.
- **Flags.** ` + "`tls.acme.email` is `--tls-acme-email`" + `.
- The lists of sites, rooms and certificates can only be given in the file.
- **Durations** are numbers with a unit: ` + "`500ms`, `30s`, `5m`, `2h`" + `.
- **Paths** in the file are relative to the file, others to the working directory.
- A list with one member may be written without brackets. Anchors, aliases and ` + "`<<`" + ` work.

`)
	section(&b, "The file", "", reflect.TypeFor[document]())
	b.WriteString("## Without a file\n\nThese exist as flags and variables only: `--origin`, `ANTEROOM_ORIGIN`. `--origin` makes the one site, for every host, when the\n" +
		"file has none. The others, or `--origin` without a file, make the one room, `default`, for every host and path, when the file has none.\n\n")
	table(&b, fieldsOf(reflect.TypeFor[Quick]()), func(f field) string { return "--" + leaf{path: f.key}.flag() })
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// section writes the keys of a struct and then, each under its own heading, the sections
// in it.
func section(b *strings.Builder, title, path string, t reflect.Type) {
	fields := fieldsOf(t)
	fmt.Fprintf(b, "## %s\n\n", title)
	table(b, fields, func(f field) string { return f.key })
	for _, f := range fields {
		at := under(path, f.key)
		switch {
		case f.isSection():
			section(b, "`"+at+"`", at, f.typ)
		case f.isSections():
			section(b, "`"+at+"[]`", at+"[]", f.typ.Elem())
		}
	}
}

func table(b *strings.Builder, fields []field, name func(field) string) {
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		fallback := "–"
		switch {
		case f.required:
			fallback = "required"
		case f.hasFallback:
			fallback = "`" + f.fallback + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name(f), f.values(), fallback, strings.ReplaceAll(f.doc, "|", `\|`))
	}
	b.WriteString("\n")
}

// values says in a few words what a key takes.
func (f field) values() string {
	t, many := f.typ, ""
	switch {
	case f.isSection():
		return "section"
	case f.isSections():
		return "list of sections"
	case f.isList():
		t, many = t.Elem(), "list of "
	}
	if len(f.enum) > 0 && len(f.enum) < 10 {
		return many + "`" + strings.Join(f.enum, "`, `") + "`"
	}
	bounds := ""
	if span := f.span(); span != "" {
		bounds = ", " + span
	}
	switch {
	case f.enum != nil:
		return many + "`" + strings.Join(f.enum, "` `") + "`"
	case f.file:
		return many + "path"
	case t == durationType:
		return many + "duration" + bounds
	case t == prefixType:
		return many + "networks"
	case t.Kind() == reflect.Bool:
		return many + "`true`, `false`"
	case t.Kind() == reflect.Int:
		return many + "number" + bounds
	}
	return many + "text"
}
