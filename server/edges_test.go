package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/manage"
)

// Operators see which proxy asks and what comes of an edge with passes, and doctor says when that verifies none.
func TestOperatorsSeeTheEdges(t *testing.T) {
	t.Parallel()
	r := startServer(t, "forward_auth: {listen: \"127.0.0.1:00\"}\n"+strings.Replace(oneRoom, "name: shop,", "name: shop, pass: 10s, pass_edge: cdn,", 1))
	seen := func() manage.ClusterStatus {
		t.Helper()
		st, err := r.s.clusterStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := seen(); len(st.Edges) != 0 || st.Edges == nil {
		t.Fatalf("%+v", st.Edges)
	}
	r.asks("/check/nginx")
	for range fewRequests {
		r.visit("/", &http.Cookie{Name: "__anteroom_pass", Value: "x"})
	}
	st := seen()
	if len(st.Edges) != 2 || len(st.Findings) != 0 {
		t.Fatalf("%+v, %+v", st.Edges, st.Findings)
	}
	if e := st.Edges[0]; e.Kind != "nginx" || e.Peer != "127.0.0.1" || e.Requests != 1 || e.OverShare != 0 || e.ClockOffset != nil {
		t.Errorf("%+v", e)
	}
	if e := st.Edges[1]; e.Kind != "pass" || e.Name != "cdn" || e.Peer != "" || e.Requests != fewRequests || e.OverShare != 1 || e.FreshShare != 0 {
		t.Errorf("%+v", e)
	}
}

func TestFindingsOfEdges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edge manage.EdgeSeen
		want string
	}{
		{"one that verifies passes", manage.EdgeSeen{Kind: "pass", Requests: 1000, FreshShare: 0.1, LateShare: 0.9}, ""},
		{"one that does not", manage.EdgeSeen{Kind: "pass", Zone: "a.example", Name: "cdn", Requests: 1000, FreshShare: 0.9}, "90% of the passes of a.example cdn that reached Anteroom"},
		{"too few to say", manage.EdgeSeen{Kind: "pass", Requests: 3, FreshShare: 1}, ""},
		{"a clock that is right", manage.EdgeSeen{Kind: "envoy", Requests: 1000, ClockOffset: new(-0.01)}, ""},
		{"a clock that is ahead", manage.EdgeSeen{Kind: "envoy", Peer: "10.0.0.7", Requests: 1, ClockOffset: new(3.0)}, "the clock of envoy at 10.0.0.7 differs by 3.0 s"},
		{"a clock that is behind", manage.EdgeSeen{Kind: "envoy", Requests: 1000, ClockOffset: new(-3.0)}, "differs by 3.0 s"},
		{"one slow visitor", manage.EdgeSeen{Kind: "envoy", Requests: 1, ClockOffset: new(-3.0)}, ""},
	} {
		found := examineEdges([]manage.EdgeSeen{c.edge})
		if text := fmt.Sprint(found); (len(found) == 0) != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}
