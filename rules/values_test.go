package rules

import (
	"maps"
	"net/netip"
	"testing"
	"time"
)

// TestValues: an expression that compares a field with the value that is told of it matches.
func TestValues(t *testing.T) {
	r := &Request{Method: "POST", Version: "HTTP/2.0", Scheme: "https", Host: "shop.example.com", Path: "/a/b.PHP", Query: "x=1", SSL: true, Port: 443,
		Header: map[string][]string{"User-Agent": {"Mozilla"}}, Client: netip.MustParseAddr("192.0.2.7"), Time: time.Unix(1_795_770_000, 0), Zone: "example.com"}
	got := r.Values()
	for name, want := range map[string]any{"http.request.method": "POST", "http.request.uri": "/a/b.PHP?x=1", "http.request.uri.path.extension": "php",
		"http.user_agent": "Mozilla", "ssl": true, "ip.src": "192.0.2.7", "cf.edge.server_port": int64(443), "cf.zone.name": "example.com"} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"ip.src.country", "raw.http.request.uri"} {
		if v, ok := got[name]; ok {
			t.Errorf("%s is %v, and nothing was sent", name, v)
		}
	}
	if again := r.Values(); !maps.Equal(got, again) {
		t.Errorf("%v, then %v", got, again)
	}
}
