package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	// sessionLife is how long somebody stays logged in at most.
	sessionLife = 12 * time.Hour
	// sessionIdle is how long a session lives without a request. A page that is looked at
	// has the stream of figures open, which counts.
	sessionIdle = time.Hour
	// maxSessions are kept at once; one more ends the one that was used longest ago.
	maxSessions = 1000
)

// cookieName of the session.
const cookieName = "anteroom_session"

// session is somebody who is logged in. It is in memory only: a restart ends it.
type session struct {
	secret string
	began  time.Time
	used   time.Time
}

// sessions are found by the digest of their id, so that no comparison of ids can be timed.
type sessions struct {
	now func() time.Time
	mu  sync.Mutex
	all map[[32]byte]session
}

// begin keeps a secret and returns the id of its session.
func (ss *sessions) begin(secret string) (id string, s session) {
	var random [32]byte
	rand.Read(random[:])
	id = base64.RawURLEncoding.EncodeToString(random[:])
	now := ss.now()
	s = session{secret: secret, began: now, used: now}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.expire(now)
	for len(ss.all) >= maxSessions {
		ss.dropOldest()
	}
	ss.all[sha256.Sum256([]byte(id))] = s
	return id, s
}

// use returns a session that is alive, and keeps it so.
func (ss *sessions) use(id string) (session, bool) {
	now := ss.now()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.expire(now)
	key := sha256.Sum256([]byte(id))
	s, ok := ss.all[key]
	if ok {
		s.used = now
		ss.all[key] = s
	}
	return s, ok
}

func (ss *sessions) end(id string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.all, sha256.Sum256([]byte(id)))
}

func (ss *sessions) expire(now time.Time) {
	for key, s := range ss.all {
		if now.Sub(s.began) >= sessionLife || now.Sub(s.used) >= sessionIdle {
			delete(ss.all, key)
		}
	}
}

func (ss *sessions) dropOldest() {
	var oldest [32]byte
	var at time.Time
	for key, s := range ss.all {
		if at.IsZero() || s.used.Before(at) {
			oldest, at = key, s.used
		}
	}
	delete(ss.all, oldest)
}

// sessionID returns what the cookie says; empty when there is none.
func sessionID(r *http.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return c.Value
}

// cookie is the session's. Over TLS no browser sends it in the clear. Cookies know no ports:
// the path keeps it from most of what else is served under the listener's name.
func cookie(r *http.Request, id string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: id, Path: Prefix, MaxAge: maxAge, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}
