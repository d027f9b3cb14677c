package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/node"
)

// wire is a network in memory, so that a whole day of a sale passes in seconds.
type wire struct {
	conns chan net.Conn
	down  chan struct{}
}

func newWire() *wire { return &wire{conns: make(chan net.Conn), down: make(chan struct{})} }

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.down:
		return nil, net.ErrClosed
	}
}
func (w *wire) Close() error   { return nil }
func (w *wire) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *wire) client() *http.Client {
	jar, _ := cookiejar.New(nil)
	return &http.Client{Jar: jar, Transport: &http.Transport{DialContext: w.dial}}
}

// day is a server under a virtual clock: everything but the listeners, the disk and the
// network is the product's.
type day struct {
	t        *testing.T
	s        *Server
	visitors *wire
	admin    *http.Client
	token    string
	begin    time.Time
	ids      map[string]string // what $ZONE, $ROOM and $EVENT stand for

	mu     sync.Mutex
	inside map[string]time.Time // who the origin has seen last, by visitor
}

const flashToken = "flash-sale-token-of-forty-characters-1234"

func beginDay(t *testing.T, dir string) *day {
	t.Setenv("ANTEROOM_API_TOKEN", flashToken)
	d := &day{t: t, visitors: newWire(), token: flashToken, begin: time.Now(), ids: map[string]string{}, inside: map[string]time.Time{}}
	file := filepath.Join(dir, "anteroom.yaml")
	text := "data: " + filepath.Join(dir, "data") + "\nsites:\n  - hosts: [\"*\"]\n    origins: [http://127.0.0.1:1]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.LoadOptions{File: file, Check: Check})
	if err != nil {
		t.Fatal(err)
	}
	d.s = &Server{log: slog.New(slog.DiscardHandler), certs: &certificates{}, started: time.Now()}
	d.s.life, d.s.endLife = context.WithCancel(t.Context())
	d.s.link = memlink.New()
	if d.s.node, err = node.New(t.Context(), node.Config{Link: d.s.link}); err != nil {
		t.Fatal(err)
	}
	p, err := d.s.prepare(t.Context(), cfg)
	if err == nil {
		err = d.s.use(t.Context(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.s.metrics = d.s.newMetrics()
	admin := newWire()
	d.admin, d.s.admin = admin.client(), admin
	servers := []*http.Server{d.s.adminServer(), {Handler: d.s.gateway.Middleware(http.HandlerFunc(d.origin))}}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { d.s.node.Run(ctx) })
	work.Go(func() { d.s.gateway.Run(ctx) })
	work.Go(func() { servers[0].Serve(admin) })
	work.Go(func() { servers[1].Serve(d.visitors) })
	t.Cleanup(func() {
		for i, w := range []*wire{admin, d.visitors} {
			close(w.down)
			servers[i].Close()
		}
		d.s.endLife()
		stop()
		work.Wait()
	})
	return d
}

// origin is the shop: it knows who was here within a session.
func (d *day) origin(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.inside[r.Header.Get("X-Visitor")] = time.Now()
	d.mu.Unlock()
	io.WriteString(w, "the shop")
}

// at waits until a time of day like "09:30:00.25".
func (d *day) at(clock string) {
	d.t.Helper()
	wait := time.Until(d.moment(clock))
	if wait < 0 {
		d.t.Fatalf("%s is over", clock)
	}
	time.Sleep(wait)
}

// curl does a curl line of the documentation. The Friday of the sale is today.
func (d *day) curl(line string) json.RawMessage {
	d.t.Helper()
	match := regexp.MustCompile(`(?s)^curl "(?:\$API|\$OWN)([^"]*)" -H "Authorization: Bearer \$TOKEN"(?: -X ([A-Z]+))?(?: --json '(.*)')?\s*$`).FindStringSubmatch(line)
	if match == nil {
		d.t.Fatalf("not a curl line that this test understands: %s", line)
	}
	base := "/client/v4"
	if strings.Contains(line, "$OWN") {
		base = "/anteroom/v1"
	}
	path, method, body := match[1], match[2], match[3]
	for name, id := range d.ids {
		path = strings.ReplaceAll(path, "$"+name, id)
	}
	body = strings.ReplaceAll(body, "2030-11-29", d.begin.UTC().Format("2006-01-02"))
	body = strings.ReplaceAll(body, "2030-12-02", d.begin.UTC().AddDate(0, 0, 3).Format("2006-01-02"))
	body = strings.ReplaceAll(body, "2030-12-29", d.begin.UTC().AddDate(0, 1, 0).Format("2006-01-02"))
	if method == "" {
		if method = "GET"; body != "" {
			method = "POST"
		}
	}
	req, _ := http.NewRequestWithContext(d.t.Context(), method, "http://127.0.0.1:8081"+base+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+d.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := d.admin.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	var answer struct {
		Success bool
		Result  json.RawMessage
	}
	if err := json.Unmarshal(raw, &answer); err != nil || !answer.Success {
		d.t.Fatalf("%s\n%d %s", line, res.StatusCode, raw)
	}
	var made struct{ ID string }
	if json.Unmarshal(answer.Result, &made) == nil && method == "POST" {
		kind := map[string]string{"zones": "ZONE", "waiting_rooms": "ROOM", "events": "EVENT"}[path[strings.LastIndexByte(path, '/')+1:]]
		d.ids[kind] = made.ID
	}
	return answer.Result
}

// shopper is a visitor with a browser of their own.
type shopper struct {
	d      *day
	name   string
	client *http.Client
}

func (d *day) shopper(name string) *shopper { return &shopper{d, name, d.visitors.client()} }

// look is what a shopper is shown.
type look struct {
	body    string
	in      bool // the shop
	refresh time.Duration
	at      time.Time
	room    struct {
		InWaitingRoom          bool
		WaitTimeKnown          bool
		IsEventActive          bool
		IsEventPrequeueing     bool
		IsRejectQueue          bool
		ShuffleAtEventStart    bool
		TimeUntilEventStart    int
		TimeUntilEventEnd      int
		RefreshIntervalSeconds int
		QueueingMethod         string
	}
}

func (s *shopper) look(asJSON bool) look {
	s.d.t.Helper()
	req, _ := http.NewRequestWithContext(s.d.t.Context(), "GET", "http://shop.example.com/drop/", nil)
	req.Header.Set("X-Visitor", s.name)
	req.Header.Set("Accept", "text/html")
	if asJSON {
		req.Header.Set("Accept", "application/json")
	}
	res, err := s.client.Do(req)
	if err != nil {
		if s.d.t.Context().Err() == nil {
			s.d.t.Error(err)
		}
		return look{}
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	l := look{body: string(body), at: time.Now(), in: string(body) == "the shop"}
	if res.StatusCode != http.StatusOK {
		s.d.t.Errorf("%s sees %d %s", s.name, res.StatusCode, body)
	}
	if n, err := strconv.Atoi(res.Header.Get("Refresh")); err == nil {
		l.refresh = time.Duration(n) * time.Second
	}
	if asJSON && !l.in {
		if err := json.Unmarshal(body, &struct{ CfWaitingRoom any }{&l.room}); err != nil {
			s.d.t.Error(err)
		}
		if l.room.RefreshIntervalSeconds != int(l.refresh/time.Second) {
			s.d.t.Errorf("%s: Refresh %v and refreshIntervalSeconds %d differ", s.name, l.refresh, l.room.RefreshIntervalSeconds)
		}
	}
	return l
}

// wait comes back as the page says until the shop lets the shopper in, or the page does not
// refresh any more.
func (s *shopper) wait() look {
	for {
		l := s.look(false)
		if l.in || l.refresh == 0 || !s.d.sleep(l.refresh) {
			return l
		}
	}
}

// TestFlashSale plays the sale of docs/events.md, by the page's own curl lines.
func TestFlashSale(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	page, err := os.ReadFile("../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		for _, line := range strings.Split("\n"+string(block[1]), "\ncurl ")[1:] {
			lines = append(lines, "curl "+strings.TrimSpace(line))
		}
	}
	if len(lines) < 6 {
		t.Fatalf("docs/events.md has %d curl lines", len(lines))
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { flashSale(t, dir, lines) })
}

func flashSale(t *testing.T, dir string, lines []string) {
	d := beginDay(t, dir)
	var details json.RawMessage
	for _, line := range lines {
		if result := d.curl(line); strings.Contains(line, "/details") {
			details = result
		}
	}
	var last struct {
		Name             string
		TotalActiveUsers int    `json:"total_active_users"`
		QueueingMethod   string `json:"queueing_method"`
	}
	if json.Unmarshal(details, &last); last.Name != "sold-out" || last.TotalActiveUsers != 5 || last.QueueingMethod != "reject" {
		t.Errorf("details of the last event: %s", details)
	}

	d.at("09:29:59.999999")
	if l := d.shopper("early").look(true); !l.room.IsRejectQueue || l.refresh != 0 || l.room.IsEventActive {
		t.Errorf("a moment before the prequeue: %+v", l)
	}
	if l := d.shopper("early").look(false); l.body != "<h1>The drop is on Friday at 10:00. The doors open at 9:30.</h1>" || l.refresh != 0 {
		t.Errorf("the landing page: %q, refresh %v", l.body, l.refresh)
	}
	d.at("09:30:00")
	if l := d.shopper("punctual").look(true); !l.room.IsEventPrequeueing || !l.room.IsEventActive || l.room.WaitTimeKnown || l.room.TimeUntilEventStart != 30 ||
		!l.room.ShuffleAtEventStart || l.refresh == 0 {
		t.Errorf("the first moment of the prequeue: %+v", l)
	}

	// Twelve come in the half hour, one at a time, and wait in their browsers.
	const crowd = 12
	type entry struct {
		shopper *shopper
		look    look
	}
	var everybody []*shopper
	entered := make(chan entry, crowd+2)
	rnd := rand.New(rand.NewPCG(1, 2))
	var shopping sync.WaitGroup
	for i := range crowd {
		s := d.shopper(fmt.Sprintf("s%d", i))
		everybody = append(everybody, s)
		after := time.Duration(rnd.IntN(29*60)) * time.Second
		shopping.Go(func() {
			time.Sleep(after)
			entered <- entry{s, s.wait()}
		})
	}
	d.at("09:59:59.999999")
	if len(entered) != 0 || len(d.inside) != 0 {
		t.Errorf("%d were let in before the start", len(entered))
	}
	late := d.shopper("late")
	d.at("10:00:00")
	if l := late.look(true); l.in || l.room.IsEventPrequeueing || !l.room.IsEventActive || l.room.QueueingMethod != "fifo" || l.room.TimeUntilEventEnd != 30 {
		t.Errorf("at the start: %+v", l)
	}
	shopping.Go(func() { entered <- entry{late, late.wait()} })

	// By 10:02 everybody who had been drawn has come back: five are inside, the first by lot.
	d.at("10:02:00")
	var inside []*shopper
	for len(entered) > 0 {
		e := <-entered
		if !e.look.in {
			t.Errorf("%s was turned away in the sale: %q", e.shopper.name, e.look.body)
		}
		inside = append(inside, e.shopper)
	}
	if len(inside) != 5 {
		t.Errorf("%d are inside, five may be", len(inside))
	}
	// One of them leaves at once, the others stay to the end.
	for _, s := range inside[1:] {
		shopping.Go(func() {
			for {
				l := s.look(false)
				over := !l.at.Before(d.moment("10:35:00"))
				if l.in == over {
					t.Errorf("%s at %v: in the shop %v, %q", s.name, l.at, l.in, l.body)
				}
				if !l.in {
					return
				}
				if !d.sleep(7 * time.Second) {
					return
				}
			}
		})
	}
	d.at("10:14:00")
	var next *shopper
	for len(entered) > 0 {
		e := <-entered
		if next != nil || !e.look.in {
			t.Errorf("one seat came free; %s is let in or turned away as well: %q", e.shopper.name, e.look.body)
		}
		next = e.shopper
	}
	if next == nil {
		t.Fatal("a seat came free and nobody has it")
	}
	d.checkDraw(everybody, append(inside, next))

	d.at("10:30:00")
	if l := d.shopper("tardy").look(true); !l.room.IsRejectQueue || l.refresh != 0 || !l.room.IsEventActive || l.room.TimeUntilEventEnd != 5 {
		t.Errorf("the first moment after the sale: %+v", l)
	}
	if l := d.shopper("tardy").look(false); l.body != "<h1>The sale is closing</h1>" {
		t.Errorf("after the sale: %q", l.body)
	}
	d.at("10:35:00")
	if l := d.shopper("tardy").look(false); l.body != "<h1>Sold out. Thank you!</h1>" || l.refresh != 0 {
		t.Errorf("at the end: %q", l.body)
	}
	shopping.Wait()
}

// sleep waits, and reports false when the test is over.
func (d *day) sleep(how time.Duration) bool {
	select {
	case <-time.After(how):
		return true
	case <-d.t.Context().Done():
		return false
	}
}

// moment is a time of day.
func (d *day) moment(clock string) time.Time {
	of, err := time.Parse("15:04:05", clock)
	if err != nil {
		d.t.Fatal(err)
	}
	return d.begin.UTC().Truncate(24 * time.Hour).Add(of.Sub(of.Truncate(24 * time.Hour)))
}

// fetch is a visitor's request for something of ours.
func (s *shopper) fetch(path string) []byte {
	s.d.t.Helper()
	res, err := s.client.Get("http://shop.example.com" + path)
	if err != nil {
		s.d.t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		s.d.t.Fatalf("%s: %d %s", path, res.StatusCode, body)
	}
	return body
}

// checkDraw recomputes the order of the shuffle from what everybody can see, and compares it
// with who was let in, and with what each receipt says.
func (d *day) checkDraw(everybody, entered []*shopper) {
	t := d.t
	names := map[anteroom.ID]string{}
	var record struct{ Seed, Commitment, Entries, IDs string }
	places := map[string]int{}
	for _, s := range everybody {
		var r struct {
			ID, Seed, Commitment, Entries, IDs string
			Place                              int
		}
		if err := json.Unmarshal(s.fetch("/drop/?__anteroom=receipt"), &r); err != nil {
			t.Fatal(err)
		}
		names[idOf(t, r.ID)], places[s.name] = s.name, r.Place
		record.Seed, record.Commitment, record.Entries, record.IDs = r.Seed, r.Commitment, r.Entries, r.IDs
	}
	raw := everybody[0].fetch(record.IDs)
	var ids []anteroom.ID
	for ; len(raw) > 0; raw = raw[16:] {
		ids = append(ids, anteroom.ID(raw))
	}
	seed, _ := hex.DecodeString(record.Seed)
	commitment, entries := engine.Commitment(seed), engine.Entries(ids)
	if hex.EncodeToString(commitment[:]) != record.Commitment || hex.EncodeToString(entries[:]) != record.Entries {
		t.Errorf("the record does not fit itself: %+v", record)
	}
	var order []string
	for place, i := range engine.Order(engine.ShuffleKey(seed, entries), ids) {
		if name, ours := names[ids[i]]; ours {
			order = append(order, name)
			if places[name] != place+1 {
				t.Errorf("%s has place %d by the receipt and %d by the draw", name, places[name], place+1)
			}
		}
	}
	var in []string
	for _, s := range entered {
		in = append(in, s.name)
	}
	slices.Sort(in[:5])
	first := slices.Sorted(slices.Values(order[:5]))
	if !slices.Equal(in[:5], first) || in[5] != order[5] {
		t.Errorf("the shuffle says %v; first came %v", order, in)
	}
}

func idOf(t *testing.T, text string) (id anteroom.ID) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(id) {
		t.Fatalf("%q is no id", text)
	}
	return anteroom.ID(raw)
}
