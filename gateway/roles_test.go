package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/cluster/natslink"
	"github.com/anteroom/anteroom/gateway/h1"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
	"github.com/anteroom/anteroom/ticket/proof"
)

// The benchmarks compare servers by the processor time that they themselves use, so each
// runs in a process of its own: this test binary again, in the role that the environment
// names. It prints its address, and for every line it reads its processor time and how often it has allocated memory.
const roleVariable = "ANTEROOM_BENCH_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	os.Exit(m.Run())
}

func play(role string) {
	name, argument, _ := strings.Cut(role, " ")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(l.Addr(), " ")
	l = Limit(l, 10_000, nil) // as package server does
	if name == "tls" {
		name, argument, _ = strings.Cut(argument, " ")
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{roleCertificate()}, NextProtos: []string{"h2", "http/1.1"}})
	}
	srv, cookies := rolePlayed(name, argument)
	go srv.Serve(l)
	fmt.Println(strings.Join(cookies, " "))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(processorTime().Nanoseconds(), m.Mallocs)
	}
}

type server interface{ Serve(net.Listener) error }

// rolePlayed returns the server of a role and cookies to send to it, each a visitor's.
func rolePlayed(name, argument string) (server, []string) {
	room := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: testHost}}, JSONResponse: true}.WithDefaults()
	switch name {
	case "bare":
		size, _ := strconv.Atoi(argument)
		return bare(make([]byte, size)), nil
	case "origin":
		return bare(make([]byte, 1<<10)), nil
	case "plain", "plain-fast":
		to := &url.URL{Scheme: "http", Host: argument}
		base := newTransport(Timeouts{}.withDefaults())
		var way http.RoundTripper = base
		if name == "plain-fast" {
			way = h1.Over(base)
		}
		return &http.Server{Handler: &httputil.ReverseProxy{
			Transport: way, BufferPool: &copyBuffers{},
			Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) },
		}}, nil
	case "untuned":
		to := &url.URL{Scheme: "http", Host: argument}
		return &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(to) }}}, nil
	case "room-off":
		g, _ := roleGateway(argument, room, nil, false)
		return g.Server(nil), nil
	case "room-on":
		return roleAdmitted(argument, room, false)
	case "room-on-nethttp":
		return roleAdmitted(argument, room, true)
	case "rooms":
		n, origin, _ := strings.Cut(argument, " ")
		rooms, _ := strconv.Atoi(n)
		return roleRooms(origin, rooms)
	case "queued":
		return roleQueued(argument, room)
	case "newcomers", "joining":
		dir, origin, _ := strings.Cut(argument, " ")
		return roleNewcomers(dir, origin, room)
	}
	panic("there is no role " + name)
}

// bare is net/http and a handler that does nothing but write the same few bytes: the most
// that any handler can reach here.
func bare(body []byte) *http.Server {
	length := []string{strconv.Itoa(len(body))}
	return &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = valueTextPlain
		if len(body) >= lengthByServer {
			w.Header()["Content-Length"] = length
		}
		w.Write(body)
	})}
}

// roleNode is a gateway with all that a visitor's request goes through in production.
func roleNode(origin string, noFastPath bool, rooms ...anteroom.Room) (*Gateway, *node.Node) {
	cfg := roleConfig(origin)
	cfg.NoFastPath = noFastPath
	return roleNodeAt(memlink.New(), cfg, rooms...)
}

func roleNodeAt(link cluster.Link, cfg Config, rooms ...anteroom.Room) (*Gateway, *node.Node) {
	ctx := context.Background()
	n, err := node.New(ctx, node.Config{Link: link})
	if err == nil {
		err = n.Apply(ctx, rooms)
	}
	if err != nil {
		panic(err)
	}
	go n.Run(ctx)
	cfg.Rooms, cfg.Node, cfg.Proof = rooms, n, roleSigner()
	g, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return g, n
}

// roleAdmitted is that gateway with a hundred sessions.
func roleAdmitted(origin string, room anteroom.Room, noFastPath bool) (server, []string) {
	room.TotalActiveUsers, room.NewUsersPerMinute = 1000, 10000
	g, _ := roleNode(origin, noFastPath, room)
	return g.Server(nil), roleSessions(g, testHost)
}

// roleSessions lets a hundred visitors in, at the hosts in turn, and returns their cookies.
func roleSessions(g *Gateway, hosts ...string) []string {
	var cookies []string
	for i := range 100 {
		pair := ""
		for range 2 { // the second ends the probation, with another cookie
			rec, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://"+hosts[i%len(hosts)]+"/", nil)
			if pair != "" {
				r.Header.Set("Cookie", pair)
			}
			g.ServeHTTP(rec, r)
			if pair, _, _ = strings.Cut(rec.Header().Get("Set-Cookie"), ";"); pair == "" || rec.Header().Get("Refresh") != "" {
				panic(fmt.Sprint("a visitor got ", rec.Code, rec.Header()))
			}
		}
		cookies = append(cookies, pair)
	}
	return cookies
}

// roleHosts are the hosts of so many rooms, a hundred of them, to be visited.
func roleHosts(rooms int) (hosts []string) {
	for i := range min(rooms, 100) {
		hosts = append(hosts, roleHost(i*max(rooms/100, 1)))
	}
	return hosts
}

func roleHost(room int) string { return fmt.Sprintf("shop-%d.example.com", room) }

// roleRooms is that gateway with so many rooms and visitors in a hundred of them.
func roleRooms(origin string, many int) (server, []string) {
	rooms := make([]anteroom.Room, many)
	for i := range rooms {
		rooms[i] = anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: roleHost(i)}},
			Settings: anteroom.Settings{TotalActiveUsers: 1000, NewUsersPerMinute: 10_000}}.WithDefaults()
	}
	g, _ := roleNode(origin, false, rooms...)
	return g.Server(nil), roleSessions(g, roleHosts(many)...)
}

// roleQueued is that gateway with 20,000 people in line and a check-in due for every cookie,
// however often it is sent: each opens a ticket, counts, and seals a new one.
func roleQueued(dir string, room anteroom.Room) (server, []string) {
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration = 1, 1, time.Hour
	link := cluster.Link(memlink.New())
	if dir != "" {
		var err error
		if link, err = natslink.Open(natslink.Config{Dir: dir}); err != nil {
			panic(err)
		}
	}
	cfg := roleConfig("127.0.0.1:9") // nobody gets to the origin
	cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	g, n := roleNodeAt(link, cfg, room)
	rm, door, now := g.live.Load().rooms[0], n.Room(room.ID), n.Now()
	door.Decide(context.Background(), anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: ticket.NewID()}})
	var cookies []string
	var all sync.WaitGroup
	limit := make(chan struct{}, 64)
	for i := range 20_000 {
		t := anteroom.Ticket{ID: ticket.NewID(), Arrival: now.Add(time.Duration(i-30_000) * 10 * time.Millisecond),
			LastCheckIn: now.Add(-20 * time.Second), Next: now, Refresh: 20 * time.Second}
		if i%200 == 199 {
			cookies = append(cookies, rm.scope.Name+"="+string(rm.sealer.Seal(nil, t)))
		}
		limit <- struct{}{} // those in front are held for a moment
		all.Go(func() {
			door.Decide(context.Background(), anteroom.Visit{Ticket: t, NewID: ticket.NewID()})
			<-limit
		})
	}
	all.Wait()
	return g.Server(nil), cookies[len(cookies)/2:]
}

// roleNewcomers is that gateway with its journal on disk, in a folder. It admits everybody; without an origin everybody waits, and it
// has two cores. The cookies are of visitors who have come before.
func roleNewcomers(dir, origin string, room anteroom.Room) (server, []string) {
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration = anteroom.MaxUsers, anteroom.MaxUsers, time.Hour
	if origin == "" {
		runtime.GOMAXPROCS(2)
		room.TotalActiveUsers, room.NewUsersPerMinute, origin = 1, 1, "127.0.0.1:9"
	}
	link, err := natslink.Open(natslink.Config{Dir: dir})
	if err != nil {
		panic(err)
	}
	cfg := roleConfig(origin)
	cfg.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	g, n := roleNodeAt(link, cfg, room)
	if room.TotalActiveUsers > 1 {
		return g.Server(nil), roleSessions(g, testHost)
	}
	n.Room(room.ID).Decide(context.Background(), anteroom.Visit{Fresh: true, Ticket: anteroom.Ticket{ID: ticket.NewID()}})
	var cookies []string
	for range 200 {
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, httptest.NewRequest("GET", "http://"+testHost+"/", nil))
		pair, _, _ := strings.Cut(rec.Header().Get("Set-Cookie"), ";")
		cookies = append(cookies, pair)
	}
	return g.Server(nil), cookies[len(cookies)/2:] // those in front are held for a moment
}

func roleConfig(origin string) Config {
	return Config{
		Keys:     ticket.NewKeyring(time.Now()),
		Timeouts: Timeouts{IdleWaiting: time.Hour}, // clients wait for the rounds of others
		Sites:    []Site{{Hosts: []string{"*"}, Origins: []*url.URL{{Scheme: "http", Host: origin}}, PreserveHost: true}},
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
	addr    string
	cookies []string     // of visitors whom it knows
	hosts   []string     // where they are; nil is testHost for all
	headers string       // of every request to it, beside the usual
	body    string       // of every request, which is a POST then
	over    string       // with TLS, the protocol that visitors agree on: "h2" or "http/1.1"
	ask     func() usage // so far
}

// usage is what a role needs: processor time and allocations.
type usage struct {
	cpu     time.Duration
	mallocs int64
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
	said := strings.Fields(first)
	return role{addr: said[0], cookies: said[1:], ask: func() (u usage) {
		fmt.Fprintln(in)
		fmt.Fscanln(br, &u.cpu, &u.mallocs)
		return u
	}}
}

// request is what visitor i sends.
func (r role) request(i int) []byte {
	host := testHost
	if len(r.hosts) > 0 {
		host = r.hosts[i%len(r.hosts)]
	}
	method, headers := "GET", r.headers
	if r.body != "" {
		method, headers = "POST", headers+"Content-Length: "+strconv.Itoa(len(r.body))+"\r\n"
	}
	request := method + " /products?page=2 HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n" +
		"Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-US,en;q=0.5\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n" + headers
	if len(r.cookies) > 0 {
		request += "Cookie: theme=dark; " + r.cookies[i%len(r.cookies)] + "\r\n"
	}
	return []byte(request + "\r\n" + r.body)
}

// answer sends one request of visitor i and returns the answer, its body read.
func (r role) answer(b *testing.B, i int) *http.Response {
	b.Helper()
	c := r.client(b, i)
	defer c.Close()
	res, err := c.send()
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil || res.StatusCode != 200 || res.ContentLength != n {
		b.Fatalf("status %d, length %d of %d: %v", res.StatusCode, n, res.ContentLength, err)
	}
	return res
}

// client is an open connection to a role.
type client struct {
	net.Conn
	in      *bufio.Reader
	message []byte
	secure  *http.Transport // nil without TLS
	request *http.Request   // with TLS
}

// client opens the connection of visitor i.
func (r role) client(b *testing.B, i int) client {
	b.Helper()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		b.Fatal(err)
	}
	v := client{Conn: c, message: r.request(i)}
	if r.over == "" {
		v.in = bufio.NewReaderSize(c, 32<<10)
		return v
	}
	v.secure = &http.Transport{Protocols: &http.Protocols{}, DisableCompression: true, MaxConnsPerHost: 1, IdleConnTimeout: time.Hour,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}
	v.secure.Protocols.SetHTTP1(r.over != "h2")
	v.secure.Protocols.SetHTTP2(r.over == "h2")
	if v.request, err = http.ReadRequest(bufio.NewReader(bytes.NewReader(v.message))); err != nil {
		b.Fatal(err)
	}
	v.request.URL.Scheme, v.request.URL.Host, v.request.RequestURI = "https", v.request.Host, ""
	return v
}

// someAddress is a header of a role whose requests come from another address each.
const someAddress = "X-Forwarded-For: 100.100.100.100\r\n"

// says is the request.
func (v *client) says() []byte {
	if _, address, others := bytes.Cut(v.message, []byte("X-Forwarded-For: ")); others {
		for j := range 4 {
			strconv.AppendInt(address[4*j:4*j], 100+rand.Int64N(100), 10)
		}
	}
	return v.message
}

// send sends the request and reads the head of the answer.
func (v *client) send() (*http.Response, error) {
	if v.secure != nil {
		return v.secure.RoundTrip(v.request)
	}
	if _, err := v.Write(v.says()); err != nil {
		return nil, err
	}
	return http.ReadResponse(v.in, nil)
}

// clients opens connections, which stay open to the end of the benchmark: what a
// connection costs is not asked here.
func (r role) clients(b *testing.B, many int) []client {
	b.Helper()
	var all []client
	for i := range many {
		all = append(all, r.client(b, i))
		b.Cleanup(func() { all[i].Close() })
	}
	return all
}

// drive lets the clients send n requests together, each the next when it has the answer,
// and returns what the server needed for one.
func (r role) drive(b *testing.B, n int, clients []client) usage {
	b.Helper()
	before := r.ask()
	var all sync.WaitGroup
	for _, v := range clients {
		all.Go(func() {
			for range n / len(clients) {
				res, err := v.send()
				if err != nil {
					b.Error(err)
					return
				}
				if res.StatusCode != 200 || res.ContentLength < 0 {
					b.Errorf("status %d, length %d", res.StatusCode, res.ContentLength)
					return
				}
				if v.secure == nil {
					v.in.Discard(int(res.ContentLength))
				} else if _, err := io.Copy(io.Discard, res.Body); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	after, many := r.ask(), int64(n/len(clients)*len(clients))
	return usage{(after.cpu - before.cpu) / time.Duration(many), (after.mallocs - before.mallocs) / many}
}
