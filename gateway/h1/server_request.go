package h1

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"time"
)

// asked is the request in progress. Request, address and header are used again for the next one of the connection;
// the texts are not, so that whoever keeps one keeps what it was.
type asked struct {
	v       *visitor
	req     *http.Request
	url     url.URL
	*fields // nil between requests
	remote  string
	length  int64
	body    *inBody // nil without one
}

// fields is where a request's header, and that of its answer, are. Idle connections have none.
type fields struct {
	header http.Header
	values []string // of header, one each
	answer http.Header
}

var fieldsPool = sync.Pool{New: func() any {
	// A map for up to eight is searched without a table; one that has grown stays as it is.
	return &fields{header: make(http.Header, 8), answer: make(http.Header, 8)}
}}

// giveBack gives the fields back, when nobody uses request and answer any more.
func (a *asked) giveBack() {
	if a.fields == nil {
		return
	}
	clear(a.header)
	clear(a.answer)
	clear(a.values[:cap(a.values)])
	fieldsPool.Put(a.fields)
	a.fields, a.req.Header = nil, nil
}

func (a *asked) init(ctx context.Context, v *visitor) {
	a.v = v
	a.req = new(http.Request).WithContext(ctx)
	a.remote = v.nc.RemoteAddr().String()
}

// plain takes a complete head and reports whether the loop serves its request. It does if nobody could read the head,
// or where its body ends, in another way: a known method, a path as target, HTTP/1.1, one Host, no transfer coding,
// at most one Content-Length of digits, nothing that asks for another protocol or an answer ahead of the body.
// Everything else is left to net/http.
func (v *visitor) plain(raw []byte) bool {
	h, a := &v.head, &v.asked
	if h.Parse(raw) != nil {
		return false
	}
	if a.fields == nil {
		a.fields = fieldsPool.Get().(*fields)
	}
	a.length = 0
	text := string(raw)
	r := a.req
	method, target, ok := startLine(text[:h.line])
	if !ok || !a.address(target) {
		return false
	}
	if cap(a.values) < len(h.fields) {
		a.values = make([]string, len(h.fields)+8)
	}
	a.values = a.values[:cap(a.values)]
	host, hosts, lengths := "", 0, 0
	for i, f := range h.fields {
		name, value := text[f.name:f.colon], text[f.value:f.end]
		if !isCommon(name) && !isCanonical(name) {
			name = textproto.CanonicalMIMEHeaderKey(name)
		}
		if !isClear(value) {
			return false
		}
		switch name {
		case "Host":
			host, hosts = value, hosts+1
			continue
		case "Content-Length":
			n, ok := parseLength(raw[f.value:f.end])
			if !ok {
				return false
			}
			a.length, lengths = n, lengths+1
		case "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Expect", "Http2-Settings":
			return false
		case "Connection":
			if a.header[name] != nil || !strings.EqualFold(value, "keep-alive") && !strings.EqualFold(value, "close") {
				return false
			}
		}
		if before, ok := a.header[name]; ok {
			a.header[name] = append(before, value)
			continue
		}
		a.values[i] = value
		a.header[name] = a.values[i : i+1 : i+1]
	}
	if hosts != 1 || lengths > 1 || host == "" || !isPlainHost(host) {
		return false
	}
	if p := a.header["Pragma"]; len(p) > 0 && p[0] == "no-cache" && a.header["Cache-Control"] == nil {
		a.header["Cache-Control"] = p[:1:1] // as net/http does (RFC 9111 §5.4)
	}
	r.Method, r.RequestURI, r.Host = method, target, host
	return true
}

// startLine cuts a request line into its parts. Ok means that the loop serves such requests.
func startLine(line string) (method, target string, ok bool) {
	method, rest, _ := strings.Cut(line, " ")
	target, ok = strings.CutSuffix(rest, " HTTP/1.1")
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method, target, ok && target != "" && target[0] == '/'
	}
	return "", "", false
}

// address takes the target apart. It reports false for one that net/http would refuse.
func (a *asked) address(target string) bool {
	path, query, asks := strings.Cut(target, "?")
	simple := !strings.HasPrefix(path, "//")
	for i := range len(target) {
		switch c := target[i]; {
		case c <= ' ' || c >= 0x7f:
			return false
		case !plainPath[c]:
			simple = simple && i >= len(path)
		}
	}
	if simple {
		a.url = url.URL{Path: path, RawQuery: query, ForceQuery: asks && query == ""}
		return true
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	a.url = *u
	return true
}

// plainPath are the bytes of a path that url.Parse leaves as they are.
var plainPath = func() (is [256]bool) {
	for _, c := range "/-._~$&+,:;=@0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		is[c] = true
	}
	return is
}()

// request returns the request whose head was taken.
func (a *asked) request() *http.Request {
	r := a.req
	r.URL, r.Header = &a.url, a.header
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, 1
	r.ContentLength, r.Body, r.GetBody = a.length, http.NoBody, nil
	r.TransferEncoding, r.Form, r.PostForm, r.MultipartForm, r.Trailer = nil, nil, nil, nil, nil
	r.Close = len(a.header["Connection"]) > 0 && strings.EqualFold(a.header["Connection"][0], "close")
	r.RemoteAddr, r.TLS, r.Response, r.Pattern = a.remote, a.v.tls, nil, ""
	a.body = nil
	if a.length > 0 {
		a.body = &inBody{v: a.v, left: a.length}
		r.Body = a.body
		a.v.unbound()
	}
	return r
}

// discard reads what the handler has left of the body, so that the answer does not meet a visitor who still sends. It
// reports whether the connection can be kept.
func (a *asked) discard() bool {
	b := a.body
	if b == nil {
		return true
	}
	if !b.mu.TryLock() {
		return false // somebody reads it beside the answer
	}
	defer b.mu.Unlock()
	switch {
	case b.left == 0, b.err != nil:
		return true // or the connection is over
	case b.closed, b.left > unreadBody:
		return false
	}
	a.v.readBy(time.Now().Add(unreadTime))
	for b.left > 0 {
		if a.v.from == a.v.to {
			n, err := a.v.nc.Read(a.v.in)
			if a.v.from, a.v.to = 0, n; n == 0 && err != nil {
				b.err = noEOF(err)
				return false
			}
		}
		n := min(int(b.left), a.v.to-a.v.from)
		a.v.from += n
		b.left -= int64(n)
	}
	b.err = io.EOF
	return true
}

// finish ends the request. It reports whether its body was read to the end.
func (a *asked) finish() bool {
	if a.body == nil {
		return true
	}
	a.body.lock()
	defer a.body.mu.Unlock()
	a.body.closed = true
	return a.body.left == 0
}

// unreadTime bounds the reading of what the handler left of a body.
const unreadTime = 5 * time.Second

// inBody is the body of a request. It is not used again: a transport may read it beyond the handler's end.
type inBody struct {
	v      *visitor
	mu     sync.Mutex
	left   int64
	err    error
	closed bool
}

var errBodyClosed = errors.New("h1: the body of the request was read after Close")

// Read reads the next part; an early end of the connection is io.ErrUnexpectedEOF.
func (b *inBody) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, errBodyClosed
	case b.err != nil:
		return 0, b.err
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	if len(p) == 0 {
		return 0, nil
	}
	v := b.v
	if v.from < v.to {
		n = copy(p, v.in[v.from:v.to])
		v.from += n
	} else if n, err = v.nc.Read(p); n > 0 {
		err = nil
	}
	if b.left -= int64(n); b.left == 0 {
		b.err = io.EOF
		v.watch.bodyRead()
		return n, io.EOF
	}
	if err != nil {
		b.err = noEOF(err)
	}
	return n, b.err
}

// Close makes further reads fail. What is left belongs to the connection.
func (b *inBody) Close() error {
	b.lock()
	b.closed = true
	b.mu.Unlock()
	return nil
}

// lock ends a read that is waiting for the visitor, and with it the use of the connection.
func (b *inBody) lock() {
	if !b.mu.TryLock() {
		b.v.nc.SetReadDeadline(past)
		b.mu.Lock()
	}
}
