//go:build unix

package natslink

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// operatorNATS are servers as an operator runs them: TCP, an operator with accounts whose
// users have credentials files.
type operatorNATS struct {
	servers      []*server.Server
	urls         []string
	site, shared string // credentials files
}

// account makes an account with JetStream and a user's credentials file.
func account(t *testing.T, operator nkeys.KeyPair, name string, storage bool) (token, public, file string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ak, err := nkeys.CreateAccount()
	must(err)
	public, err = ak.PublicKey()
	must(err)
	claims := jwt.NewAccountClaims(public)
	claims.Name = name
	if storage {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	}
	token, err = claims.Encode(operator)
	must(err)
	uk, err := nkeys.CreateUser()
	must(err)
	userPublic, err := uk.PublicKey()
	must(err)
	user, err := jwt.NewUserClaims(userPublic).Encode(ak)
	must(err)
	seed, err := uk.Seed()
	must(err)
	text, err := jwt.FormatUserConfig(user, seed)
	must(err)
	file = filepath.Join(t.TempDir(), name+".creds")
	must(os.WriteFile(file, text, 0o600))
	return token, public, file
}

// runNATS starts n servers; change may alter what each is started with.
func runNATS(t *testing.T, n int, storage bool, change func(*server.Options)) *operatorNATS {
	t.Helper()
	operator, err := nkeys.CreateOperator()
	if err != nil {
		t.Fatal(err)
	}
	public, err := operator.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	o := &operatorNATS{}
	resolver := &server.MemAccResolver{}
	var token, key string
	for _, a := range []struct {
		name string
		file *string
	}{{"site", &o.site}, {"shared", &o.shared}} {
		token, key, *a.file = account(t, operator, a.name, storage)
		if err := resolver.Store(key, token); err != nil {
			t.Fatal(err)
		}
	}
	token, system, _ := account(t, operator, "system", false)
	if err := resolver.Store(system, token); err != nil {
		t.Fatal(err)
	}
	var addresses []address
	var routes []*url.URL
	for range n {
		a, err := parseAddress(freeAddress(t))
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, a)
		routes = append(routes, &url.URL{Scheme: "nats", Host: a.at(portCores)})
		o.urls = append(o.urls, "nats://"+a.at(portNodes))
	}
	for i, a := range addresses {
		opts := &server.Options{
			ServerName: fmt.Sprintf("nats-%d", i+1), Host: a.host, Port: a.port,
			NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 2 << 20,
			TrustedKeys: []string{public}, AccountResolver: resolver, SystemAccount: system,
		}
		if n > 1 {
			opts.Cluster = server.ClusterOpts{Name: "theirs", Host: a.host, Port: a.port + portCores}
			opts.Routes = routes
		}
		if change != nil {
			change(opts)
		}
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		o.servers = append(o.servers, s)
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		s.Start()
	}
	for _, s := range o.servers {
		if !s.ReadyForConnections(20 * time.Second) {
			t.Fatal("the servers do not start")
		}
	}
	return o
}

// config is that of a process that uses the servers.
func (o *operatorNATS) config(t *testing.T) ClusterConfig {
	return ClusterConfig{
		Dir: t.TempDir(), Cluster: "shop", Site: "dublin", Node: "dublin-1", Log: testLog(t, "dublin-1"),
		External: &External{URLs: o.urls, SiteCredentials: o.site, SharedCredentials: o.shared, Hub: true},
	}
}

func TestExternal(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, " servers"), func(t *testing.T) {
			t.Parallel()
			o := runNATS(t, n, true, nil)
			a := start(t, o.config(t))
			within(t, 20*time.Second, a.ready)
			within(t, 20*time.Second, a.hubReady)
			if a.replicas != n || !a.isHub() || a.core || a.siteOf() != "dublin" {
				t.Errorf("replicas %d, hub %v, core %v, site %q", a.replicas, a.isHub(), a.core, a.siteOf())
			}
			other := o.config(t)
			other.Node = "dublin-2"
			b := start(t, other)
			within(t, 20*time.Second, b.ready)
			within(t, 20*time.Second, b.hubReady)
			for _, pair := range [][2]*nats.Conn{{a.site, b.site}, {b.shared, a.shared}} {
				reaches(t, pair[0], "x", hears(t, pair[1], "x"), 5*time.Second)
			}
			keep(t, a, a.site, "", a.siteName)
			keep(t, b, b.shared, b.hubDomain, b.sharedName)
			if f, err := b.look(t.Context()); err != nil || len(f.Streams) != 2 {
				t.Errorf("facts %+v, %v", f, err)
			}
			// A server stops, what it leads goes on elsewhere.
			if n == 3 {
				o.servers[0].Shutdown()
				within(t, 20*time.Second, a.ready)
				keep(t, a, a.site, "", a.siteName)
			}
		})
	}
}

// TestExternalOneAccount: both connections are of one account, told apart by names.
func TestExternalOneAccount(t *testing.T) {
	t.Parallel()
	cfg := runNATS(t, 1, true, nil).config(t)
	cfg.External.SharedCredentials = ""
	a := start(t, cfg)
	within(t, 20*time.Second, a.ready)
	within(t, 20*time.Second, a.hubReady)
	reaches(t, a.site, "x", hears(t, a.shared, "x"), 5*time.Second)
	if a.siteName == a.sharedName {
		t.Errorf("both are called %s", a.siteName)
	}
}

// TestExternalStreamIsDeleted: nobody but the operator of the servers can do that, and doctor says so.
func TestExternalStreamIsDeleted(t *testing.T) {
	t.Parallel()
	l := joinAll(t, runNATS(t, 1, true, nil).config(t))[0]
	if f, err := Look(t.Context(), l); err != nil || len(f.Streams) != 3 || len(f.Missing) != 0 {
		t.Fatalf("facts %+v, %v", f, err)
	}
	js, err := newJetStream(l.att.site, "")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.books.store.stream
	if err := js.DeleteStream(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	f, err := Look(t.Context(), l)
	if err != nil || !slices.Equal(f.Missing, []string{gone}) {
		t.Fatalf("missing %v, %v", f.Missing, err)
	}
	if all := f.Faults(); !slices.ContainsFunc(all, func(one Fault) bool { return one.Stops && strings.Contains(one.What, gone) }) {
		t.Errorf("faults %+v", all)
	}
}

// TestExternalRefusesLater: what cannot be stored any more says why, and not only that there is no connection.
func TestExternalRefusesLater(t *testing.T) {
	t.Parallel()
	o := runNATS(t, 1, true, nil)
	l := joinAll(t, o.config(t))[0]
	o.servers[0].Shutdown()
	o.servers[0].WaitForShutdown()
	at, err := parseAddress(strings.TrimPrefix(o.urls[0], "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := server.NewServer(&server.Options{Host: at.host, Port: at.port, NoSigs: true, NoLog: true, Username: "somebody", Password: "else"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Shutdown(); other.WaitForShutdown() })
	other.Start()
	within(t, 20*time.Second, func(ctx context.Context) (err error) {
		for pause(ctx, minBackoff) {
			if _, err = l.Update(ctx, "k", []byte("v"), 0); err != nil && strings.Contains(strings.ToLower(err.Error()), "authorization violation") {
				return nil
			}
		}
		return fmt.Errorf("refused with %w", err)
	})
}

func TestExternalSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		storage bool
		change  func(*server.Options)
		cfg     func(*ClusterConfig)
		want    string
		fast    bool // does not try again
	}{
		{name: "no JetStream", change: func(o *server.Options) { o.JetStream = false }, storage: true, want: "JetStream is not enabled"},
		{name: "no JetStream for the account", want: "JetStream is not enabled for our account"},
		{name: "small messages", storage: true, change: func(o *server.Options) { o.MaxPayload = 1 << 20 }, want: "set max_payload", fast: true},
		{name: "credentials of another", storage: true, cfg: func(c *ClusterConfig) {
			operator, err := nkeys.CreateOperator()
			if err != nil {
				t.Fatal(err)
			}
			_, _, c.External.SiteCredentials = account(t, operator, "stranger", true)
		}, want: "the servers refuse our credentials (cluster.nats.credentials)"},
		{name: "nobody there", storage: true, cfg: func(c *ClusterConfig) { c.External.URLs = []string{"nats://" + freeAddress(t)} }, want: "connection refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := runNATS(t, 1, tt.storage, tt.change).config(t)
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			a := start(t, cfg)
			if !tt.fast {
				says(t, a.ready, tt.want)
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			wantText(t, a.ready(ctx), tt.want)
			if ctx.Err() != nil {
				t.Error("it tried again")
			}
		})
	}
	cfg := ClusterConfig{Dir: t.TempDir(), Cluster: "shop", Site: "dublin", Node: "n",
		External: &External{URLs: []string{"nats://127.0.0.1"}, SiteCredentials: filepath.Join(t.TempDir(), "none.creds")}}
	_, err := attach(t.Context(), cfg)
	wantText(t, err, "nats credentials")
}

// TestExternalSmallDisk: NATS reserves the most that a stream may take, and its own words name no number.
func TestExternalSmallDisk(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		a := start(t, runNATS(t, n, true, func(o *server.Options) { o.JetStreamMaxStore = 1 << 30 }).config(t))
		if err := a.ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		says(t, func(context.Context) error { return ensureSite(t.Context(), a) }, "it reserves 6144 MiB on each server")
	}
}

func TestCheckVersion(t *testing.T) {
	for version, ok := range map[string]bool{
		"2.12.0": true, "2.15.2": true, "3.0.0": true, "2.12.0-RC.1": true,
		"2.11.9": false, "1.99.0": false, "": false, "latest": false,
	} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
}
