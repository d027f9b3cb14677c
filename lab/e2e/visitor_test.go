package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/sim/demo/shop"
)

// ticketCookie is the name of the ticket, without a room's suffix.
const ticketCookie = "__cfwaitingroom"

// visitor is a plain HTTP client with cookies of its own.
type visitor struct {
	t      *testing.T
	g      *gate
	client *http.Client
}

func newVisitor(t *testing.T, g *gate) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2:  true,
		DisableCompression: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, g: g, client: &http.Client{
		Jar: jar, Transport: transport, Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is a response with its body read; Body holds it as it came over the wire.
type answer struct {
	*http.Response
	body []byte
}

// admitted reports whether the answer came from the origin's application.
func (a answer) admitted() bool { return a.Header.Get(shop.Mark) != "" }

// text returns the body, decompressed.
func (a answer) text(t *testing.T) string {
	t.Helper()
	if a.Header.Get("Content-Encoding") != "gzip" {
		return string(a.body)
	}
	r, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// note returns what the waiting page says about an earlier ticket. (The words of every note
// stand in the page for its script; only one that is shown counts.)
func (a answer) note(t *testing.T) string {
	t.Helper()
	_, text, _ := strings.Cut(a.text(t), `<p id="note" class="note">`)
	text, _, _ = strings.Cut(text, "</p>")
	return text
}

// ticket returns the value of the ticket that the answer sets, or "".
func (a answer) ticket() string {
	for _, c := range a.Cookies() {
		if strings.HasPrefix(c.Name, ticketCookie) {
			return c.Value
		}
	}
	return ""
}

// get asks as a browser navigates. Headers come in pairs.
func (v *visitor) get(path string, headers ...string) answer {
	v.t.Helper()
	return v.do(http.MethodGet, path, "", headers...)
}

func (v *visitor) do(method, path, body string, headers ...string) answer {
	v.t.Helper()
	a, err := v.try(method, path, body, headers...)
	if err != nil {
		v.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// try is do that returns the error.
func (v *visitor) try(method, path, body string, headers ...string) (answer, error) {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, v.g.url(path), content)
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := v.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res, b}, err
}

// placeStatus is what the waiting page's script works with.
type placeStatus struct {
	Admitted bool   `json:"admitted"`
	Ahead    *int   `json:"ahead"`
	Refresh  int    `json:"refresh"`
	Reason   string `json:"reason"`
	State    string `json:"state"`
	Ref      string `json:"ref"`
	Kept     int64  `json:"kept"`
}

func (p placeStatus) String() string {
	ahead := "nobody knows how many"
	if p.Ahead != nil {
		ahead = strconv.Itoa(*p.Ahead)
	}
	return fmt.Sprintf("{%s ahead, %s, %s, ref %s, admitted %v}", ahead, p.State, p.Reason, p.Ref, p.Admitted)
}

// place asks for the visitor's place.
func (v *visitor) place(path string) placeStatus {
	v.t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	a := v.get(path+separator+"__anteroom=status", "Accept", "application/json")
	var s placeStatus
	if err := json.Unmarshal(a.body, &s); err != nil || a.StatusCode != http.StatusOK {
		v.t.Fatalf("status of %s: %s, %v: %s", path, a.Status, err, a.body)
	}
	return s
}

// ticketValue returns the ticket in the visitor's jar, or "".
func (v *visitor) ticketValue() string {
	for _, c := range v.cookies() {
		if strings.HasPrefix(c.Name, ticketCookie) {
			return c.Value
		}
	}
	return ""
}

func (v *visitor) cookies() []*http.Cookie {
	u, err := url.Parse(v.g.url("/"))
	if err != nil {
		v.t.Fatal(err)
	}
	return v.client.Jar.Cookies(u)
}

// hold sets the visitor's ticket, as if it had been copied from elsewhere.
func (v *visitor) hold(value string) {
	v.t.Helper()
	u, err := url.Parse(v.g.url("/"))
	if err != nil {
		v.t.Fatal(err)
	}
	v.client.Jar.SetCookies(u, []*http.Cookie{{Name: ticketCookie, Value: value, Path: "/"}})
}

// enter takes a seat and fails when there is none.
func (v *visitor) enter() *visitor {
	v.t.Helper()
	eventually(v.t, 10*time.Second, func() string { // on a busy machine the first request may be held for too long
		if a := v.get("/"); !a.admitted() {
			return "no seat was free: " + a.Status
		}
		return ""
	})
	return v
}

// leave gives the seat back: the shop revokes the session.
func (v *visitor) leave() {
	v.t.Helper()
	if a := v.do(http.MethodPost, "/leave", "x=1"); !a.admitted() || a.StatusCode != http.StatusOK {
		v.t.Fatalf("leaving: %s", a.Status)
	}
}

// wait takes a place in line and fails when let in.
func (v *visitor) wait() *visitor {
	v.t.Helper()
	if a := v.get("/"); a.admitted() || a.StatusCode != http.StatusOK {
		v.t.Fatalf("did not wait: %s", a.Status)
	}
	return v
}
