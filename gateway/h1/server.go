package h1

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom/gateway/socket"
)

// Server serves plain requests of HTTP/1.1 in a loop of its own and leaves everything else to net/http: the connection
// goes there with the bytes that were read, before anything was decided. Plain is what [Server.plain] says.
//
// The embedded server says how: its handler, its ConnContext and ConnState, its timeouts for heads and idleness, its
// error log. One with a ReadTimeout or a WriteTimeout, which bound whole requests and answers, is left to net/http
// altogether. Make a Server with [NewServer]. Serve, Shutdown, Close and SetKeepAlivesEnabled are this type's; they
// do for both ways what they do in net/http.
type Server struct {
	*http.Server
	// Off, when it reports true, leaves new connections to net/http. Nil means never.
	Off func() bool

	handler http.Handler
	other   handed

	mu     sync.Mutex
	open   map[*visitor]struct{}
	from   []net.Listener
	served bool // other is being served

	closeEach atomic.Bool // no connection is kept after its answer
	ending    atomic.Bool
}

// NewServer returns a server that serves as srv would, whose Handler must be there when serving begins; then it
// changes that and the ConnContext.
func NewServer(srv *http.Server) *Server {
	return &Server{
		Server: srv,
		open:   make(map[*visitor]struct{}),
		other:  handed{conns: make(chan net.Conn), closed: make(chan struct{})},
	}
}

// ServeHTTP is the handler of net/http's part.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// net/http knows TLS only by the connection's type.
	if state, ok := r.Context().Value(tlsKey{}).(*tls.ConnectionState); ok && r.TLS == nil {
		r.TLS = state
	}
	s.handler.ServeHTTP(w, r)
}

type tlsKey struct{}

// withTLS adds to a ConnContext what net/http cannot see of a connection that was handed over.
func withTLS(next func(context.Context, net.Conn) context.Context) func(context.Context, net.Conn) context.Context {
	return func(ctx context.Context, nc net.Conn) context.Context {
		if h, ok := nc.(*Handed); ok && h.tls != nil {
			ctx = context.WithValue(ctx, tlsKey{}, h.tls)
		}
		if next != nil {
			ctx = next(ctx, nc)
		}
		return ctx
	}
}

// Serve accepts connections until the listener or the server is closed. It returns the listener's error, or
// [http.ErrServerClosed].
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if err := s.begin(l); err != nil {
		return err
	}
	base := context.WithValue(context.Background(), http.ServerContextKey, s.Server)
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		if s.ending.Load() {
			if err == nil {
				nc.Close()
			}
			return http.ErrServerClosed
		}
		if err != nil {
			temporary, ok := errors.AsType[interface {
				error
				Temporary() bool
			}](err)
			if !ok || !temporary.Temporary() {
				return err
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.logf("http: Accept error: %v; retrying in %v", err, pause)
			time.Sleep(pause)
			continue
		}
		pause = 0
		go s.serve(base, nc)
	}
}

// begin has the other server serve what is handed over, and end when this one does.
func (s *Server) begin(l net.Listener) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() {
		return http.ErrServerClosed
	}
	if !s.served {
		s.served = true
		s.other.address = l.Addr()
		s.handler, s.Handler = s.Handler, s
		s.ConnContext = withTLS(s.ConnContext)
		go s.Server.Serve(&s.other)
	}
	s.from = append(s.from, l)
	return nil
}

// serve serves one connection. Its stack stays below the requests, which may last for hours.
func (s *Server) serve(ctx context.Context, nc net.Conn) {
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, nc.LocalAddr())
	if v := s.visitor(ctx, nc); v != nil {
		v.serve(ctx)
		s.remove(v)
	}
}

// visitor returns the visitor of a new connection, or nil if the loop does not serve it.
func (s *Server) visitor(ctx context.Context, nc net.Conn) *visitor {
	if s.ReadTimeout > 0 || s.WriteTimeout > 0 || s.Off != nil && s.Off() {
		s.other.take(nc)
		return nil
	}
	if t, ok := nc.(*tls.Conn); ok {
		if !s.handshake(ctx, t) {
			return nil
		}
		if p := t.ConnectionState().NegotiatedProtocol; p != "" && p != "http/1.1" {
			s.other.take(nc)
			return nil
		}
	}
	v := newVisitor(s, nc)
	if !s.add(v) {
		nc.Close()
		return nil
	}
	return v
}

// handshake completes the one of TLS, within the time for a head.
func (s *Server) handshake(ctx context.Context, t *tls.Conn) bool {
	if d := s.ReadHeaderTimeout; d > 0 {
		t.SetDeadline(time.Now().Add(d))
	}
	if err := t.HandshakeContext(ctx); err != nil {
		if bad, ok := errors.AsType[tls.RecordHeaderError](err); ok && bad.Conn != nil && looksLikeHTTP(bad.RecordHeader) {
			io.WriteString(bad.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
		} else {
			s.logf("http: TLS handshake error from %s: %v", t.RemoteAddr(), err)
		}
		t.Close()
		return false
	}
	t.SetDeadline(time.Time{})
	return true
}

// looksLikeHTTP reports whether the first bytes of a connection are those of a plain request.
func looksLikeHTTP(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "PATCH", "DELET":
		return true
	}
	return false
}

func (s *Server) add(v *visitor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending.Load() {
		return false
	}
	s.open[v] = struct{}{}
	return true
}

func (s *Server) remove(v *visitor) {
	s.mu.Lock()
	delete(s.open, v)
	s.mu.Unlock()
}

// SetKeepAlivesEnabled is [http.Server.SetKeepAlivesEnabled]: without, idle connections end now and the others with
// the answer they wait for.
func (s *Server) SetKeepAlivesEnabled(on bool) {
	s.closeEach.Store(!on)
	s.Server.SetKeepAlivesEnabled(on)
	if !on {
		s.closeIdle()
	}
}

// closeIdle closes the connections without a request and returns how many are left.
func (s *Server) closeIdle() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := 0
	for v := range s.open {
		if v.state.CompareAndSwap(isIdle, isGone) {
			v.nc.Close()
		} else if v.state.Load() == isActive || time.Since(v.since) < newTime {
			left++
		} else {
			v.nc.Close()
		}
	}
	return left
}

// newTime is how long a connection without a request so far is waited for, as in net/http.
const newTime = 5 * time.Second

// Shutdown is [http.Server.Shutdown]: it stops accepting, closes idle connections, and returns when the others have
// ended or ctx has.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	s.closeEach.Store(true)
	s.closeIdle()
	if err := s.Server.Shutdown(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.closeIdle() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// Close is [http.Server.Close]: it closes every connection.
func (s *Server) Close() error {
	s.mu.Lock()
	s.end()
	for v := range s.open {
		v.nc.Close()
	}
	s.mu.Unlock()
	return s.Server.Close()
}

// end stops accepting.
func (s *Server) end() {
	s.ending.Store(true)
	for _, l := range s.from {
		l.Close()
	}
	s.other.Close()
}

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// handed is the listener of the connections that the loop hands over.
type handed struct {
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
	address net.Addr
}

// take hands a connection over.
func (h *handed) take(nc net.Conn) {
	select {
	case h.conns <- nc:
	case <-h.closed:
		nc.Close()
	}
}

// Accept implements net.Listener.
func (h *handed) Accept() (net.Conn, error) {
	select {
	case nc := <-h.conns:
		return nc, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handed) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener: that of the first listener.
func (h *handed) Addr() net.Addr { return h.address }

// Handed is a connection that the loop has left to net/http with the bytes it had read.
type Handed struct {
	net.Conn
	// Context is what ConnContext made of the connection before; its values say what was known of it.
	Context context.Context

	early []byte
	tls   *tls.ConnectionState // nil without TLS
}

// Read implements net.Conn.
func (c *Handed) Read(p []byte) (int, error) {
	if len(c.early) > 0 && len(p) > 0 {
		n := copy(p, c.early)
		if c.early = c.early[n:]; len(c.early) == 0 {
			c.early = nil
		}
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite closes one direction, where the connection can.
func (c *Handed) CloseWrite() error { return socket.CloseWrite(c.Conn) }
