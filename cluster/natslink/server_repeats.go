package natslink

import (
	"regexp"
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
)
