//go:build unix

package natslink

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestStrangersGetNothing: whoever is not of the cluster hears nothing at any port of a
// core, whatever they say.
func TestStrangersGetNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	all := members(t, "dublin")
	log, said := recordLog(t, "dublin-1")
	all[0].Log = log
	started := startSite(t, all...)
	core, err := parseAddress(all[0].Listen)
	if err != nil {
		t.Fatal(err)
	}
	theirs := func(secret, cluster string) *credentials {
		t.Helper()
		c, err := newCredentials(ClusterConfig{Cluster: cluster, Site: "dublin", Node: "stranger", Secret: secret}, true)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	// dial makes a TLS connection as the peer would and returns what the core says on it.
	dial := func(config *tls.Config) func(address string) ([]byte, error) {
		config = config.Clone()
		// The stranger does not mind whom it talks to.
		config.InsecureSkipVerify, config.VerifyConnection = true, nil
		return func(address string) ([]byte, error) {
			c, err := tls.Dial("tcp", address, config)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			c.Write([]byte("CONNECT {\"verbose\":true}\r\nPING\r\nSUB > 1\r\n"))
			return io.ReadAll(c)
		}
	}
	plain := func(say string) func(address string) ([]byte, error) {
		return func(address string) ([]byte, error) {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			io.WriteString(c, say)
			return io.ReadAll(c)
		}
	}
	old := theirs(testSecret, "shop").config("", coreName("shop"))
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	strangers := []struct {
		name string
		hear func(address string) ([]byte, error)
	}{
		{"plain TCP", plain("CONNECT {}\r\nPING\r\nSUB > 1\r\n")},
		{"plain TCP, silent", plain("")},
		{"HTTP", plain("GET /varz HTTP/1.1\r\nHost: a\r\n\r\n")},
		{"no certificate", dial(&tls.Config{MinVersion: tls.VersionTLS13})},
		{"another secret", dial(theirs(otherSecret, "shop").config("", coreName("shop")))},
		{"another cluster with the same secret", dial(theirs(testSecret, "stage").config("", coreName("stage")))},
		{"no secret", dial(theirs("", "shop").config("", coreName("shop")))},
		{"TLS 1.2 with a good certificate", dial(old)},
	}
	type outcome struct {
		what  string
		heard []byte
	}
	outcomes := make(chan outcome)
	for _, s := range strangers {
		for port := portNodes; port <= portSites; port++ {
			go func() {
				heard, _ := s.hear(core.at(port))
				outcomes <- outcome{s.name + " at " + core.at(port), heard}
			}()
		}
	}
	for range len(strangers) * (portSites + 1) {
		o := <-outcomes
		// A peer that speaks no TLS may be told so, in TLS.
		if alert := len(o.heard) == 7 && o.heard[0] == 21; len(o.heard) > 0 && !alert {
			t.Errorf("%s: heard %q", o.what, o.heard)
		}
	}

	// A process of the cluster that may enter at one port does not enter at another, and a
	// certificate without the keys is not enough either.
	edge, err := newCredentials(ClusterConfig{Cluster: "shop", Node: "edge", Secret: testSecret}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int{portCores, portSites} {
		if heard, _ := dial(edge.config("", coreName("shop")))(core.at(port)); len(heard) > 0 {
			t.Errorf("an edge at port %s: heard %q", core.at(port), heard)
		}
	}
	far, err := newCredentials(ClusterConfig{Cluster: "shop", Site: "paris", Node: "paris-1", Secret: testSecret}, true)
	if err != nil {
		t.Fatal(err)
	}
	if heard, _ := dial(far.config("", coreName("shop")))(core.at(portCores)); len(heard) > 0 {
		t.Errorf("a core of another site at the port of the cores: heard %q", heard)
	}
	for _, options := range [][]nats.Option{
		{},
		{nats.UserInfo("core", "password")},
		{nkey(t, edge, purposeLeaf)},
		{nkey(t, edge, "something else")},
	} {
		options = append(options, nats.Secure(edge.config(coreName("shop"), coreName("shop"))), nats.TLSHandshakeFirst())
		if nc, err := nats.Connect("tls://"+all[0].Listen, options...); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("without a key of a node: %v", err)
			if err == nil {
				nc.Close()
			}
		}
	}

	// What is the cluster's still works, and its log has no secret.
	within(t, 10*time.Second, started[0].ready)
	c := theirs(testSecret, "shop")
	passwords, err := c.passwords(purposeRoute + "dublin")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := c.key(purposeLeaf)
	if err != nil {
		t.Fatal(err)
	}
	seed, err := leaf.Seed()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := said.all()
	for _, secret := range []string{testSecret, passwords[0], string(seed)} {
		if strings.Contains(text, secret) {
			t.Error("a secret is in the log")
		}
	}
	if !strings.Contains(text, "TLS handshake error") {
		t.Error("nothing in the log says that strangers came")
	}
}

func nkey(t *testing.T, c *credentials, purpose string) nats.Option {
	t.Helper()
	key, err := c.key(purpose)
	if err != nil {
		t.Fatal(err)
	}
	option, err := withKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return option
}

// TestEdgeSaysWhyItIsRefused: a wrong secret or name is not a silence for ever.
func TestEdgeSaysWhyItIsRefused(t *testing.T) {
	t.Parallel()
	core := single(t, "dublin")
	startSite(t, core)
	for name, change := range map[string]func(*ClusterConfig){
		"another secret":  func(c *ClusterConfig) { c.Secret = otherSecret },
		"another cluster": func(c *ClusterConfig) { c.Cluster = "stage" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := edgeOf(t, core)
			change(&cfg)
			e := start(t, cfg)
			if err := says(t, e.ready, "another secret or another cluster name"); err != nil && strings.Contains(err.Error(), cfg.Secret) {
				t.Errorf("%v has the secret", err)
			}
		})
	}
}

// TestSecretIsChangedStepByStep: no process is ever without the others.
func TestSecretIsChangedStepByStep(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	core := single(t, "dublin")
	edge := edgeOf(t, core)
	// First everybody takes both and shows the old one, then everybody shows the new one.
	steps := []struct{ core, edge [2]string }{
		{core: [2]string{testSecret, otherSecret}, edge: [2]string{testSecret, ""}},
		{core: [2]string{testSecret, otherSecret}, edge: [2]string{testSecret, otherSecret}},
		{core: [2]string{otherSecret, testSecret}, edge: [2]string{testSecret, otherSecret}},
		{core: [2]string{otherSecret, testSecret}, edge: [2]string{otherSecret, testSecret}},
		{core: [2]string{otherSecret, ""}, edge: [2]string{otherSecret, testSecret}},
		{core: [2]string{otherSecret, ""}, edge: [2]string{otherSecret, ""}},
	}
	for i, s := range steps {
		core, edge := core, edge
		core.Dir, core.Listen = t.TempDir(), freeAddress(t)
		edge.Dir, edge.Join = t.TempDir(), []string{core.Listen}
		core.Secret, core.OtherSecret = s.core[0], s.core[1]
		edge.Secret, edge.OtherSecret = s.edge[0], s.edge[1]
		start(t, core)
		e := start(t, edge)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := e.ready(ctx); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		cancel()
	}
}

func TestCheckSecret(t *testing.T) {
	for secret, want := range map[string]string{
		"":                                 "0 bytes",
		"short":                            "at least 16",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": "different characters",
		"passwordpassword":                 "different characters",
		"passw0rd1passw0rd1":               "repeats itself",
		"0123456789abcdef":                 "easy to guess",
		testSecret:                         "",
		"correct horse battery staple":     "",
	} {
		err := CheckSecret(secret, true)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", secret, err)
			}
			continue
		}
		wantText(t, err, want)
		wantText(t, err, "openssl rand -hex 32")
		if secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%v repeats the secret", err)
		}
	}
}

// TestSameSecretSameAuthority: processes that never met believe each other.
func TestSameSecretSameAuthority(t *testing.T) {
	one, err := deriveIdentity(testSecret, "shop")
	if err != nil {
		t.Fatal(err)
	}
	two, err := deriveIdentity(testSecret, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.ca.Raw, two.ca.Raw) {
		t.Error("the same secret made two authorities")
	}
	for _, other := range [][2]string{{otherSecret, "shop"}, {testSecret, "stage"}} {
		id, err := deriveIdentity(other[0], other[1])
		if err != nil {
			t.Fatal(err)
		}
		if one.root.Equal(id.root) {
			t.Errorf("%q makes the same authority", other)
		}
	}
}

func TestClusterRefuses(t *testing.T) {
	t.Parallel()
	three := []string{"127.0.0.1:7000", "127.0.0.1:7010", "127.0.0.1:7020"}
	good := ClusterConfig{Cluster: "shop", Site: "dublin", Node: "dublin-1", Secret: testSecret, Listen: "127.0.0.1:7000", Cores: three}
	for _, tt := range []struct {
		name   string
		change func(*ClusterConfig)
		want   string
	}{
		{"a public address without a secret", func(c *ClusterConfig) { c.Secret, c.Listen, c.Cores = "", "10.0.0.1:7222", nil }, "neither a secret nor tls"},
		{"every address without a secret", func(c *ClusterConfig) { c.Secret, c.Listen, c.Cores = "", ":7222", nil }, "neither a secret nor tls"},
		{"a name without a secret", func(c *ClusterConfig) { c.Secret, c.Listen, c.Cores = "", "shop.example.com:7222", nil }, "neither a secret nor tls"},
		{"an edge without a secret", func(c *ClusterConfig) {
			*c = ClusterConfig{Dir: c.Dir, Cluster: "shop", Node: "n", Join: []string{"10.0.0.1:7222"}}
		}, "neither a secret nor tls"},
		{"a weak secret", func(c *ClusterConfig) { c.Secret = "secret" }, "openssl rand"},
		{"a weak other secret", func(c *ClusterConfig) { c.OtherSecret = "secret" }, "openssl rand"},
		{"two cores", func(c *ClusterConfig) { c.Cores = three[:2] }, "list 3 or 5"},
		{"four cores", func(c *ClusterConfig) { c.Cores = append(three[:3:3], "127.0.0.1:7030") }, "list 3 or 5"},
		{"six cores", func(c *ClusterConfig) {
			c.Cores = append(three[:3:3], "127.0.0.1:7030", "127.0.0.1:7040", "127.0.0.1:7050")
		}, "3 or 5 are meant"},
		{"cores without itself", func(c *ClusterConfig) { c.Listen = "127.0.0.1:7999" }, "is not among cores"},
		{"a core twice", func(c *ClusterConfig) { c.Cores = []string{three[0], three[1], three[0]} }, "given twice"},
		{"cores without listen", func(c *ClusterConfig) { c.Listen = "" }, "cores without listen"},
		{"a core that joins", func(c *ClusterConfig) { c.Join = three }, "give one or the other"},
		{"no port", func(c *ClusterConfig) { c.Listen = "127.0.0.1" }, "host:port"},
		{"the last port", func(c *ClusterConfig) { c.Listen = "127.0.0.1:65535" }, "the two above it"},
		{"a name with a dot", func(c *ClusterConfig) { c.Site = "a.b" }, `site "a.b"`},
		{"no node", func(c *ClusterConfig) { c.Node = "" }, `node ""`},
		{"no directory", func(c *ClusterConfig) { c.Dir = "" }, "no directory"},
		{"half of tls", func(c *ClusterConfig) { c.TLS.Cert = "x" }, "needed together"},
		{"nats and cores", func(c *ClusterConfig) { c.External = &External{URLs: []string{"nats://127.0.0.1"}} }, "do not go with it"},
		{"nats without url", func(c *ClusterConfig) { c.Listen, c.Cores, c.External = "", nil, &External{} }, "without url"},
		{"nats elsewhere without credentials", func(c *ClusterConfig) {
			c.Listen, c.Cores, c.External = "", nil, &External{URLs: []string{"nats://10.0.0.1:4222"}}
		}, "set cluster.nats.credentials"},
		{"a password in the url", func(c *ClusterConfig) {
			c.Listen, c.Cores, c.External = "", nil, &External{URLs: []string{"nats://me:pass@127.0.0.1"}}
		}, "credentials file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good
			cfg.Dir = t.TempDir()
			tt.change(&cfg)
			a, err := attach(t.Context(), cfg)
			if err == nil {
				stop(t, a)
				t.Fatal("it started")
			}
			wantText(t, err, tt.want)
		})
	}
	t.Run("an address that is taken", func(t *testing.T) {
		cfg := single(t, "dublin")
		l, err := net.Listen("tcp", cfg.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, err = attach(t.Context(), cfg)
		wantText(t, err, "address already in use")
	})
}

// TestDirectoryOfSomethingElse: NATS loses a store that it is started on in another way.
func TestDirectoryOfSomethingElse(t *testing.T) {
	t.Parallel()
	try := func(cfg ClusterConfig, want string) {
		t.Helper()
		a, err := attach(t.Context(), cfg)
		if err == nil {
			stop(t, a)
			t.Errorf("it started; want %q", want)
			return
		}
		wantText(t, err, want)
	}
	cfg := single(t, "dublin")
	stop(t, start(t, cfg))
	for want, change := range map[string]func(*ClusterConfig){
		`belongs to cluster "shop", not to "stage"`:     func(c *ClusterConfig) { c.Cluster = "stage" },
		`belongs to site "dublin", not to "paris"`:      func(c *ClusterConfig) { c.Site = "paris" },
		`belongs to node "dublin-1", not to "dublin-2"`: func(c *ClusterConfig) { c.Node = "dublin-2" },
	} {
		c := cfg
		change(&c)
		try(c, want)
	}
	stop(t, start(t, cfg))
	several := cfg
	several.Cores = []string{cfg.Listen, freeAddress(t), freeAddress(t)}
	a := start(t, several)
	if err := a.ready(t.Context()); err != nil || len(a.coreList()) > 0 {
		t.Errorf("a core alone whose configuration lists others: %v, it goes on with %v", err, a.coreList())
	}
	stop(t, a)

	alone := single(t, "dublin")
	l, err := Open(Config{Dir: alone.Dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	try(alone, "the store of a standalone process")

	other := single(t, "dublin")
	mkdir(t, other.Dir+"/jetstream")
	try(other, "that says whose it is")

	damaged := single(t, "dublin")
	write(t, damaged.Dir+"/"+layoutName, "anteroom cluster store 2\n\n\n\n\n")
	try(damaged, "newer version")

	first := start(t, cfg)
	try(cfg, "another anteroom runs on this data directory")
	stop(t, first)
	if text, err := os.ReadFile(cfg.Dir + "/" + layoutName); err != nil || strings.Contains(string(text), testSecret) {
		t.Errorf("%q, %v", text, err)
	}
}
