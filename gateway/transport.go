package gateway

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/anteroom/anteroom/gateway/socket"
)

// Timeouts bound what origins and visitors take. The zero value means the defaults in the
// comments.
type Timeouts struct {
	// Dial bounds connecting, name look-up and TLS included, each. 5 s.
	Dial time.Duration
	// ResponseHeader bounds the wait for the first byte of an answer after the request was
	// sent. 60 s; it is not a bound on the answer's body. Over it: 504.
	ResponseHeader time.Duration
	// IdleOrigin is how long an unused connection to an origin is kept. 90 s. It should be
	// shorter than the origin's own.
	IdleOrigin time.Duration
	// Write bounds one write of an answer to a visitor, of 32 KiB at most. 10 s. Streams may
	// last for ever.
	Write time.Duration
	// Stall bounds one read of a request body: a visitor who gives nothing for that long is
	// gone. 60 s.
	Stall time.Duration
	// Body bounds the arrival of a whole request body. 4 h.
	Body time.Duration
	// Page bounds the sending of a waiting page, its JSON, or one event of a stream. 10 s.
	Page time.Duration
	// IdleWaiting is how long a connection may be idle while it has only received the waiting page, which refreshes
	// less often than that. Default 15 s. See [Gateway.Server].
	IdleWaiting time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	return Timeouts{
		Dial:           cmp.Or(t.Dial, 5*time.Second),
		ResponseHeader: cmp.Or(t.ResponseHeader, 60*time.Second),
		IdleOrigin:     cmp.Or(t.IdleOrigin, 90*time.Second),
		Write:          cmp.Or(t.Write, 10*time.Second),
		Stall:          cmp.Or(t.Stall, 60*time.Second),
		Body:           cmp.Or(t.Body, 4*time.Hour),
		Page:           cmp.Or(t.Page, answerTime),
		IdleWaiting:    cmp.Or(t.IdleWaiting, 15*time.Second),
	}
}

// newTransport returns the way to origins. What makes it fast is that idle connections are
// kept: http.DefaultTransport keeps two per host and opens a new one for nearly every
// request above that. It speaks HTTP/1.1 only (Go's HTTP/2 client took malformed framing
// headers of a response, CVE-2026-78660), reads no proxy from the environment, and leaves
// Accept-Encoding and bodies as they are.
func newTransport(t Timeouts) *http.Transport {
	dialer := &net.Dialer{Timeout: t.Dial, KeepAlive: 30 * time.Second}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			nc, err := dialer.DialContext(ctx, network, address)
			return socket.Wrap(nc), err
		},
		TLSHandshakeTimeout:   t.Dial,
		ResponseHeaderTimeout: t.ResponseHeader,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       t.IdleOrigin,
		MaxIdleConnsPerHost:   1024,
		// One response of an origin may not fill our memory with headers.
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true,
		Protocols:              &protocols,
	}
}

// origins is the way of visitors' requests. Health checks take the transport: they are few.
func (s *setup) origins() http.RoundTripper {
	if s.NoFastPath {
		return s.transport
	}
	return s.fast
}
