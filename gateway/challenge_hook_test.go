package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/freeport"
	"github.com/anteroom/anteroom/page"
)

// hook is the operator's, over HTTP: what it says about tokens is in their names.
func hook(t *testing.T, asked *atomic.Pointer[hookQuestion]) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/verify" {
			t.Errorf("asked %s: a redirect was followed", r.URL)
		}
		var q hookQuestion
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.Method != "POST" || r.Header.Get("Authorization") != "Bearer s3cret" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v: %v", r.Method, r.Header, err)
		}
		asked.Store(&q)
		switch q.Token {
		case "good":
			io.WriteString(w, `{"ok": true, "score": 0.9}`)
		case "bad":
			io.WriteString(w, `{"ok": false}`)
		case "error":
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"ok": true}`)
		case "created":
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, `{"ok": true}`)
		case "redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "text":
			io.WriteString(w, "ok")
		case "silent":
			io.WriteString(w, `{}`)
		case "number":
			io.WriteString(w, `{"ok": 1}`)
		case "large":
			io.WriteString(w, `{"ok": true, "x": "`+strings.Repeat("x", 1<<20)+`"}`)
		case "cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"ok": true`)
		case "slow":
			<-r.Context().Done()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/verify"
}

func tokenOf(text string) token {
	return token{question: strings.Repeat("0", 32), text: text, client: netip.MustParseAddr("192.0.2.1"),
		room: &room{Room: &anteroom.Room{ID: "1d", Name: "shop", Zone: "example.com"}}}
}

func TestHook(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	var asked atomic.Pointer[hookQuestion]
	url := hook(t, &asked)
	for name, open := range map[string]bool{"closed": false, "open": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := unverified
			if open {
				broken = waived
			}
			v := newVerifier(Challenge{Kind: page.Hook, VerifyURL: url, Secret: "s3cret", FailOpen: open})
			for _, c := range []struct {
				token string
				want  result
			}{
				{"good", solved}, {"bad", failed}, {"", failed}, {strings.Repeat("x", tokenBytes+1), failed},
				{"error", broken}, {"created", broken}, {"redirect", broken}, {"text", broken}, {"silent", broken}, {"number", broken}, {"large", broken}, {"cut", broken}, {"slow", broken},
			} {
				began := time.Now()
				if got, _ := v.verify(t.Context(), tokenOf(c.token)); got != c.want {
					t.Errorf("%.10s: %d, want %d", c.token, got, c.want)
				}
				if took := time.Since(began); took > 2*verifyTime {
					t.Errorf("%.10s: took %v", c.token, took)
				}
			}
		})
	}
}

func TestHookThatIsGone(t *testing.T) {
	gone := "http://" + freeport.Address(t, 1)
	for open, want := range map[bool]result{false: unverified, true: waived} {
		v := newVerifier(Challenge{Kind: page.Hook, VerifyURL: gone, FailOpen: open})
		if got, _ := v.verify(t.Context(), tokenOf("good")); got != want {
			t.Errorf("open %v: %d, want %d", open, got, want)
		}
	}
}

func TestHookIsToldWhoAnswers(t *testing.T) {
	var asked atomic.Pointer[hookQuestion]
	v := newVerifier(Challenge{Kind: page.Hook, VerifyURL: hook(t, &asked), Secret: "s3cret"})
	if got, _ := v.verify(t.Context(), tokenOf("good")); got != solved {
		t.Fatal(got)
	}
	if got, want := *asked.Load(), (hookQuestion{"good", strings.Repeat("0", 32), "192.0.2.1", "shop", "1d", "example.com"}); got != want {
		t.Errorf("%+v", got)
	}
}

// TestTooManyTokensAtOnce: whoever sends more tokens than can be verified is not let through, even if the hook may fail open.
func TestTooManyTokensAtOnce(t *testing.T) {
	v := newVerifier(Challenge{Kind: page.Hook, VerifyURL: "http://127.0.0.1:0", FailOpen: true})
	for range verifyMost {
		v.slots <- struct{}{}
	}
	if got, _ := v.verify(t.Context(), tokenOf("good")); got != unverified {
		t.Errorf("%d", got)
	}
}

// TestTokensOfOneAddress: whoever sends made-up tokens on many connections takes a few slots, and other addresses have the rest.
func TestTokensOfOneAddress(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	v := newVerifier(Challenge{Kind: page.Hook, VerifyURL: "https://hook.test/", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		asked <- struct{}{}
		<-answer
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"ok":true}`))}, nil
	})})
	verify := func(client string, many bool) result {
		one := tokenOf("good")
		one.client, one.many = netip.MustParseAddr(client), many
		came, _ := v.verify(t.Context(), one)
		return came
	}
	var under sync.WaitGroup
	begin := func(client string, many bool) {
		t.Helper()
		came := make(chan result, 1)
		under.Go(func() {
			got := verify(client, many)
			if came <- got; got != solved {
				t.Errorf("%s: %d", client, got)
			}
		})
		select {
		case <-asked:
		case got := <-came:
			t.Fatalf("%s: %d, and nobody was asked", client, got)
		}
	}
	for i := range verifyFew {
		begin(fmt.Sprintf("2001:db8::%d", i+1), false)
	}
	refused := make(chan result, 1)
	go func() { refused <- verify("2001:db8::ffff", false) }()
	select {
	case got := <-refused:
		if got != unverified {
			t.Errorf("%d", got)
		}
	case <-asked:
		t.Errorf("more than %d tokens of one network are being verified", verifyFew)
	}
	begin("2001:db8:0:1::1", false)
	for range verifyFew + 1 {
		begin("192.0.2.1", true) // a proxy that names no client
	}
	close(answer)
	under.Wait()
	go func() { <-asked }()
	if got := verify("2001:db8::1", false); got != solved {
		t.Errorf("afterwards: %d", got)
	}
}

// TestLinesAboutTokens: what clients send does not fill the log, and one that hangs up is no fault of the other side.
func TestLinesAboutTokens(t *testing.T) {
	v := newVerifier(Challenge{Kind: page.Hook, VerifyURL: "http://127.0.0.1:0", FailOpen: true})
	if came, why := v.verify(t.Context(), tokenOf("good")); came != waived || why == "" {
		t.Errorf("%d %q", came, why)
	}
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	if came, why := v.verify(gone, tokenOf("good")); came != unverified || why != "" {
		t.Errorf("a client that has left: %d %q", came, why)
	}
	var log bytes.Buffer
	down := roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("down") })
	inChallenge(t, nil, func(b booth) {
		ann := b.guest()
		m := regexp.MustCompile(`data-cdata="([0-9a-f]{32})" data-cookie="([^"]+)"`).FindStringSubmatch(ann.get("/").Body.String())
		if m == nil {
			t.Fatal("nothing is asked")
		}
		for range linesPerSecond + 50 {
			ann.with(m[2] + "=" + m[1] + ".good")
		}
		if n := strings.Count(log.String(), "a token could not be verified"); n < linesPerSecond/2 || n > linesPerSecond {
			t.Errorf("%d lines in a second", n)
		}
	}, func(c *Config) {
		c.Challenge = Challenge{Kind: page.Hook, VerifyURL: "https://hook.test/", ScriptURL: "https://check.test/widget.js", Transport: down}
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
}

func TestVisitorsWithAGoodTokenAreAdmitted(t *testing.T) {
	answers := map[string]string{"good": `{"ok":true}`, "bad": `{"ok":false}`, "broken": `{`}
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		var q hookQuestion
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answers[q.Token]))}, nil
	})
	for name, c := range map[string]struct {
		open    bool
		counted string
	}{
		"closed": {false, "issued=1 solved=1 unsolved=1 failed=1 held=2"},
		"open":   {true, "issued=1 failed=1 waived=1 held=1"},
	} {
		t.Run(name, func(t *testing.T) {
			inChallenge(t, nil, func(b booth) {
				ann := b.guest()
				rec := ann.get("/")
				m := regexp.MustCompile(`id="challenge" data-cdata="([0-9a-f]{32})" data-cookie="([^"]+)" data-room="shop"`).FindStringSubmatch(rec.Body.String())
				if m == nil || !strings.Contains(rec.Body.String(), `<script src="https://check.test/widget.js?v=1&amp;w=2" async defer>`) {
					t.Fatalf("no script: %s", rec.Body)
				}
				if csp := rec.Header().Get("Content-Security-Policy"); strings.Count(csp, " https://check.test") != 3 || strings.Contains(csp, "invalid") {
					t.Errorf("policy %s", csp)
				}
				for _, token := range []string{"bad", "broken", "good"} {
					b.pass(5 * time.Second)
					if in := ann.with(m[2] + "=" + m[1] + "." + token).Admitted; in != (token == "good" || c.open && token == "broken") {
						t.Errorf("%s: admitted %v", token, in)
					} else if in {
						break
					}
				}
				if got := b.counted(); got != c.counted {
					t.Errorf("counted %s, want %s", got, c.counted)
				}
			}, func(cfg *Config) {
				cfg.Challenge = Challenge{Kind: page.Hook, VerifyURL: "https://hook.test/", ScriptURL: "https://check.test/widget.js?v=1&w=2", FailOpen: c.open, Transport: transport}
			})
		})
	}
}

func TestTheWorkGrowsWithTheQueue(t *testing.T) {
	for _, c := range []struct{ least, most, waiting, perMinute, want int }{
		{10, 13, 0, 100, 10}, {10, 13, 99, 100, 10}, {10, 13, 100, 100, 11}, {10, 13, 200, 100, 12}, {10, 13, 399, 100, 12},
		{10, 13, 400, 100, 13}, {10, 13, 5_000_000, 1, 13}, {10, 13, 7, 0, 13},
		{16, 13, 1000, 1, 16}, {10, 10, 1000, 1, 10}, {1, 20, 3, 1, 3},
	} {
		challenge := &challenger{Challenge: Challenge{Kind: page.Work, Difficulty: c.least, MaxDifficulty: c.most}}
		d := &anteroom.Decision{Waiting: c.waiting, InForce: &anteroom.InForce{Settings: anteroom.Settings{NewUsersPerMinute: c.perMinute}}}
		if got := challenge.bits(d); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestTheDifficultyIsPartOfTheQuestion: who was asked when the queue was short may answer when it is long, and nobody can choose an
// easier question.
func TestTheDifficultyIsPartOfTheQuestion(t *testing.T) {
	asks := regexp.MustCompile(`data-work="([0-9a-f]{32})" data-cookie="([^"]+)" data-bits="(\d+)"`)
	inChallenge(t, func(r *anteroom.Room) { r.TotalActiveUsers, r.NewUsersPerMinute, r.TurnstileAction = 1, 2, "log" }, func(b booth) {
		b.guest().ask()
		question := func(g *guest) (question, cookie, bits string) {
			m := asks.FindStringSubmatch(g.get("/").Body.String())
			if m == nil {
				t.Fatal("nothing is asked")
			}
			return m[1], m[2], m[3]
		}
		ann := b.guest()
		easy, cookie, bits := question(ann)
		if bits != "4" {
			t.Errorf("in an empty queue %s bits", bits)
		}
		for range 4 {
			b.guestFrom(1).ask()
		}
		b.pass(5 * time.Second)
		bob := b.guest()
		hard, _, bits := question(bob)
		if bits != "6" {
			t.Errorf("in a queue of two minutes %s bits", bits)
		}
		lowered := "04" + hard[2:]
		set := bob.set
		if bob.with(cookie + "=" + work(lowered, 4)); bob.set != set {
			t.Error("an answer to an easier question counts")
		}
		if bob.with(cookie + "=" + work(hard, 6)); !strings.Contains(b.counted(), "solved=1") {
			t.Errorf("the answer does not count: %s", b.counted())
		}
		if ann.with(cookie + "=" + work(easy, 4)); !strings.Contains(b.counted(), "solved=2") {
			t.Errorf("the answer to the earlier question does not count: %s", b.counted())
		}
	}, func(c *Config) { c.Challenge.MaxDifficulty = 6 })
}
