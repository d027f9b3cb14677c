package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/anteroom/anteroom/lab/judge"
	"github.com/anteroom/anteroom/sim/demo/shop"
)

// bridge is a gate with a bridge for the event Sample.
type bridge struct {
	*gate
	at string // of the public API
}

// startBridge starts one. Settings are those of the room, more are further keys of the bridge.
func startBridge(t *testing.T, origin http.Handler, settings, more string) *bridge {
	t.Helper()
	g := newGate(t, "")
	if origin != nil {
		s := httptest.NewServer(origin)
		t.Cleanup(s.Close)
		g.origin.url = s.URL
	}
	b := &bridge{gate: g, at: "http://" + g.host + "/aws/sample"}
	g.others = fmt.Sprintf("trusted_proxies: [127.0.0.1]\naws:\n  - {event_id: Sample, room: sale, url: %q%s}", b.at, more)
	g.environment = []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	g.rooms = "  - {name: sale, host: \"*\", " + settings + "}"
	g.configure(g.rooms)
	g.start()
	t.Cleanup(g.end)
	return b
}

// sampleSite is a visitor's browser with the sample site of the original, which takes anything but 200 for a reason to try
// again, later each time.
type sampleSite struct {
	http *http.Client
	at   string
	from string // the visitor's address, as a proxy names it
	id   string
	wait time.Duration // between two looks at the counter
}

// call repeats a request until it is answered by 200.
func (s *sampleSite) call(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	last := ""
	for try := range 12 {
		r, err := http.NewRequestWithContext(ctx, method, s.at+path, bytes.NewReader(text))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Forwarded-For", s.from)
		status, answer, err := s.answer(r)
		if status == http.StatusOK {
			return json.Unmarshal(answer, into)
		}
		last = fmt.Sprintf("%s %s: %d %s %v", method, path, status, answer, err)
		if err := patiently(ctx, min(100*time.Millisecond<<try, 5*time.Second)); err != nil {
			return fmt.Errorf("%w; last %s", err, last)
		}
	}
	return fmt.Errorf("given up: %s", last)
}

// answer sends a request once. The status 0 means that there was no answer.
func (s *sampleSite) answer(r *http.Request) (status int, body []byte, err error) {
	res, err := s.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

func patiently(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// join returns the number in the queue.
func (s *sampleSite) join(ctx context.Context) (number int, err error) {
	var joined struct {
		ID string `json:"api_request_id"`
	}
	if err := s.call(ctx, "POST", "/assign_queue_num", map[string]string{"event_id": "Sample"}, &joined); err != nil {
		return 0, err
	}
	s.id = joined.ID
	var place struct {
		Number int `json:"queue_number"`
	}
	err = s.call(ctx, "GET", "/queue_num?event_id=Sample&request_id="+s.id, nil, &place)
	return place.Number, err
}

// enter waits for the number to be served and returns the access token.
func (s *sampleSite) enter(ctx context.Context, number int) (access string, err error) {
	for {
		var serving struct {
			Counter string `json:"serving_counter"`
		}
		if err := s.call(ctx, "GET", "/serving_num?event_id=Sample", nil, &serving); err != nil {
			return "", err
		}
		at, err := strconv.Atoi(serving.Counter)
		if err != nil {
			return "", err
		}
		if at >= number {
			break
		}
		if err := patiently(ctx, s.wait); err != nil {
			return "", err
		}
	}
	var tokens struct {
		Access string `json:"access_token"`
	}
	err = s.call(ctx, "POST", "/generate_token", map[string]string{"event_id": "Sample", "request_id": s.id}, &tokens)
	return tokens.Access, err
}

// awsSale is a sale to visitors of the sample site. They come within four seconds, and each buys with the token; every tenth
// leaves without a word after joining.
type awsSale struct {
	visitors, active, perMinute int
	stay                        time.Duration
	least                       int // buyers who reach the origin
}

// run holds the sale, with something that happens meanwhile, which can wait until all have joined. The origin's log tells whether both limits were kept.
func (c awsSale) run(t *testing.T, meanwhile func(b *bridge, joined func())) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "origin.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	began := time.Now()
	log := shop.NewLog(file, began)
	app, err := shop.New(shop.Config{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	b := startBridge(t, app, fmt.Sprintf("total_active_users: %d, new_users_per_minute: %d, session_duration: %s", c.active, c.perMinute, c.stay), "")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 150, MaxConnsPerHost: 150}}
	var all, joining sync.WaitGroup
	joining.Add(c.visitors)
	numbers := make([]int, c.visitors)
	for i := range c.visitors {
		all.Go(func() {
			s := &sampleSite{http: client, at: b.at, from: fmt.Sprintf("198.18.%d.%d", i>>8, i&255), wait: 3 * time.Second}
			patiently(ctx, time.Duration(i)*4*time.Second/time.Duration(c.visitors))
			number, err := s.join(ctx)
			joining.Done()
			if numbers[i] = number; err != nil {
				t.Errorf("visitor %d joins: %v", i, err)
				return
			}
			if i%10 == 9 {
				return
			}
			token, err := s.enter(ctx, number)
			if err != nil {
				t.Errorf("visitor %d with number %d: %v", i, number, err)
				return
			}
			r, _ := http.NewRequestWithContext(ctx, "GET", b.url("/"), nil)
			r.Header.Set("Authorization", token)
			r.Header.Set(shop.VisitorHeader, strconv.Itoa(i+1))
			r.Header.Set(shop.SentHeader, strconv.FormatInt(time.Since(began).Microseconds(), 10))
			if status, body, err := s.answer(r); status != 0 && status != http.StatusOK {
				t.Errorf("visitor %d buys: %d %s %v", i, status, body, err)
			}
		})
	}
	meanwhile(b, joining.Wait)
	all.Wait()
	t.Logf("%d visitors in %v", c.visitors, time.Since(began).Round(time.Second))
	seen := map[int]bool{0: true}
	for i, n := range numbers {
		if seen[n] {
			t.Errorf("visitor %d has number %d, which is nobody's or another's", i, n)
		}
		seen[n] = true
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	requests, err := shop.ReadLog(file)
	if err != nil || len(requests) > c.visitors*9/10 || len(requests) < c.least {
		t.Fatalf("%d requests in the origin's log, %v", len(requests), err)
	}
	report := judge.Case{Active: c.active, PerMinute: c.perMinute, SessionDuration: c.stay, Requests: requests}.Judge()
	for _, f := range report.Findings {
		t.Logf("%s %s: %s", f.Rule, f.Bound, f.Seen)
	}
	if !report.OK() {
		var table strings.Builder
		report.WriteTable(&table)
		t.Error(table.String())
	}
}

func TestAWSSale(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	awsSale{visitors: 2_000, active: 600, perMinute: 6_000, stay: 8 * time.Second, least: 1_800}.run(t, func(_ *bridge, joined func()) {
		joined()
		t.Parallel() // 500 a second who join would delay the tests beside them, and later buyers do not
	})
}

// Places and sessions survive kill -9 in the middle of a sale, and no number is given out twice.
func TestAWSSaleWithAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	awsSale{visitors: 300, active: 80, perMinute: 2_000, stay: 4 * time.Second, least: 243}.run(t, func(b *bridge, _ func()) {
		eventually(t, 30*time.Second, func() string {
			if n := b.room("sale").Active; n < 40 {
				return fmt.Sprintf("%d sessions", n)
			}
			return ""
		})
		b.kill()
		b.start()
	})
}

// A relying party signs a visitor in through the adapter, with a library that was not made for us.
func TestAWSSignIn(t *testing.T) {
	t.Parallel()
	const secret = "the-secret-of-the-relying-party"
	party := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RawQuery) }))
	t.Cleanup(party.Close)
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := startBridge(t, nil, "total_active_users: 1, new_users_per_minute: 100, session_duration: 5s",
		fmt.Sprintf(", redirect_uris: [%q], client_secret_file: %q", party.URL+"/callback", name))
	provider, err := oidc.NewProvider(t.Context(), b.at)
	if err != nil {
		t.Fatal(err)
	}
	for visitor := range 2 { // the second has to wait for the end of the first one's session
		for _, style := range []oauth2.AuthStyle{oauth2.AuthStyleInParams, oauth2.AuthStyleInHeader}[visitor : visitor+1] {
			endpoint := provider.Endpoint()
			endpoint.AuthStyle = style
			cfg := oauth2.Config{ClientID: "Sample", ClientSecret: secret, Endpoint: endpoint, RedirectURL: party.URL + "/callback", Scopes: []string{oidc.ScopeOpenID}}
			verifier, nonce := oauth2.GenerateVerifier(), "nonce-"+strconv.Itoa(visitor)
			query := browse(t, cfg.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier), oidc.Nonce(nonce)))
			if query.Get("state") != "the state" {
				t.Fatalf("back with %v", query)
			}
			if _, err := cfg.Exchange(t.Context(), query.Get("code"), oauth2.VerifierOption(oauth2.GenerateVerifier())); err == nil {
				t.Error("another verifier was taken")
			}
			token, err := cfg.Exchange(t.Context(), query.Get("code"), oauth2.VerifierOption(verifier))
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := token.Extra("id_token").(string)
			id, err := provider.Verifier(&oidc.Config{ClientID: "Sample"}).Verify(t.Context(), raw)
			if err != nil || id.Nonce != nonce {
				t.Fatalf("id token: %v, nonce %q", err, id.Nonce)
			}
			info, err := provider.UserInfo(t.Context(), oauth2.StaticTokenSource(token))
			if err != nil || info.Subject != id.Subject {
				t.Fatalf("userinfo: %v", err)
			}
			if _, err := cfg.Exchange(t.Context(), query.Get("code"), oauth2.VerifierOption(verifier)); err == nil {
				t.Error("the code was taken twice")
			}
		}
	}
}

// browse follows redirects and the page that reloads itself, as a browser does, and returns the query of the last address.
func browse(t *testing.T, at string) url.Values {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar}
	var last url.Values
	eventually(t, 60*time.Second, func() string {
		res, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		at, last = res.Request.URL.String(), res.Request.URL.Query()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", at, res.Status)
		}
		if !last.Has("code") {
			return "the page still waits"
		}
		return ""
	})
	return last
}

// The signer of the vendor's own SDK signs for the private API with an access key made of a token.
func TestAWSSigner(t *testing.T) {
	t.Parallel()
	b := startBridge(t, nil, "total_active_users: 5, new_users_per_minute: 100", ", inlet: custom")
	operate := func(path, body string, authorize func(*http.Request)) (int, string) {
		t.Helper()
		r, err := http.NewRequest("POST", b.operators()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		authorize(r)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(answer)
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	status, answer := operate("/anteroom/v1/tokens", `{"name": "inlet", "grants": [{"permission": "edit"}]}`, bearer(operatorToken))
	var made struct{ Result struct{ Secret string } }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	status, answer = operate("/aws/Sample/access_key", "{}", bearer(made.Result.Secret))
	var key struct {
		ID     string `json:"access_key_id"`
		Secret string `json:"secret_access_key"`
	}
	if err := json.Unmarshal([]byte(answer), &key); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	const body = `{"event_id": "Sample", "increment_by": 7}`
	signed := func(secret string) func(*http.Request) {
		return func(r *http.Request) {
			sum := sha256.Sum256([]byte(body))
			err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: key.ID, SecretAccessKey: secret}, r, hex.EncodeToString(sum[:]), "execute-api", "eu-west-1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if status, answer := operate("/aws/Sample/increment_serving_counter", body, signed(key.Secret)); status != http.StatusOK || answer != `{"serving_num": 7}` {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := operate("/aws/Sample/increment_serving_counter", body, signed(key.Secret+"x")); status != http.StatusForbidden {
		t.Errorf("another secret: %d %s", status, answer)
	}
}
