package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/anteroom/anteroom"
)

// slowWorld serves one connection in front of an origin, both over pipes in memory, so that a
// test's clock can be that of synctest. It returns the visitor's end.
func slowWorld(origin http.HandlerFunc) (visitor net.Conn, end func()) {
	here, there := net.Pipe()
	l, behind := make(one, 1), make(one, 16)
	l <- there
	g, s := roleGateway("127.0.0.1:9", anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}}.WithDefaults(), admit, true)
	s.transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		behind <- b
		return a, nil
	}
	front, back := g.Server(nil), &http.Server{Handler: origin}
	go front.Serve(l)
	go back.Serve(behind)
	return here, func() {
		here.Close()
		close(l)
		close(behind)
		front.Close()
		back.Close()
		s.transport.CloseIdleConnections()
	}
}

// endless writes an answer of a terabyte and says when nobody takes it any more. Its length is known
// because the proxy guards the flushing of others with a lock, which stops synctest's clock.
func endless(gone chan<- time.Time) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1099511627776")
		part := make([]byte, 1<<20)
		for {
			if _, err := w.Write(part); err != nil {
				gone <- time.Now()
				return
			}
		}
	}
}

func TestReaderOfAByteASecondIsCutWithinTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan time.Time, 1)
		visitor, end := slowWorld(endless(gone))
		defer end()
		began := time.Now()
		io.WriteString(visitor, "GET / HTTP/1.1\r\nHost: "+testHost+"\r\n\r\n")
		for one := make([]byte, 1); ; {
			if _, err := visitor.Read(one); err != nil {
				break
			}
			<-time.After(time.Second)
		}
		if took := (<-gone).Sub(began); took > 11*time.Second {
			t.Errorf("cut after %v", took)
		}
	})
}

func TestInterimAnswerThatNobodyTakesIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan time.Time, 1)
		visitor, end := slowWorld(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			<-r.Context().Done()
			gone <- time.Now()
		})
		defer end()
		began := time.Now()
		io.WriteString(visitor, "GET / HTTP/1.1\r\nHost: "+testHost+"\r\n\r\n")
		visitor.Read(make([]byte, 1)) // the answer has begun; nobody takes the rest
		<-time.After(time.Hour)
		select {
		case at := <-gone:
			if took := at.Sub(began); took > 11*time.Second {
				t.Errorf("cut after %v", took)
			}
		default:
			t.Error("the visitor is still waited for")
		}
	})
}

func TestReaderWhoTakesAllInTimeIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		visitor, end := slowWorld(endless(make(chan time.Time, 1)))
		defer end()
		io.WriteString(visitor, "GET / HTTP/1.1\r\nHost: "+testHost+"\r\n\r\n")
		for range 100 { // ten minutes
			if _, err := io.CopyN(io.Discard, visitor, copyBuffer); err != nil {
				t.Fatal(err)
			}
			<-time.After(6 * time.Second)
		}
	})
}

func TestSilentStreamsAreNotCut(t *testing.T) {
	w := newWorld(t, admit, withConfig(func(c *Config) { c.Timeouts.Write = 100 * time.Millisecond }),
		withOrigin(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				io.WriteString(rw, ":\n\n")
				http.NewResponseController(rw).Flush()
				<-time.After(300 * time.Millisecond)
			}
		}))
	secure := w.tlsFront()
	for proto, ask := range map[int]struct {
		client *http.Client
		url    string
	}{1: {http.DefaultClient, w.front.URL}, 2: {secure.Client(), secure.URL}} {
		r, _ := http.NewRequest("GET", ask.url+"/", nil)
		r.Host = testHost
		res, err := ask.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || len(body) != 9 || res.ProtoMajor != proto {
			t.Errorf("HTTP/%d: %q, %v", res.ProtoMajor, body, err)
		}
	}
}

// Nor are those of the waiting page, on which nothing happens until the visitor's turn.
func TestSilentStreamsOfWaitingVisitorsAreNotCut(t *testing.T) {
	w := newWorld(t, line, withConfig(func(c *Config) { c.Timeouts.Page = 100 * time.Millisecond }))
	updates := make(chan *anteroom.Decision)
	w.door.watch = func(_ context.Context, v anteroom.Visit) (anteroom.Decision, <-chan *anteroom.Decision) {
		return line(v), updates
	}
	secure := w.tlsFront()
	for proto, ask := range map[int]struct {
		client *http.Client
		url    string
	}{1: {http.DefaultClient, w.front.URL}, 2: {secure.Client(), secure.URL}} {
		r, _ := http.NewRequest("GET", ask.url+"/?__anteroom=stream", nil)
		r.Host = testHost
		res, err := ask.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(300 * time.Millisecond)
		turn := admit(anteroom.Visit{Ticket: waiting()})
		select {
		case updates <- &turn:
		case <-time.After(5 * time.Second):
			t.Errorf("HTTP/%d: nobody listens any more", proto)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.Contains(string(body), "event: go") || res.ProtoMajor != proto {
			t.Errorf("HTTP/%d: %q, %v", res.ProtoMajor, body, err)
		}
	}
}

func TestSlowReadersOfHTTP2AreCut(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	for name, how := range map[string]struct {
		window uint32
		drips  bool
	}{
		"by the stream's window":            {window: 1},
		"by the connection itself":          {window: 1 << 30},
		"a byte at a time, by the window":   {window: 1, drips: true},
		"the last bytes, one after another": {window: 100_000, drips: true}, // the first parts arrive in time
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan time.Time, 1)
			w := newWorld(t, admit, withOrigin(endless(gone)), withConfig(func(c *Config) { c.Timeouts.Write = 50 * time.Millisecond }))
			c, err := tls.Dial("tcp", w.tlsFront().Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			out := bufio.NewWriter(c)
			f := &frames{t: t, conn: c, fr: http2.NewFramer(out, c)}
			io.WriteString(out, http2.ClientPreface)
			f.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: how.window})
			f.fr.WriteWindowUpdate(0, 1<<30)
			f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true,
				BlockFragment: f.block(":method", "GET", ":scheme", "https", ":authority", testHost, ":path", "/")})
			out.Flush()
			if how.drips {
				go io.Copy(io.Discard, c)
			}
			for late := time.After(10 * time.Second); ; {
				select {
				case <-gone:
					return
				case <-late:
					t.Fatal("the origin is still writing")
				case <-time.After(10 * time.Millisecond):
					if how.drips {
						f.fr.WriteWindowUpdate(1, 1)
						out.Flush()
					}
				}
			}
		})
	}
}
