package graph

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/analytics"
)

// hostile are requests of up to 16 kB that want much of us.
func hostile(w *world) map[string]body {
	z := func(text string) string { return w.ids(node(text)) }
	groups := func(args, fields string) string {
		return `waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:{}` + args + `){` + fields + `}`
	}
	all := map[string]string{
		"deep selections":         strings.Repeat("{a", 4500),
		"deep selections, closed": strings.Repeat("{a", 3000) + strings.Repeat("}", 3000),
		"deep lists":              `{viewer{zones(filter:{zoneTag_in:` + strings.Repeat("[", 7000) + strings.Repeat("]", 7000) + `}){zoneTag}}}`,
		"deep objects":            `{viewer{zones(filter:` + strings.Repeat("{AND:", 1500) + "{}" + strings.Repeat("}", 1500) + `){zoneTag}}}`,
		"deep filter":             z(groups("", "max{totalActiveUsers}")+strings.Repeat(" ", 1)) + "",
		"deep types":              `query($a:` + strings.Repeat("[", 4000) + `string` + strings.Repeat("]", 4000) + `){cost}`,
		"aliases of a scalar":     `{` + each(1800, func(i int) string { return fmt.Sprintf("a%d:cost ", i) }) + `}`,
		"aliases of viewer":       `{` + each(600, func(i int) string { return fmt.Sprintf("a%d:viewer{budget}", i) }) + `}`,
		"aliases of nodes":        z(each(90, func(i int) string { return fmt.Sprintf("a%d:", i) + groups("", "max{totalActiveUsers}") })),
		"aliases of raw nodes": z(each(90, func(i int) string {
			return fmt.Sprintf("a%d:waitingRoomAnalyticsAdaptive(limit:10000,filter:{}){totalActiveUsers}", i)
		})),
		"aliases of zones":        `{viewer{` + each(400, func(i int) string { return fmt.Sprintf("a%d:zones{zoneTag}", i) }) + `}}`,
		"overlapping scalars":     `{` + strings.Repeat("cost ", 1800) + `}`,
		"overlapping objects":     `{` + strings.Repeat("viewer{budget}", 1000) + `}`,
		"overlapping nodes":       z(strings.Repeat(groups("", "avg{totalActiveUsers}"), 90)),
		"overlap below":           `{` + strings.Repeat("viewer{"+each(20, func(i int) string { return fmt.Sprintf("a%d:budget ", i) })+"}", 60) + `}`,
		"overlapping fragments":   `{` + strings.Repeat("...F ", 1500) + `} fragment F on Query{` + strings.Repeat("cost ", 1000) + `}`,
		"inline fragments":        `{` + strings.Repeat("...{cost}", 1300) + `}`,
		"nested inline fragments": strings.Repeat("{...", 30) + "{cost}" + strings.Repeat("}", 30),
		"fragment of itself":      `{...F} fragment F on Query{...F}`,
		"fragment cycle":          `{...F0}` + each(15, func(i int) string { return fmt.Sprintf("fragment F%d on Query{...F%d}", i, (i+1)%15) }),
		"long fragment cycle":     `{...F0}` + each(200, func(i int) string { return fmt.Sprintf("fragment F%d on Query{...F%d}", i, (i+1)%200) }),
		"fragment bomb":           `{...F0}` + each(15, func(i int) string { return fmt.Sprintf("fragment F%d on Query{...F%d ...F%d}", i, i+1, i+1) }) + `fragment F15 on Query{cost}`,
		"fragment bomb, aliased": `{...F0}` + each(10, func(i int) string {
			return fmt.Sprintf("fragment F%d on Query{...F%d ...F%d ...F%d}", i, i+1, i+1, i+1)
		}) + `fragment F10 on Query{a:cost b:cost viewer{budget}}`,
		"fragments unused":         `{cost}` + each(400, func(i int) string { return fmt.Sprintf("fragment F%d on Query{cost}", i) }),
		"many operations":          each(500, func(i int) string { return fmt.Sprintf("query Q%d{cost}", i) }),
		"directives":               `{cost` + strings.Repeat("@skip(if:false)", 900) + `}`,
		"unknown directives":       `{cost` + strings.Repeat("@x", 3000) + `}`,
		"unknown fields":           `{viewer{zones{` + each(1500, func(i int) string { return fmt.Sprintf("x%d ", i) }) + `}}}`,
		"long unknown field":       `{viewer{zones{` + strings.Repeat("x", 9000) + `}}}`,
		"unknown fields of a node": z(`waitingRoomAnalyticsAdaptive(limit:1,filter:{}){` + each(1500, func(i int) string { return fmt.Sprintf("turnstileX%d ", i) }) + `}`),
		"unknown filter fields": z(each(80, func(i int) string {
			return fmt.Sprintf("a%d:waitingRoomAnalyticsAdaptive(limit:1,filter:{%s:1}){datetime}", i, strings.Repeat("z", 90))
		})),
		"filter of another node": z(each(80, func(i int) string {
			return fmt.Sprintf("a%d:waitingRoomAnalyticsAdaptive(limit:1,filter:{datetimeFifteenMinutes_notin:1}){datetime}", i)
		})),
		"unknown orders": z(each(80, func(i int) string {
			return fmt.Sprintf("a%d:", i) + groups(",orderBy:["+strings.Repeat("z", 90)+"]", "max{totalActiveUsers}")
		})),
		"orders of another node": z(each(80, func(i int) string {
			return fmt.Sprintf("a%d:", i) + groups(",orderBy:[totalActiveUsers_DESC]", "max{totalActiveUsers}")
		})),
		"long order":              z(groups(",orderBy:["+strings.Repeat("date_ASC ", 1500)+"]", "max{totalActiveUsers}")),
		"long list":               z(`waitingRoomAnalyticsAdaptive(limit:1,filter:{totalActiveUsers_in:[` + strings.Repeat("1 ", 3800) + `]}){datetime}`),
		"long list of moments":    z(`waitingRoomAnalyticsAdaptive(limit:1,filter:{OR:[` + strings.Repeat(`{datetime:"2026-11-27T00:00:00Z"}`, 400) + `]}){datetime}`),
		"long conditions":         z(`waitingRoomAnalyticsAdaptive(limit:1,filter:{AND:[` + strings.Repeat(`{totalActiveUsers_gt:1}`, 600) + `]}){datetime}`),
		"every minute apart":      z(groups("", "max{totalActiveUsers}")[:len("waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:{")] + `datetime_in:[` + each(300, func(i int) string { return fmt.Sprintf(`"2026-11-%02dT%02d:01:00Z"`, 1+i/24, i%24) }) + `]}){max{totalActiveUsers}}`),
		"slow pattern":            z(`waitingRoomAnalyticsAdaptive(limit:1,filter:{waitingRoomName_like:"` + strings.Repeat("%a", 120) + `b"}){datetime}`),
		"long pattern":            z(`waitingRoomAnalyticsAdaptive(limit:1,filter:{waitingRoomName_like:"` + strings.Repeat("%a", 4000) + `"}){datetime}`),
		"long number":             `{viewer{zones(limit:` + strings.Repeat("9", 9000) + `){zoneTag}}}`,
		"hexadecimal":             `{viewer{zones(limit:0xFFFFFFFFFFFFFFFFFFFF){zoneTag}}}`,
		"underscores":             `{viewer{zones(limit:1_0){zoneTag}}}`,
		"number that conflicts":   `{viewer{zones(limit:99999999999999999999){zoneTag} zones(limit:99999999999999999999){zoneTag}}}`,
		"many variables":          `query(` + each(1000, func(i int) string { return fmt.Sprintf("$v%d:string ", i) }) + `){cost}`,
		"many variables used":     `query(` + each(50, func(i int) string { return fmt.Sprintf("$v%d:string ", i) }) + `){viewer{` + each(90, func(i int) string { return fmt.Sprintf("a%d:zones(filter:{zoneTag:$v%d}){zoneTag}", i, i%50) }) + `}}`,
		"variables of variables":  `query($a:[string!]=[` + strings.Repeat("$a ", 3000) + `]){cost}`,
		"default value":           `query($a:ZoneFilter_InputObject=` + strings.Repeat("{AND:[", 1400) + `){cost}`,
		"schema, many times":      `{` + each(300, func(i int) string { return fmt.Sprintf("a%d:__schema{types{name}}", i) }) + `}`,
		"schema, in circles":      `{__schema{types{fields{type{ofType{ofType{fields{type{ofType{ofType{fields{type{name}}}}}}}}}}}}}`,
		"schema, in long circles": `{__schema{types{` + strings.Repeat("fields{type{ofType{ofType{", 3) + "fields{name}" + strings.Repeat("}}}}", 3) + `}}}`,
		"schema, wide":            `{__schema{` + each(60, func(i int) string { return fmt.Sprintf("a%d:types{inputFields{name type{name ofType{name}}}}", i) }) + `}}`,
		"schema, inputs":          `{__schema{types{inputFields{type{inputFields{type{inputFields{type{inputFields{name}}}}}}}}}}`,
		"schema, enums":           `{__schema{` + each(100, func(i int) string { return fmt.Sprintf("a%d:types{enumValues{name description isDeprecated}}", i) }) + `}}`,
		"type, many times": `{` + each(5, func(i int) string {
			return fmt.Sprintf("a%d:__type(name:\"zone\"){fields{type{ofType{ofType{ofType{fields{type{name fields{name}}}}}}}}}", i)
		}) + `}`,
		"strings":               `{viewer{zones(filter:{zoneTag_in:[` + strings.Repeat(`"\u0061",`, 1700) + `]}){zoneTag}}}`,
		"unending string":       `{viewer{zones(filter:{zoneTag:"` + strings.Repeat("a", 9000),
		"unending block string": `{viewer{zones(filter:{zoneTag:"""` + strings.Repeat("a", 9000),
		"comments":              strings.Repeat("#\n", 4000) + "{cost}",
		"signs":                 strings.Repeat("!", 9000),
		"dots":                  strings.Repeat("...", 3000),
		"not UTF-8":             strings.Repeat("\xff", 9000),
		"NUL":                   strings.Repeat("\x00", 9000),
		"other letters":         strings.Repeat("é", 4000),
		"escapes":               `{viewer{zones(filter:{zoneTag:"\x41\'"}){zoneTag}}}`,
		"mutation":              `mutation{x}`,
		"subscription":          `subscription{x}`,
		"nothing":               ` `,
		"only a fragment":       `fragment F on Query{cost}`,
	}
	out := map[string]body{}
	for name, query := range all {
		out[name] = body{Query: query}
	}
	const filtered = `query($f:ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject!){viewer{zones{waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:$f){max{totalActiveUsers}}}}}`
	deep := any(map[string]any{})
	for range 1000 {
		deep = map[string]any{"AND": []any{deep}}
	}
	var wrong []any
	for range 190 {
		wrong = append(wrong, map[string]any{"turnstileInfiniteQueueRefreshes_notin": 1.0})
	}
	unknown := map[string]any{}
	for i := range 1000 {
		unknown[fmt.Sprintf("%s%d", strings.Repeat("z", 40), i)] = i
	}
	for name, f := range map[string]any{
		"variable, deep":             deep,
		"variable, wrong members":    map[string]any{"AND": wrong},
		"variable, unknown members":  unknown,
		"variable, long list":        map[string]any{"waitingRoomId_in": slices.Repeat([]any{"x"}, 5000)},
		"variable, long text":        map[string]any{"waitingRoomId": strings.Repeat("x", 60_000)},
		"variable, of another kind":  map[string]any{"datetime": 5.0},
		"variable, no object":        "x",
		"variable, list for object":  []any{1.0},
		"variable, fraction":         map[string]any{"sampleInterval": 1.5},
		"variable, too large number": map[string]any{"sampleInterval": 1e300},
		"variable, object for text":  map[string]any{"waitingRoomId": map[string]any{}},
		"variable, year":             map[string]any{"date": "0000-01-01"},
	} {
		out[name] = body{Query: filtered, Variables: map[string]any{"f": f}}
	}
	return out
}

func each(n int, fn func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(fn(i))
	}
	return b.String()
}

// harmless are those of the hostile ones that are answered: they cost no more than they say.
var harmless = map[string]bool{"aliases of nodes": true, "aliases of raw nodes": true, "overlapping nodes": true, "many variables used": true, "nested inline fragments": true, "comments": true, "schema, in circles": true, "schema, in long circles": true,
	"schema, enums": false, "type, many times": true, "slow pattern": true, "deep filter": true, "schema, inputs": true, "variable, year": false}

func (w *world) graph() *graph {
	return newGraph(Config{Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)}, w.manage)
}

// runHostile does what a request does once the caller is known.
func (w *world) runHostile(g *graph, b body) (answer, *work) {
	count := variableCount{}
	if err := count.check(b.Variables, "variables", 0); err != nil {
		return g.failed(err), &work{}
	}
	return g.run(context.Background(), admin, 1, b)
}

// TestHostileQueriesCostLittle counts what each of them makes us do.
func TestHostileQueriesCostLittle(t *testing.T) {
	w := newWorld(t)
	w.kept.minute(w.room, at("2026-11-27T11:00:00Z"), 1, 1, 1)
	g := w.graph()
	all := hostile(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w.kept.asked, w.kept.rows = nil, 0
		a, did := w.runHostile(g, all[name])
		if (a.Errors == nil) != harmless[name] {
			t.Errorf("%s: %.300v", name, a.Errors)
		}
		for _, e := range a.Errors {
			if e.Extensions["code"] == codeInternal || len(e.Message) > 1000 {
				t.Errorf("%s: %.2000s", name, e.Message)
			}
		}
		if n := did.fields; n > maxMetaFields+5000 || len(w.kept.asked) > 6000 || did.scanned > 1000 {
			t.Errorf("%s: answered %d fields, asked the store %d times, read %d rows", name, n, len(w.kept.asked), did.scanned)
		}
	}
}

// BenchmarkHostile: the worst must be under 50 ms.
func BenchmarkHostile(b *testing.B) {
	w := newWorld(b)
	g := w.graph()
	all := hostile(w)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.kept.asked = nil
				w.runHostile(g, all[name])
			}
		})
	}
}

// Even the largest answer is bounded.
func TestABusyMonthIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	w := newWorld(t)
	g := w.graph()
	day := at("2026-11-20T00:00:00Z")
	for i := range 1440 * 7 {
		w.kept.minute(w.room, day.Add(time.Duration(i)*time.Minute), int64(i%300), 0, 1)
	}
	run := func(text string) (answer, *work) { return g.run(t.Context(), admin, 1, body{Query: w.ids(node(text))}) }
	a, did := run(`waitingRoomAnalyticsAdaptive(limit:10000,filter:{}){datetime totalActiveUsers}`)
	if a.Errors != nil || did.rows != maxPageSize || did.scanned > 2*maxPageSize {
		t.Errorf("%v: %d rows, read %d", a.Errors, did.rows, did.scanned)
	}
	a, _ = run(`a:waitingRoomAnalyticsAdaptive(limit:10000,filter:{}){datetime} b:waitingRoomAnalyticsAdaptive(limit:10000,filter:{}){datetime}`)
	if a.Errors == nil || a.Errors[0].Message != "answer has more than 10000 rows in all" || a.Data != nil {
		t.Errorf("%v", a.Errors)
	}
	a, did = run(each(99, func(i int) string {
		return fmt.Sprintf("a%d:waitingRoomAnalyticsAdaptive(limit:1,filter:{totalActiveUsers_gt:1000}){datetime}", i)
	}))
	if a.Errors == nil || a.Errors[0].Extensions["code"] != codeLimit || did.scanned > maxScanned+4*analytics.MaxRows/4 {
		t.Errorf("%v: read %d", a.Errors, did.scanned)
	}
	a, did = run(`a:waitingRoomAnalyticsAdaptive(limit:10000,filter:{}){` + each(60, func(i int) string { return fmt.Sprintf("a%d:totalActiveUsers ", i) }) + `}`)
	if a.Errors == nil || a.Errors[0].Extensions["code"] != codeLimit || did.fields > maxFields+100 {
		t.Errorf("%v: %d fields", a.Errors, did.fields)
	}
}
