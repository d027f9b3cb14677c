package gateway

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

// shape is what an onlooker can tell an answer by: status, size, and the headers with
// everything that is random or a moment made the same.
func shape(res *http.Response, body string) string {
	var lines []string
	for name, values := range res.Header {
		for _, v := range values {
			if name == "Set-Cookie" || name == "Date" {
				v = strconv.Itoa(len(v)) + " bytes"
			}
			lines = append(lines, name+": "+v)
		}
	}
	slices.Sort(lines)
	return strconv.Itoa(res.StatusCode) + " " + strconv.Itoa(len(body)) + "\n" + strings.Join(lines, "\n")
}

// TestInvalidTicketsLookAbsent is T1 to T4, T12, T13 and T22 as a visitor sees them: whatever
// is wrong with a ticket, the answer is that of a visitor without one.
func TestInvalidTicketsLookAbsent(t *testing.T) {
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.JSONResponse = true }))
	name := w.gw.live.Load().rooms[0].scope.Name
	own := session()
	valid := strings.TrimPrefix(w.seal(own), name+"=")
	rawTicket, err := base64.RawURLEncoding.DecodeString(valid)
	if err != nil {
		t.Fatal(err)
	}
	edited := func(at int, to byte) string {
		b := slices.Clone(rawTicket)
		b[at] ^= to
		return base64.RawURLEncoding.EncodeToString(b)
	}
	for _, accept := range []string{"text/html", "application/json"} {
		res, body := w.do("GET", "/", header("Accept", accept, "Accept-Encoding", "identity"))
		want := shape(res, body)
		for _, c := range []struct{ what, value string }{
			{"empty", ""}, {"one letter", "A"}, {"4000 letters", strings.Repeat("A", 4000)}, {"other bytes", "\"<script>\xff"},
			{"another version", edited(0, 1)}, {"an unknown key", edited(4, 1)}, {"another nonce", edited(5, 1)}, {"another body", edited(60, 1)}, {"another seal", edited(len(rawTicket)-1, 1)},
			{"cut", valid[:len(valid)-4]}, {"extended", valid + "AAAA"}, {"padded", valid + "="}, {"quoted", `"` + valid + `"`},
			{"of another room", string(w.keys.Sealer(w.room.Zone, "0123456789abcdef0123456789abcdef", name).Seal(nil, own))},
			{"of another zone", string(w.keys.Sealer("example.org", w.room.ID, name).Seal(nil, own))},
			{"of another cookie", string(w.keys.Sealer(w.room.Zone, w.room.ID, name+"_x").Seal(nil, own))},
			{"of another keyring", string(ticket.NewKeyring(time.Now()).Sealer(w.room.Zone, w.room.ID, name).Seal(nil, own))},
		} {
			before := len(w.door.seen())
			res, body := w.do("GET", "/", func(r *http.Request) {
				header("Accept", accept, "Accept-Encoding", "identity")(r)
				r.Header["Cookie"] = []string{name + "=" + c.value}
			})
			if got := shape(res, body); got != want {
				t.Errorf("%s, %s:\n%s\nwant\n%s", accept, c.what, got, want)
			}
			if v := w.door.seen()[before]; !v.Fresh || v.Ticket.ID == own.ID {
				t.Errorf("%s: not a new visitor", c.what)
			}
		}
	}
}

// TestTooManyCookiesAreNoNewVisitor is threats §0.7: net/http reads no cookie at all when
// there are more than 3000, and a visitor inside must not look like a new one.
func TestTooManyCookiesAreNoNewVisitor(t *testing.T) {
	for _, n := range []int{anteroom.MaxCookies, 2999, 3000, 3001, 4000} {
		w := newWorld(t, line)
		own := w.seal(session())
		cookies := own + strings.Repeat(";a", n)
		all := raw(t, w.addr(), "GET / HTTP/1.1\nHost: shop.example.com\nCookie: "+cookies+"\n\n")
		if len(all) != 1 || all[0].StatusCode != 431 || len(all[0].Header["Set-Cookie"]) != 0 || !all[0].Close {
			t.Errorf("%d more cookies: %d answers", n, len(all))
		}
		if len(w.door.seen()) != 0 || len(w.origin.requests()) != 0 {
			t.Errorf("%d more cookies: the room or the origin was asked", n)
		}
	}
}

// TestClientClocksAreNotRead is T10: moments that a client sends change nothing.
func TestClientClocksAreNotRead(t *testing.T) {
	w := newWorld(t, line)
	cookie := w.seal(waiting())
	res, body := w.do("GET", "/", header("Cookie", cookie))
	want := shape(res, body)
	for _, at := range []string{"Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "-1", "x"} {
		res, body := w.do("GET", "/", header("Cookie", cookie, "Date", at, "If-Modified-Since", at, "If-Unmodified-Since", at, "If-Range", at, "Age", at, "Expires", at, "X-Request-Start", at))
		if got := shape(res, body); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", at, got, want)
		}
	}
	v := w.door.seen()
	for _, one := range v[1:] {
		one.NewID = v[0].NewID
		if one != v[0] {
			t.Errorf("%+v, want %+v", one, v[0])
		}
	}
}

// TestPageReflectsNothing: what a cache would not key on is not in the page, so that there is
// nothing to poison a cache with, and no script to smuggle in.
func TestPageReflectsNothing(t *testing.T) {
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.JSONResponse = true; r.Routes[0].Host = "*" }),
		withConfig(func(c *Config) { c.Sites[0].Hosts = []string{"*"} }))
	const mark = "zqxmark"
	for _, accept := range []string{"text/html", "application/json"} {
		for _, target := range []string{"/", "/?__anteroom=status", "/?__anteroom=hold", "/?__anteroom=" + mark} {
			sep := "?"
			if strings.Contains(target, "?") {
				sep = "&"
			}
			res, body := w.do("GET", "/"+mark+target+sep+mark+"=<"+mark+">", func(r *http.Request) {
				r.Host = mark + ".example.com"
				r.Header.Set("Accept", accept)
				for _, name := range []string{"Accept-Language", "User-Agent", "Referer", "Origin", "X-Forwarded-Host", "X-Forwarded-For", "X-Forwarded-Proto", "X-Original-Url", "Forwarded", "Via", "Cookie", "Range", "Authorization", "X-Anteroom-Room"} {
					r.Header.Add(name, mark+"="+mark)
				}
			})
			if strings.Contains(body, mark) {
				t.Errorf("%s %s: the body repeats what the client sent: %s", accept, target, body)
			}
			for name, v := range res.Header {
				// Where the turn has come with the page paused, Location repeats the query: here
				// nobody's has.
				if strings.Contains(strings.Join(v, " "), mark) && name != "Set-Cookie" {
					t.Errorf("%s %s: %s repeats what the client sent: %q", accept, target, name, v)
				}
				if name == "Set-Cookie" && strings.Contains(strings.Join(v, " "), mark) {
					t.Errorf("%s %s: Set-Cookie %q", accept, target, v)
				}
			}
		}
	}
}

// TestHeadIsGetWithoutBody: the same answer, and its length.
func TestHeadIsGetWithoutBody(t *testing.T) {
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.JSONResponse = true }))
	cookie := w.seal(waiting())
	for _, c := range []struct{ target, accept, encoding string }{
		{"/", "text/html", "identity"}, {"/", "text/html", "gzip"}, {"/", "application/json", "identity"}, {"/?__anteroom=status", "*/*", "identity"},
	} {
		ask := header("Cookie", cookie, "Accept", c.accept, "Accept-Encoding", c.encoding)
		get, body := w.do("GET", c.target, ask)
		head, nothing := w.do("HEAD", c.target, ask)
		if head.StatusCode != get.StatusCode || head.ContentLength != int64(len(body)) || nothing != "" {
			t.Errorf("%v: HEAD %d with %d of %d bytes, body %q", c, head.StatusCode, head.ContentLength, len(body), nothing)
		}
		if g, h := strings.SplitN(shape(get, ""), "\n", 2)[1], strings.SplitN(shape(head, ""), "\n", 2)[1]; g != h {
			t.Errorf("%v: headers of HEAD\n%s\nof GET\n%s", c, h, g)
		}
	}
}

// TestEncodedBodiesPassThrough: a request body is never unpacked, so that no bomb goes off
// here.
func TestEncodedBodiesPassThrough(t *testing.T) {
	bomb := "\x1f\x8b\x08\x00" + strings.Repeat("\x00\xff", 500)
	w := newWorld(t, admit)
	res, _ := w.do("POST", "/", func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(bomb)), int64(len(bomb))
		r.Header.Set("Content-Encoding", "gzip")
	})
	if got := w.origin.last(t); res.StatusCode != 200 || w.origin.bodies[0] != bomb || got.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("status %d, %d bytes at the origin", res.StatusCode, len(w.origin.bodies[0]))
	}
}

// TestSlowHeaders: clients that never finish their headers are cut off, and nobody waits for
// them meanwhile.
func TestSlowHeaders(t *testing.T) {
	w := newWorld(t, admit)
	if got := w.gw.Server(nil).ReadHeaderTimeout; got != 5*time.Second {
		t.Errorf("headers may take %v", got)
	}
	w.front.Close()
	srv := w.gw.Server(nil)
	srv.ReadHeaderTimeout = 500 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go srv.Serve(l)
	defer srv.Close()
	slow := make([]net.Conn, 300)
	for i := range slow {
		if slow[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer slow[i].Close()
		io.WriteString(slow[i], "GET / HTTP/1.1\r\nHost: shop.example.com\r\nX-")
	}
	if all := raw(t, l.Addr().String(), "GET / HTTP/1.1\nHost: shop.example.com\nConnection: close\n\n"); len(all) != 1 || all[0].StatusCode != 200 {
		t.Error("an honest request was not served")
	}
	for _, c := range slow {
		c.SetDeadline(time.Now().Add(5 * time.Second))
		if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && res.StatusCode < 400 {
			t.Errorf("half a request was answered with %d", res.StatusCode)
		} else if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Fatal("a slow client still has its connection")
		}
	}
	if n := len(w.origin.requests()); n != 1 {
		t.Errorf("the origin saw %d requests", n)
	}
}
