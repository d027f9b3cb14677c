package natslink

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// repeatAfter is how soon the same complaint about an address is worth another line: NATS
// makes one for each try, several a second.
const repeatAfter = time.Minute

// maxRepeats bounds what repeats remembers: more addresses than any site has cores.
const maxRepeats = 64

// repeats remembers which complaints were said lately. The zero value remembers none.
type repeats struct {
	mu   sync.Mutex
	said map[string]time.Time
}

// again says whether there was a complaint of this kind about the same address within the
// last minute; else it is one from now on.
func (r *repeats) again(text string, now time.Time) bool {
	about := attempt.ReplaceAllString(text, "")
	if m := stranger.FindStringSubmatch(text); m != nil { // from any address: whoever reaches the port can cause it
		about = bothEnds.ReplaceAllString(m[2], "")
	}
	if m := dialled.FindStringSubmatch(text); m != nil {
		about = m[1]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.said[about]; ok && now.Sub(at) < repeatAfter {
		return true
	}
	if r.said == nil || len(r.said) >= maxRepeats {
		r.said = map[string]time.Time{}
	}
	r.said[about] = now
	return false
}

var (
	attempt = regexp.MustCompile(`\(attempt \d+\)`)
	dialled = regexp.MustCompile(`\bdial tcp ([^ ]+): `)
	// bothEnds are the addresses of a connection that broke; the port at one end is another each time.
	bothEnds = regexp.MustCompile(` \S+->\S+:`)
	// stranger: who, and what is wrong, without the particulars of a certificate.
	stranger   = regexp.MustCompile(`^([^ ]+) - [a-z]+:\d+ - (.*(?:handshake|authentication) error[^(]*)`)
	otherNames = regexp.MustCompile(`certificate is valid for core\.(.+?)\.anteroom\.internal.* not (?:.+\.)?core\.(.+?)\.anteroom\.internal`)
)

// plain says in words what operators bring about with secrets and names that differ; any other text is returned as it is.
func plain(text string) string {
	m := stranger.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	if names := otherNames.FindStringSubmatch(text); names != nil {
		return fmt.Sprintf("the node at %s belongs to the cluster %q, this one to %q (cluster.name)", m[1], names[1], names[2])
	}
	switch {
	case strings.Contains(text, "certificate signed by unknown authority"):
		return fmt.Sprintf("the node at %s has another secret than this one (cluster.secret_file)", m[1])
	case strings.Contains(text, "remote error: tls: bad certificate"):
		return fmt.Sprintf("the node at %s refuses this one: its secret or the name of its cluster is another (cluster.secret_file, cluster.name)", m[1])
	}
	return text
}
