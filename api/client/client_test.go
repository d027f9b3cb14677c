package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/client"
)

func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{URL: s.URL + "/", Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAddressesThatAreNone(t *testing.T) {
	for _, u := range []string{"", "localhost:8081", "ftp://x", "http://", "http://u:p@x", "http://x?y", "http://x#y", "http://[::1", "http://x\n"} {
		if _, err := client.New(client.Config{URL: u}); anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%q: %v", u, err)
		}
	}
	if _, err := client.New(client.Config{URL: "http://x", Token: "a\nb"}); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("a token with a line break: %v", err)
	}
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	var seen atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }))
	defer elsewhere.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	err := c.Do(t.Context(), "GET", "/x", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "the token is sent to no other address") {
		t.Errorf("a redirect to another host: %v", err)
	}
	if err := c.Download(t.Context(), "/x", nil, io.Discard, 10); err == nil {
		t.Error("a download followed a redirect to another host")
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("the other host was asked %d times", n)
	}
}

func TestAnswersThatSayNo(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   anteroom.Kind
		text   string
	}{
		{400, `{"success":false,"errors":[{"code":1002,"message":"name: is missing: invalid data","source":{"pointer":"/name"}},{"code":1002,"message":"host: is missing: invalid data"}],"result":null}`, anteroom.Invalid, "name: is missing\nhost: is missing"},
		{403, `{"success":false,"errors":[{"code":10000,"message":"Authentication error"}]}`, anteroom.Denied, "Authentication error"},
		{403, `{"success":false,"errors":[{"code":10403,"message":"send it to a core"}]}`, anteroom.Elsewhere, "send it to a core"},
		{404, `{"success":null,"errors":[{"code":1001,"message":"Object not found."}]}`, anteroom.NotFound, "Object not found."},
		// What a server says stays one line, and moves no cursor.
		{400, `{"success":false,"errors":[{"code":1002,"message":"name\nanteroom: done\r\u001b[2J\u0007\u202e\t\u009bx"}]}`, anteroom.Invalid, "name\ufffdanteroom: done\ufffd\ufffd[2J\ufffd\ufffd\ufffd\ufffdx"},
		{409, `{}`, anteroom.Conflict, "GET /x was answered with status 409"},
		{502, "<html>bad gateway", anteroom.Unavailable, `"<html>bad gateway"`},
		{200, "<html>hello", anteroom.Unavailable, "not in the envelope"},
		{200, `{"success":false,"errors":[{"code":1,"message":"no"}]}`, anteroom.Unavailable, "no"},
		{200, `{"result":[]}`, anteroom.Unavailable, "not in the envelope"},
		{200, `{"success":true,"result":"text"}`, anteroom.Unavailable, "not what it should be"},
		{204, ``, anteroom.Unavailable, "status 204"},
	} {
		cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		})
		var result struct{ ID string }
		err := cl.Do(t.Context(), "GET", "/x", nil, nil, &result)
		if anteroom.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%d %s: kind %d, %v; want %d with %q", c.status, c.body, anteroom.KindOf(err), err, c.kind, c.text)
		}
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	var sent atomic.Int64
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"success":true,"result":"`)
		piece := strings.Repeat("a", 1<<20)
		for range 4 * client.MaxAnswer >> 20 {
			n, err := io.WriteString(w, piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	if err := c.Do(t.Context(), "GET", "/x", nil, nil, nil); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("an endless answer: %v", err)
	}
	if err := c.Download(t.Context(), "/x", nil, io.Discard, 1000); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("an endless download: %v", err)
	}
}

func TestLists(t *testing.T) {
	pages := map[string]string{"1": `[{"id":1},{"id":2}]`, "2": `[{"id":3}]`, "3": `[]`}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("name") != "x y" {
			t.Errorf("the query was lost: %s", r.URL)
		}
		fmt.Fprintf(w, `{"success":true,"result":%s}`, pages[r.URL.Query().Get("page")])
	})
	all, err := c.All(t.Context(), "/x", url.Values{"name": {"x y"}})
	if err != nil || len(all) != 3 || string(all[2]) != `{"id":3}` {
		t.Errorf("%s, %v", all, err)
	}
	c = serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"success":true,"result":[1]}`) })
	if _, err := c.All(t.Context(), "/x", nil); err == nil || !strings.Contains(err.Error(), "has no pages") {
		t.Errorf("an API that ignores the page: %v", err)
	}
	c = serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"success":true,"result":{}}`) })
	if _, err := c.All(t.Context(), "/x", nil); err == nil || !strings.Contains(err.Error(), "is not a list") {
		t.Errorf("an object in the place of a list: %v", err)
	}
}

func TestNumbersStayAsTheyAre(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"success":true,"result":{"n":9007199254740993}}`)
	})
	var o map[string]any
	if err := c.Do(t.Context(), "GET", "/x", nil, nil, &o); err != nil || o["n"] != json.Number("9007199254740993") {
		t.Errorf("%v, %v", o, err)
	}
}

// inBubble serves h over a listener that a bubble can wait for.
func inBubble(t *testing.T, h http.HandlerFunc) *client.Client {
	s := httptest.NewTestServer(t, h)
	c, err := client.New(client.Config{URL: "http://example.com", Token: "secret", Patient: true, Transport: s.Client().Transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOneTooManyIsTriedAgainAsLongAsToldAndNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		c := inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) <= 2 {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, `{"success":true,"result":%q}`, b)
		})
		began := time.Now()
		var result string
		if err := c.Do(t.Context(), "POST", "/x", nil, map[string]int{"a": 1}, &result); err != nil || result != `{"a":1}` {
			t.Errorf("%q, %v", result, err)
		}
		if took := time.Since(began); took != 14*time.Second {
			t.Errorf("two pauses of 7 s took %v", took)
		}
		asked.Store(-1000)
		if err := c.Do(t.Context(), "GET", "/x", nil, nil, nil); anteroom.KindOf(err) != anteroom.Unavailable {
			t.Errorf("refused again and again: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := c.Do(ctx, "GET", "/x", nil, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a pause longer than the caller has time: %v", err)
		}
	})
}

func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inBubble(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		began := time.Now()
		if err := c.Do(t.Context(), "GET", "/x", nil, nil, nil); anteroom.KindOf(err) != anteroom.Unavailable {
			t.Errorf("no answer: %v", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("waited %v for an answer", took)
		}
	})
}
