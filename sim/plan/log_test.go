package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/sim"
)

// logs tell the same in the formats of several servers: one visitor at 10:00:00 who looks at two pages, another browser of
// the same address at 10:00:05, the first again after an hour, and requests elsewhere.
var logs = map[string]string{
	"combined": `192.0.2.1 - - [27/Nov/2026:10:00:00 +0100] "GET /shop?x=1 HTTP/1.1" 200 512 "-" "Firefox"
192.0.2.1 - anna [x] [27/Nov/2026:10:00:03 +0100] "GET /shop/cart HTTP/1.1" 200 512 "https://shop.example.com/a\"b" "Firefox"

192.0.2.1 - - [27/Nov/2026:09:00:05 +0000] "GET /shop/ HTTP/1.1" 200 512 "-" "Chrome"
192.0.2.9 - - [27/Nov/2026:10:00:06 +0100] "GET /shopping HTTP/1.1" 200 512 "-" "Chrome"
192.0.2.9 - - [27/Nov/2026:10:00:07 +0100] "\x16\x03\x01" 400 0 "-" "-"
192.0.2.1 - - [27/Nov/2026:11:00:00 +0100] "GET /shop HTTP/1.1" 200 512 "-" "Firefox"
`,
	"virtual hosts": `shop.example.com:443 192.0.2.1 - - [27/Nov/2026:10:00:00 +0100] "GET /shop HTTP/1.1" 200 512 "-" "Firefox"
shop.example.com:443 192.0.2.1 - - [27/Nov/2026:10:00:05 +0100] "GET /shop HTTP/1.1" 200 512 "-" "Chrome"
shop.example.com:443 192.0.2.1 - - [27/Nov/2026:11:00:00 +0100] "GET /shop HTTP/1.1" 200 512 "-" "Firefox"
`,
	"nginx JSON": `{"time_iso8601":"2026-11-27T10:00:00+01:00","remote_addr":"192.0.2.1","request":"GET /shop?x HTTP/1.1","http_user_agent":"Firefox"}
{"time_iso8601":"2026-11-27T10:00:05+01:00","remote_addr":"192.0.2.1","request":"GET /shop HTTP/1.1","http_user_agent":"Chrome"}
{"time_iso8601":"2026-11-27T11:00:00+01:00","remote_addr":"192.0.2.1","request":"GET /shop HTTP/1.1","http_user_agent":"Firefox"}
`,
	"Caddy": `{"level":"info","ts":1795770000.25,"request":{"remote_ip":"192.0.2.1","client_ip":"192.0.2.1","uri":"/shop","headers":{"User-Agent":["Firefox"]}},"status":200}
{"level":"info","ts":1795770005.5,"request":{"remote_ip":"192.0.2.1","uri":"/shop","headers":{"User-Agent":["Chrome"]}},"status":200}
{"level":"info","ts":1795773600.25,"request":{"remote_ip":"192.0.2.1","uri":"/shop","headers":{"User-Agent":["Firefox"]}},"status":200}
`,
	"Traefik and Envoy": `{"StartUTC":"2026-11-27T09:00:00.1Z","ClientHost":"192.0.2.1","RequestPath":"/shop","request_User-Agent":"Firefox"}
{"start_time":"1795770005100","downstream_remote_address":"192.0.2.1:1234","path":"/shop","user_agent":"Chrome"}
{"start_time":1795773600.2,"downstream_remote_address":"192.0.2.1:9999","path":"https://shop.example.com/shop","user_agent":"Firefox"}
`,
}

const logPlan = "{name: a, length: 2h, limits: {total_active_users: 1, new_users_per_minute: 1}, arrivals: [{log: a.log, at: 5m, path: /shop/}]}"

// The arrivals of a past sale are at the distances that they had.
func TestLogsBecomeArrivals(t *testing.T) {
	flow := func(at time.Duration) sim.Flow { return sim.Flow{From: at, To: at + time.Second, Visitors: 1} }
	want := []sim.Flow{flow(5 * time.Minute), flow(5*time.Minute + 5*time.Second), flow(65 * time.Minute)}
	for name, lines := range logs {
		sc, err := readText(logPlan, lines)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, sc.Arrivals); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestBadLogs(t *testing.T) {
	good := `192.0.2.1 - - [27/Nov/2026:10:00:00 +0100] "GET /shop HTTP/1.1" 200 512 "-" "Firefox"` + "\n"
	for _, c := range []struct{ lines, want string }{
		{"", `"a.log" has no request that counts`},
		{strings.ReplaceAll(good, "/shop", "/elsewhere"), `"a.log" has no request that counts`},
		{good + "time,visitors\n", `a.log:2:1: arrivals[0].log: "time,visitors" is not a line of a log`},
		{good + strings.ReplaceAll(good, "Nov", "Foo"), `a.log:2:1: arrivals[0].log: "27/Foo/2026:10:00:00 +0100" is not a time like`},
		{good + `192.0.2.1 - - [27/Nov/2026:10:00:00 +0100] "GET /shop`, "a.log:2:1: arrivals[0].log: has a request without a closing quote"},
		{good + "\n" + `{"ts": 1795770000`, "a.log:3:1: arrivals[0].log: is not JSON"},
		{good + `{"ts": 1795770000, "uri": "/shop"}`, "a.log:2:1: arrivals[0].log: has no address of the client: client_ip, remote_ip"},
		{good + `{"client_ip": "192.0.2.1", "uri": "/shop"}`, "a.log:2:1: arrivals[0].log: has no time: time, ts"},
		{good + `{"ts": -5, "client_ip": "192.0.2.1", "uri": "/shop"}`, "a.log:2:1: arrivals[0].log: has a ts that is not a time: \"-5\""},
		{good + strings.ReplaceAll(good, "10:00", "09:49"), "a.log:2:1: arrivals[0].log: is 11m before the first line: sort the log by time"},
		{good + strings.ReplaceAll(good, "27/Nov", "27/Dec"), "a.log:2:1: arrivals[0].log: is more than a week after the first line"},
		{good + strings.ReplaceAll(good, "10:00", "12:00"), "has rows up to 2h5m, and the plan ends at 2h"},
		{good + strings.Repeat("x", maxLogLine+1), "a.log:2:1: arrivals[0].log: is longer than 64 KiB"},
		{strings.Repeat("x\n", 1000), "a.log:20:1: arrivals[0].log: has more faults from here on"},
	} {
		_, err := readText(logPlan, c.lines)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.120s: got %v, want %q", c.lines, err, c.want)
		}
	}
}

// A line that was written late, when its answer was done, is at the start.
func TestLateLines(t *testing.T) {
	sc, err := readText(logPlan, `192.0.2.1 - - [27/Nov/2026:10:00:00 +0100] "GET /shop HTTP/1.1" 200 512
192.0.2.2 - - [27/Nov/2026:09:52:00 +0100] "GET /shop HTTP/1.1" 200 512
`)
	if err != nil || len(sc.Arrivals) != 1 || sc.Arrivals[0].Visitors != 2 {
		t.Errorf("%v, %v; want two visitors at once", sc.Arrivals, err)
	}
}

// The memory of a replay is bounded by the visitors who may still come back; whoever is gone makes room.
func TestReplayForgetsWhoIsAbsent(t *testing.T) {
	start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	r := replay{absence: time.Minute, most: 100, last: map[uint64]int32{}}
	for i := range 1000 { // 60 of them within a minute
		if err := r.add(hit{at: start.Add(time.Duration(i) * time.Second), client: fmt.Sprint(i)}); err != nil {
			t.Fatalf("visitor %d: %v", i, err)
		}
		if len(r.last) > r.most {
			t.Fatalf("%d visitors in memory", len(r.last))
		}
	}
	var err error
	for i := 0; i < 200 && err == nil; i++ {
		err = r.add(hit{at: start.Add(1000 * time.Second), client: fmt.Sprint("crowd", i)})
	}
	if err == nil || !strings.Contains(err.Error(), "makes too many visitors within 1m, of at most 100") {
		t.Errorf("got %v", err)
	}
}

// A log of a week has more seconds than a plan has room for.
func TestLongLogsAreCoarser(t *testing.T) {
	for span, width := range map[int]time.Duration{3600: time.Second, 90_000: 10 * time.Second, 600_000: 100 * time.Second} {
		r := replay{arrivals: make([]int32, span)}
		for i := range r.arrivals {
			r.arrivals[i] = 1
		}
		rows, w := r.rows()
		total := 0.0
		for _, row := range rows {
			total += row.visitors
		}
		if w != width || total != float64(span) || len(rows) > sim.MaxFlows {
			t.Errorf("%d s: %d rows of %v with %v visitors", span, len(rows), w, total)
		}
	}
}
