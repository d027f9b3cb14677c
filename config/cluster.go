package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// Cluster is the key "cluster": nodes that serve the same rooms. Without any of its
// addresses the process is alone.
type Cluster struct {
	Name       string      `key:"name" default:"anteroom" doc:"Name of the cluster. Nodes with different names never work together."`
	Site       string      `key:"site" doc:"Name of the data center. The nodes of a site share its sessions and its part of the queue. Default: local for a core, and the name of the cores' site for an edge."`
	Node       string      `key:"node" doc:"Name of this node, unique in its site and kept for as long as its data. By default Anteroom chooses one and keeps it in the data directory. If it ends with a hyphen, which edges may use, Anteroom chooses the rest."`
	SecretFile string      `key:"secret_file" file:"true" doc:"File with the secret of the cluster, at least 32 characters, such as the output of openssl rand -hex 32. Required in every cluster. Certificates derived from it encrypt and authenticate everything between nodes, and it encrypts the stored ticket keys. To change it, put the secret that is still accepted on a second line. An edge gets a secret of its own from \"anteroom cluster edge\"."`
	ShutOut    []string    `key:"shut_out" doc:"Names of edges that this core refuses from its next start on. Only for edges with a secret of their own."`
	Listen     string      `key:"listen" doc:"Address at which other nodes reach this one, which makes it a core: host:port. The port is for nodes of the same site, the next one for other cores, the one after that for other sites. A node without it is an edge: it stores nothing that others need."`
	Cores      []string    `key:"cores" doc:"The cores of this site by their listen addresses, this one among them: 3 or 5, and the same list on each. By default this core is the only one."`
	Join       []string    `key:"join" doc:"Addresses of cores of this site, one or more: joins their cluster as an edge. The flag --cluster is a shorter spelling."`
	Hub        []string    `key:"hub" doc:"Addresses of cores of the hub, for the cores of every other site. The hub is the site without this key; it keeps the configuration and the order of the queue across all sites."`
	Weight     int         `key:"weight" default:"1" min:"1" max:"1000" doc:"This site's share of the free slots, relative to other sites, until Anteroom knows where visitors arrive."`
	TLS        ClusterTLS  `key:"tls" doc:"Certificates between nodes, instead of those derived from the secret."`
	NATS       ClusterNATS `key:"nats" doc:"NATS servers of your own, version 2.12 or later with JetStream, instead of those inside the nodes."`
}

// ClusterTLS is the key "cluster.tls".
type ClusterTLS struct {
	Cert string `key:"cert" file:"true" doc:"PEM file with the certificate and its chain, for servers and clients."`
	Key  string `key:"key" file:"true" doc:"PEM file with the private key."`
	CA   string `key:"ca" file:"true" doc:"PEM file with the only authority whose certificates are trusted. With NATS servers of your own, it may be left out or stand alone."`
}

// ClusterNATS is the key "cluster.nats".
type ClusterNATS struct {
	URL               []string `key:"url" doc:"Servers of this site, like nats://10.0.0.1:4222."`
	Credentials       string   `key:"credentials" file:"true" doc:"Credentials file of the account of this site."`
	SharedCredentials string   `key:"shared_credentials" file:"true" doc:"Credentials file of the account that is bridged between sites. By default the account of this site, for a cluster of one site."`
	SharedDomain      string   `key:"shared_domain" doc:"JetStream domain where the bridged account keeps its streams, if it is not that of these servers: the hub's, at every other site."`
	Hub               bool     `key:"hub" default:"true" doc:"Whether this site keeps the order of the queue across all sites. Exactly one site does."`
	Replicas          int      `key:"replicas" default:"0" min:"0" max:"5" doc:"Copies of all stored data: 1, 3 or 5. 0 means 3 if the servers are a cluster, otherwise 1."`
}

// On reports whether the process is part of a cluster.
func (c Cluster) On() bool {
	return c.Listen != "" || len(c.Cores)+len(c.Join)+len(c.NATS.URL) > 0
}

// IsHub reports whether the site of this process is the hub.
func (c Cluster) IsHub() bool { return len(c.Hub) == 0 && (len(c.NATS.URL) == 0 || c.NATS.Hub) }

// minSecret is the least length of a cluster's secret, in bytes.
const minSecret = 32

// maxDrawn is the length of a beginning of a node's name, to which Anteroom adds eight characters.
const maxDrawn = 24

// checkCluster adds the faults of the section.
func (l *loader) checkCluster(c *Cluster) {
	for _, n := range [][2]string{{"name", c.Name}, {"site", c.Site}, {"node", c.Node}} {
		if key, name := n[0], n[1]; (name != "" || key == "name") && !isLabel(name) {
			l.At("cluster."+key, field.Quote(name)+" is not a name", "1 to 32 lower-case letters, digits and hyphens")
		}
	}
	if strings.HasSuffix(c.Node, "-") && (c.Listen != "" || len(c.Node) > maxDrawn) {
		l.At("cluster.node", field.Quote(c.Node)+" leaves the rest of the name to Anteroom", fmt.Sprintf("a whole name for a core; for an edge, at most %d characters with the hyphen", maxDrawn))
	}
	if !c.On() {
		if len(c.Hub) > 0 || c.SecretFile != "" || c.TLS != (ClusterTLS{}) {
			l.At("cluster", "has no address, so this process would be standalone", "cluster.listen for a core, cluster.join for another node, or cluster.nats.url")
		}
		return
	}
	ours := len(c.NATS.URL) == 0
	switch {
	case !ours && (c.Listen != "" || len(c.Cores)+len(c.Join)+len(c.Hub) > 0):
		l.At("cluster.nats.url", "is set together with addresses of nodes", "remove cluster.listen, cores, join and hub: nodes meet at the NATS servers")
	case ours && c.Listen == "" && len(c.Join) == 0:
		l.At("cluster.listen", "is missing, and so is cluster.join", "a core names its address, any other node the address of a core")
	case c.Listen != "" && len(c.Join) > 0:
		l.At("cluster.join", "is for edges, and this is a core", "list the site's cores in cluster.cores, or remove cluster.listen")
	case c.Listen == "" && len(c.Hub) > 0:
		l.At("cluster.hub", "is for cores, and this is an edge", "the cores of its site are connected with the hub")
	}
	if c.Listen != "" {
		l.checkPorts("cluster.listen", c.Listen)
	}
	for i, name := range c.ShutOut {
		if !isLabel(name) {
			l.At(fmt.Sprintf("cluster.shut_out[%d]", i), field.Quote(name)+" is not the name of a node", "as in anteroom cluster status")
		}
	}
	if len(c.ShutOut) > 0 && c.Listen == "" {
		l.At("cluster.shut_out", "is for cores, and this is none", "set it at every core of the site")
	}
	l.checkPeers("cluster.cores", c.Cores)
	l.checkPeers("cluster.join", c.Join)
	l.checkPeers("cluster.hub", c.Hub)
	for i, a := range c.Hub {
		if a == c.Listen || slices.Contains(c.Cores, a) {
			l.At(fmt.Sprintf("cluster.hub[%d]", i), field.Quote(a)+" is a core of this site", "list the cores of the hub; if this site is the hub, remove cluster.hub")
		}
	}
	if n := len(c.Cores); n > 0 {
		found := false
		for i, a := range c.Cores {
			found = found || a == c.Listen
			if j := slices.IndexFunc(c.Cores[:i], func(b string) bool { return sharePorts(a, b) }); j >= 0 {
				l.At(fmt.Sprintf("cluster.cores[%d]", i), field.Quote(a)+" shares ports with "+field.Quote(c.Cores[j]), "a core uses three ports in a row; on one machine, 127.0.0.1:7222, 127.0.0.1:7232 and 127.0.0.1:7242 do not meet")
			}
		}
		switch {
		case n != 1 && n != 3 && n != 5:
			l.At("cluster.cores", fmt.Sprintf("has %d addresses", n), "3 or 5: a majority must be left when one fails; or 1")
		case !found:
			l.At("cluster.cores", fmt.Sprintf("does not name this core's own %s", field.Quote(c.Listen)), "the same list on each core, with cluster.listen among it")
		}
	}
	l.warnOfMode("cluster.nats.credentials", c.NATS.Credentials)
	l.warnOfMode("cluster.nats.shared_credentials", c.NATS.SharedCredentials)
	l.checkClusterTrust(c)
}

func (l *loader) checkClusterTrust(c *Cluster) {
	switch t := c.TLS; {
	case t.Cert == "" && t.Key == "" && t.CA == "":
	case len(c.NATS.URL) > 0 && (t.Cert == "") != (t.Key == ""): // which may ask for no certificate, and have one of an authority that everybody trusts
		l.At("cluster.tls", "is not complete", "cert and key together")
	case len(c.NATS.URL) == 0 && (t.Cert == "" || t.Key == "" || t.CA == ""):
		l.At("cluster.tls", "is not complete", "cert, key and ca together")
	default:
		if t.Cert != "" {
			l.checkPair("cluster.tls", t.Cert, t.Key)
		}
		if t.CA == "" {
			break
		}
		if pem, ok := l.Read("cluster.tls.ca", t.CA, 1<<20); ok && !x509.NewCertPool().AppendCertsFromPEM(pem) {
			l.At("cluster.tls.ca", "holds no certificate", "PEM")
		}
	}
	if c.SecretFile == "" {
		l.At("cluster.secret_file", "is missing", "a file with a secret that all nodes share: (umask 077; openssl rand -hex 32 > cluster-secret)")
		return
	}
	if text, ok := l.Read("cluster.secret_file", c.SecretFile, 1<<12); ok {
		if lines := secretsOf(text); len(lines) == 0 || len(lines) > 2 || len(lines[0]) < minSecret || len(lines[len(lines)-1]) < minSecret {
			l.At("cluster.secret_file", "does not hold "+secretForm, "openssl rand -hex 32 makes a good one")
		} else if l.o.CheckSecret != nil {
			for _, one := range lines {
				if err := l.o.CheckSecret(one, c.Listen != "" || len(c.NATS.URL) > 0); err != nil {
					l.At("cluster.secret_file", err.Error(), "")
				}
			}
		}
		if l.o.Open == nil {
			if err := checkMode(c.SecretFile); err != nil {
				l.At("cluster.secret_file", err.Error(), "")
			}
		}
	}
}

// readSecret is Read for a file with a secret. One that other users of this machine can read is warned of only: such files
// were accepted before, and an installation has to start again after an upgrade.
func (l *loader) readSecret(path, name string, most int64) ([]byte, bool) {
	text, ok := l.Read(path, name, most)
	if ok {
		l.warnOfMode(path, name)
	}
	return text, ok
}

func (l *loader) warnOfMode(path, name string) {
	if l.o.Open != nil {
		return
	}
	if err := checkMode(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.Warn(path, err.Error(), "")
	}
}

// checkMode returns an error for a secret that other users of this machine can read. The file's group may read it:
// so mount Kubernetes and systemd the secrets of services. Windows has no such modes.
func checkMode(name string) error {
	info, err := os.Stat(name)
	if err != nil || runtime.GOOS == "windows" {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o027 != 0 {
		return fmt.Errorf("%s is open to other users (mode %04o): run \"chmod g-w,o= %s\", and replace the secret if somebody may have read it", name, mode, name)
	}
	return nil
}

// isLabel reports whether s can be the name of a cluster, a site or a node.
func isLabel(s string) bool {
	return s != "" && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// checkPorts checks an address of which the next two ports are used as well.
func (l *loader) checkPorts(path, address string) {
	_, port, err := net.SplitHostPort(address)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 || n > 65533 {
		l.At(path, field.Quote(address)+" is not an address with room for three ports", "host:port up to 65533, like 10.0.0.1:7222; the next two ports are used as well")
	}
}

func (l *loader) checkPeers(path string, addresses []string) {
	for i, a := range addresses {
		at := fmt.Sprintf("%s[%d]", path, i)
		l.checkPorts(at, a)
		if host, _, err := net.SplitHostPort(a); err == nil && host == "" {
			l.At(at, field.Quote(a)+" names no host", "the address at which the node is reached, like 10.0.0.1:7222")
		}
	}
}

// sharePorts reports whether two cores at these addresses would listen on the same port.
func sharePorts(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	p, badA := strconv.Atoi(portA)
	q, badB := strconv.Atoi(portB)
	return errA == nil && errB == nil && badA == nil && badB == nil && hostA == hostB && max(p-q, q-p) < 3
}

// Secrets reads the secret of the cluster, and the second one that is still accepted; empty without one.
func (c Cluster) Secrets() (secret, other string, err error) {
	if err := checkMode(c.SecretFile); err != nil {
		return "", "", anteroom.Errorf(anteroom.Invalid, "cluster.secret_file: %w", err)
	}
	text, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return "", "", anteroom.Errorf(anteroom.Invalid, "cluster.secret_file: %w", err)
	}
	lines := secretsOf(text)
	if len(lines) == 0 || len(lines) > 2 || len(lines[0]) < minSecret || len(lines[len(lines)-1]) < minSecret {
		return "", "", anteroom.Errorf(anteroom.Invalid, "cluster.secret_file: %s does not hold %s", c.SecretFile, secretForm)
	}
	if len(lines) == 2 {
		other = lines[1]
	}
	return lines[0], other, nil
}

const secretForm = "a secret of 32 characters or more, and at most one more on a second line that is still accepted"

func secretsOf(text []byte) []string { return strings.Fields(string(text)) }
