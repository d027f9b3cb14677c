package graph

import (
	"fmt"
	"testing"
	"time"
)

// The published sample, with nothing changed but the ids.
const sample = `{viewer{zones(filter:{zoneTag:"<zone>"}){waitingRoomAnalyticsAdaptiveGroups(limit:10,
 filter:{datetime_geq:"2023-03-15T04:00:00Z",datetime_leq:"2023-03-15T04:45:00Z",waitingRoomId:"<room>"},
 orderBy:[datetimeFifteenMinutes_ASC]){avg{totalActiveUsers newUsersPerMinute}
 dimensions{datetimeFifteenMinutes}}}}}`

func TestThePublishedSample(t *testing.T) {
	w := newWorld(t)
	w.now = at("2023-03-15T05:00:00Z")
	for i := range 50 {
		w.kept.minute(w.room, at("2023-03-15T04:00:00Z").Add(time.Duration(i)*time.Minute), int64(100+i), 0, int64(i))
		w.kept.minute(w.other, at("2023-03-15T04:00:00Z").Add(time.Duration(i)*time.Minute), 999, 999, 999)
	}
	w.ok(sample, nil, found(`"waitingRoomAnalyticsAdaptiveGroups":[`+
		`{"avg":{"totalActiveUsers":107,"newUsersPerMinute":7},"dimensions":{"datetimeFifteenMinutes":"2023-03-15T04:00:00Z"}},`+
		`{"avg":{"totalActiveUsers":122,"newUsersPerMinute":22},"dimensions":{"datetimeFifteenMinutes":"2023-03-15T04:15:00Z"}},`+
		`{"avg":{"totalActiveUsers":137,"newUsersPerMinute":37},"dimensions":{"datetimeFifteenMinutes":"2023-03-15T04:30:00Z"}},`+
		`{"avg":{"totalActiveUsers":145,"newUsersPerMinute":45},"dimensions":{"datetimeFifteenMinutes":"2023-03-15T04:45:00Z"}}]`))
}

// The published query for the minutes of a load test, as the documentation sends it with curl.
const loadTest = `{
  "operationName": "UsersQueuedOverTimeQuery",
  "variables": {
    "filter": {
      "datetime_geq": "2022-10-17T15:34:00Z",
      "datetime_leq": "2022-10-17T15:40:00Z",
      "waitingRoomId": "<room>"
    },
    "zoneId": "<zone>"
  },
  "query": "query UsersQueuedOverTimeQuery($zoneId: string, $filter: ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject) {\n  viewer {\n    zones(filter: {zoneTag: $zoneId}) {\n      timeseries: waitingRoomAnalyticsAdaptiveGroups(limit: 5000, filter: $filter, orderBy: [datetimeMinute_ASC]) {\n        avg {\n          totalActiveUsers\n          totalActiveUsersConfig\n          totalQueuedUsers\n          __typename\n        }\n        max {\n          totalQueuedUsers\n          totalActiveUsers\n          totalActiveUsersConfig\n          __typename\n        }\n        min {\n          totalActiveUsersConfig\n          __typename\n        }\n        dimensions {\n          ts: datetimeMinute\n          __typename\n        }\n        __typename\n      }\n      total: waitingRoomAnalyticsAdaptiveGroups(limit: 1, filter: $filter) {\n        max {\n          totalQueuedUsers\n          totalActiveUsers\n          __typename\n        }\n        __typename\n      }\n      __typename\n    }\n    __typename\n  }\n}\n"
}`

func TestThePublishedQueryForALoadTest(t *testing.T) {
	w := newWorld(t)
	w.now = at("2022-10-17T15:41:00Z")
	for i, active := range []int64{0, 137, 200} {
		w.kept.minute(w.room, at("2022-10-17T15:34:00Z").Add(time.Duration(i)*time.Minute), active, int64(i), 0)
	}
	a := w.post(adminToken, Path, w.ids(loadTest))
	if a.Status != 200 || a.Errors != nil {
		t.Fatal(a.Text)
	}
	minute := func(i, active int) string {
		return fmt.Sprintf(`{"avg":{"totalActiveUsers":%d,"totalActiveUsersConfig":300,"totalQueuedUsers":%d,"__typename":"ZoneWaitingRoomAnalyticsAdaptiveGroupsAvg"},`+
			`"max":{"totalQueuedUsers":%d,"totalActiveUsers":%d,"totalActiveUsersConfig":300,"__typename":"ZoneWaitingRoomAnalyticsAdaptiveGroupsMax"},`+
			`"min":{"totalActiveUsersConfig":300,"__typename":"ZoneWaitingRoomAnalyticsAdaptiveGroupsMin"},`+
			`"dimensions":{"ts":"2022-10-17T15:%d:00Z","__typename":"ZoneWaitingRoomAnalyticsAdaptiveGroupsDimensions"},"__typename":"ZoneWaitingRoomAnalyticsAdaptiveGroups"}`,
			active, i, i, active, 34+i)
	}
	want := `{"viewer":{"zones":[{"timeseries":[` + minute(0, 0) + "," + minute(1, 137) + "," + minute(2, 200) + `],` +
		`"total":[{"max":{"totalQueuedUsers":2,"totalActiveUsers":200,"__typename":"ZoneWaitingRoomAnalyticsAdaptiveGroupsMax"},"__typename":"ZoneWaitingRoomAnalyticsAdaptiveGroups"}],` +
		`"__typename":"zone"}],"__typename":"viewer"}}`
	if string(a.Data) != want {
		t.Errorf("got  %s\nwant %s", a.Data, want)
	}
}

// What another client sends, with variables spelled in both ways.
func TestVariablesInBothSpellings(t *testing.T) {
	w := newWorld(t)
	w.kept.minute(w.room, at("2026-11-27T11:00:00Z"), 5, 0, 1)
	w.ok(`query W($zone: String!, $room: string, $from: Time!, $to: Time!) {
      viewer {
        zones(filter: { zoneTag: $zone }) {
          waitingRoomAnalyticsAdaptiveGroups(
            limit: 10000
            filter: { waitingRoomId: $room, datetime_geq: $from, datetime_leq: $to }
            orderBy: [datetimeHour_ASC]
          ) {
            avg { totalActiveUsers totalQueuedUsers newUsersPerMinute }
            avgWeighted { timeOnOriginP50 totalTimeWaitedP90 }
            dimensions { datetimeHour }
          }
        }
      }
    }`, map[string]any{"zone": w.zone, "room": w.room, "from": "2026-11-27T10:00:00Z", "to": "2026-11-27T12:00:00Z"},
		found(`"waitingRoomAnalyticsAdaptiveGroups":[{"avg":{"totalActiveUsers":5,"totalQueuedUsers":0,"newUsersPerMinute":1},"avgWeighted":{"timeOnOriginP50":-1,"totalTimeWaitedP90":-1},"dimensions":{"datetimeHour":"2026-11-27T11:00:00Z"}}]`))

	const from = `"datetime_geq":"2026-11-27T10:00:00Z"`
	for _, c := range []struct{ head, args, values string }{
		{`$l:Int`, `limit:$l,filter:{` + `datetime_geq:"2026-11-27T10:00:00Z"}`, `{"l":5}`},
		{`$l:uint64!`, `limit:$l,filter:{}`, `{"l":5}`},
		{`$l:Int=5`, `limit:$l,filter:{}`, `{}`},
		{`$f:ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject!`, `limit:1,filter:$f`, `{"f":{` + from + `}}`},
		{`$f:ZoneWaitingRoomAnalyticsAdaptiveGroupsFilter_InputObject`, `limit:1,filter:$f`, `{"f":{"AND":[{` + from + `}],"OR":[{"waitingRoomId":"x"},{"waitingRoomId_neq":"x"}]}}`},
		{`$r:[String]`, `limit:1,filter:{waitingRoomId_in:$r}`, `{"r":["<room>"]}`},
		{`$r:[ID!]!`, `limit:1,filter:{waitingRoomId_in:$r}`, `{"r":["<room>"]}`},
		{`$r:String`, `limit:1,filter:{waitingRoomId_in:[$r]}`, `{"r":"<room>"}`},
		{`$r:string!`, `limit:1,filter:{AND:[{waitingRoomId:$r}]}`, `{"r":"<room>"}`},
		{`$r:string`, `limit:1,filter:{waitingRoomId:$r}`, `{}`},
		{`$r:String`, `limit:1,filter:{waitingRoomId:$r}`, `{"r":null}`},
		{`$d:String!`, `limit:1,filter:{date:$d}`, `{"d":"2026-11-27"}`},
		{`$s:int`, `limit:1,filter:{sampleInterval:$s}`, `{"s":1}`},
		{`$o:[ZoneWaitingRoomAnalyticsAdaptiveGroupsOrderBy!]`, `limit:1,filter:{},orderBy:$o`, `{"o":["avg_totalActiveUsers_DESC"]}`},
		{`$o:[ZoneWaitingRoomAnalyticsAdaptiveGroupsOrderBy]`, `limit:1,filter:{},orderBy:$o`, `{"o":["date_ASC"]}`},
		{`$o:ZoneWaitingRoomAnalyticsAdaptiveGroupsOrderBy!`, `limit:1,filter:{},orderBy:[$o]`, `{"o":"date_ASC"}`},
	} {
		query := `query(` + c.head + `){viewer{zones(filter:{zoneTag:"<zone>"}){waitingRoomAnalyticsAdaptiveGroups(` + c.args + `){max{totalActiveUsers}}}}}`
		w.ok(query, rawJSON(w.ids(c.values)), found(`"waitingRoomAnalyticsAdaptiveGroups":[{"max":{"totalActiveUsers":5}}]`))
	}
	w.ok(`query($b:bool!){cost @include(if:$b) viewer@skip(if:$b){budget}}`, map[string]any{"b": true}, `{"cost":1}`)
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }
