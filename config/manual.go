package config

import (
	"reflect"
	"strings"

	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/field"
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
- A room, or an event, whose name changes is a new one: its visitors start over.
- **Durations** are numbers with a unit: ` + "`500ms`, `30s`, `5m`, `2h`" + `.
- **Paths** in the file are relative to the file, others to the working directory.
- A list with one member may be written without brackets. Anchors, aliases and ` + "`<<`" + ` work.

`)
	b.WriteString(strict.Manual("The file", reflect.TypeFor[document]()))
	b.WriteString("## Without a file\n\nThese exist as flags and variables only: `--origin`, `ANTEROOM_ORIGIN`. `--origin` makes the one site, for every host, when the\n" +
		"file has none. The others, or `--origin` without a file, make the one room, `default`, for every host and path, when the file has none.\n\n")
	b.WriteString(strict.Table(quickFields(), func(f field.Field) string { return "--" + leaf{path: f.Key}.flag() }))
	return strings.TrimRight(b.String(), "\n") + "\n"
}
