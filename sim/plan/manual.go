package plan

import (
	"reflect"
	"strings"

	"github.com/anteroom/anteroom/config/strict"
)

// SchemaURL is where the schema of this version is published: put it into the first line
// of a plan, as "# yaml-language-server: $schema=…", for help while writing.
const SchemaURL = "https://raw.githubusercontent.com/anteroom/anteroom/main/sim/plan/schema.json"

// Schema returns the JSON Schema (draft 2020-12) of a plan. It is stricter than [Read]
// nowhere, and Read sees more: files, and values that must fit each other.
func Schema() []byte {
	return strict.Schema(reflect.TypeFor[document](), SchemaURL, "Anteroom: plan of a sale")
}

// Manual returns the reference of the keys in Markdown, headings of the second level.
func Manual() string {
	return strings.TrimRight(strict.Manual("The plan", reflect.TypeFor[document]()), "\n") + `

### Past sales

A file that ` + "`csv`" + ` names is a table with a first line that names its columns. ` + "`time` and `visitors`" + ` are needed, in any order and
among any others; commas or semicolons separate them.

` + "```" + `
time,visitors
08:00,412
08:05,1310
` + "```" + `

- **time** is the start of the stretch that the row counts: a time of day (` + "`08:05`, `08:05:30`" + `; after 23:59 comes the next day), a date and time
  (` + "`2026-11-20T08:05:00+01:00`" + `), or seconds from anywhere. The first row is at the arrival's ` + "`at`" + `, the others as far behind it as they say.
- **visitors** is how many came for the first time in that stretch. They spread evenly until the next row, or over the usual distance of rows
  when that is farther away.
- Rows are sorted; rows with the same time add up. At most 100,000 rows, 64 MiB.
- The file lies in the plan's folder or below.
`
}
