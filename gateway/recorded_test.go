package gateway

import (
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// TestWhatIsRecorded: bypasses and refused tickets by their reasons, and what the room answers.
func TestWhatIsRecorded(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	w := newReal(t, nil, nil, func(c *Config) {
		ruled(t, `starts_with(http.request.uri.path, "/open")`)(c)
		crawled(testHost)(c)
	})
	forged := w.seal(session())
	i := len(forged) - 9
	forged = forged[:i] + string(rune('A'+(forged[i]-'A'+1)%26)) + forged[i+1:]
	for _, c := range []struct {
		target, name, value string
	}{
		{"/open", "X", "1"},
		{"/open", "Cookie", forged},
		{"/", "Cookie", forged},
		{"/", "Cookie", w.seal(waiting())[:30] + "; " + forged},
		{"/", "Cookie", "a=b; " + w.gw.live.Load().rooms[0].scope.Name + "="},
		{"/", "Sec-Purpose", "prefetch"},
	} {
		w.do("GET", c.target, header(c.name, c.value))
	}
	w.do("GET", "/", header("X-Forwarded-For", crawlerAddr, "User-Agent", "Googlebot/2.1"))
	got := w.room.Recorder().Totals()
	if got.Bypassed[analytics.ByRule] != 2 || got.Bypassed[analytics.ByCrawler] != 1 {
		t.Errorf("bypassed: %v", got.Bypassed)
	}
	if len(got.TicketRefusals) != 2 || got.TicketRefusals["forged"] != 2 || got.TicketRefusals["malformed"] != 1 {
		t.Errorf("refused tickets: %v", got.TicketRefusals)
	}
	if got.Decisions(anteroom.ReasonFreeSlot) != 1 || got.Decisions(anteroom.ReasonNotJoining) != 1 || got.Count(analytics.NewUsers) != 1 {
		t.Errorf("decisions: %v", got.Reasons)
	}
}
