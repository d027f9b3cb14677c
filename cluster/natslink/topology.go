package natslink

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// ClusterConfig says which part of which cluster this process is. A process is a core, an
// edge, or a client of the operator's own NATS: see docs/cluster.md.
type ClusterConfig struct {
	// Dir is the directory of the cluster's things on this machine; it is made (0700) if it
	// is not there. It belongs to this cluster, site and node for ever. Required.
	Dir string
	// LockWait is how long Join waits for another process to let go of the directory. Zero
	// means not at all.
	LockWait time.Duration

	// Cluster, Site and Node are 1 to 32 lower-case letters, digits and hyphens. Cluster is
	// the same everywhere, Site in one data centre, Node is this process's alone, always.
	Cluster, Site, Node string

	// Secret is what all processes of the cluster share: at least MinSecret bytes that
	// nobody can guess. Certificates and keys are derived from it.
	Secret string
	// OtherSecret is accepted beside Secret while the secret is changed; empty means none.
	OtherSecret string
	// TLS names certificates to use instead of those derived from the secret, which is
	// needed all the same.
	TLS TLSFiles

	// Listen is the address "host:port" at which a core answers: port is for the processes
	// of its site, port+1 for the other cores, port+2 for other sites. Empty with Cores and
	// Join empty means a core of its own that nobody can reach.
	Listen string
	// Cores are the addresses (Listen) of all cores of the site, this one among them, in
	// any order: none for a single core, else 3 or 5.
	Cores []string
	// Join makes the process an edge: the addresses of cores of its site, one at least.
	Join []string
	// Hub are addresses (Listen) of cores of the hub site. Empty means that this site is
	// the hub. Edges need not give it.
	Hub []string

	// External is the operator's own NATS, instead of Listen, Cores, Join and Hub.
	External *External

	// MaxStore and MaxMemory bound what a core keeps on disk and in memory, in bytes. Zero
	// means 8 GiB and 256 MiB.
	MaxStore, MaxMemory int64
	// Log takes what happens; nil means nothing.
	Log *slog.Logger
}

// TLSFiles are PEM files: the certificate of this process with its chain, its key, and the
// authorities that the certificates of the others come from. All three or none.
type TLSFiles struct{ Cert, Key, CA string }

// External says how the operator's own NATS is reached.
type External struct {
	// URLs are nats:// or tls:// addresses.
	URLs []string
	// SiteCredentials and SharedCredentials are files (.creds) of two accounts: that of this
	// site and that which all sites reach. One of them empty means that both are the same.
	// Both empty is for a server without authentication on a loopback address.
	SiteCredentials, SharedCredentials string
	// SharedDomain is the JetStream domain where the shared account's assets are; empty
	// means that of the servers.
	SharedDomain string
	// Replicas of every asset: 1, 3 or 5. Zero means 3 where the servers are a cluster, else 1.
	Replicas int
	// Hub: this site runs the coordinators.
	Hub bool
}

// attachment is this process's way into the cluster's engine.
type attachment struct {
	cfg ClusterConfig

	// site and shared are connections to the two accounts: of this site alone, and of all
	// sites. They reconnect for ever by themselves.
	site, shared *nats.Conn
	// siteDomain and hubDomain are the JetStream domains of the assets of the two; "" means
	// the API without a domain.
	siteDomain, hubDomain string
	// siteName and sharedName begin the names of streams, and with a dot the subjects, of
	// this site and of the whole cluster: other clusters may use the same accounts.
	siteName, sharedName string
	hub                  bool // this site is the hub
	replicas             int  // of assets of this site: 1, 3 or 5
	core                 bool // a server runs in this process
}

// attach starts the server of a core and the connections of every process. It does not
// wait for others: see ready. Its errors are of the configuration, the directory, the
// address.
func attach(ctx context.Context, cfg ClusterConfig) (*attachment, error) {
	return nil, errNotBuilt
}

// ready waits until the site's store answers, trying again until ctx ends; then the error
// says why it did not.
func (a *attachment) ready(ctx context.Context) error { return errNotBuilt }

// hubReady is ready for the hub's store.
func (a *attachment) hubReady(ctx context.Context) error { return errNotBuilt }

// close ends the connections and the server: Raft leaders are handed to other cores first,
// until ctx ends.
func (a *attachment) close(ctx context.Context) error { return errNotBuilt }

var errNotBuilt = errors.New("natslink: not yet")
