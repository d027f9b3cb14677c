package natslink

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/anteroom/anteroom/cluster"
)

// edgeMark begins the secret of an edge.
const edgeMark = "anteroom-edge-1."

// An edge's secret holds, in this order: the key that all edges share, which follows from the cluster's secret; the public key of
// the cluster's authority; the edge's own key, and its certificate, which says its name. Nothing in it leads back to the
// cluster's secret, nor to another edge's key.
const edgeKeys = 3 * 32

// IsEdgeSecret reports whether a secret is that of an edge, and not the cluster's.
func IsEdgeSecret(secret string) bool { return strings.HasPrefix(secret, edgeMark) }

// EdgeSecret makes the secret of an edge from that of the cluster. The node has that name, or one that begins with it and a hyphen:
// edges that come and go with the load share one.
func EdgeSecret(secret, clusterName, node string) (string, error) {
	if err := CheckSecret(secret, true); err != nil {
		return "", err
	}
	for what, name := range map[string]string{"cluster": clusterName, "node": node} {
		if !isName(name) {
			return "", fmt.Errorf("%s %q: 1 to %d lower-case letters, digits and hyphens are allowed, a letter or digit first and last", what, name, maxName)
		}
	}
	id, err := deriveIdentity(secret, clusterName)
	if err != nil {
		return "", err
	}
	shared, err := derive(secret, clusterName, "edges", 32)
	if err != nil {
		return "", err
	}
	own, err := id.certificate(node, edgeName(clusterName))
	if err != nil {
		return "", err
	}
	text := append(shared, id.root.Public().(ed25519.PublicKey)...)
	text = append(text, own.PrivateKey.(ed25519.PrivateKey).Seed()...)
	return edgeMark + base64.RawURLEncoding.EncodeToString(append(text, own.Certificate[0]...)), nil
}

// EdgeKey returns what cores and edges share: a secret with which cores seal what edges may read. It follows from the cluster's
// secret, and is part of an edge's.
func EdgeKey(secret, clusterName string) (string, error) {
	if IsEdgeSecret(secret) {
		e, err := parseEdge(secret)
		if err != nil {
			return "", err
		}
		return e.shared, nil
	}
	shared, err := derive(secret, clusterName, "edges", 32)
	return hex.EncodeToString(shared), err
}

// EdgeName returns the name of the node that an edge's secret is for.
func EdgeName(secret string) (string, error) {
	e, err := parseEdge(secret)
	if err != nil {
		return "", err
	}
	return e.own.Leaf.Subject.CommonName, nil
}

// edge is what is in an edge's secret.
type edge struct {
	shared string
	ca     *x509.Certificate
	own    tls.Certificate
}

var errEdgeSecret = errors.New("the secret of the edge is damaged; make another one with: anteroom cluster edge")

func parseEdge(secret string) (*edge, error) {
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(secret, edgeMark))
	if err != nil || len(text) < edgeKeys {
		return nil, errEdgeSecret
	}
	leaf, err := x509.ParseCertificate(text[edgeKeys:])
	if err != nil {
		return nil, errEdgeSecret
	}
	root, key := ed25519.PublicKey(text[32:64]), ed25519.NewKeyFromSeed(text[64:edgeKeys])
	if public, ok := leaf.PublicKey.(ed25519.PublicKey); !ok || !public.Equal(key.Public()) || !ed25519.Verify(root, leaf.RawTBSCertificate, leaf.Signature) {
		return nil, errEdgeSecret
	}
	ca, err := authorityOf(root, leaf)
	if err != nil {
		return nil, err
	}
	return &edge{shared: hex.EncodeToString(text[:32]), ca: ca,
		own: tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}}, nil
}

// authorityOf is the cluster's authority as far as its public key tells. Nobody checks who has signed an authority that is trusted.
func authorityOf(root ed25519.PublicKey, of *x509.Certificate) (*x509.Certificate, error) {
	_, nobody, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("natslink: certificate of the cluster: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: of.SerialNumber, RawSubject: of.RawIssuer, SubjectKeyId: of.AuthorityKeyId, NotBefore: of.NotBefore, NotAfter: of.NotAfter,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}, &x509.Certificate{RawSubject: of.RawIssuer}, root, nobody)
	if err != nil {
		return nil, fmt.Errorf("natslink: certificate of the cluster: %w", err)
	}
	return x509.ParseCertificate(der)
}

// edgeCredentials are those of a process with the secret of an edge.
func edgeCredentials(cfg ClusterConfig) (*credentials, error) {
	c := &credentials{cluster: cfg.Cluster, edge: true, derived: true, authorities: x509.NewCertPool()}
	for i, secret := range []string{cfg.Secret, cfg.OtherSecret} {
		if secret == "" {
			continue
		}
		if !IsEdgeSecret(secret) {
			return nil, errors.New("cluster: one secret is an edge's and the other one the cluster's: give this edge its own secrets only")
		}
		e, err := parseEdge(secret)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		if name := e.own.Leaf.Subject.CommonName; name != cfg.Node && !strings.HasPrefix(cfg.Node, name+"-") {
			return nil, fmt.Errorf("cluster: the secret is for the edge %q, and this is %q: set cluster.node, or make a secret for this node with: anteroom cluster edge %s", name, cfg.Node, cfg.Node)
		}
		if i == 0 {
			c.own = e.own
		}
		c.secrets = append(c.secrets, e.shared)
		c.authorities.AddCert(e.ca)
	}
	if cfg.TLS != (TLSFiles{}) {
		c.derived = false
		return c, c.load(cfg.TLS)
	}
	return c, nil
}

// What cores alone write, of the shared keys and of the site's: configuration, tokens and their audit log, ticket keys, what the
// roles keep. "acme/…" and the keys of bridges are everybody's.
var (
	coresShared = []string{"manage", "keys", "config", "webhook", "sites", "ledger", "prequeue", "shuffle"}
	coresSite   = []string{"roles", "standing", "ledger", "identity", "grown", "cores", "changing"}
)

// The same as NATS sees it. Journals belong to roles, which edges never have.
var (
	sharedSubjects = keysOf(ownNames+"_shared", coresShared)
	siteSubjects   = append(keysOf(ownNames+"_site", coresSite), ownNames+".journal.>")
)

// errOfCores refuses a write before NATS does, which would not answer it.
func errOfCores(key string, cores []string) error {
	first, _, _ := strings.Cut(key, ".")
	for _, one := range cores {
		if first == one {
			return fmt.Errorf("%w: %q is written by cores only, and this node is an edge: send the change to a core", cluster.ErrUnavailable, key)
		}
	}
	return nil
}

// rightsOfEdges are the permissions of processes with the secret of an edge, which has no part in managing streams, and writes
// none of these subjects. It neither hears what others are answered nor answers them, and does not learn the inboxes at which they hear of
// changes; its own answers come to inboxes of another name. Nor does it
// listen where streams do: NATS would deliver there, past all permissions, what a consumer of the edge's finds in another stream, but it
// delivers only where somebody listens.
func rightsOfEdges(subjects ...string) string {
	forbidden := []string{"$SYS.>", "_INBOX.>", "_EDGE.>"}
	for _, r := range append([]string{"STREAM.UPDATE.>", "STREAM.PURGE.>", "CONSUMER.LIST.>", "CONSUMER.NAMES.>", "CONSUMER.INFO.>"}, destructive...) {
		forbidden = append(forbidden, "$JS.API."+r, "$JS.*.API."+r)
	}
	for _, s := range subjects {
		forbidden = append(forbidden, s, "$JS.API."+s, "$JS.*.API."+s)
	}
	return `publish: {deny: ["` + strings.Join(forbidden, `", "`) + `"]}, subscribe: {deny: ["$SYS.>", "_INBOX.>", "$JS.>", "$KV.>", "` + ownNames + `.journal.>"]}`
}

// keysOf are the subjects of keys in a bucket.
func keysOf(bucket string, names []string) (subjects []string) {
	for _, name := range names {
		subjects = append(subjects, "$KV."+bucket+"."+name, "$KV."+bucket+"."+name+".>")
	}
	return subjects
}

// inboxOf begins the subjects on which an edge hears answers: what others ask does not come there.
func inboxOf() string { return "_EDGE." + rand.Text() }
