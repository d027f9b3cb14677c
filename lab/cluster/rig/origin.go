package rig

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/anteroom/anteroom/sim/demo/shop"
)

// hit is one request as the origin saw it.
type hit struct {
	shop.Request
	Node int `json:"node"`
}

// origin is the shop behind all nodes. It knows who asks by his address, or, where all have
// the same, by giving each node an address of its own. What it writes down is the judge's
// evidence.
type origin struct {
	c       *Cluster
	shop    *shop.Shop
	servers []*http.Server
	urls    []string

	mu   sync.Mutex
	hits []hit
}

func newOrigin(c *Cluster) (*origin, error) {
	s, err := shop.New(shop.Config{SessionDuration: c.room.Session})
	if err != nil {
		return nil, err
	}
	o := &origin{c: c, shop: s}
	fronts := map[netip.Addr]int{}
	for i, n := range c.nodes {
		fronts[n.host.Front] = i
	}
	for i, n := range c.nodes {
		byAddress := !n.host.Back.IsLoopback()
		if byAddress && i > 0 {
			o.urls = append(o.urls, o.urls[0])
			continue
		}
		l, err := listen(n.host.Back.String())
		if err != nil {
			o.close()
			return nil, err
		}
		server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who := i
			if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && byAddress {
				who = fronts[from.Addr()]
			}
			o.see(who, r)
			o.shop.ServeHTTP(w, r)
		})}
		o.servers = append(o.servers, server)
		o.urls = append(o.urls, "http://"+l.Addr().(*net.TCPAddr).String())
		go server.Serve(l)
	}
	return o, nil
}

func (o *origin) url(n *Node) string {
	for i, m := range o.c.nodes {
		if m == n {
			return o.urls[i]
		}
	}
	return ""
}

func (o *origin) see(node int, r *http.Request) {
	h := hit{Node: node, Request: shop.Request{Visitor: r.Header.Get(shop.VisitorHeader), Session: shop.Subject(r.Header.Get("X-Anteroom-Assertion")), Method: r.Method, Path: r.URL.Path}}
	sent, _ := strconv.ParseInt(r.Header.Get(shop.SentHeader), 10, 64) // 0: not said
	o.mu.Lock()
	defer o.mu.Unlock()
	// Taken under the lock, so that hits are in the order of their times.
	h.Seen = o.c.now()
	if sent <= h.Seen {
		h.Sent = sent
	}
	o.hits = append(o.hits, h)
}

// seen returns what the origin saw so far.
func (o *origin) seen() []hit {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.hits[:len(o.hits):len(o.hits)]
}

func (o *origin) close() {
	for _, s := range o.servers {
		s.Close()
	}
}

// keep writes values to a file, one a line.
func keep[T any](name string, values []T) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("rig: %w", err)
	}
	b := bufio.NewWriter(f)
	e := json.NewEncoder(b)
	for i := range values {
		if err = e.Encode(values[i]); err != nil {
			break
		}
	}
	if err = errors.Join(err, b.Flush(), f.Close()); err != nil {
		return fmt.Errorf("rig: %s: %w", name, err)
	}
	return nil
}

// logLine reads level and message of a process's log line.
func logLine(line string) (level, message string) {
	var v struct{ Level, Msg string }
	if json.Unmarshal([]byte(line), &v) != nil {
		return "", ""
	}
	return v.Level, v.Msg
}
