package gateway

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/page"
)

const difficulty = 4

var asksWork = regexp.MustCompile(`data-work="([0-9a-f]{32})" data-cookie="([^"]+)" data-bits="4" data-parts="8">`)

// inChallenge is an empty booth that asks every visitor for a proof of work.
func inChallenge(t *testing.T, edit func(*anteroom.Room), f func(booth), more ...func(*Config)) {
	work := func(c *Config) {
		c.Challenge = Challenge{Kind: page.Work, Difficulty: difficulty, Patience: 10 * time.Minute}
	}
	inEmptyBooth(t, func(r *anteroom.Room) {
		r.TotalActiveUsers, r.JSONResponse, r.TurnstileAction = 100, true, anteroom.InfiniteQueue
		if edit != nil {
			edit(r)
		}
	}, f, append([]func(*Config){work}, more...)...)
}

// counted are the counts of challenges, without those that are zero.
func (b booth) counted() string {
	total := b.room.Recorder().Totals()
	var out []string
	for m := analytics.ChallengesIssued; m <= analytics.ChallengesHeld; m++ {
		if n := total.Count(m); n > 0 {
			out = append(out, fmt.Sprintf("%s=%d", strings.TrimPrefix(m.String(), "challenges_"), n))
		}
	}
	return strings.Join(out, " ")
}

// work solves a challenge as the page's script does.
func work(question string, difficulty int) string {
	out := question
	for part := range uint32(page.WorkParts) {
		for n := uint32(0); ; n++ {
			sum := sha256.Sum256(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte(question), part), n))
			if bits.LeadingZeros32(binary.BigEndian.Uint32(sum[:])) >= difficulty {
				out += fmt.Sprintf(".%d", n)
				break
			}
		}
	}
	return out
}

// asked is the page's question to a visitor, and the cookie that the answer goes into.
func (g *guest) asked() (question, cookie string) {
	g.t.Helper()
	body := g.get("/").Body.String()
	m := asksWork.FindStringSubmatch(body)
	if m == nil {
		g.t.Fatalf("the page asks nothing: %s", body)
	}
	return m[1], m[2]
}

// with sends another cookie along with the next request only.
func (g *guest) with(cookie string) place {
	g.t.Helper()
	old := g.cookie
	g.cookie += "; " + cookie
	p := g.ask()
	if strings.Contains(g.cookie, cookie) { // none was set
		g.cookie = old
	}
	return p
}

func TestOnlyWhoeverSolvesTheChallengeIsAdmitted(t *testing.T) {
	inChallenge(t, nil, func(b booth) {
		ann, bot := b.guest(), b.guest()
		question, cookie := ann.asked()
		theirs, _ := bot.asked()
		if question == theirs {
			t.Fatal("two visitors are asked the same")
		}
		for name, answer := range map[string]string{
			"somebody else's answer":  work(question, difficulty),
			"no work":                 theirs + strings.Repeat(".0", page.WorkParts),
			"half of the work":        work(theirs, difficulty)[:40],
			"a part of it many times": theirs + strings.Repeat("."+strings.Split(work(theirs, difficulty), ".")[1], page.WorkParts),
			"no numbers":              theirs + strings.Repeat(".x", page.WorkParts),
			"nothing":                 "",
		} {
			b.pass(2 * time.Second)
			if bot.with(cookie + "=" + answer).Admitted {
				t.Errorf("%s: admitted", name)
			}
		}
		if got, want := b.counted(), "issued=2 unsolved=2 failed=4 held=6"; got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
		if p := ann.with(cookie + "=" + work(question, difficulty)); !p.Admitted {
			t.Errorf("solved: %+v", p)
		}
		if p := bot.ask(); p.Admitted {
			t.Error("a program that solved nothing is admitted")
		}
	})
}

func TestAChallengeIsSolvedOnceForATicket(t *testing.T) {
	inChallenge(t, func(r *anteroom.Room) { r.QueueAll = true }, func(b booth) {
		ann := b.guest()
		question, cookie := ann.asked()
		set := ann.set
		// The answer comes before the next check-in counts, and is remembered all the same.
		if ann.with(cookie + "=" + work(question, difficulty)); ann.set == set {
			t.Fatal("the ticket does not say that it is solved")
		}
		b.pass(20 * time.Second)
		if page := ann.get("/").Body.String(); strings.Contains(page, "data-work") {
			t.Errorf("asked again: %s", page)
		}
		if got, want := b.counted(), "issued=1 solved=1"; got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
	})
}

func TestWithLogChallengesAreOnlyCounted(t *testing.T) {
	inChallenge(t, func(r *anteroom.Room) { r.TotalActiveUsers, r.TurnstileAction = 1, "log" }, func(b booth) {
		if !b.guest().ask().Admitted {
			t.Error("a visitor is not admitted at once")
		}
		bot := b.guest()
		bot.asked()
		b.pass(2 * time.Second)
		bot.ask()
		if got, want := b.counted(), "issued=1 unsolved=1"; got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
		if st := b.room.Status(); st.Waiting != 1 || st.Unproven != 0 {
			t.Errorf("in line %d, of whom %d unproven; want the visitor who came back", st.Waiting, st.Unproven)
		}
	})
}

func TestNothingIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*anteroom.Room)
		more func(*Config)
	}{
		"with turnstile_mode off": {func(r *anteroom.Room) { r.TurnstileMode = anteroom.ChallengeOff }, func(*Config) {}},
		"without a provider":      {nil, func(c *Config) { c.Challenge = Challenge{} }},
		"by an event with mode off": {func(r *anteroom.Room) {
			off := anteroom.ChallengeOff
			r.Events = []anteroom.Event{{ID: "1", Name: "sale", Start: "2000-01-01T00:00:00Z", End: "2001-01-01T00:00:00Z", Overrides: anteroom.Overrides{TurnstileMode: &off}}}
		}, func(*Config) {}},
	} {
		t.Run(name, func(t *testing.T) {
			inChallenge(t, func(r *anteroom.Room) {
				r.TotalActiveUsers = 1
				if c.edit != nil {
					c.edit(r)
				}
			}, func(b booth) {
				if !b.guest().ask().Admitted {
					t.Error("the first visitor waits")
				}
				rec := b.guest().get("/")
				if body := rec.Body.String(); !strings.Contains(body, "You are in line") || strings.Contains(body, "data-work") {
					t.Errorf("the page: %s", body)
				}
				if got := b.counted(); strings.Contains(got, "issued") {
					t.Errorf("counted %s", got)
				}
			}, c.more)
		})
	}
}

func TestWhoeverHasWaitedLongIsNotAskedAnyMore(t *testing.T) {
	inChallenge(t, nil, func(b booth) {
		ann := b.guest() // without script
		for began := time.Now(); !ann.ask().Admitted; {
			if took := time.Since(began); took > 11*time.Minute {
				t.Fatal("not admitted within 11 minutes")
			}
			b.pass(30 * time.Second)
		}
		if got := b.counted(); !strings.Contains(got, "waived=1") {
			t.Errorf("counted %s", got)
		}
	})
}

func TestOnlyPagesWithAChallengeMayRunItsScript(t *testing.T) {
	inChallenge(t, nil, func(b booth) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", "application/json")
		rec := httptest.NewRecorder()
		b.h.ServeHTTP(rec, r)
		if body := rec.Body.String(); !strings.Contains(body, `"infiniteQueue":true}}`) || !strings.Contains(body, `data-work=\"`) {
			t.Errorf("JSON: %s", body)
		}
		asked := b.guest().get("/").Header().Get("Content-Security-Policy")
		if plain := page.ContentSecurityPolicy(page.View{}); asked == plain || len(asked) < len(plain) {
			t.Errorf("policies %q and %q", asked, plain)
		}
	})
}

// siteverify speaks the published protocol: what it says about tokens is in their names.
func siteverify(t *testing.T, calls *atomic.Int32) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		form, err := url.ParseQuery(string(body))
		if err != nil || r.Method != "POST" || r.URL.String() != "https://verify.test/siteverify" || form.Get("secret") != "s3cret" ||
			form.Get("remoteip") != "192.0.2.1" || len(form.Get("idempotency_key")) != 36 {
			t.Errorf("%s %s: %s", r.Method, r.URL, body)
		}
		token, answer := form.Get("response"), ""
		switch kind, question, _ := strings.Cut(token, "-"); kind {
		case "good":
			answer = `{"success":true,"error-codes":[],"challenge_ts":"2026-01-01T00:00:00Z","hostname":"shop.example","cdata":"` + question + `"}`
		case "bad":
			answer = `{"success":false,"error-codes":["invalid-input-response"]}`
		case "down":
			answer = `{"success":false,"error-codes":["internal-error"]}`
		case "cut":
			return nil, io.ErrUnexpectedEOF
		case "slow":
			<-r.Context().Done()
			return nil, r.Context().Err()
		case "large":
			answer = `{"hostname":"` + strings.Repeat("x", 1<<20) + `","success":true}`
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTurnstile(t *testing.T) {
	var calls atomic.Int32
	inChallenge(t, nil, func(b booth) {
		ann := b.guest()
		rec := ann.get("/")
		m := regexp.MustCompile(`data-sitekey="0xKEY" data-cdata="([0-9a-f]{32})" data-cookie="([^"]+)"`).FindStringSubmatch(rec.Body.String())
		if m == nil {
			t.Fatalf("no widget: %s", rec.Body)
		}
		if csp := rec.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "frame-src https://challenges.cloudflare.com") {
			t.Errorf("policy %s", csp)
		}
		answer := func(token string) place {
			b.pass(5 * time.Second)
			return ann.with(m[2] + "=" + m[1] + "." + token)
		}
		// Nobody is admitted by a failure of Cloudflare's, and no request waits for long.
		for _, token := range []string{"bad", "down", "cut", "slow", "large", "good-for-another-ticket", "", strings.Repeat("x", 3000)} {
			began := time.Now()
			if answer(token).Admitted {
				t.Errorf("%.20s: admitted", token)
			}
			if took := time.Since(began); took > 9*time.Second {
				t.Errorf("%.20s: %v", token, took)
			}
		}
		if got, want := b.counted(), "issued=1 unsolved=4 failed=4 held=8"; got != want {
			t.Errorf("counted %s, want %s", got, want)
		}
		if p := answer("good-" + m[1]); !p.Admitted {
			t.Errorf("solved: %+v", p)
		}
		if n := calls.Load(); n != 7 {
			t.Errorf("asked Turnstile %d times, want 7", n)
		}
	}, func(c *Config) {
		c.Challenge = Challenge{Kind: page.Turnstile, SiteKey: "0xKEY", Secret: "s3cret", VerifyURL: "https://verify.test/siteverify", Transport: siteverify(t, &calls)}
	})
}
