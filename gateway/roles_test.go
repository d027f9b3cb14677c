package gateway

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/proof"
	"github.com/anteroom/anteroom/ticket"
)

// The benchmarks compare servers by the processor time that they themselves use, so each
// runs in a process of its own: this test binary again, in the role that the environment
// names. It prints its address, and its processor time for every line it reads.
const roleVariable = "ANTEROOM_BENCH_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	os.Exit(m.Run())
}

func play(role string) {
	name, origin, _ := strings.Cut(role, " ")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	srv, cookie := rolePlayed(name, origin)
	go srv.Serve(l)
	fmt.Println(l.Addr(), cookie)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		fmt.Println(u.Utime.Nano() + u.Stime.Nano())
	}
}

// rolePlayed returns the server of a role and a cookie to send to it.
func rolePlayed(name, origin string) (*http.Server, string) {
	page := []byte(strings.Repeat("x", 4<<10))
	plain := func(body []byte) *http.Server {
		length := []string{strconv.Itoa(len(body))}
		return &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = valueTextPlain
			w.Header()["Content-Length"] = length
			w.Write(body)
		})}
	}
	if origin == "" {
		origin = "127.0.0.1:9" // nobody gets there
	}
	to, _ := url.Parse("http://" + origin)
	room := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}, JSONResponse: true}.WithDefaults()
	switch name {
	case "bare":
		return plain(page), ""
	case "bare-json":
		return plain(page[:900]), ""
	case "origin":
		return plain(page[:1<<10]), ""
	case "plain":
		return &http.Server{Handler: &httputil.ReverseProxy{
			Transport: newTransport(Timeouts{}.withDefaults(), nil), BufferPool: &copyBuffers{},
			Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) },
		}}, ""
	case "untuned":
		return &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}}, ""
	case "room-off":
		g, _ := roleGateway(origin, room, nil, false)
		return g.Server(nil), ""
	}
	if name == "room-on" {
		return roleWithNode(origin, room)
	}
	g, ready := roleGateway(origin, room, line, true)
	rm := &ready.rooms[0]
	return g.Server(nil), rm.scope.Name + "=" + string(rm.sealer.Seal(nil, waiting()))
}

// roleWithNode is a gateway with all that a visitor's session goes through, and the cookie
// of one.
func roleWithNode(origin string, room anteroom.Room) (*http.Server, string) {
	room.TotalActiveUsers, room.NewUsersPerMinute = 100, 100
	ctx := context.Background()
	n, err := node.New(ctx, node.Config{Link: memlink.New()})
	if err == nil {
		err = n.Apply(ctx, []anteroom.Room{room})
	}
	if err != nil {
		panic(err)
	}
	go n.Run(ctx)
	cfg := roleConfig(origin)
	cfg.Rooms, cfg.Node, cfg.Proof = []anteroom.Room{room}, n, roleSigner()
	g, err := New(cfg)
	if err != nil {
		panic(err)
	}
	rec := httptest.NewRecorder()
	g.ServeHTTP(rec, httptest.NewRequest("GET", "http://"+testHost+"/", nil))
	pair, _, _ := strings.Cut(rec.Header().Get("Set-Cookie"), ";")
	if rec.Code != 200 || pair == "" {
		panic(fmt.Sprint("the first visitor got ", rec.Code))
	}
	return g.Server(nil), pair
}

func roleConfig(origin string) Config {
	return Config{
		Keys:  ticket.NewKeyring(time.Now()),
		Sites: []Site{{Hosts: []string{"*"}, Origins: []*url.URL{{Scheme: "http", Host: origin}}, PreserveHost: true}},
	}
}

func roleSigner() *proof.Signer {
	s, err := proof.New(proof.Config{Keys: []proof.Key{{ID: "k1", Seed: proof.Seed{1}}}, SubjectKey: proof.Seed{2}})
	if err != nil {
		panic(err)
	}
	return s
}

// roleGateway is a gateway for every host, with the room and a proof or with neither.
func roleGateway(origin string, room anteroom.Room, decide func(anteroom.Visit) anteroom.Decision, on bool) (*Gateway, *setup) {
	cfg := roleConfig(origin)
	if on {
		cfg.Rooms, cfg.Proof = []anteroom.Room{room}, roleSigner()
	}
	g := newGateway()
	s, err := newSetup(cfg, nil, doors{now: testNow, of: func(anteroom.RoomID) door { return answering{decide, room.Settings} }})
	if err != nil {
		panic(err)
	}
	g.put(s)
	return g, s
}

// answering is a door without a memory.
type answering struct {
	decide func(anteroom.Visit) anteroom.Decision
	in     anteroom.Settings
}

// role is a server under measurement.
type role struct {
	addr, cookie string
	ask          func() time.Duration // its processor time so far
}

func startRole(b *testing.B, name string) role {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), roleVariable+"="+name, "GOMAXPROCS=1") // as if pinned to a core
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	br := bufio.NewReader(out)
	first, err := br.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	addr, cookie, _ := strings.Cut(strings.TrimSpace(first), " ")
	return role{addr: addr, cookie: cookie, ask: func() time.Duration {
		fmt.Fprintln(in)
		var ns int64
		fmt.Fscanln(br, &ns)
		return time.Duration(ns)
	}}
}

// drive sends n requests over a number of connections at once, and returns the processor
// time that the server took for one.
func (r role) drive(b *testing.B, n, connections int, headers string) time.Duration {
	b.Helper()
	request := "GET /products?page=2 HTTP/1.1\r\nHost: " + testHost + "\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n" +
		"Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-US,en;q=0.5\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n" + headers
	if r.cookie != "" {
		request += "Cookie: theme=dark; " + r.cookie + "\r\n"
	}
	message := []byte(request + "\r\n")
	before := r.ask()
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			c, err := net.Dial("tcp", r.addr)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			br := bufio.NewReaderSize(c, 32<<10)
			for range n / connections {
				if _, err := c.Write(message); err != nil {
					b.Error(err)
					return
				}
				res, err := http.ReadResponse(br, nil)
				if err != nil {
					b.Error(err)
					return
				}
				if res.StatusCode != 200 || res.ContentLength < 0 {
					b.Errorf("status %d, length %d", res.StatusCode, res.ContentLength)
					return
				}
				br.Discard(int(res.ContentLength))
			}
		})
	}
	all.Wait()
	return (r.ask() - before) / time.Duration(n/connections*connections)
}
