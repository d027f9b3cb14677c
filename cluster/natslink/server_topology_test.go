//go:build unix

package natslink

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/anteroom/anteroom/internal/freeport"
)

const (
	testSecret  = "3f7a9c1e5b8d2046f1e0d3c2b5a49788"
	otherSecret = "c0ffee12ab4598d7e6f3021b9a8c7d54"
)

// freeAddress returns an address on loopback with two more free ports above its own.
func freeAddress(t testing.TB) string {
	t.Helper()
	return freeport.Address(t, portSites+1)
}

// single is the configuration of a core alone.
func single(t testing.TB, site string) ClusterConfig {
	return ClusterConfig{
		Dir: t.TempDir(), Cluster: "shop", Site: site, Node: site + "-1", Secret: testSecret,
		Listen: freeAddress(t), Log: testLog(t, site+"-1"),
	}
}

// members are the configurations of three cores of a site.
func members(t testing.TB, site string) []ClusterConfig {
	var cores []string
	for range 3 {
		cores = append(cores, freeAddress(t))
	}
	var all []ClusterConfig
	for i, listen := range cores {
		c := single(t, site)
		c.Node, c.Listen, c.Cores = site+"-"+strconv.Itoa(i+1), listen, cores
		c.Log = testLog(t, c.Node)
		all = append(all, c)
	}
	return all
}

// edgeOf is the configuration of an edge of the site.
func edgeOf(t testing.TB, cores ...ClusterConfig) ClusterConfig {
	c := ClusterConfig{Dir: t.TempDir(), Cluster: "shop", Node: "edge", Secret: testSecret, Log: testLog(t, "edge")}
	for _, core := range cores {
		c.Join = append(c.Join, core.Listen)
	}
	return c
}

// start attaches; the end of the test detaches.
func start(t testing.TB, cfg ClusterConfig) *attachment {
	t.Helper()
	a, err := attach(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	return a
}

func stop(t testing.TB, a *attachment) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := a.close(ctx); err != nil {
		t.Error(err)
	}
}

// startSite starts cores together and waits until their store answers.
func startSite(t testing.TB, cfgs ...ClusterConfig) []*attachment {
	t.Helper()
	var all []*attachment
	for _, c := range cfgs {
		all = append(all, start(t, c))
	}
	for _, a := range all {
		within(t, 30*time.Second, a.ready)
	}
	return all
}

func within(t testing.TB, d time.Duration, fn func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := fn(ctx); err != nil {
		t.Fatal(err)
	}
}

// hears subscribes and returns the messages; the subscription is known to the server.
func hears(t testing.TB, nc *nats.Conn, subject string) <-chan *nats.Msg {
	t.Helper()
	got := make(chan *nats.Msg, 1000)
	sub, err := nc.Subscribe(subject, func(m *nats.Msg) { got <- m })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sub.Unsubscribe() })
	if err := nc.FlushTimeout(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	return got
}

// reaches sends again and again until a message is heard: interest travels by itself.
func reaches(t testing.TB, from *nats.Conn, subject string, got <-chan *nats.Msg, limit time.Duration) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	own := nats.NewInbox() // what was published before a cut may come still, or has come
	for {
		from.Publish(subject, []byte(own))
		select {
		case m := <-got:
			if string(m.Data) == own {
				return
			}
		case <-deadline:
			t.Fatalf("%s: nothing arrived within %v", subject, limit)
		case <-tick.C:
		}
	}
}

// keep makes a bucket with the replicas and writes into it.
func keep(t testing.TB, a *attachment, nc *nats.Conn, domain, bucket string) jetstream.KeyValue {
	t.Helper()
	js, err := newJetStream(nc, domain)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		// A request that meets a change of leaders is not answered.
		try, done := context.WithTimeout(ctx, 3*time.Second)
		kv, err := js.CreateOrUpdateKeyValue(try, jetstream.KeyValueConfig{Bucket: bucket, Replicas: a.replicas, LimitMarkerTTL: time.Second})
		if err == nil {
			_, err = kv.Put(try, "a", []byte("1"))
		}
		done()
		if err == nil {
			return kv
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func TestCoreAlone(t *testing.T) {
	t.Parallel()
	cfg := single(t, "dublin")
	cfg.Listen, cfg.Secret = "", ""
	a := startSite(t, cfg)[0]
	if got := a.server.srv().Addr(); got != nil {
		t.Errorf("it listens at %v", got)
	}
	if !a.isHub() || a.replicas != 1 || !a.core || a.siteOf() != "dublin" {
		t.Errorf("hub %v, replicas %d, core %v, site %q", a.isHub(), a.replicas, a.core, a.siteOf())
	}
	keep(t, a, a.site, "", "site")
	keep(t, a, a.shared, a.hubDomain, "shared")
	stop(t, a)

	a = start(t, cfg)
	within(t, 10*time.Second, a.ready)
	js, err := newJetStream(a.shared, a.hubDomain)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(t.Context(), "a"); err != nil || string(e.Value()) != "1" {
		t.Errorf("after a restart: %v, %v", e, err)
	}
}

func TestEdgeJoinsWithAddressAndSecret(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	core := single(t, "dublin")
	cfg := edgeOf(t, core)
	// The edge is there first.
	e := start(t, cfg)
	if e.core || e.site.IsConnected() {
		t.Errorf("core %v, connected %v", e.core, e.site.IsConnected())
	}
	c := startSite(t, core)[0]
	within(t, 10*time.Second, e.ready)
	if e.siteOf() != "dublin" || !e.isHub() {
		t.Errorf("site %q, hub %v", e.siteOf(), e.isHub())
	}
	for _, conn := range [][2]*nats.Conn{{c.site, e.site}, {e.site, c.site}, {c.shared, e.shared}, {e.shared, c.shared}} {
		reaches(t, conn[0], "door.1", hears(t, conn[1], "door.1"), 5*time.Second)
	}
	// The accounts are apart.
	crossed := hears(t, e.shared, "apart")
	same := hears(t, e.site, "apart")
	reaches(t, c.site, "apart", same, 5*time.Second)
	within(t, 5*time.Second, e.shared.FlushWithContext)
	if len(crossed) > 0 {
		t.Error("a message of the site's account is in the shared account")
	}
	keep(t, c, c.site, "", "site")
	js, err := newJetStream(e.site, "")
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "site")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "b", []byte("of the edge")); err != nil {
		t.Error(err)
	}

	// The edge works with what there is and decides nothing about it.
	shared, err := newJetStream(e.shared, e.hubDomain)
	if err != nil {
		t.Fatal(err)
	}
	for what, try := range map[string]func(ctx context.Context) error{
		"deleted a bucket": func(ctx context.Context) error { return js.DeleteKeyValue(ctx, "site") },
		"made a bucket": func(ctx context.Context) error {
			_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "more"})
			return err
		},
		"made a shared one": func(ctx context.Context) error {
			_, err := shared.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "more"})
			return err
		},
		"asked the system": func(ctx context.Context) error {
			_, err := e.site.RequestWithContext(ctx, "$SYS.REQ.SERVER.PING", nil)
			return err
		},
	} {
		denied, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := try(denied); err == nil {
			t.Errorf("the edge %s", what)
		}
		cancel()
	}

	// The core starts anew: the edge comes back by itself and knows its site.
	stop(t, c)
	startSite(t, core)
	within(t, 10*time.Second, e.ready)
	if _, err := kv.Put(t.Context(), "c", nil); err != nil {
		t.Error(err)
	}
	stop(t, e)
	e = start(t, cfg)
	if e.siteOf() != "dublin" {
		t.Errorf("after a restart the edge is of site %q", e.siteOf())
	}
}

func TestEdgeOfAnotherSiteIsRefused(t *testing.T) {
	t.Parallel()
	core := single(t, "dublin")
	startSite(t, core)
	cfg := edgeOf(t, core)
	cfg.Site = "paris"
	e := start(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := e.ready(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("%v, want it refused at once", err)
	} else {
		wantText(t, err, `is of site "dublin" and this process of site "paris"`)
	}
}
