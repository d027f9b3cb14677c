package graph

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/analytics"
)

func TestLike(t *testing.T) {
	for _, c := range []struct {
		text, pattern string
		want          bool
	}{
		{"checkout", "checkout", true}, {"checkout", "Checkout", false}, {"checkout", "check%", true}, {"checkout", "%out", true},
		{"checkout", "%eck%", true}, {"checkout", "c_eckout", true}, {"checkout", "c_ckout", false}, {"checkout", "%", true}, {"", "%", true},
		{"", "", true}, {"", "_", false}, {"a", "", false}, {"100%", `100\%`, true}, {"1000", `100\%`, false}, {"a_b", `a\_b`, true}, {"axb", `a\_b`, false},
		{"aab", "%ab", true}, {"abab", "%ab", true}, {"äöü", "_ö_", true}, {`a\`, `a\`, true}, {"ab", "a%b%", true}, {"abc", "%%c", true},
	} {
		if got := like(c.text, c.pattern); got != c.want {
			t.Errorf("like(%q, %q) is %v", c.text, c.pattern, got)
		}
	}
}

// TestOperators asks the raw node with each operator on each kind of field.
func TestOperators(t *testing.T) {
	w := newWorld(t)
	base := at("2026-11-27T11:00:00Z")
	w.kept.minute(w.other, base, 7, 0, 0)
	for i := range 5 {
		w.kept.minute(w.room, base.Add(time.Duration(i)*time.Minute), int64(10*i), 0, int64(i))
	}
	for filter, want := range map[string]string{
		`totalActiveUsers:10`:                                    "10",
		`totalActiveUsers_neq:10`:                                "0 7 20 30 40",
		`totalActiveUsers_gt:10`:                                 "20 30 40",
		`totalActiveUsers_geq:10`:                                "10 20 30 40",
		`totalActiveUsers_lt:10`:                                 "0 7",
		`totalActiveUsers_leq:10`:                                "0 7 10",
		`totalActiveUsers_in:[10,30,99]`:                         "10 30",
		`totalActiveUsers_in:[]`:                                 "",
		`totalActiveUsers_in:30`:                                 "30",
		`totalActiveUsers_notin:[10,30]`:                         "0 7 20 40",
		`totalActiveUsers_notin:[]`:                              "0 7 10 20 30 40",
		`totalActiveUsers:null`:                                  "0 7 10 20 30 40",
		`waitingRoomName:"tickets"`:                              "7",
		`waitingRoomName_neq:"tickets"`:                          "0 10 20 30 40",
		`waitingRoomName_gt:"d"`:                                 "7",
		`waitingRoomName_like:"t%s"`:                             "7",
		`waitingRoomName_notlike:"t%s"`:                          "0 10 20 30 40",
		`waitingRoomId_in:["<other>","x"]`:                       "7",
		`waitingRoomId_notin:["<other>"]`:                        "0 10 20 30 40",
		`datetime:"2026-11-27T11:02:00Z"`:                        "20",
		`datetime:"2026-11-27T12:02:00+01:00"`:                   "20",
		`datetime:"2026-11-27T11:02:30Z"`:                        "",
		`datetime_neq:"2026-11-27T11:02:00Z"`:                    "0 7 10 30 40",
		`datetime_geq:"2026-11-27T11:02:00Z"`:                    "20 30 40",
		`datetime_geq:"2026-11-27T11:02:01Z"`:                    "30 40",
		`datetime_gt:"2026-11-27T11:02:00Z"`:                     "30 40",
		`datetime_gt:"2026-11-27T11:01:59Z"`:                     "20 30 40",
		`datetime_lt:"2026-11-27T11:02:00Z"`:                     "0 7 10",
		`datetime_leq:"2026-11-27T11:02:00Z"`:                    "0 7 10 20",
		`datetime_leq:"2026-11-27T11:02:30.5Z"`:                  "0 7 10 20",
		`datetime_in:["2026-11-27T11:01:00Z"]`:                   "10",
		`datetime_notin:["2026-11-27T11:01:00Z"]`:                "0 7 20 30 40",
		`sampleInterval:1`:                                       "0 7 10 20 30 40",
		`sampleInterval_gt:1`:                                    "",
		`newUsersPerMinute_gt:2,totalActiveUsers_lt:40`:          "30",
		`turnstileIssued_lt:0`:                                   "",
		`turnstileIssued:0`:                                      "0 7 10 20 30 40",
		`timeOnOriginP50:-1`:                                     "0 7 10 20 30 40",
		`AND:[{totalActiveUsers_gt:5},{totalActiveUsers_lt:25}]`: "7 10 20",
		`OR:[{totalActiveUsers:0},{totalActiveUsers:40}]`:        "0 40",
		`OR:[]`:                          "0 7 10 20 30 40",
		`AND:[],OR:{totalActiveUsers:0}`: "0",
		`totalActiveUsers_gt:5,OR:[{waitingRoomName:"tickets"},{AND:[{totalActiveUsers_gt:15},{OR:[{newUsersPerMinute:2},{newUsersPerMinute:4}]}]}]`: "7 20 40",
		`OR:[{datetime_lt:"2026-11-27T11:01:00Z",waitingRoomName:"tickets"},{datetime_geq:"2026-11-27T11:04:00Z"}]`:                                  "7 40",
	} {
		a := w.ask(node(`waitingRoomAnalyticsAdaptive(limit:100,filter:{`+filter+`},orderBy:[totalActiveUsers_ASC]){totalActiveUsers}`), nil)
		var got []string
		for part := range strings.SplitSeq(string(a.Data), `"totalActiveUsers":`) {
			if n, _, ok := strings.Cut(part, "}"); ok && n != "" && n[0] >= '0' && n[0] <= '9' {
				got = append(got, n)
			}
		}
		if a.Errors != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q %v", filter, got, want, a.Errors)
		}
	}
}

func TestFiltersThatAreRefused(t *testing.T) {
	w := newWorld(t)
	raw := func(filter string) string {
		return node(`waitingRoomAnalyticsAdaptive(limit:1,filter:{` + filter + `}){datetime}`)
	}
	for filter, message := range map[string]string{
		`datetime:"yesterday"`:            `filter.datetime: "yesterday" is not a time (write it like 2026-11-27T09:00:00Z)`,
		`datetime:"0001-01-01T00:00:00Z"`: `is not a time`,
		`datetime:5`:                      `filter.datetime: 5 is not a text`,
		`waitingRoomName_like:"` + strings.Repeat("%", 300) + `"`: `the pattern has more than 256 bytes`,
		`totalActiveUsers:"5"`:                              `filter.totalActiveUsers: "5" is not a whole number`,
		`totalActiveUsers:1.5`:                              `is not a whole number`,
		`totalActiveUsers:true`:                             `is not a whole number`,
		`waitingRoomId:5`:                                   `filter.waitingRoomId: 5 is not a text`,
		`waitingRoomId_in:[5]`:                              `filter.waitingRoomId_in: 5 is not a text`,
		`AND:[{datetime:"x"}]`:                              `filter.AND[0].datetime: "x" is not a time`,
		`date:"2026-11-27"`:                                 `Field "date" is not defined by type "ZoneWaitingRoomAnalyticsAdaptiveFilter_InputObject".`,
		`totalActiveUsers_like:"x"`:                         `Field "totalActiveUsers_like" is not defined`,
		strings.Repeat(`AND:{`, 9) + strings.Repeat(`}`, 9): `AND and OR are nested too deeply`,
	} {
		w.refused(raw(filter), nil, codeInvalid, message)
	}
	for _, name := range []string{"date", "totalActiveUsers_like", "totalActiveUsers_", "totalActiveUsers_GT", "totalActiveUsers_gt_lt", "", "_gt"} {
		query := "query($f:" + rawFilterType + ")" + node(`waitingRoomAnalyticsAdaptive(limit:1,filter:$f){datetime}`)
		w.refused(query, map[string]any{"f": map[string]any{"AND": []any{map[string]any{name: 1}}}}, codeInvalid, "filter.AND[0]."+name+": there is no such field")
	}
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(limit:1,filter:{date:"27.11."}){max{totalActiveUsers}}`), nil, codeInvalid, `filter.date: "27.11." is not a time (write it like 2026-11-27)`)
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(limit:1){max{totalActiveUsers}}`), nil, codeInvalid, `argument "filter" of type`)
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(filter:{}){max{totalActiveUsers}}`), nil, codeInvalid, `argument "limit" of type "uint64!" is required`)
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(filter:{},limit:0){max{totalActiveUsers}}`), nil, codeLimit, `limit must be positive number and not greater than 10000`)
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(filter:{},limit:10001){max{totalActiveUsers}}`), nil, codeLimit, `not greater than 10000`)
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(filter:{},limit:-1){max{totalActiveUsers}}`), nil, codeInvalid, `-1 is not a whole number`)
	w.refused(node(`waitingRoomAnalyticsAdaptiveGroups(filter:{},limit:1,orderBy:[totalActiveUsers_ASC]){max{totalActiveUsers}}`), nil, codeInvalid, `Value "totalActiveUsers_ASC" does not exist in`)
}

// TestGroupsAreExact compares groups, which are read at the longest resolution that fits, with
// every minute held against the same filter.
func TestGroupsAreExact(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	w := newWorld(t)
	w.now = at("2026-11-28T00:00:00Z")
	g := w.graph()
	random := rand.New(rand.NewPCG(1, 2))
	start := at("2026-11-24T22:07:00Z")
	for i := range 3 * 1440 {
		w.kept.minute(w.room, start.Add(time.Duration(i)*time.Minute), int64(random.IntN(100)), 0, int64(i))
		if i%7 == 0 {
			w.kept.minute(w.other, start.Add(time.Duration(i)*time.Minute), int64(random.IntN(100)), 0, int64(i))
		}
	}
	moment := func() time.Time { return start.Add(time.Duration(random.IntN(3*86400)) * time.Second) }
	if random.IntN(2) == 0 {
		moment = func() time.Time {
			return start.Add(time.Duration(random.IntN(3*96)) * 15 * time.Minute).Truncate(15 * time.Minute)
		}
	}
	one := func() map[string]any {
		operator := []string{"_geq", "_gt", "_lt", "_leq", "_neq", ""}[random.IntN(6)]
		d := dimensions[random.IntN(6)]
		at := moment()
		if random.IntN(2) == 0 {
			at = at.Truncate(d.unit)
		}
		switch {
		case d.kind == "Date":
			return map[string]any{d.name + operator: at.Format(time.DateOnly)}
		case random.IntN(4) > 0:
			return map[string]any{d.name + operator: at.Format(time.RFC3339)}
		}
		return map[string]any{[]string{"waitingRoomId", "waitingRoomId_neq"}[random.IntN(2)]: string(w.room)}
	}
	unitOf := []string{"", "date", "datetimeHour", "datetimeFifteenMinutes", "datetimeFiveMinutes", "waitingRoomId", "date waitingRoomId"}
	rows := 0
	for range 100 {
		filter := one()
		switch random.IntN(3) {
		case 0:
			filter = map[string]any{"AND": []any{one(), one()}}
		case 1:
			both := one()
			both["AND"] = []any{one()}
			filter = map[string]any{"OR": []any{one(), both}}
		}
		dims := unitOf[random.IntN(len(unitOf))]
		selected := "sum{newUsersPerMinute} max{totalActiveUsers}"
		if dims != "" {
			selected += " dimensions{" + dims + "}"
		}
		w.kept.asked, w.kept.rows = nil, 0
		a, _ := g.run(t.Context(), admin, 1, body{Variables: map[string]any{"f": filter},
			Query: w.ids("query($f:" + groupsFilterType + ")" + node(`waitingRoomAnalyticsAdaptiveGroups(limit:10000,filter:$f){`+selected+`}`))})
		if a.Errors != nil {
			t.Fatalf("%v: %v", filter, a.Errors)
		}
		rows += w.kept.rows
		want := w.bruteForce(t, filter, dims)
		if got := string(a.Data); got != want {
			t.Fatalf("%v by %q\ngot  %.2000s\nwant %.2000s", filter, dims, got, want)
		}
	}
	if rows > 100*1500 {
		t.Errorf("read %d rows for 100 questions about 5,000 minutes", rows)
	}
}

// bruteForce answers by the minutes.
func (w *world) bruteForce(t *testing.T, filter map[string]any, dims string) string {
	t.Helper()
	f, err := readFilter(groupsFilterKeys, filter)
	if err != nil {
		t.Fatal(err)
	}
	type total struct{ sum, high int64 }
	found := map[string]total{} // by the dimensions as they are answered
	order := map[string]string{}
	for _, m := range w.kept.minutes {
		if !f.match(facts{at: m.Start, room: &room{id: string(m.Room)}}) {
			continue
		}
		var cells, by []string
		for _, d := range dimensions {
			cell := string(m.Room)
			switch {
			case !slices.Contains(strings.Fields(dims), d.name):
				continue
			case d.kind == "Date":
				cell = m.Start.Truncate(d.unit).Format(time.DateOnly)
			case d.unit > 0:
				cell = m.Start.Truncate(d.unit).Format(time.RFC3339)
			}
			cells, by = append(cells, fmt.Sprintf("%q:%q", d.name, cell)), append(by, cell)
		}
		g := strings.Join(cells, ",")
		order[g] = strings.Join(by, " ")
		one := found[g]
		one.sum += m.Stats[analytics.NewUsers].Sum
		one.high = max(one.high, m.Stats[analytics.ActiveUsers].Max)
		found[g] = one
	}
	groups := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return strings.Compare(order[a], order[b]) })
	lines := make([]string, len(groups))
	for i, g := range groups {
		lines[i] = fmt.Sprintf(`{"sum":{"newUsersPerMinute":%d},"max":{"totalActiveUsers":%d}`, found[g].sum, found[g].high)
		if dims != "" {
			lines[i] += `,"dimensions":{` + g + `}`
		}
		lines[i] += "}"
	}
	return `{"viewer":{"zones":[{"waitingRoomAnalyticsAdaptiveGroups":[` + strings.Join(lines, ",") + `]}]}}`
}

// What is older than the minutes that are kept is read by the quarter of an hour, then by the hour,
// and nothing is read twice.
func TestOldSpansAreWidened(t *testing.T) {
	now := at("2026-11-27T12:00:00Z")
	show := func(minutes time.Duration, texts ...string) string {
		var spans []span
		for i := 0; i < len(texts); i += 2 {
			spans = append(spans, span{at("2026-11-27T" + texts[i] + ":00Z"), at("2026-11-27T" + texts[i+1] + ":00Z")})
		}
		var out []string
		for _, s := range widened(spans, now, minutes) {
			out = append(out, s.from.Format("15:04")+"-"+s.to.Format("15:04"))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct{ got, want string }{
		{show(24*time.Hour, "08:01", "08:02"), "08:01-08:02"},
		{show(2*time.Hour, "08:01", "08:02"), "08:00-08:15"},
		{show(time.Hour, "08:01", "08:02"), "08:00-09:00"},
		{show(2*time.Hour, "08:01", "08:02", "08:05", "08:17"), "08:00-08:15 08:15-08:30"},
		{show(2*time.Hour, "08:01", "08:02", "08:05", "08:07"), "08:00-08:15"},
		{show(2*time.Hour, "09:01", "11:59"), "09:00-11:59"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}
