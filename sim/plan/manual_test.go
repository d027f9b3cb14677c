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

### Access logs

A ` + "`log`" + ` is an access log of the web server that had the past sale: lines in the combined (or common) log format of Apache and nginx, or JSON objects, as nginx, Caddy,
Traefik, Envoy and load balancers write them. The names of members differ, so Anteroom looks for the usual ones:

| member | names |
|---|---|
| time, as text or in seconds | ` + nameList(timeNames) + ` |
| address of the client | ` + nameList(clientNames) + ` |
| user agent | ` + nameList(agentNames) + `, ` + "`request.headers.User-Agent`" + ` |
| path | ` + nameList(pathNames) + `, ` + "`request.uri`" + ` |

- A visitor is an address with a user agent. The first request is an arrival, and so is the first after an ` + "`absence`" + `. Visitors behind one address with the same
  browser count as one, and a phone that changes networks counts twice: correct that with ` + "`scale`" + `.
- ` + "`path`" + ` selects the requests that the room would cover.
- Anteroom reads the log as a stream, of any size, and keeps 2,000,000 visitors in memory at most. The arrivals are exact to the second; over 13 hours, to ten seconds; over 5 days, to 100 seconds.
- Lines may be up to 10 minutes late, because servers write them when the answer is done. Any line that cannot be read is an error with its number.
- The file must be in the plan's folder or below it, and not compressed.
`
}

// nameList shows names of members in Markdown.
func nameList(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
