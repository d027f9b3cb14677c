package plan

import (
	"reflect"
	"strings"

	"github.com/anteroom/anteroom/config/strict"
)

// schemaURL is where the schema of this version is published: put it into the first line
// of a plan, as "# yaml-language-server: $schema=…", for help while writing.
const schemaURL = "https://raw.githubusercontent.com/anteroom/anteroom/main/sim/plan/schema.json"

// schema returns the JSON Schema (draft 2020-12) of a plan. It is stricter than [Read]
// nowhere, and Read sees more: files, and values that must fit each other.
func schema() []byte {
	return strict.Schema(reflect.TypeFor[document](), schemaURL, "Anteroom: plan of a sale")
}

// manual returns the reference of the keys in Markdown, headings of the second level.
func manual() string {
	return strings.TrimRight(strict.Manual("The plan", reflect.TypeFor[document]()), "\n") + `

### Past sales

The first line of a ` + "`csv`" + ` file names its columns. ` + "`time` and `visitors`" + ` are required, in any order and
among any others; commas or semicolons separate the columns.

` + "```" + `
time,visitors
08:00,412
08:05,1310
` + "```" + `

- **time** is the start of the time span that the row counts: a time of day (` + "`08:05`, `08:05:30`" + `; the next day follows 23:59), a date and time
  (` + "`2026-11-20T08:05:00+01:00`" + `), or seconds from any starting point. The first row is at the arrival's ` + "`at`" + `, and the others follow at the same distances as in the file.
- **visitors** is how many arrived for the first time in that span. They spread evenly until the next row, or over the usual distance between rows
  if the next one is farther away.
- Rows must be sorted by time; rows with the same time add up. At most 100,000 rows, 64 MiB.
- The file must be in the plan's folder or below it.
`
}
