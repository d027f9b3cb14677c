package crawler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// book is a resolver that answers from memory and counts.
type book struct {
	mu      sync.Mutex
	err     error
	hang    bool // until the caller gives up
	reverse map[netip.Addr]string
	asked   int
}

func (b *book) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	b.mu.Lock()
	b.asked++
	err, hang, name := b.err, b.hang, b.reverse[netip.MustParseAddr(addr)]
	b.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	switch {
	case err != nil:
		return nil, err
	case name == "":
		return nil, &net.DNSError{IsNotFound: true}
	}
	return []string{name}, nil
}

func (b *book) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a, name := range b.reverse {
		if name == host && (network == "ip4") == a.Is4() {
			return []netip.Addr{a}, nil
		}
	}
	return nil, &net.DNSError{IsNotFound: true}
}

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

func (b *book) set(f func(*book)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b)
}

var real1 = netip.MustParseAddr("66.249.66.1")

// inBubble runs f with a verifier whose work has its own clock.
func inBubble(t *testing.T, b *book, f func(v *Verifier)) {
	synctest.Test(t, func(t *testing.T) {
		v := New(b)
		ctx, stop := context.WithCancel(context.Background())
		go v.Run(ctx)
		f(v)
		stop()
		synctest.Wait()
	})
}

func TestVerifiedLastsAndIsConfirmedAgain(t *testing.T) {
	b := &book{reverse: map[netip.Addr]string{real1: "a.googlebot.com."}}
	inBubble(t, b, func(v *Verifier) {
		ask := func() bool {
			ok := v.Verified(real1, googlebot)
			synctest.Wait()
			return ok
		}
		if ask() || !ask() || b.count() != 1 {
			t.Fatalf("the second request passes; %d look-ups", b.count())
		}
		time.Sleep(confirmedIn - time.Minute)
		if !ask() || b.count() != 1 {
			t.Errorf("within hours nothing is asked; %d look-ups", b.count())
		}
		time.Sleep(2 * time.Minute)
		if !ask() || b.count() != 2 {
			t.Errorf("then it is confirmed again, while it passes; %d look-ups", b.count())
		}
		// The DNS is gone: a minute between tries, and the crawler passes until its day is over.
		b.set(func(b *book) { b.err = errors.New("no route to host") })
		time.Sleep(confirmedIn + time.Minute)
		for range 10 {
			if !ask() {
				t.Error("does not pass while the DNS is gone")
			}
		}
		if b.count() != 3 {
			t.Errorf("%d look-ups, want 3", b.count())
		}
		time.Sleep(verifiedFor)
		if ask() {
			t.Error("passes after a day without confirmation")
		}
		b.set(func(b *book) { b.err = nil })
		time.Sleep(unknownFor)
		if ask() || !ask() {
			t.Error("is not confirmed when the DNS is back")
		}
		// The address has changed hands.
		b.set(func(b *book) { b.reverse = nil })
		time.Sleep(confirmedIn + time.Minute)
		if !ask() || ask() {
			t.Error("passes although the DNS says no")
		}
	})
}

func TestImpostorsAreForgottenSooner(t *testing.T) {
	b := &book{}
	inBubble(t, b, func(v *Verifier) {
		for _, wait := range []time.Duration{0, impostorFor - time.Second, 2 * time.Second} {
			time.Sleep(wait)
			for range 5 {
				if v.Verified(real1, googlebot) {
					t.Error("verified without a name")
				}
				synctest.Wait()
			}
		}
		if b.count() != 2 {
			t.Errorf("%d look-ups, want one for each half hour", b.count())
		}
	})
}

func TestLookUpsEnd(t *testing.T) {
	b := &book{hang: true}
	inBubble(t, b, func(v *Verifier) {
		v.Verified(real1, googlebot)
		time.Sleep(lookupTime + time.Millisecond)
		synctest.Wait()
		if s := v.Stats(); s.Failed != 1 || len(v.pending) != 0 || len(v.networks) != 0 {
			t.Errorf("after %v: %+v", lookupTime, s)
		}
	})
}

// TestFloodIsBounded: addresses without end that all say they are crawlers cost a bounded
// memory, and take nothing from a crawler that is known or from another network.
func TestFloodIsBounded(t *testing.T) {
	b := &book{reverse: map[netip.Addr]string{real1: "a.googlebot.com."}}
	inBubble(t, b, func(v *Verifier) {
		v.Verified(real1, googlebot)
		synctest.Wait()
		addr := netip.MustParseAddr("2001:db8::")
		for i := range 3 * (maxImpostors + maxVerified) {
			raw := addr.As16()
			raw[3], raw[4], raw[5] = byte(i>>16), byte(i>>8), byte(i)
			if v.Verified(netip.AddrFrom16(raw), googlebot) {
				t.Fatal("an impostor is verified")
			}
			if i%maxPending == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if len(v.rejected.until) > maxImpostors || len(v.rejected.order) > maxImpostors || len(v.pending) != 0 || len(v.networks) != 0 {
			t.Errorf("%d remembered, %d pending, %d networks", len(v.rejected.until), len(v.pending), len(v.networks))
		}
		if !v.Verified(real1, googlebot) {
			t.Error("the flood has pushed out the crawler")
		}
		if s := v.Stats(); s.Verified != 1 || s.Refuted < maxImpostors {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestPendingIsBounded(t *testing.T) {
	b := &book{hang: true}
	inBubble(t, b, func(v *Verifier) {
		for i := range 2 * maxPending { // one network
			v.Verified(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), googlebot)
		}
		if len(v.pending) != maxPendingPerNetwork {
			t.Errorf("%d pending of one network", len(v.pending))
		}
		for i := range 2 * maxPending {
			v.Verified(netip.AddrFrom4([4]byte{11, byte(i >> 8), byte(i), 1}), googlebot)
		}
		if s := v.Stats(); len(v.pending) != maxPending || s.Dropped == 0 {
			t.Errorf("%d pending, %d dropped", len(v.pending), s.Dropped)
		}
	})
}

func TestMemoryForgetsTheOldest(t *testing.T) {
	m := newMemory(3)
	now := time.Now()
	at := func(i byte) claim { return claim{netip.AddrFrom4([4]byte{i}), &engines[0]} }
	for i := range byte(5) {
		m.put(at(i), now)
		m.put(at(i), now)
	}
	if m.drop(at(4)); len(m.until) != 2 || m.until[at(2)].IsZero() || m.until[at(3)].IsZero() {
		t.Errorf("has %v", m.until)
	}
	for i := range byte(200) {
		m.put(at(i%7), now)
		m.drop(at(i % 5))
	}
	if len(m.order) > 3 || len(m.until) > 3 {
		t.Errorf("%d in the ring, %d remembered, of 3", len(m.order), len(m.until))
	}
}

func TestAgents(t *testing.T) {
	for agent, domain := range map[string]string{
		googlebot: "googlebot.com",
		bingbot:   "search.msn.com",
		"Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)": "googlebot.com",
		"Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)": "applebot.apple.com",
		"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)":                                                                                "yandex.ru",
		"Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)":                                                             "crawl.baidu.com",
		"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)":                                                             "crawl.yahoo.net",
		"Mozilla/5.0 (compatible; SeznamBot/4.0; +http://napoveda.seznam.cz/seznambot-intro/)":                                                            "seznam.cz",
		"Mozilla/5.0 (compatible;PetalBot;+https://webmaster.petalsearch.com/site/petalbot)":                                                              "petalsearch.com",
		"Mozilla/5.0 (compatible; Yeti/1.1; +https://naver.me/spd)":                                                                                       "naver.com",
		"Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)":                                                                         "crawl.sogou.com",
		"Mozilla/5.0 (compatible; Qwantbot/1.0; +https://help.qwant.com/bot/)":                                                                            "qwant.com",
		"Mozilla/5.0 (compatible; MojeekBot/0.11; +https://www.mojeek.com/bot.html)":                                                                      "mojeek.com",
		"Mozilla/5.0 (compatible; coccocbot-web/1.0; +http://help.coccoc.com/searchengine)":                                                               "coccoc.com",
		firefox:                 "",
		"":                      "",
		"Google":                "",
		"googlebo":              "",
		"\xe7ooglebot \x7f\xff": "",
		"DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)": "",
		strings.Repeat("x", maxAgent) + googlebot:                    "",
	} {
		e := claimed(agent)
		if e == nil && domain != "" || e != nil && e.domains[0] != domain {
			t.Errorf("%.80q: %+v, want %q", agent, e, domain)
		}
	}
}

// TestLookingAtAnAgentCostsLittle: every request of a room whose zone lets crawlers pass pays
// for it.
func TestLookingAtAnAgentCostsLittle(t *testing.T) {
	v := New(&book{})
	if n := testing.AllocsPerRun(100, func() { v.Verified(real1, firefox) }); n != 0 {
		t.Errorf("%v allocations for a browser", n)
	}
	v.settle(claim{real1, claimed(googlebot)}, confirmed)
	if n := testing.AllocsPerRun(100, func() { v.Verified(real1, googlebot) }); n != 0 {
		t.Errorf("%v allocations for a crawler", n)
	}
}

func BenchmarkVerified(b *testing.B) {
	v := New(&book{})
	v.settle(claim{real1, claimed(googlebot)}, confirmed)
	for name, agent := range map[string]string{"browser": firefox, "crawler": googlebot} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v.Verified(real1, agent)
			}
		})
	}
}

func TestNamesBelowADomain(t *testing.T) {
	e := &engine{domains: []string{"googlebot.com"}}
	for name, want := range map[string]string{
		"a.googlebot.com":         "a.googlebot.com.",
		"A.B.GoogleBot.Com.":      "a.b.googlebot.com.",
		"googlebot.com":           "",
		".googlebot.com":          "",
		"googlebot.com.":          "",
		"agooglebot.com":          "",
		"a.googlebot.com..":       "",
		"a.googlebot.com.x":       "",
		"":                        "",
		"a.googlebot.com\x00":     "",
		"a.googlebot.com.evil.io": "",
	} {
		if got, ok := e.owns(name); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", name, got, ok)
		}
	}
	for i := range engines {
		for _, text := range append(engines[i].agents, engines[i].domains...) {
			if text != strings.ToLower(text) || strings.Trim(text, ". ") != text {
				t.Error(fmt.Sprintf("%q", text), "cannot match")
			}
		}
	}
}
