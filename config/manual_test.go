package config

import (
	"reflect"
	"strings"

	"github.com/anteroom/anteroom/config/strict"
	"github.com/anteroom/anteroom/internal/field"
)

// manual returns the reference page of the configuration in Markdown, docs/config.md.
func manual() string {
	var b strings.Builder
	b.WriteString(`# Configuration

<!-- Made from the structs in config/config.go by: go test ./config -update -->

Configure Anteroom with one YAML file. Environment variables override the file, and flags override both. Every key is optional unless it says
required. Unknown keys, duplicate keys and values of the wrong type are errors; Anteroom reports all errors at once, with line and column.
` + "`anteroom validate`" + ` checks the configuration exactly as ` + "`anteroom run`" + ` would, and starts nothing.

Start the file with this line for help in editors:

` + "```yaml\n# yaml-language-server: $schema=" + schemaURL + "\n```" + `

- **Environment.** ` + "`tls.acme.email` is `ANTEROOM_TLS_ACME_EMAIL`; `ANTEROOM_TLS_ACME_EMAIL_FILE`" + ` names a file that holds the
  value. An empty variable counts as not set. Separate the items of a list by commas.
- **Flags.** ` + "`tls.acme.email` is `--tls-acme-email`" + `.
- Only the file can contain the lists of proxied sites, rooms and certificates.
- If you rename a room or an event, it becomes a new one, and its visitors start over.
- **Durations** are numbers with a unit: ` + "`500ms`, `30s`, `5m`, `2h`" + `.
- **Paths** in the file are relative to the file, others to the working directory.
- **Secrets** and private keys are in files of their own. One that others than its owner and group can read gets a warning, in the log and from
  ` + "`anteroom validate`" + `; the secret of a cluster is refused.
- A list with one member may be written without brackets. Anchors, aliases and ` + "`<<`" + ` work.

`)
	b.WriteString(strict.Manual("The file", reflect.TypeFor[document]()))
	b.WriteString("## Without a file\n\nThese exist as flags and variables only: `--origin`, `ANTEROOM_ORIGIN`. `--origin` makes the one site, for every host, when the\n" +
		"file has none. The others, or `--origin` without a file, make the one room, `default`, for every host and path, when the file has none.\n\n")
	b.WriteString(strict.Table(quickFields(), func(f field.Field) string { return "--" + leaf{path: f.Key}.flag() }))
	return strings.TrimRight(b.String(), "\n") + "\n"
}
