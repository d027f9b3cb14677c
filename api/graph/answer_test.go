package graph

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/manage"
)

func TestAggregates(t *testing.T) {
	w := newWorld(t)
	hour := at("2026-11-27T10:00:00Z")
	for i, n := range []int64{10, 20, 60} {
		row := w.kept.minute(w.room, hour.Add(time.Duration(i)*time.Minute), n, 2*n, 3*n)
		row.Stats[analytics.Estimate] = analytics.Stat{N: 2, Sum: 90, Min: 0, Max: 90}
		row.Stats[analytics.Revoked] = analytics.Stat{N: 1, Sum: 1, Min: 1, Max: 1}
		row.Stats[analytics.ChallengesIssued] = analytics.Stat{N: 1, Sum: n, Min: n, Max: n}
		row.Weighted[analytics.Waited] = analytics.Weighted{Weight: n, Sum: [4]float64{float64(n * n), 0, 0, 0}}
	}
	w.ok(node(`waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:{}){
	  avg{totalActiveUsers newUsersPerMinute maxEstimatedTimeMinutes sessionDuration sessionsRevoked turnstileIssued sampleInterval}
	  max{totalQueuedUsers maxEstimatedTimeMinutes totalActiveUsersConfig} min{totalActiveUsers newUsersPerMinuteConfig}
	  sum{newUsersPerMinute sessionsRevoked turnstileIssued} avgWeighted{totalTimeWaitedP50 timeInQueueP95} dimensions{sampleInterval}}`), nil,
		found(`"waitingRoomAnalyticsAdaptiveGroups":[{`+
			`"avg":{"totalActiveUsers":30,"newUsersPerMinute":90,"maxEstimatedTimeMinutes":1,"sessionDuration":5,"sessionsRevoked":1,"turnstileIssued":30,"sampleInterval":1},`+
			`"max":{"totalQueuedUsers":120,"maxEstimatedTimeMinutes":2,"totalActiveUsersConfig":300},"min":{"totalActiveUsers":10,"newUsersPerMinuteConfig":200},`+
			`"sum":{"newUsersPerMinute":270,"sessionsRevoked":3,"turnstileIssued":90},"avgWeighted":{"totalTimeWaitedP50":45.556,"timeInQueueP95":-1},"dimensions":{"sampleInterval":1}}]`))
	w.ok(node(`waitingRoomAnalyticsAdaptive(limit:1,filter:{},orderBy:[datetime_DESC]){datetime waitingRoomId waitingRoomName sampleInterval totalActiveUsers
	  totalQueuedUsers newUsersPerMinute newUsersPerMinuteConfig maxEstimatedTimeMinutes sessionDuration totalTimeWaitedP50 timeOnOriginP50 turnstileFailures}`), nil,
		found(`"waitingRoomAnalyticsAdaptive":[{"datetime":"2026-11-27T10:02:00Z","waitingRoomId":"<room>","waitingRoomName":"checkout","sampleInterval":1,"totalActiveUsers":60,`+
			`"totalQueuedUsers":120,"newUsersPerMinute":180,"newUsersPerMinuteConfig":200,"maxEstimatedTimeMinutes":2,"sessionDuration":5,"totalTimeWaitedP50":60,"timeOnOriginP50":-1,"turnstileFailures":0}]`))
}

// Negative: no data, or in passthrough no limit.
func TestNoDataIsNegative(t *testing.T) {
	w := newWorld(t)
	hour := at("2026-11-27T10:00:00Z")
	w.kept.minute(w.room, hour, 1, 0, 0)
	w.kept.minute(w.room, hour.Add(time.Minute), 1, 0, 0).Method = anteroom.Passthrough
	w.kept.minutes = append(w.kept.minutes, analytics.Row{Room: w.other, Start: hour.Add(2 * time.Minute), Every: analytics.EveryMinute, Minutes: 1})
	w.ok(node(`waitingRoomAnalyticsAdaptiveGroups(limit:5,filter:{waitingRoomId:"<room>"}){min{totalActiveUsersConfig totalActiveUsers} max{totalActiveUsersConfig}}`), nil,
		found(`"waitingRoomAnalyticsAdaptiveGroups":[{"min":{"totalActiveUsersConfig":-1,"totalActiveUsers":1},"max":{"totalActiveUsersConfig":300}}]`))
	w.ok(node(`waitingRoomAnalyticsAdaptive(limit:5,filter:{}){totalActiveUsersConfig totalActiveUsers}`), nil,
		found(`"waitingRoomAnalyticsAdaptive":[{"totalActiveUsersConfig":300,"totalActiveUsers":1},{"totalActiveUsersConfig":-1,"totalActiveUsers":1},{"totalActiveUsersConfig":-1,"totalActiveUsers":-1}]`))
	w.ok(node(`waitingRoomAnalyticsAdaptiveGroups(limit:5,filter:{waitingRoomId:"<other>"}){avg{totalActiveUsers} max{newUsersPerMinute} sum{newUsersPerMinute}}`), nil,
		found(`"waitingRoomAnalyticsAdaptiveGroups":[{"avg":{"totalActiveUsers":-1},"max":{"newUsersPerMinute":-1},"sum":{"newUsersPerMinute":0}}]`))
	w.ok(node(`waitingRoomAnalyticsAdaptiveGroups(limit:5,filter:{waitingRoomId:"nobody"}){avg{totalActiveUsers}}`), nil, found(`"waitingRoomAnalyticsAdaptiveGroups":[]`))
}

func TestOrders(t *testing.T) {
	w := newWorld(t)
	hour := at("2026-11-27T10:00:00Z")
	for i, n := range []int64{3, 1, 2, 3} {
		row := w.kept.minute(w.room, hour.Add(time.Duration(i)*time.Minute), n, 9-n, n)
		row.Stats[analytics.Abandoned] = analytics.Stat{N: 1, Sum: 10 - n, Min: 10 - n, Max: 10 - n}
	}
	for order, want := range map[string]string{
		``: "0 1 2 3", `datetime_ASC`: "0 1 2 3", `datetime_DESC`: "3 2 1 0", `totalActiveUsers_ASC`: "1 2 0 3", `totalActiveUsers_DESC datetime_DESC`: "3 0 2 1",
		`abandoningUsersPerMinute_ASC`: "0 3 2 1", `waitingRoomName_ASC`: "0 1 2 3", `timeInQueueP50_DESC`: "0 1 2 3",
	} {
		a := w.ask(node(`waitingRoomAnalyticsAdaptive(limit:9,filter:{},orderBy:[`+order+`]){datetime}`), nil)
		if got := minutesOf(a); got != want || a.Errors != nil {
			t.Errorf("%s: %q, want %q %v", order, got, want, a.Errors)
		}
	}
	for order, want := range map[string]string{
		``: "0 1 2 3", `datetimeMinute_DESC`: "3 2 1 0", `avg_totalActiveUsers_ASC`: "1 2 0 3", `max_totalQueuedUsers_ASC datetimeHour_ASC`: "0 3 2 1", `min_newUsersPerMinute_DESC`: "0 3 2 1",
		`sum_newUsersPerMinute_ASC`: "1 2 0 3", `avg_abandoningUsersPerMinute_DESC`: "1 2 0 3", `max_abandoningUsersPerMinute_ASC`: "0 3 2 1", `avgWeighted_timeInQueueP50_ASC`: "0 1 2 3",
		`date_ASC datetimeFiveMinutes_DESC datetime_DESC`: "3 2 1 0",
	} {
		a := w.ask(node(`waitingRoomAnalyticsAdaptiveGroups(limit:9,filter:{},orderBy:[`+order+`]){dimensions{datetime:datetimeMinute}}`), nil)
		if got := minutesOf(a); got != want || a.Errors != nil {
			t.Errorf("%s: %q, want %q %v", order, got, want, a.Errors)
		}
	}
}

// minutesOf returns the minutes of the moments of an answer.
func minutesOf(a answered) string {
	var all []string
	for part := range strings.SplitSeq(string(a.Data), `"datetime":"2026-11-27T10:0`) {
		if strings.HasPrefix(part[1:], ":00Z") {
			all = append(all, part[:1])
		}
	}
	return strings.Join(all, " ")
}

func TestEveryOrderIsTaken(t *testing.T) {
	w := newWorld(t)
	g := w.graph()
	for name, orders := range map[string]map[string]key{`waitingRoomAnalyticsAdaptive`: rawOrders, `waitingRoomAnalyticsAdaptiveGroups`: groupsOrders} {
		for all := range slices.Chunk(sorted(orders), 5) {
			for _, direction := range []string{"_ASC ", "_DESC "} {
				a, _ := g.run(t.Context(), admin, 1, body{Query: w.ids(node(name + `(limit:1,filter:{},orderBy:[` + strings.Join(all, direction) + direction + `]){__typename}`))})
				if a.Errors != nil {
					t.Errorf("%v: %v", all, a.Errors)
				}
			}
		}
	}
}

// Every field at once, with aliases and in fragments.
func TestEveryField(t *testing.T) {
	w := newWorld(t)
	w.kept.minute(w.room, at("2026-11-27T10:00:00Z"), 1, 2, 3)
	var numbers, sums, times []string
	for _, m := range measures {
		numbers = append(numbers, m.name)
		if m.summed {
			sums = append(sums, m.name)
		}
	}
	for _, p := range percentiles {
		times = append(times, p.name)
	}
	n, s, p := strings.Join(numbers, " "), strings.Join(sums, " "), strings.Join(times, " ")
	a := w.ask(node(`...{a:waitingRoomAnalyticsAdaptive(limit:1,filter:{}){...R} b:waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:{}){
	  avg{`+n+` sampleInterval} max{`+n+`} min{`+n+`} sum{`+s+`} avgWeighted{`+p+`} d:dimensions{date datetime datetimeMinute datetimeFiveMinutes datetimeFifteenMinutes datetimeHour waitingRoomId sampleInterval}}}`)+
		` fragment R on ZoneWaitingRoomAnalyticsAdaptive{datetime waitingRoomId waitingRoomName sampleInterval `+n+` `+p+`}`, nil)
	if a.Errors != nil || !strings.Contains(a.Text, `"d":{"date":"2026-11-27","datetime":"2026-11-27T10:00:00Z","datetimeMinute":"2026-11-27T10:00:00Z","datetimeFiveMinutes":"2026-11-27T10:00:00Z",`+
		`"datetimeFifteenMinutes":"2026-11-27T10:00:00Z","datetimeHour":"2026-11-27T10:00:00Z","waitingRoomId":"`+string(w.room)+`","sampleInterval":1}`) {
		t.Error(a.Text)
	}
}

func TestZones(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for i := range 12 {
		z, err := w.manage.CreateZone(t.Context(), admin, fmt.Sprintf("z%d.example.org", i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(z.ID))
	}
	ids = append(ids, string(w.zone))
	slices.Sort(ids)
	tags := func(ids ...string) string {
		out := make([]string, len(ids))
		for i, id := range ids {
			out[i] = `{"zoneTag":"` + id + `"}`
		}
		return `{"viewer":{"zones":[` + strings.Join(out, ",") + `]}}`
	}
	w.ok(`{viewer{zones{zoneTag}}}`, nil, tags(ids[:10]...))
	w.ok(`{viewer{zones(limit:2){zoneTag}}}`, nil, tags(ids[:2]...))
	w.ok(`{viewer{zones(filter:{zoneTag_gt:"`+ids[9]+`"}){zoneTag}}}`, nil, tags(ids[10:]...))
	w.ok(`{viewer{zones(filter:{zoneTag_in:["`+ids[3]+`","`+ids[1]+`"]}){zoneTag}}}`, nil, tags(ids[1], ids[3]))
	w.ok(`{viewer{zones(filter:{zoneTag_in:["`+ids[3]+`"],zoneTag_gt:"`+ids[3]+`"}){zoneTag}}}`, nil, tags())
	w.refused(`{viewer{zones(filter:{zoneTag_in:["`+strings.Join(ids[:11], `","`)+`"]}){zoneTag}}}`, nil, codeLimit, "more than 10 zones")
	w.refused(`{viewer{a:zones{zoneTag} b:zones(filter:{zoneTag:"`+ids[11]+`"}){zoneTag}}}`, nil, codeLimit, "more than 10 zones")
	w.refused(`{viewer{zones(limit:11){zoneTag}}}`, nil, codeLimit, "not greater than 10")
	w.refused(`{viewer{zones(filter:{zoneTag:"nobody"}){zoneTag}}}`, nil, codeAuthz, `zone "nobody" does not exist, or the token may not read it`)
}

// One zone that may not be read fails the whole query, at its place.
func TestWhatTheTokenMayNotRead(t *testing.T) {
	w := newWorld(t)
	w.kept.minute(w.room, at("2026-11-27T10:00:00Z"), 1, 0, 0)
	w.kept.minute(w.other, at("2026-11-27T10:00:00Z"), 2, 0, 0)
	z, err := w.manage.CreateZone(t.Context(), admin, "example.org")
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := w.manage.CreateToken(t.Context(), admin, manage.TokenSpec{Name: "one room", Grants: []manage.Grant{{Zone: w.zone, Room: w.room, Permission: manage.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	all := node(`waitingRoomAnalyticsAdaptive(limit:9,filter:{}){totalActiveUsers}`)
	if a := w.post(secret, Path, w.request(all, nil)); string(a.Data) != found(`"waitingRoomAnalyticsAdaptive":[{"totalActiveUsers":1}]`) {
		t.Error(a.Text)
	}
	if a := w.post(secret, Path, w.request(node(`waitingRoomAnalyticsAdaptiveGroups(limit:9,filter:{waitingRoomId:"<other>"}){max{totalActiveUsers}}`), nil)); string(a.Data) != found(`"waitingRoomAnalyticsAdaptiveGroups":[]`) {
		t.Error(a.Text)
	}
	a := w.post(secret, Path, w.request(`{viewer{budget refused:zones(filter:{zoneTag:"`+string(z.ID)+`"}){zoneTag}}}`, nil))
	if string(a.Data) != "null" || len(a.Errors) != 1 || a.Errors[0].Extensions.Code != codeAuthz || fmt.Sprint(a.Errors[0].Path) != "[viewer refused]" || at(a.Errors[0].Extensions.Timestamp) != w.now {
		t.Error(a.Text)
	}
	for _, c := range []struct {
		token  string
		status int
	}{{"", 401}, {"nobody", 403}} {
		if a := w.post(c.token, Path, w.request(all, nil)); a.Status != c.status || strings.Contains(a.Text, "totalActive") {
			t.Errorf("%d %s", a.Status, a.Text)
		}
	}
	if a := w.post("", Path, w.request(all, nil), "X-Auth-Email", "a@example.org", "X-Auth-Key", manage.AuthKey(secret)); a.Errors != nil {
		t.Error(a.Text)
	}
}

func TestSettingsCostAndBudget(t *testing.T) {
	w := newWorld(t)
	w.ok(`{cost viewer{budget zones(filter:{zoneTag:"<zone>"}){settings{waitingRoomAnalyticsAdaptive{enabled maxDuration maxNumberOfFields maxPageSize notOlderThan}}}}}`, nil,
		`{"cost":1,"viewer":{"budget":299,"zones":[{"settings":{"waitingRoomAnalyticsAdaptive":{"enabled":true,"maxDuration":2764800,"maxNumberOfFields":100,"maxPageSize":10000,"notOlderThan":2764800}}}]}}`)
	a := w.ask(node(`settings{waitingRoomAnalyticsAdaptiveGroups{availableFields notOlderThan}}`), nil)
	for _, want := range []string{`"avg.totalActiveUsers"`, `"avgWeighted.timeOnOriginP95"`, `"dimensions.date"`, `"sum.sessionsRevoked"`, `"notOlderThan":34560000`} {
		if !strings.Contains(a.Text, want) {
			t.Errorf("%s is not in %s", want, a.Text)
		}
	}
	if strings.Contains(a.Text, "abandoning") {
		t.Error(a.Text)
	}
	for range maxQueries - 2 {
		if a := w.ask(`{cost}`, nil); a.Status != 200 {
			t.Fatal(a.Text)
		}
	}
	if a := w.ask(`{cost}`, nil); a.Status != 429 || a.Errors[0].Extensions.Code != codeBudget || a.Header.Get("Retry-After") != "300" {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Text)
	}
	_, secret, err := w.manage.CreateToken(t.Context(), admin, manage.TokenSpec{Name: "another", Grants: []manage.Grant{{Permission: manage.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	if a := w.post(secret, Path, `{"query":"{viewer{budget}}"}`); string(a.Data) != `{"viewer":{"budget":299}}` {
		t.Error(a.Text)
	}
	w.now = w.now.Add(5 * time.Minute)
	w.ok(`{viewer{budget}}`, nil, `{"viewer":{"budget":299}}`)
}

func TestPlacesOfErrorsAreThoseOfTheQueryAsSent(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		query        string
		variables    string
		line, column int
		message      string
	}{
		{"{cost\n  nothing}", `{}`, 2, 3, `Cannot query field "nothing"`},
		{"query($a:Int $b:string){cost}", `{"a":1,"b":"x"}`, 1, 7, `Variable "$a" is never used`},
		{"query($a:Int,$é:string){cost}", `{}`, 1, 15, `unexpected character`},
		{`query($l:Int){viewer{zones(limit:$l){zoneTag nothing}}}`, `{"l":1}`, 1, 46, `Cannot query field "nothing"`},
		{`query($l:Int,$z:String){viewer{zones(limit:$l,filter:{zoneTag:$z}){nothing}}}`, `{"l":1,"z":"x"}`, 1, 68, `Cannot query field "nothing"`},
		{"query($l:[\nInt!]){viewer{x}}", `{"l":[1]}`, 2, 15, `Cannot query field "x"`},
		{"query($o:[ZoneWaitingRoomAnalyticsAdaptiveOrderBy] $x:Int){viewer{x y}}", `{"o":["datetime_ASC"]}`, 1, 67, `Cannot query field "x"`},
		{"{viewer{zones(filter:{AND:[]}){zoneTag}}}", `{}`, 1, 23, `Field "AND" is not defined by type "ZoneFilter_InputObject".`},
		{"{viewer{zones(limit:0x1){zoneTag}}}", `{}`, 1, 24, `syntax error`},
		{"{viewer{zones(limit:99999999999999999999){zoneTag}}}", `{}`, 1, 21, `is not a 64-bit number`},
		{"{cost", `{}`, 1, 6, `syntax error`},
		{"{a\n\n \"", `{}`, 3, 3, `Unterminated string`},
		{"#c\r\n{cost nothing}", `{}`, 2, 7, `nothing`},
	} {
		a := w.ask(c.query, rawJSON(c.variables))
		ok := slices.ContainsFunc(a.Errors, func(e struct {
			Message    string
			Path       []any
			Locations  []struct{ Line, Column int }
			Extensions struct{ Code, Timestamp string }
		}) bool {
			return strings.Contains(e.Message, c.message) && len(e.Locations) > 0 && e.Locations[0].Line == c.line && e.Locations[0].Column == c.column
		})
		if !ok {
			t.Errorf("%s\n%s\nwant line %d, column %d: %s", c.query, a.Text, c.line, c.column, c.message)
		}
	}
}

func TestRequestsThatAreNone(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		``:                                  {400, "body is not a request"},
		`{`:                                 {400, "body is not a request"},
		`[{"query":"{cost}"}]`:              {400, "body is not a request"},
		`{"query":5}`:                       {400, "body is not a request"},
		`{"query":"{cost}","query":"x"}`:    {400, "body is not a request"},
		`{"query":"{cost}"}{}`:              {400, "body is not a request"},
		`{}`:                                {400, `no member \"query\"`},
		`{"query":"{cost}","variables":[]}`: {400, "body is not a request"},
		`{"query":"` + strings.Repeat("x", 70_000) + `"}`:                                       {413, "more than 65536 bytes"},
		strings.Repeat("[", 60_000):                                                             {400, "body is not a request"},
		`{"query":"` + strings.Repeat(" ", 17_000) + `"}`:                                       {200, "longer than 16384 bytes"},
		`{"query":"query A{cost} query B{cost}"}`:                                               {200, "more than one operation"},
		`{"query":"query A{cost} query B{cost}","operationName":"C"}`:                           {200, `no operation with name \"C\"`},
		`{"query":"query A{cost} query B{viewer{budget}}","operationName":"A","extensions":{}}`: {200, `{"data":{"cost":1},"errors":null}`},
		`{"query":"{cost}","variables":null,"operationName":null}`:                              {200, `{"data":{"cost":1},"errors":null}`},
	} {
		if a := w.post(adminToken, Path, body); a.Status != want.status || !strings.Contains(a.Text, want.text) {
			t.Errorf("%.100s: %d %s, want %d %s", body, a.Status, a.Text, want.status, want.text)
		}
	}
	if a := w.post(adminToken, Path+"?format=xml", `{"query":"{cost}"}`); a.Status != 400 {
		t.Errorf("%d %s", a.Status, a.Text)
	}
}

func TestTheStoreFails(t *testing.T) {
	w := newWorld(t)
	w.kept.failed = anteroom.Errorf(anteroom.Unavailable, "the disk is full")
	w.refused(node(`waitingRoomAnalyticsAdaptive(limit:1,filter:{}){datetime}`), nil, codeUnavailable, "the disk is full")
	w.kept.failed = fmt.Errorf("secret detail")
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:{}){max{totalActiveUsers}}`), nil, codeInternal, "internal error")
}

func TestTables(t *testing.T) {
	w := newWorld(t)
	w.kept.minute(w.room, at("2026-11-27T10:00:00Z"), 1, 2, 3)
	w.kept.minute(w.room, at("2026-11-27T10:01:00Z"), 4, 5, 6)
	table := func(query string, header ...string) string {
		t.Helper()
		target := Path
		if header == nil {
			target += "?format=csv"
		}
		a := w.post(adminToken, target, w.request(query, nil), header...)
		if a.Status != 200 || a.Header.Get("Content-Type") != "text/csv; charset=utf-8" {
			t.Fatalf("%d %s", a.Status, a.Text)
		}
		if _, err := csv.NewReader(strings.NewReader(a.Text)).ReadAll(); err != nil {
			t.Error(err)
		}
		return a.Text
	}
	one := node(`waitingRoomAnalyticsAdaptiveGroups(limit:5,filter:{}){dimensions{ts:datetimeMinute} avg{totalActiveUsers newUsersPerMinute}}`)
	want := "dimensions.ts,avg.totalActiveUsers,avg.newUsersPerMinute\n2026-11-27T10:00:00Z,1,3\n2026-11-27T10:01:00Z,4,6\n"
	if got := table(one); got != want {
		t.Errorf("%q", got)
	}
	if got := table(one, "Accept", "text/csv; charset=utf-8"); got != want {
		t.Errorf("%q", got)
	}
	if got, want := table(w.ids(node(`zoneTag a:waitingRoomAnalyticsAdaptive(limit:1,filter:{}){totalActiveUsers} b:waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:{}){sum{newUsersPerMinute}}`))),
		w.ids("zones.zoneTag,node,totalActiveUsers,sum.newUsersPerMinute\n<zone>,a,1,\n<zone>,b,,9\n"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := table(`{cost viewer{budget}}`), "cost,viewer.budget\n1,296\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := table(node(`waitingRoomAnalyticsAdaptive(limit:1,filter:{waitingRoomId:"x"}){datetime}`)); got != "" {
		t.Errorf("%q", got)
	}
	if got := table(node(`settings{waitingRoomAnalyticsAdaptive{enabled availableFields}}`)); !strings.HasPrefix(got, "settings.waitingRoomAnalyticsAdaptive.enabled,settings.waitingRoomAnalyticsAdaptive.availableFields\ntrue,datetime maxEstimatedTimeMinutes ") {
		t.Errorf("%q", got)
	}
	if a := w.post(adminToken, Path+"?format=csv", w.request(`{nothing}`, nil)); a.Status != 400 || a.Errors == nil {
		t.Errorf("%d %s", a.Status, a.Text)
	}
}

// A spreadsheet must not take a name for a formula, and numbers must stay numbers.
func TestCellsAreNoFormulas(t *testing.T) {
	for in, want := range map[string]string{
		`"=1+1"`: "'=1+1", `"+1"`: "'+1", `"-1"`: "'-1", `"@x"`: "'@x", `"\tx"`: "'\tx", `"\rx"`: "'\rx", `"\nx"`: "'\nx", `"|x"`: "'|x",
		`"a=b"`: "a=b", `-1`: "-1", `1.5`: "1.5", `null`: "", `true`: "true", `"ä\"b"`: `ä"b`,
	} {
		if got := cellOf([]byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// FuzzQuery: whatever is asked, there is an answer or an error, never a fault of ours, and a
// table of it.
func FuzzQuery(f *testing.F) {
	w := newWorld(f)
	w.kept.minute(w.room, at("2026-11-27T10:00:00Z"), 1, 2, 3)
	g := w.graph()
	f.Fuzz(func(t *testing.T, query, variables string) {
		b := body{Query: w.ids(query)}
		if json.Unmarshal([]byte(w.ids(variables)), &b.Variables) != nil {
			b.Variables = nil
		}
		a, did := w.runHostile(g, b)
		for _, e := range a.Errors {
			if e.Extensions["code"] == codeInternal {
				t.Fatalf("%q %q: %v", query, variables, a.Errors)
			}
		}
		if did.fields > maxFields+1000 {
			t.Fatalf("%d fields", did.fields)
		}
		if a.Errors == nil {
			tableOf(a.Data)
		}
	})
}

// FuzzFilter: what a filter says of a span of time is what it says of each of its minutes.
func FuzzFilter(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		var input any
		if json.Unmarshal([]byte(text), &input) != nil {
			return
		}
		readFilter(rawFilterKeys, input)
		filter, err := readFilter(groupsFilterKeys, input)
		if err != nil {
			return
		}
		within := span{at("2026-11-27T00:00:00Z"), at("2026-11-27T03:00:00Z")}
		spans, err := filter.spans(within, false)
		if err != nil {
			return
		}
		for m := within.from; m.Before(within.to); m = m.Add(time.Minute) {
			inside := slices.ContainsFunc(spans, func(s span) bool { return !m.Before(s.from) && m.Before(s.to) })
			if inside != filter.match(facts{at: m}) {
				t.Fatalf("%s: %v is inside: %v, of %v", text, m, inside, spans)
			}
		}
	})
}
