package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/anteroom/anteroom/gateway/h1"
)

// pass takes the request to the origin and the answer back. [h1.Transport] sends requests that it knows from the
// visitor's own fields, changed where they stand; everything else takes the way of httputil.ReverseProxy, which does
// the same on copies.
func (x *exchange) pass() {
	w := &x.out
	if x.fast = !x.s.NoFastPath && x.prepareSent(); !x.fast {
		x.proxy.ServeHTTP(w, x.r)
		return
	}
	if x.body != nil {
		defer x.body.Close() // before the visitor's connection goes on with the next request
	}
	res, err := x.RoundTrip(&x.sent)
	if err != nil {
		x.failed(w, &x.sent, err)
		return
	}
	x.answer(w, res)
}

// prepareSent makes the request that the origin sees. It reports false, with nothing changed, if the fast path does not know
// such requests.
func (x *exchange) prepareSent() bool {
	r, out, o := x.r, &x.sent, x.origin
	*out = *r
	x.sentURL = *r.URL
	out.URL, out.Trailer = &x.sentURL, nil
	out.URL.Scheme, out.URL.Host = o.url.Scheme, o.url.Host
	keepTarget(out.URL, r)
	if !x.site.preserve {
		out.Host = ""
	}
	if out.ContentLength == 0 {
		out.Body = nil
	}
	out.TransferEncoding, out.Close = nil, false
	connection, upgrade := r.Header["Connection"], r.Header["Upgrade"]
	delete(r.Header, "Connection")
	delete(r.Header, "Upgrade")
	if !x.s.fast.Knows(out) {
		if connection != nil {
			r.Header["Connection"] = connection
		}
		if upgrade != nil {
			r.Header["Upgrade"] = upgrade
		}
		return false
	}
	h := r.Header
	trailers := hasToken(h["Te"], "trailers")
	dropConnectionFields(h, connection)
	if trailers {
		h["Te"] = valueTrailers
	}
	delete(h, "Forwarded")
	x.setForwarded(h)
	x.s.stripTickets(h)
	if x.span != nil {
		x.traceOrigin(h)
	}
	return true
}

// dropConnectionFields removes what is about one connection alone (RFC 9110 §7.6.1), and what connection names.
func dropConnectionFields(h http.Header, connection []string) {
	for _, line := range connection {
		for name := range strings.SplitSeq(line, ",") {
			switch name = textproto.TrimString(name); name {
			case "", "close", "keep-alive": // what most say
			default:
				h.Del(name)
			}
		}
	}
	for name := range h { // to look at all costs less than to look for each
		switch name {
		case "Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
			delete(h, name)
		}
	}
}

// interim passes an answer with a status of 1xx on.
func (x *exchange) interim(status int, fields http.Header) error {
	h := x.out.Header()
	for name, values := range fields {
		h[name] = append(h[name], values...)
	}
	x.out.WriteHeader(status)
	clear(h)
	return nil
}

// answer passes the origin's answer on.
func (x *exchange) answer(w http.ResponseWriter, res *http.Response) {
	from, h := res.Header, w.Header()
	dropConnectionFields(from, from["Connection"])
	dropLength(res)
	x.finish(from)
	if !x.inPlace {
		for name, values := range from {
			if before, ok := h[name]; ok {
				values = append(before, values...)
			}
			h[name] = values
		}
	}
	announced := len(res.Trailer)
	for name := range res.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(res.StatusCode)
	if res.Body != http.NoBody {
		x.copy(res)
	}
	if len(res.Trailer) == 0 {
		return
	}
	x.out.FlushError() // so that the answer has chunks, and a trailer can follow
	for name, values := range res.Trailer {
		if len(res.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		h[name] = append(h[name], values...)
	}
}

// copy passes the body of an answer on. One that comes in parts, or that says nothing of its length, leaves as it comes.
func (x *exchange) copy(res *http.Response) {
	buffer := x.g.buffers.Get()
	defer x.g.buffers.Put(buffer)
	kind := res.Header["Content-Type"]
	live := res.ContentLength < 0 || len(kind) > 0 && strings.HasPrefix(kind[0], "text/event-stream")
	for {
		n, err := res.Body.Read(buffer)
		if n > 0 {
			if _, bad := x.out.Write(buffer[:n]); bad != nil {
				res.Body.Close()
				panic(http.ErrAbortHandler)
			}
			if live {
				x.out.FlushError()
			}
		}
		switch {
		case err == nil:
			if !live && x.relay(res.Body) {
				return
			}
		case err == io.EOF:
			res.Body.Close()
			return
		default:
			res.Body.Close()
			panic(http.ErrAbortHandler)
		}
	}
}

// relay passes the rest of a body on in the kernel, if that can be: otherwise it is still to be read.
func (x *exchange) relay(body io.ReadCloser) bool {
	r := h1.RelayOf(x.w, body)
	if r == nil {
		return false
	}
	defer r.End()
	for {
		err := r.Take()
		if err == errors.ErrUnsupported {
			return false
		}
		left, bad := r.Send(0)
		for left > 0 && bad == nil {
			x.out.limit.until(time.Now().Add(x.out.time))
			left, bad = r.Send(copyBuffer)
			x.out.limit.lift()
		}
		switch {
		case bad != nil, err != nil && err != io.EOF:
			body.Close()
			panic(http.ErrAbortHandler)
		case err == io.EOF:
			body.Close()
			return true
		}
	}
}
