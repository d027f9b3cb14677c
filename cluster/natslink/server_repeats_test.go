//go:build unix

package natslink

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const signedByAnother = `tls: failed to verify certificate: x509: certificate signed by unknown authority (possibly because of "x509: Ed25519 verification failure" while trying to verify candidate authority certificate "anteroom cluster anteroom") (CN=n3 SHA-256: 8ddf)`

// TestRepeatedComplaintsAreQuiet: a core that is away is in the log once a minute.
func TestRepeatedComplaintsAreQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, said := recordLog(t, "dublin-1")
		l := &coreLog{logger: logger{log: log}}
		const minutes = 3
		for i := range minutes * 60 * 4 {
			l.Errorf("Error trying to connect to route (attempt %v): %v", i, "dial tcp 10.0.0.1:7223: connect: connection refused")
			l.Errorf("Error trying to connect to route (attempt %v): %v", i, "dial tcp 10.0.0.2:7223: i/o timeout")
			l.Errorf("10.0.0.%d:%d - rid:%d - TLS route handshake error: %s", i%200, i, i, "remote error: tls: bad certificate")
			l.Errorf("10.0.0.%d:%d - rid:%d - TLS route handshake error: %s", i%200, i, i, signedByAnother)
			l.Errorf("10.0.0.1:7224 - lid:%d - TLS leafnode handshake error: read tcp 10.0.0.9:%d->10.0.0.1:7224: i/o timeout", i, 30000+i)
			l.Warnf("Waiting for routing to be established...")
			l.Errorf("10.0.0.%d:%d - lid:%d - authentication error - User %q", i%200, i, i, "core")
			l.Errorf("Error trying to connect as leafnode to remote server %q (attempt %v): %v", "hub:7224", i, "lookup hub: no such host")
			time.Sleep(time.Second / 4)
		}
		text, _ := said.all()
		for _, part := range []string{"10.0.0.1:7223", "10.0.0.2:7223", "lookup hub", "leafnode handshake", "refuses this one", "another secret", "authentication error", "Waiting for routing"} {
			n := 0
			for line := range strings.Lines(text) {
				if strings.Contains(line, part) && !strings.Contains(line, "level=DEBUG") {
					n++
				}
			}
			if n != minutes {
				t.Errorf("%s: %d lines in %d minutes", part, n, minutes)
			}
		}
	})
	var r repeats
	for i := range 10 * maxRepeats {
		if r.again(fmt.Sprintf("dial tcp 10.0.0.1:%d: no", i), time.Time{}) {
			t.Errorf("the first complaint about address %d is taken for another", i)
		}
	}
	if len(r.said) > maxRepeats {
		t.Errorf("%d addresses are remembered", len(r.said))
	}
}

func TestSecretsAndNamesThatDifferAreSaidInWords(t *testing.T) {
	for said, want := range map[string]string{
		"10.0.0.3:7223 - rid:65 - TLS route handshake error: " + signedByAnother: "the node at 10.0.0.3:7223 has another secret than this one (cluster.secret_file)",
		"10.0.0.3:7223 - rid:66 - TLS route handshake error: tls: failed to verify certificate: x509: certificate is valid for core.two.anteroom.internal, local.core.two.anteroom.internal, not local.core.one.anteroom.internal (CN=n3 SHA-256: 8ddf)": `the node at 10.0.0.3:7223 belongs to the cluster "two", this one to "one" (cluster.name)`,
		"10.0.0.3:41714 - rid:67 - TLS route handshake error: remote error: tls: bad certificate": "the node at 10.0.0.3:41714 refuses this one: its secret or the name of its cluster is another (cluster.secret_file, cluster.name)",
		"10.0.0.3:41714 - cid:67 - TLS handshake error: EOF":                                      "10.0.0.3:41714 - cid:67 - TLS handshake error: EOF",
	} {
		if got := plain(said); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
