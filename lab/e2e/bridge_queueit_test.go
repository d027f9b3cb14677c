package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

const (
	connectorSecret = "sample-secret-0123456789abcdef0123456789abcdef0123456789abcdef01234567"
	checkout        = "https://shop.example.com/checkout?a=1&b=two%20words%27()*!"
)

// connected is a gate whose room is entered through the published connector, which runs in a shop of its own.
type connected struct {
	*gate
	began time.Time
	shop  string // its address

	mu       sync.Mutex
	requests []shop.Request // within a session, as the shop saw them
}

// startConnected starts both. Settings are those of the room, skew is how far the connector's clock is ahead.
func startConnected(t *testing.T, settings string, skew time.Duration) *connected {
	t.Helper()
	node, err := find("node", "nodejs")
	if err != nil {
		t.Fatal(err)
	}
	npmPackages(t)
	p := &connected{gate: newGate(t, ""), began: time.Now()}
	secret := filepath.Join(p.dir, "secret")
	if err := os.WriteFile(secret, []byte(connectorSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.others = fmt.Sprintf("trusted_proxies: [127.0.0.1]\nqueue_it:\n  - {customer_id: acme, event_id: launch1, room: sale, url: \"https://wait.example.com\", secret_file: %q, cancel: free}", secret)
	p.environment = []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	p.configure("  - {name: sale, host: shop.example.com, path: /checkout, " + settings + "}")
	p.start()
	t.Cleanup(p.end)

	cmd := exec.Command(node, "clients/queueit-shop.mjs")
	cmd.Env = append(os.Environ(), "QUEUE="+p.host, "SECRET="+connectorSecret, "START="+strconv.FormatInt(p.began.UnixMicro(), 10), "SKEW="+strconv.FormatInt(skew.Milliseconds(), 10))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	var first struct {
		Port int `json:"port"`
	}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil {
		t.Fatal("the shop does not start")
	}
	p.shop = fmt.Sprintf("127.0.0.1:%d", first.Port)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			var one shop.Request
			if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
				t.Errorf("the shop says %s", lines.Text())
			}
			p.mu.Lock()
			p.requests = append(p.requests, one)
			p.mu.Unlock()
		}
	}()
	t.Cleanup(func() { stdin.Close(); <-done; cmd.Wait() })
	return p
}

// shopper is a visitor with a browser, to whom this machine is both hosts, over HTTPS.
type shopper struct {
	*http.Client
	p      *connected
	number int
	header http.Header // of further requests to the shop
}

func (p *connected) shopper(number int, over http.RoundTripper) *shopper {
	jar, _ := cookiejar.New(nil)
	s := &shopper{p: p, number: number}
	s.Client = &http.Client{Jar: jar, Transport: along(func(r *http.Request) (*http.Response, error) {
		out := r.Clone(r.Context())
		out.Host = r.URL.Host
		out.URL.Scheme, out.URL.Host = "http", p.host
		if out.Host == "shop.example.com" {
			out.URL.Host = p.shop
			for name, values := range s.header {
				out.Header[name] = values
			}
		}
		out.Header.Set("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", number>>8, number&255))
		out.Header.Set("X-Forwarded-Proto", "https")
		out.Header.Set("X-Visitor", strconv.Itoa(number+1))
		out.Header.Set("X-Sent", strconv.FormatInt(time.Since(p.began).Microseconds(), 10))
		out.Header.Set("Accept", "text/html")
		res, err := over.RoundTrip(out)
		if err == nil {
			res.Request = r
		}
		return res, err
	})}
	return s
}

// along is a transport made of a function.
type along func(*http.Request) (*http.Response, error)

// RoundTrip calls it.
func (f along) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// load loads a page and follows its redirects.
func (s *shopper) load(ctx context.Context, at string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", at, nil)
	if err != nil {
		return nil, "", err
	}
	res, err := s.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// enter loads a page of the shop, and waits on the page of the queue's host for as long as that comes instead.
func (s *shopper) enter(ctx context.Context, at string) (body string, err error) {
	for {
		res, body, err := s.load(ctx, at)
		switch {
		case err != nil:
			return "", err
		case res.StatusCode != http.StatusOK:
			return "", fmt.Errorf("%s: %s %s", res.Request.URL, res.Status, body)
		case res.Request.URL.Host == "shop.example.com":
			return body, nil
		}
		seconds, err := strconv.Atoi(res.Header.Get("Refresh"))
		if err != nil {
			return "", fmt.Errorf("%s does not refresh: %w", res.Request.URL, err)
		}
		if err := patiently(ctx, time.Duration(seconds)*time.Second); err != nil {
			return "", err
		}
		at = res.Request.URL.String()
	}
}

// 200 visitors come to a shop with the connector of Queue-it. Most buy and leave; some stay. The log of the shop tells
// whether both limits were kept.
func TestQueueItSale(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	const visitors, active, perMinute = 200, 40, 600
	p := startConnected(t, fmt.Sprintf("total_active_users: %d, new_users_per_minute: %d, session_duration: 1m", active, perMinute), 0)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	over := &http.Transport{MaxIdleConnsPerHost: 100, MaxConnsPerHost: 100}
	bought := make(chan struct{})
	var buyers, stayers sync.WaitGroup
	for i := range visitors {
		group := &buyers
		stays := i%20 == 19
		if stays {
			group = &stayers
		}
		group.Go(func() {
			s := p.shopper(i, over)
			if patiently(ctx, time.Duration(i)*4*time.Second/visitors) != nil {
				return
			}
			if body, err := s.enter(ctx, checkout); err != nil || !strings.HasPrefix(body, "Queue ") {
				t.Errorf("visitor %d: %s %v", i, body, err)
				return
			}
			for looking := stays; looking; { // until the others have gone
				select {
				case <-bought:
					return
				case <-ctx.Done():
					return
				case <-time.After(time.Second):
				}
				if _, body, err := s.load(ctx, checkout); err != nil || !strings.HasPrefix(body, "Queue ") {
					t.Errorf("visitor %d looks around: %s %v", i, body, err)
					return
				}
			}
			patiently(ctx, 3*time.Second)
			if body, err := s.enter(ctx, "https://shop.example.com/checkout/thanks"); err != nil || !strings.HasPrefix(body, "Cancel") {
				t.Errorf("visitor %d leaves: %s %v", i, body, err)
			}
		})
	}
	// It lasts the longest by far, and would begin last: so it is under way before the others begin.
	t.Parallel()
	buyers.Wait()
	close(bought)
	stayers.Wait()
	t.Logf("%d visitors in %v", visitors, time.Since(p.began).Round(time.Second))
	p.mu.Lock()
	defer p.mu.Unlock()
	// A visitor who has left is gone at once, and the judge does not know of leaving; so it judges everything but that.
	report := judge.Case{Active: visitors, PerMinute: perMinute, SessionDuration: time.Minute, Requests: p.requests}.Judge()
	peak := present(p.requests)
	t.Logf("%d were in the shop at once", peak)
	if peak > active || peak < active*3/4 {
		t.Errorf("%d visitors were in the shop at once, of at most %d", peak, active)
	}
	seen := map[string]bool{}
	for _, q := range p.requests {
		seen[q.Session] = true
	}
	if len(seen) != visitors {
		t.Errorf("%d sessions of %d visitors", len(seen), visitors)
	}
	for _, f := range report.Findings {
		t.Logf("%s %s: %s", f.Rule, f.Bound, f.Seen)
	}
	if !report.OK() {
		var table strings.Builder
		report.WriteTable(&table)
		t.Error(table.String())
	}
}

// present is how many sessions were in the shop at once for certain: each from when its first request was seen until its last one was sent.
func present(requests []shop.Request) (peak int) {
	first, last := map[string]int64{}, map[string]int64{}
	for _, q := range requests {
		if from, ok := first[q.Session]; !ok || q.Seen < from {
			first[q.Session] = q.Seen
		}
		last[q.Session] = max(last[q.Session], q.Sent)
	}
	for _, at := range first {
		n := 0
		for id, from := range first {
			if from <= at && at <= last[id] {
				n++
			}
		}
		peak = max(peak, n)
	}
	return peak
}

// What happens at the edges of the protocol, with the connector's own answers.
func TestQueueItConnector(t *testing.T) {
	t.Parallel()
	p := startConnected(t, "total_active_users: 1, new_users_per_minute: 100, session_duration: 1m", 0)
	ctx := t.Context()
	a := p.shopper(1, http.DefaultTransport)
	body, err := a.enter(ctx, checkout)
	if err != nil || !strings.HasPrefix(body, "Queue safetynet ") {
		t.Fatal(body, err)
	}
	// A token that the connector refuses leads back, and in again as the same session.
	b := p.shopper(1, http.DefaultTransport)
	waits, _ := url.Parse("https://wait.example.com/launch1")
	b.Jar.SetCookies(waits, a.Jar.Cookies(waits))
	if again, err := b.enter(ctx, checkout+"&queueittoken=e_launch1~q_x~ts_1~ce_false~cv_1~rt_queue~h_00"); err != nil || again != body {
		t.Errorf("after a bad token: %s, before %s: %v", again, body, err)
	}
	// A script is told where to go.
	c := p.shopper(2, http.DefaultTransport)
	c.header = http.Header{"X-Queueit-Ajaxpageurl": {url.QueryEscape("https://shop.example.com/checkout/cart")}}
	res, _, err := c.load(ctx, "https://shop.example.com/checkout/api")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	to, err := url.QueryUnescape(res.Header.Get("X-Queueit-Redirect"))
	if err != nil || !strings.HasPrefix(to, "https://wait.example.com/?c=acme&e=launch1&ver=javascript-5.0.1&") {
		t.Fatal(to, err)
	}
	c.header = nil
	res, _, err = c.load(ctx, to)
	if err != nil || res.Request.URL.Host != "wait.example.com" || res.StatusCode != http.StatusOK {
		t.Fatalf("the seat is taken, and the page says %v %v", res, err)
	}
	at := res.Request.URL.String()
	// The first visitor leaves, twice, and the second one has the seat.
	for range 2 {
		if body, err := a.enter(ctx, "https://shop.example.com/checkout/thanks"); err != nil || !strings.HasPrefix(body, "Cancel") {
			t.Error(body, err)
		}
	}
	if body, err := c.enter(ctx, at); err != nil || !strings.HasPrefix(body, "Queue queue ") {
		t.Error(body, err)
	}
}

// A connector whose clock is five minutes behind accepts its visitors. One whose clock is as far ahead takes every token for an old one: its visitors
// see a page instead of a loop.
func TestQueueItClocks(t *testing.T) {
	t.Parallel()
	for skew, want := range map[time.Duration]string{-5 * time.Minute: "Queue safetynet", 5 * time.Minute: "429 Too Many Requests"} {
		p := startConnected(t, "total_active_users: 1, new_users_per_minute: 100, session_duration: 1m", skew)
		s := p.shopper(1, http.DefaultTransport)
		s.CheckRedirect = func(_ *http.Request, before []*http.Request) error {
			if len(before) > 40 {
				return fmt.Errorf("redirected %d times", len(before))
			}
			return nil
		}
		if body, err := s.enter(t.Context(), checkout); !strings.HasPrefix(body, want) && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v: %s %v", skew, body, err)
		}
	}
}
