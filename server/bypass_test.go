package server

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/rules/crawler"
)

// countries is a database in which 81.2.69.0/24 is in the country.
func countries(t testing.TB, code string) string {
	t.Helper()
	w, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "GeoLite2-Country"})
	if err != nil {
		t.Fatal(err)
	}
	_, network, _ := net.ParseCIDR("81.2.69.0/24")
	if err := w.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// withRules are options whose configuration has the rules in every room.
func (r *running) withRules(expressions ...string) Options {
	o := r.options()
	load := o.Load
	o.Load = func() (config.Config, error) {
		c, err := load()
		for i := range c.Rooms {
			for _, e := range expressions {
				c.Rooms[i].Rules = append(c.Rooms[i].Rules, anteroom.Rule{Action: anteroom.ActionBypass, Expression: e})
			}
		}
		return c, err
	}
	return o
}

const closedShop = listenAnywhere + `
trusted_proxies: 127.0.0.0/8
rooms:
  - {name: shop, host: "*", total_active_users: 1, new_users_per_minute: 100, queue_all: true}
`

// inside reports whether a request of the address gets to the origin.
func (r *running) inside(from, agent string) bool {
	r.t.Helper()
	req, err := http.NewRequest("GET", "http://"+r.s.Addresses().Visitors[0]+"/x", nil)
	if err == nil {
		req.Header.Set("X-Forwarded-For", from)
		req.Header.Set("User-Agent", agent)
	}
	a := r.do(req, err)
	in := strings.HasPrefix(a.body, "the shop")
	if in && len(a.Header["Set-Cookie"]) > 0 {
		r.t.Errorf("who bypasses gets a cookie: %q", a.Header["Set-Cookie"])
	}
	return in
}

// TestNobodyPassesByTiringTheRules: a header that makes a rule take too long does not make it
// match, not even where a not stands in front, and the operator can see it.
func TestNobodyPassesByTiringTheRules(t *testing.T) {
	r := prepareServer(t, closedShop)
	s, err := New(t.Context(), r.withRules(`not http.user_agent matches "(x+x+)+y"`))
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	if !r.inside("192.0.2.1", "xxx") || r.inside("192.0.2.1", "xxxy") || r.inside("192.0.2.1", strings.Repeat("x", 28<<10)) {
		t.Error("the rule decides otherwise")
	}
	if m := r.admin("GET", "/metrics").body; !strings.Contains(m, "anteroom_rules_exhausted_total 1\n") {
		t.Error("the metrics do not say that a rule was exhausted once")
	}
}

// TestRulesKnowCountries: the file is read at the start, again when it changes, and a bad one
// changes nothing.
func TestRulesKnowCountries(t *testing.T) {
	r := prepareServer(t, "geoip: countries.mmdb\n"+closedShop)
	file := filepath.Join(r.dir, "countries.mmdb")
	mustWrite(t, file, "not a database")
	if _, err := New(t.Context(), r.withRules(`ip.src.country eq "GB"`)); err == nil || anteroom.KindOf(err) != anteroom.Invalid || !strings.Contains(err.Error(), "is not a MaxMind DB file") {
		t.Fatalf("a file that is none: %v", err)
	}
	mustWrite(t, file, countries(t, "GB"))
	s, err := New(t.Context(), r.withRules(`ip.src.country eq "GB"`))
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	if !r.inside("81.2.69.1", "x") || r.inside("81.2.70.1", "x") {
		t.Error("the country does not decide")
	}
	for _, line := range []string{`anteroom_bypassed_total{reason="rule",room="`, `anteroom_bypassed_total{reason="crawler",room="`} {
		if m := r.admin("GET", "/metrics").body; !strings.Contains(m, line) {
			t.Errorf("no %s in the metrics", line)
		}
	}
	mark := r.log.mark()
	mustWrite(t, file, countries(t, "IE")[:100])
	if line := r.log.await(t, mark, "the last good one stays in force"); !strings.Contains(line, "countries.mmdb") {
		t.Errorf("log: %s", line)
	}
	if !r.inside("81.2.69.1", "x") {
		t.Error("a damaged file has taken the place of the good one")
	}
	mark = r.log.mark()
	mustWrite(t, file, countries(t, "IE"))
	r.log.await(t, mark, taken)
	if r.inside("81.2.69.1", "x") {
		t.Error("the file that changed was not read again")
	}
}

// googleNames is a resolver that knows one crawler.
type googleNames struct{}

func (googleNames) LookupAddr(_ context.Context, addr string) ([]string, error) {
	if addr == crawlerAddr {
		return []string{"crawl.googlebot.com."}, nil
	}
	return nil, &net.DNSError{IsNotFound: true}
}

func (googleNames) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(crawlerAddr)}, nil
}

// TestCrawlersPass: where the zone says so, from the moment at which it does, and by a rule.
func TestCrawlersPass(t *testing.T) {
	t.Run("zone", func(t *testing.T) {
		crawlersPass(t, nil, func(r *running) {
			if r.inside(crawlerAddr, crawlerAgent) || r.s.crawlers.Stats() != (crawler.Stats{}) {
				t.Error("a crawler is looked at before the zone lets any pass")
			}
			zone, _ := r.s.Manager().State().ZoneNamed("*")
			if _, err := r.s.Manager().ChangeZone(t.Context(), operator, zone.ID, func(z *anteroom.Zone) error { z.SearchEngineCrawlerBypass = true; return nil }); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("rule", func(t *testing.T) { crawlersPass(t, []string{"cf.client.bot"}, func(*running) {}) })
}

const (
	crawlerAddr  = "66.249.66.1"
	crawlerAgent = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
)

func crawlersPass(t *testing.T, expressions []string, allow func(*running)) {
	r := prepareServer(t, closedShop)
	o := r.withRules(expressions...)
	o.resolver = googleNames{}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	allow(r)
	if r.inside(crawlerAddr, crawlerAgent) {
		t.Error("the first request passes before anything is known")
	}
	limit, tick := time.After(patience), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !r.inside(crawlerAddr, crawlerAgent) {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("a crawler does not pass")
		}
	}
	for range 2 {
		if r.inside("66.249.66.2", crawlerAgent) || r.inside(crawlerAddr, "Mozilla/5.0") {
			t.Error("somebody else passes")
		}
	}
	if m := r.admin("GET", "/metrics").body; !strings.Contains(m, "anteroom_crawlers_verified 1") || !strings.Contains(m, `anteroom_crawler_lookups_total{result="confirmed"} 1`) {
		t.Error("the metrics do not show it")
	}
}

// TestFaultsOfRules: what is wrong with a rule of the file is said when it is checked.
func TestFaultsOfRules(t *testing.T) {
	rooms := []anteroom.Room{{Name: "a"}, {Name: "b", Rules: []anteroom.Rule{{Expression: "ssl"}, {Expression: "ssl and", Disabled: true}, {Expression: "ip.src in $office"}}}}
	rooms[0].Routes, rooms[1].Routes = []anteroom.Route{{Host: "a.example"}}, []anteroom.Route{{Host: "b.example"}}
	faults := Check("", rooms)
	if len(faults) != 1 || faults[0].Path != "rooms[1].rules[1].expression" || !strings.Contains(faults[0].Problem, "column 8") {
		t.Errorf("faults %v", faults)
	}
}

// TestRulesOfTheAPIAreInForceAtOnce: rules and lists, made, changed and kept over a restart.
func TestRulesOfTheAPIAreInForceAtOnce(t *testing.T) {
	r := startServer(t, "trusted_proxies: 127.0.0.0/8\nrooms: []\n")
	room := localRoom("/")
	room.Name, room.QueueAll = "shop", true
	zone, room := r.makeRoom("127.0.0.1", room)
	m := r.s.Manager()
	list, err := m.CreateList(t.Context(), operator, anteroom.List{Name: "office", Kind: anteroom.ListOfIPs, Items: []anteroom.ListItem{{Value: "192.0.2.0/24"}}})
	if err != nil {
		t.Fatal(err)
	}
	inside := func(want bool, when string) {
		t.Helper()
		if got := r.inside("192.0.2.7", "x"); got != want {
			t.Errorf("%s: inside %v", when, got)
		}
	}
	change := func(rules ...anteroom.Rule) {
		t.Helper()
		if _, err := m.ChangeRules(t.Context(), operator, zone, room.ID, func([]anteroom.Rule) ([]anteroom.Rule, error) { return rules, nil }); err != nil {
			t.Fatal(err)
		}
	}
	inside(false, "without rules")
	change(anteroom.Rule{Action: anteroom.ActionBypass, Expression: "ip.src in $office"})
	inside(true, "with a rule")
	if _, err := m.ChangeList(t.Context(), operator, list.ID, func(l *anteroom.List) error {
		l.Items = []anteroom.ListItem{{Value: "198.51.100.0/24"}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	inside(false, "when the list has changed")
	change(anteroom.Rule{Action: anteroom.ActionBypass, Expression: "not ssl", Disabled: true})
	inside(false, "with a draft")
	change(anteroom.Rule{Action: anteroom.ActionBypass, Expression: "not ssl"})
	inside(true, "with the draft in force")
	r.end()
	s, err := New(t.Context(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	r.serve(s)
	inside(true, "after a restart")
}
