package load

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asGateway makes this test binary the child process: a toy that forgets when killed.
const asGateway = "LOAD_TEST_GATEWAY"

func TestMain(m *testing.M) {
	switch os.Getenv(asGateway) {
	case "":
		os.Exit(m.Run())
	case "broken":
		fmt.Fprintln(os.Stderr, "no such key: rooms")
		os.Exit(3)
	}
	if len(os.Args) != 4 || os.Args[1] != "run" || os.Args[2] != "--config" {
		panic(fmt.Sprintf("called with %q", os.Args))
	}
	b, err := os.ReadFile(os.Args[3])
	if err != nil {
		panic(err)
	}
	value := func(key string) string {
		_, rest, _ := strings.Cut(string(b), key+": ")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.Trim(line, `"[]`)
	}
	origin, err := url.Parse(value("origins"))
	if err != nil {
		panic(err)
	}
	g := &toy{tickets: map[string]*ticket{}, origin: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(origin) }}}
	g.stay, _ = time.ParseDuration(value("session_duration"))
	fmt.Sscan(value("total_active_users"), &g.active)
	fmt.Sscan(value("new_users_per_minute"), &g.perMinute)
	fmt.Fprintln(os.Stderr, "toy gateway for", origin)
	go http.ListenAndServe(value("admin"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/-/ready" {
			http.NotFound(w, r)
		}
	}))
	panic(http.ListenAndServe(value("listen"), g))
}

func TestChildIsKilledAndComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Setenv(asGateway, "toy")
	dir := t.TempDir()
	var out bytes.Buffer
	r, err := Run(t.Context(), Options{
		Binary: os.Args[0], Dir: dir, Visitors: 60, Active: 10, PerMinute: 100, SessionDuration: time.Second,
		Duration: 4 * time.Second, Kills: 1, Down: 100 * time.Millisecond, Out: &out,
	})
	if err != nil {
		t.Fatal(err, out.String())
	}
	// The toy forgets, so some promise may be broken; what matters here is that it was
	// killed, came back and served on.
	for _, want := range []string{"kill -9\n", "ready again after", "outage 1: killed at"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "served after never") || len(r.Findings) == 0 {
		t.Errorf("nobody was served after the kill:\n%s", out.String())
	}
	log, err := os.ReadFile(filepath.Join(dir, gatewayLog))
	if err != nil || strings.Count(string(log), "toy gateway") != 2 {
		t.Errorf("the gateway's log: %q, %v", log, err)
	}
}

func TestChildThatDoesNotStart(t *testing.T) {
	t.Setenv(asGateway, "broken")
	_, err := Run(t.Context(), Options{Binary: os.Args[0], Dir: t.TempDir(), Visitors: 1, Duration: time.Second, Down: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), gatewayLog) {
		t.Errorf("%v", err)
	}
}
