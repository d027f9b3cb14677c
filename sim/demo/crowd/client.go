package crowd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/sim/demo/shop"
)

// client speaks HTTP for everybody.
type client struct {
	cfg    *Config
	target *url.URL
	kept   *http.Transport // connections that visitors with a ticket share
	single *http.Transport // one connection for one request or one stream
	from   atomic.Uint64
}

func newClient(cfg *Config, target *url.URL) *client {
	c := &client{cfg: cfg, target: target}
	dial := c.dial
	if cfg.Dial != nil {
		dial = cfg.Dial
	}
	c.kept = &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: cfg.Workers + parallel, IdleConnTimeout: 30 * time.Second}
	c.single = &http.Transport{DialContext: dial, DisableCompression: true, DisableKeepAlives: true}
	return c
}

func (c *client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	if n := len(c.cfg.Addresses); n > 0 {
		ip := c.cfg.Addresses[c.from.Add(1)%uint64(n)]
		d.LocalAddr = &net.TCPAddr{IP: ip.AsSlice()}
	}
	return d.DialContext(ctx, network, address)
}

func (c *client) close() {
	c.kept.CloseIdleConnections()
	c.single.CloseIdleConnections()
}

// ask is what one request needs of its visitor.
type ask struct {
	number int
	cookie string
	pass   string
	path   string
	query  string
	accept string
	to     string // host and port; empty means the target's
}

// answer is what a visitor makes of a response.
type answer struct {
	sent, came int64 // µs since start
	err        error // no proper answer
	to         string

	page     bool // a page was asked for, whose script begins when it comes
	inside   bool // the origin answered
	admitted bool // the status says: load the page
	refresh  time.Duration
	ahead    int // -1 unknown
	ref      string
	wait     int // forecast in seconds; -1 unknown
	offered  bool
	lost     bool // "place_lost"

	cookie string // "name=value" of a ticket that was set
	unset  bool   // the ticket was deleted
	pass   string // "name=value" of a pass for the edge that was set
}

// passPrefix begins the name of the cookie with which an edge lets requests past the gateway.
const passPrefix = "__anteroom_pass"

const (
	acceptHTML = "text/html,application/xhtml+xml,*/*;q=0.8"
	acceptJSON = "application/json"
)

func (c *client) request(ctx context.Context, a ask) *http.Request {
	u := *c.target
	u.Path, u.RawQuery = a.path, a.query
	h := http.Header{
		"Accept":           {a.accept},
		"Accept-Encoding":  {"gzip"},
		"User-Agent":       {"anteroom-demo-crowd"},
		shop.VisitorHeader: {strconv.Itoa(a.number)},
		shop.SentHeader:    {strconv.FormatInt(c.now(), 10)},
	}
	if a.accept == acceptJSON {
		h["Accept-Encoding"] = []string{"identity"} // it will be read
	}
	if a.accept == acceptHTML {
		h["Sec-Fetch-Dest"], h["Sec-Fetch-Mode"] = []string{"document"}, []string{"navigate"}
	}
	if a.cookie != "" {
		h["Cookie"] = []string{strings.TrimSuffix(a.cookie+"; "+a.pass, "; ")}
	}
	host := u.Host
	if a.to != "" {
		u.Host = a.to
	}
	r := &http.Request{Method: "GET", URL: &u, Host: host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	return r.WithContext(ctx)
}

// route returns where a request of the visitor goes; empty means the target.
func (c *client) route(number int) string {
	if c.cfg.Route == nil {
		return ""
	}
	return c.cfg.Route(number)
}

// now is the crowd's clock. It begins at 1, for 0 means never.
func (c *client) now() int64 { return max(1, time.Since(c.cfg.Start).Microseconds()) }

// do sends one request and reads its answer.
func (c *client) do(ctx context.Context, a ask) answer {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	a.to = c.route(a.number)
	r := c.request(ctx, a)
	over := c.kept
	if a.cookie == "" {
		over = c.single
	}
	out := answer{sent: c.now(), page: a.query == "", ahead: -1, wait: -1, to: a.to}
	resp, err := over.RoundTrip(r)
	if err == nil {
		c.read(&out, a, resp)
		drain(resp.Body)
		resp.Body.Close()
	} else {
		out.err = err
	}
	out.came = c.now()
	return out
}

func (c *client) read(out *answer, a ask, resp *http.Response) {
	out.cookie, out.unset = c.ticket(resp)
	for _, set := range resp.Cookies() {
		if strings.HasPrefix(set.Name, passPrefix) {
			out.pass = set.Name + "=" + set.Value
		}
	}
	if resp.Header.Get(shop.Mark) != "" {
		out.inside = true
		if resp.StatusCode >= 500 {
			out.err = fmt.Errorf("the shop says %d", resp.StatusCode)
		}
		return
	}
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusBadRequest || resp.StatusCode == http.StatusMisdirectedRequest || resp.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		out.err = fmt.Errorf("%s says %d", a.path, resp.StatusCode)
		return
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		if resp.Header.Get("Content-Encoding") != "" {
			out.err = fmt.Errorf("%s?%s: JSON came as %q, which was not asked for", a.path, a.query, resp.Header.Get("Content-Encoding"))
			return
		}
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			out.err = err
			return
		}
		if err := out.readJSON(b); err != nil {
			out.err = fmt.Errorf("%s?%s: %w", a.path, a.query, err)
		}
		return
	}
	if a.query != "" {
		out.err = fmt.Errorf("%s?%s: %d with %q, want JSON", a.path, a.query, resp.StatusCode, resp.Header.Get("Content-Type"))
		return
	}
	if seconds, ok := refreshHeader(resp.Header.Get("Refresh")); ok {
		out.refresh = seconds
	} else if resp.StatusCode >= 300 && resp.StatusCode != http.StatusTooManyRequests {
		out.err = fmt.Errorf("%s: %d is neither the shop nor a waiting page", a.path, resp.StatusCode)
	}
}

// ticket returns the ticket that an answer sets as "name=value", or "", and whether it
// deletes it.
func (c *client) ticket(resp *http.Response) (cookie string, unset bool) {
	for _, set := range resp.Cookies() {
		if strings.HasPrefix(set.Name, c.cfg.CookiePrefix) {
			cookie, unset = set.Name+"="+set.Value, set.MaxAge < 0 || set.Value == ""
		}
	}
	return cookie, unset
}

// refreshHeader reads "20" or "20; url=…".
func refreshHeader(v string) (time.Duration, bool) {
	v, _, _ = strings.Cut(v, ";")
	n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || n < 0 || n > 86400 {
		return 0, false
	}
	return time.Duration(n * float64(time.Second)), true
}

// readJSON understands the published object and the small status of the page's script.
func (out *answer) readJSON(b []byte) error {
	var v struct {
		Room *struct {
			In      bool    `json:"inWaitingRoom"`
			Refresh float64 `json:"refreshIntervalSeconds"`
		} `json:"cfWaitingRoom"`
		Admitted *bool   `json:"admitted"`
		Ahead    *int    `json:"ahead"`
		Wait     *int    `json:"wait"`
		Ref      string  `json:"ref"`
		Refresh  float64 `json:"refresh"`
		Stream   bool    `json:"stream"`
		Reason   string  `json:"reason"`
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("%w in %.80q", err, b)
	}
	switch {
	case v.Room != nil:
		out.refresh = time.Duration(v.Room.Refresh * float64(time.Second))
	case v.Admitted != nil:
		out.admitted = *v.Admitted
		out.refresh = time.Duration(v.Refresh * float64(time.Second))
		out.offered = v.Stream
		out.lost = v.Reason == "place_lost"
		out.ref = v.Ref
		if v.Ahead != nil {
			out.ahead = *v.Ahead
		}
		if v.Wait != nil {
			out.wait = *v.Wait
		}
	default:
		return fmt.Errorf("neither cfWaitingRoom nor admitted in %.80q", b)
	}
	return nil
}
