package h1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// FuzzAnswer reads answers as we do and as net/http does. What we accept, net/http accepts, with the same status, fields,
// body and trailer, ending at the same byte; everything else we refuse.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Length: 2\r\nX: a\r\nx: b\r\n\r\nok",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nok",
		"HTTP/1.1 200\r\nConnection: x, close\r\nSet-Cookie: a=b\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\nETag: \"x\"\r\n\r\nleft",
		"HTTP/1.1 204 \r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nTrailer: X-Sum, y\r\n\r\n2;a=\"b\"\r\nok\r\n00a\r\n0123456789\r\n0\r\nX-Sum: 1\r\nz: \r\n\r\nleft",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
		"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
		"HTTP/1.1 200 OK\r\nX: a\n b\r\n\tc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: a\rContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nX: a\x00\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\n X: y\r\n\r\n",
		"\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1  200 OK\r\n\r\n",
		"HTTP/1.1 099 x\r\n\r\n",
		"HTTP/1.10 200 OK\r\n\r\n",
		"HTTP/2.0 200 OK\r\n\r\n",
		"ICY 200 OK\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 \r\nokx\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000002\r\nok\r\n0\r\n\r\n",
	} {
		f.Add([]byte(s), "GET")
		f.Add([]byte(s), "HEAD")
	}
	f.Fuzz(func(t *testing.T, b []byte, method string) {
		if method != "HEAD" {
			method = "GET"
		}
		ours, ourBody, ourRest, err := readOurs(b, method)
		if err != nil {
			return
		}
		in := bufio.NewReader(bytes.NewReader(b))
		theirs, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			t.Fatalf("net/http refuses it: %v", err)
		}
		body, err := io.ReadAll(theirs.Body)
		if err != nil {
			t.Fatalf("net/http refuses the body: %v", err)
		}
		rest, _ := io.ReadAll(in)
		if !bytes.Equal(ourBody, body) || !bytes.Equal(ourRest, rest) {
			t.Errorf("body %q and %q left, net/http %q and %q", ourBody, ourRest, body, rest)
		}
		if theirs.StatusCode < 200 {
			// What follows from it is our caller's business: the exchange goes on or is an error.
			ours.ContentLength, ours.Close = theirs.ContentLength, theirs.Close
		}
		if theirs.Trailer == nil || len(ours.Trailer) == 0 && len(theirs.Trailer) == 0 {
			ours.Trailer = theirs.Trailer
		}
		if theirs.Header["Connection"] == nil && theirs.Close {
			delete(ours.Header, "Connection") // net/http forgets what else it says
		}
		what := func(r *http.Response) []any {
			return []any{strings.TrimSpace(r.Status), r.StatusCode, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Header, r.ContentLength, r.TransferEncoding, r.Close, r.Trailer}
		}
		if a, b := what(ours), what(theirs); !reflect.DeepEqual(a, b) {
			t.Errorf("ours     %q\nnet/http %q", a, b)
		}
	})
}

// readOurs reads one answer, its body, and what follows it.
func readOurs(b []byte, method string) (res *http.Response, body, rest []byte, err error) {
	x := &exchange{t: Over(newBase()), in: bufio.NewReader(bytes.NewReader(b))}
	a, err := readAnswer(x.in, &x.head, method, 256<<10, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	b0 := &a.body
	b0.answer, b0.x = a, x
	in := x.in
	for part := make([]byte, 512); err == nil && a.Body != http.NoBody; {
		var n int
		n, err = b0.read(part)
		body = append(body, part[:n]...)
	}
	if err != nil && err != io.EOF {
		return nil, nil, nil, err
	}
	rest, err = io.ReadAll(in)
	return &a.Response, body, rest, err
}

// FuzzRequest writes requests and reads them as an origin does: either nothing leaves, or one request with the fields
// that were meant, and nothing after it.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/a?b", "", "shop.example.com", "Cookie", "a=b", int64(0))
	f.Add("POST", "", "a=1;b", "[::1]:80", "X-Name", " tabs\tin\tit ", int64(5))
	f.Add("PUT", "/a/../b", "", "x", "Transfer-Encoding", "chunked", int64(-1))
	f.Add("GET /x HTTP/1.1\r\nX: y\r\n\r\nGET", "/", "", "x", "X", "y", int64(0))
	f.Add("GET", "/ HTTP/1.1\r\nX: y", "", "x", "X", "y", int64(0))
	f.Add("GET", "/", " HTTP/1.1\r\nX: y", "x", "X", "y", int64(0))
	f.Add("GET", "/", "", "x\r\nX: y", "X", "y", int64(0))
	f.Add("GET", "/", "", "x", "X: y\r\nZ", "y", int64(0))
	f.Add("GET", "/", "", "x", "X", "y\r\n\r\nGET /", int64(0))
	f.Add("DELETE", "/", "", "x", "content-length", "7", int64(3))
	f.Fuzz(func(t *testing.T, method, target, query, host, name, value string, length int64) {
		length = max(length, -1) % 100
		r := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: "origin:80", Opaque: target, RawQuery: query}, Host: host, Header: http.Header{name: {value}}}
		if !knows(r, length) {
			return
		}
		b, err := appendRequest(nil, r, length)
		if err != nil {
			return
		}
		in := bufio.NewReader(bytes.NewReader(b))
		got, err := http.ReadRequest(in)
		if err != nil {
			// An origin may refuse what a visitor wrote, but not by its bounds.
			if bytes.Count(b, []byte("\r\n\r\n")) != 1 || !bytes.HasSuffix(b, []byte("\r\n\r\n")) {
				t.Fatalf("%q: %v", b, err)
			}
			return
		}
		if got.Method != method || got.ContentLength != length || in.Buffered() != 0 {
			t.Errorf("%q is %s with a length of %d, and %d bytes are left", b, got.Method, got.ContentLength, in.Buffered())
		}
		fields := 0
		for key, values := range got.Header {
			if key != "Content-Length" {
				fields += len(values)
			}
		}
		if fields > 1 {
			t.Errorf("%q has %v", b, got.Header)
		}
	})
}
