package natslink

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

const (
	minReconnect = 50 * time.Millisecond
	maxReconnect = 2 * time.Second

	// A client notices within 3 s that nothing comes back.
	clientPing  = time.Second
	clientPings = 2
	// insidePing is how often a client tries the server in its own process, whose connection no network can cut.
	insidePing = time.Minute
)

// watcher remembers why a connection is not there.
type watcher struct {
	a    *attachment
	what string // for the log: which connection

	mu     sync.Mutex
	reason error
}

func (w *watcher) set(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = err
}

// last returns why the connection was lost or could not be made, or nil.
func (w *watcher) last() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reason
}

// options are those of every connection: it reconnects for ever, keeps nothing back while
// it is away, and never waits without a bound.
func (w *watcher) options() []nats.Option {
	log := w.a.cfg.Log
	return []nats.Option{
		nats.Name(w.a.cfg.Node),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(clientPing),
		nats.MaxPingsOutstanding(clientPings),
		nats.Timeout(handshakeLimit),
		nats.FlusherTimeout(writeDeadline),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { w.set(err) }),
		nats.DisconnectErrHandler(func(nc *nats.Conn, err error) {
			w.set(err)
			if !nc.IsClosed() {
				log.Warn("connection to the cluster is lost", "connection", w.what, "reason", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("connection to the cluster is back", "connection", w.what, "server", nc.ConnectedServerName())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			w.set(err)
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			log.Warn("cluster connection complains", "connection", w.what, "subject", subject, "reason", err)
		}),
	}
}

// reconnectDelay is jittered, so that those who lost the same server do not come together.
func reconnectDelay(attempts int) time.Duration {
	d := min(minReconnect<<min(attempts, 10), maxReconnect)
	return d/2 + rand.N(d/2)
}

// withKey makes the connection sign with the key.
func withKey(key nkeys.KeyPair) (nats.Option, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("natslink: key: %w", err)
	}
	return nats.Nkey(public, key.Sign), nil
}

// connectEdge connects to the cores over the network.
func (a *attachment) connectEdge(c *credentials) error {
	addresses, err := parseAddresses(a.cfg.Join)
	if err != nil {
		return err
	}
	urls := ""
	for i, address := range addresses {
		if i > 0 {
			urls += ","
		}
		urls += "tls://" + address.at(portNodes)
	}
	of := [2]string{purposeSite, purposeShared}
	if c.edge {
		of = [2]string{purposeEdge, purposeEdges}
	} else {
		a.cfg.Log.Warn("this edge has the secret of the cluster, by which it could do whatever a core can: give it one of its own with \"anteroom cluster edge\"; a later release will refuse this", "node", a.cfg.Node)
	}
	for _, conn := range []struct {
		to      **nats.Conn
		watcher **watcher
		what    string
		purpose string
	}{{&a.site, &a.siteWatch, "site", of[0]}, {&a.shared, &a.sharedWatch, "shared", of[1]}} {
		key, err := c.key(conn.purpose)
		if err != nil {
			return err
		}
		sign, err := withKey(key)
		if err != nil {
			return err
		}
		w := &watcher{a: a, what: conn.what}
		*conn.watcher = w
		options := append(w.options(), sign)
		if c.edge {
			options = append(options, nats.CustomInboxPrefix(inboxOf()))
		}
		*conn.to, err = nats.Connect(urls, append(options,
			nats.Secure(c.config(coreName(c.cluster), coreName(c.cluster))), nats.TLSHandshakeFirst())...)
		if err != nil {
			return fmt.Errorf("natslink: connection to the cores: %w", err)
		}
	}
	return nil
}

// connectCore connects to the server in this process.
func (a *attachment) connectCore() error {
	for _, conn := range []struct {
		to      **nats.Conn
		watcher **watcher
		what    string
		key     nkeys.KeyPair
	}{
		{&a.site, &a.siteWatch, "site", a.server.site},
		{&a.shared, &a.sharedWatch, "shared", a.server.shared},
		{&a.system, new(*watcher), "system", a.server.system},
	} {
		sign, err := withKey(conn.key)
		if err != nil {
			return err
		}
		w := &watcher{a: a, what: conn.what}
		*conn.watcher = w
		options := append(w.options(), sign, nats.InProcessServer(a.server), nats.PingInterval(insidePing))
		if conn.to == &a.system {
			options = append(options, nats.NoEcho()) // a core need not hear that it is there itself
		}
		*conn.to, err = nats.Connect("", options...)
		if err != nil {
			return fmt.Errorf("natslink: connection to the embedded server: %w", err)
		}
		if !(*conn.to).IsConnected() {
			return fmt.Errorf("natslink: connection to the embedded server: %w", errors.Join(w.last(), (*conn.to).LastError()))
		}
	}
	return a.hearCores()
}

// dial connects a core once to another one, of any site, at its address for nodes.
func (a *attachment) dial(at string, within time.Duration) (*nats.Conn, error) {
	c := a.server.credentials
	key, err := c.key(purposeSite)
	if err != nil {
		return nil, err
	}
	sign, err := withKey(key)
	if err != nil {
		return nil, err
	}
	return nats.Connect("tls://"+at, nats.Name(a.cfg.Node), sign, nats.NoReconnect(), nats.Timeout(within),
		nats.Secure(c.config(coreName(c.cluster), coreName(c.cluster))), nats.TLSHandshakeFirst())
}
