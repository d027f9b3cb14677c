package shop_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom/sim/demo/shop"
	"golang.org/x/net/websocket"
)

func token(sub string) string {
	payload, _ := json.Marshal(map[string]string{"sub": sub})
	return "e30." + base64.RawURLEncoding.EncodeToString(payload) + ".c2ln"
}

func newShop(t *testing.T, cfg shop.Config) *shop.Shop {
	t.Helper()
	s, err := shop.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(s http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestPages(t *testing.T) {
	s := newShop(t, shop.Config{})
	for _, c := range []struct {
		target string
		status int
		has    string
	}{
		{"/", 200, "Ember teapot"},
		{"/product/tide-bowl", 200, "€ 48.00"},
		{"/product/none", 404, "shelf is empty"},
		{"/picture/tide-bowl.svg", 200, "<svg"},
		{"/picture/none.svg", 404, ""},
		{"/cart", 200, "Still empty"},
		{"/checkout", 200, "Nothing to pay for"},
		{"/shop.css", 200, "--clay"},
		{"/shop.js", 200, "EventSource"},
		{"/healthz", 200, "ok"},
		{"/elsewhere", 404, "shelf is empty"},
		{"/?delay=soon", 400, "250ms"},
		{"/?delay=31s", 400, "30s"},
		{"/?delay=-1s", 400, "30s"},
	} {
		w := get(s, c.target)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s: %d, want %d with %q; body %.200s", c.target, w.Code, c.status, c.has, w.Body)
		}
		if w.Header().Get(shop.Mark) == "" {
			t.Errorf("%s: no %s", c.target, shop.Mark)
		}
	}
}

func TestBuying(t *testing.T) {
	srv := httptest.NewServer(newShop(t, shop.Config{}))
	defer srv.Close()
	var cart []*http.Cookie
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	do := func(method, path string, form url.Values) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, srv.URL+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, one := range cart {
			r.AddCookie(one)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if set := resp.Cookies(); len(set) > 0 {
			cart = set
		}
		var b strings.Builder
		if err := resp.Write(&b); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, b.String()
	}
	for _, what := range []string{"dawn-mug", "moss-vase"} {
		if code, _ := do("POST", "/cart", url.Values{"product": {what}}); code != http.StatusSeeOther {
			t.Fatalf("adding %s: %d", what, code)
		}
	}
	if _, body := do("GET", "/cart", nil); !strings.Contains(body, "€ 106.00") {
		t.Errorf("the cart does not add up: %s", body)
	}
	if code, body := do("POST", "/checkout", nil); code != 200 || !strings.Contains(body, "Thank you") {
		t.Errorf("order: %d %s", code, body)
	}
	if code, _ := do("POST", "/cart", url.Values{"product": {"a yacht"}}); code != http.StatusBadRequest {
		t.Errorf("unknown product: %d", code)
	}
	w := get(newShop(t, shop.Config{}), "/", "Accept", "application/json")
	if !strings.Contains(w.Body.String(), `"inWaitingRoom":false`) {
		t.Errorf("apps are not told that they are in: %s", w.Body)
	}
}

func TestInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, shop.Config{SessionDuration: time.Minute})
		if w := get(s, "/"); !strings.Contains(w.Body.String(), "No waiting room") {
			t.Error("without a proof it should say so")
		}
		get(s, "/", "X-Anteroom-Assertion", token("one"))
		get(s, "/", "X-Anteroom-Assertion", token("one"))
		get(s, "/", "X-Anteroom-Assertion", "not a token")
		time.Sleep(30 * time.Second)
		w := get(s, "/", "X-Anteroom-Assertion", token("two"))
		if !strings.Contains(w.Body.String(), "You are in.") || !strings.Contains(w.Body.String(), "2 people are shopping now") {
			t.Errorf("inside: %s", w.Body)
		}
		time.Sleep(30 * time.Second)
		if n := s.Inside(); n != 1 {
			t.Errorf("%d inside a minute after the first one's last request, want 1", n)
		}
		r := httptest.NewRequest("POST", "/leave", nil)
		r.Header.Set("X-Anteroom-Assertion", token("two"))
		left := httptest.NewRecorder()
		s.ServeHTTP(left, r)
		if left.Header().Get("Cf-Waiting-Room-Command") != "revoke" {
			t.Error("leaving does not revoke")
		}
		time.Sleep(time.Second)
		if n := s.Inside(); n != 0 {
			t.Errorf("%d inside after everybody left", n)
		}
	})
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		get(newShop(t, shop.Config{}), "/?delay=2s")
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestLiveEndpoints(t *testing.T) {
	srv := httptest.NewServer(newShop(t, shop.Config{}))
	defer srv.Close()
	resp, err := http.Get(srv.URL + "/ticker")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("event: stock\ndata: {"))
	if _, err := resp.Body.Read(first); err != nil || string(first) != "event: stock\ndata: {" {
		t.Errorf("ticker begins %q, %v", first, err)
	}
	resp.Body.Close()

	ws, err := websocket.Dial("ws"+strings.TrimPrefix(srv.URL, "http")+"/echo", "", srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	for _, say := range []string{"hello", strings.Repeat("x", 10_000)} {
		var back string
		if err := websocket.Message.Send(ws, say); err != nil {
			t.Fatal(err)
		}
		if err := websocket.Message.Receive(ws, &back); err != nil || back != say {
			t.Errorf("echo of %.20q: %.20q, %v", say, back, err)
		}
	}
}

func TestSubject(t *testing.T) {
	for _, c := range []struct{ token, sub string }{
		{token("abc"), "abc"},
		{"", ""},
		{"a.b", ""},
		{"a.!!.c", ""},
		{"a.e30.c", ""},
		{"a." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":7}`)) + ".c", ""},
		{strings.Repeat("a", 9000) + "." + token("abc"), ""},
	} {
		if got := shop.Subject(c.token); got != c.sub {
			t.Errorf("%.40q: %q, want %q", c.token, got, c.sub)
		}
	}
}
