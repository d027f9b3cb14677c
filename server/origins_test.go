package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// TestDoctorKnowsTheOrigins: the only origin of a site is gone: status, metrics and doctor say so, and doctor what visitors see.
func TestDoctorKnowsTheOrigins(t *testing.T) {
	r := startServer(t, oneRoom+"\nsites:\n  - {hosts: [\"*\"], origins: [ORIGIN], health: {path: /healthz, interval: 100ms}}\n")
	finding := func() string {
		st, err := r.s.clusterStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Findings) == 0 {
			return ""
		}
		return st.Findings[0].What + ". " + st.Findings[0].Why
	}
	if f := finding(); f != "" {
		t.Errorf("doctor says %q of an origin that is well", f)
	}
	r.visit("/")
	var p statusPage
	if err := json.Unmarshal([]byte(r.admin("GET", "/-/status").body), &p); err != nil || len(p.Proxied) != 1 || p.Rooms[0].Pace != 100 {
		t.Fatalf("%v: %+v", err, p)
	}
	if o := p.Proxied[0].Origins[0]; !o.Healthy || o.Requests != 1 || o.ErrorShare != 0 || o.P95 == nil || o.URL != r.origin.URL {
		t.Errorf("%+v", o)
	}
	r.origin.Close()
	eventually(t, "doctor to notice", func() bool {
		return strings.HasPrefix(finding(), "the only origin of * does not answer: "+r.origin.URL)
	})
	if f := finding(); !strings.Contains(f, "room shop continues to admit visitors") {
		t.Error(f)
	}
	if a := r.admin("GET", "/metrics?former=no"); !strings.Contains(a.body, `anteroom_origin_up{host="*",origin="`+r.origin.URL+`"} 0`) {
		t.Error(a.body)
	}
}

// An origin without a health check that nobody has asked for anything since it ended: doctor tries it.
func TestDoctorTriesTheOrigins(t *testing.T) {
	r := startServer(t, oneRoom+"\nsites:\n  - {hosts: [\"*\"], origins: [ORIGIN]}\n")
	first := func() string {
		st, err := r.s.clusterStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Findings) == 0 {
			return ""
		}
		return st.Findings[0].What
	}
	if f := first(); f != "" {
		t.Errorf("doctor says %q of an origin that is well", f)
	}
	r.origin.Close()
	if f := first(); f != "the only origin of * does not answer: "+r.origin.URL {
		t.Errorf("doctor says %q of an origin that is gone", f)
	}
}

func TestFindingsOfOrigins(t *testing.T) {
	t.Parallel()
	site := func(host string, origins ...manage.Origin) manage.ProxiedSite {
		return manage.ProxiedSite{Hosts: []string{host}, Origins: origins}
	}
	well, ill := manage.Origin{URL: "http://well", Healthy: true}, manage.Origin{URL: "http://ill"}
	failing := manage.Origin{URL: "http://failing", Healthy: true, Requests: 100, ErrorShare: 0.2}
	few := manage.Origin{URL: "http://few", Healthy: true, Requests: 3, ErrorShare: 1}
	room := func(name string, protect bool, hosts ...string) anteroom.Room {
		r := anteroom.Room{Name: name, Settings: anteroom.Settings{Protect: protect}}
		for _, h := range hosts {
			r.Routes = append(r.Routes, anteroom.Route{Host: h, Path: "/"})
		}
		return r
	}
	for _, c := range []struct {
		name  string
		sites []manage.ProxiedSite
		rooms []anteroom.Room
		want  string // severity, what and why of each; empty: nothing is wrong
	}{
		{"well", []manage.ProxiedSite{site("a", well, few)}, []anteroom.Room{room("r", false, "a")}, ""},
		{"one of two", []manage.ProxiedSite{site("a", well, ill)}, nil, "warning: 1 of 2 origins of a do not answer: http://ill. The others get all requests."},
		{"none of two", []manage.ProxiedSite{site("a", ill, ill)}, []anteroom.Room{room("r", true, "a")},
			"error: none of the 2 origins of a answers: http://ill, http://ill. Active users get a page that tries again, and nobody new is admitted until an origin answers."},
		{"the only one, unprotected", []manage.ProxiedSite{site("a", ill)}, []anteroom.Room{room("r", false, "*"), room("other", false, "b")},
			"error: the only origin of a does not answer: http://ill. Active users get an error, and room r continues to admit visitors, who use a seat for it: set protect."},
		{"errors", []manage.ProxiedSite{site("a", failing)}, nil,
			"warning: 20% of the requests to http://failing, an origin of a, failed in the last minute. Visitors see these errors, and newly admitted visitors use a seat for them."},
	} {
		got := ""
		for _, f := range examineOrigins(c.sites, c.rooms) {
			got += string(f.Severity) + ": " + f.What + ". " + f.Why
			if f.Fix == "" {
				t.Errorf("%s: %s: no fix", c.name, f.What)
			}
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}
