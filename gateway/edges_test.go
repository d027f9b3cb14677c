package gateway

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/extauthz"
)

// A proxy that asks is seen by its kind and its address, also when its question is none.
func TestProxiesThatAskAreSeen(t *testing.T) {
	t.Parallel()
	everyDialect(t, func(t *testing.T, name string) {
		w := newWorld(t, admit, withConfig(func(c *Config) { c.ForwardAuthPeers = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} }))
		if e := w.gw.Edges(); len(e) != 0 {
			t.Fatalf("before anybody came: %+v", e)
		}
		begin := time.Now().Truncate(time.Second)
		for _, peer := range []string{"192.0.2.2:1", "192.0.2.1:1", "192.0.2.1:2", "198.51.100.1:1"} {
			q := question(name, "GET", testHost, "/")
			if q.RemoteAddr = peer; peer == "192.0.2.2:1" {
				q.Header.Del("X-Forwarded-Proto")
			}
			w.asks(q)
		}
		all := w.gw.Edges()
		if len(all) != 2 || all[0].Peer.String() != "192.0.2.1" || all[0].Questions != 2 || all[1].Questions != 1 {
			t.Fatalf("%+v", all)
		}
		if e := all[0]; e.Kind != name || e.ClockOffset != nil || e.Seen.Before(begin) || e.Passes != [passStates]uint64{} {
			t.Errorf("%+v", e)
		}
	})
}

func TestEdgesWithPassesAreSeen(t *testing.T) {
	w := newWorld(t, admit, passing(func(r *anteroom.Room) { r.PassEdge = "cdn" }))
	w.do("GET", "/", header("Cookie", w.seal(session())))
	if e := w.gw.Edges(); len(e) != 0 {
		t.Fatalf("a visitor without a pass comes of %+v", e)
	}
	for ago, times := range map[time.Duration]int{0: 1, 20 * time.Second: 3, 40 * time.Second: 2} {
		for range times {
			w.do("GET", "/", header("Cookie", w.seal(session())+"; "+w.aged(ago)))
		}
	}
	all := w.gw.Edges()
	if len(all) != 1 || all[0].Kind != KindPass || all[0].Name != "cdn" || all[0].Zone != w.room.Zone || all[0].Peer.IsValid() || all[0].ClockOffset != nil {
		t.Fatalf("%+v", all)
	}
	if want := ([passStates]uint64{PassFresh: 1, PassLate: 3, PassOver: 2}); all[0].Passes != want {
		t.Errorf("%v, want %v", all[0].Passes, want)
	}
	// One that asks has no use for passes.
	w.asks(question("nginx", "GET", testHost, "/", "Cookie", w.seal(session())+"; "+w.aged(0)))
	for _, e := range w.gw.Edges() {
		if e.Kind == KindPass && e.Passes[PassFresh] != 1 {
			t.Errorf("%+v", e)
		}
	}
}

// clocked is Envoy's question by gRPC with its time, unless that is zero.
func clocked(at time.Time) *http.Request {
	field := func(number byte, value string) string {
		return string(append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value))), value...))
	}
	request := field(2, field(2, "GET")+field(4, "/")+field(5, testHost)+field(6, "https")+field(10, "HTTP/1.1"))
	if !at.IsZero() {
		seconds := binary.AppendUvarint([]byte{1 << 3}, uint64(at.Unix()))
		request += field(1, string(binary.AppendUvarint(append(seconds, 2<<3), uint64(at.Nanosecond()))))
	}
	message := field(1, field(4, request))
	q := httptest.NewRequest("POST", extauthz.Path, bytes.NewReader(extauthz.Frame([]byte(message))))
	q.ProtoMajor, q.RequestURI, q.RemoteAddr = 2, extauthz.Path, "127.0.0.1:5000"
	q.Header.Set("Content-Type", extauthz.ContentType)
	return q
}

// Envoy says its time by gRPC. A question that was long on its way makes the clock look late, so the largest offset is shown.
func TestClockOfAnEdge(t *testing.T) {
	w := newWorld(t, admit)
	offset := func() *time.Duration { return w.gw.Edges()[0].ClockOffset }
	ask := func(at time.Time) {
		t.Helper()
		if res := w.asks(clocked(at)); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
	}
	ask(time.Time{})
	if o := offset(); o != nil {
		t.Fatalf("unknown, and shown as %v", *o)
	}
	for _, late := range []time.Duration{7, 0, 3} { // seconds on the way
		ask(time.Now().Add(10*time.Second - late*time.Second))
	}
	if o := offset(); o == nil || *o > 10*time.Second || *o < 9*time.Second {
		t.Errorf("%v, want 10 s", o)
	}
}

// A minute later nothing of it is shown but when it was, and a minute is no more than one.
func TestTheLastMinuteOfAnEdge(t *testing.T) {
	var l seenEdges
	key, begin := edgeKey{kind: "nginx"}, time.Unix(1_800_000_000, 0)
	for i := range 300 {
		l.saw(key, edgeQuestion, begin.Add(time.Duration(i)*time.Second)).said(begin.Add(time.Hour), begin)
	}
	last := begin.Add(299 * time.Second)
	if e := l.all(last)[0]; e.Questions < 60 || e.Questions > 66 || *e.ClockOffset != time.Hour {
		t.Errorf("%+v", e)
	}
	if e := l.all(last.Add(59 * time.Second))[0]; e.Questions < 1 || e.Questions > 6 {
		t.Errorf("a minute after the last but one: %+v", e)
	}
	if e := l.all(last.Add(time.Minute))[0]; e.Questions != 0 || e.ClockOffset != nil || !e.Seen.Equal(last) {
		t.Errorf("%+v", e)
	}
	l.saw(key, edgeQuestion, last.Add(time.Hour))
	if e := l.all(last.Add(time.Hour))[0]; e.Questions != 1 || e.ClockOffset != nil {
		t.Errorf("an hour later: %+v", e)
	}
	if n := len(l.of(key).past); n > 14 {
		t.Errorf("%d glances are kept", n)
	}
}

// The list has an end: who came within a minute stays, and otherwise the one that was seen last of all makes place.
func TestEdgesAreBounded(t *testing.T) {
	var l seenEdges
	begin := time.Unix(1_800_000_000, 0)
	key := func(i int) edgeKey {
		return edgeKey{kind: "nginx", peer: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}
	}
	for i := range 3 * maxEdges {
		l.saw(key(i), edgeQuestion, begin.Add(time.Duration(i)*time.Millisecond))
	}
	if n := len(l.all(begin)); n != maxEdges || l.of(key(maxEdges-1)) == nil {
		t.Fatalf("%d edges", n)
	}
	later := begin.Add(2 * time.Minute)
	for i := range maxEdges - 1 {
		l.saw(key(i), edgeQuestion, later)
	}
	l.saw(key(maxEdges), edgeQuestion, later)
	l.saw(key(maxEdges+1), edgeQuestion, later)
	if l.of(key(maxEdges-1)) != nil || l.of(key(maxEdges)) == nil || l.of(key(maxEdges+1)) != nil || len(l.all(later)) != maxEdges {
		t.Error("another edge made place than the one that was seen last of all")
	}
	if n := testing.AllocsPerRun(100, func() { l.saw(key(0), edgeQuestion, later); l.saw(key(9999), edgeQuestion, later) }); n != 0 {
		t.Errorf("%v allocations for a known edge and one without a place", n)
	}
}
