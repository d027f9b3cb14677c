package pass

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"time"
)

const (
	revokedEvery = time.Second     // between two fetches of the revoked sessions, and for one
	revokedStale = 2 * time.Second // how old a list may be that is used without waiting for the next
	maxRevoked   = 100_000         // sessions that are kept
	maxList      = 1 << 20         // bytes of a list
)

// revoked is the list of revoked sessions as it is known, guarded by Handler.mu.
type revoked struct {
	sids   map[string]bool
	at     time.Time     // when its fetch began
	asked  time.Time     // when the newest one began
	busy   chan struct{} // closes when the fetch in progress ends; nil: there is none
	failed bool          // the last one has
}

// isRevoked reports whether a session is on the list. The list is fetched in the background, each second while requests come; the first
// after a pause wait for it, unless Anteroom did not answer the last time.
func (h *Handler) isRevoked(sid string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.revoked
	if l.busy == nil && now.Sub(l.asked) >= revokedEvery {
		l.asked, l.busy = now, make(chan struct{})
		go h.pull(now)
	}
	if busy := l.busy; busy != nil && !l.failed && now.Sub(l.at) > revokedStale {
		h.mu.Unlock()
		<-busy
		h.mu.Lock()
	}
	return l.sids[sid]
}

// pull fetches the list.
func (h *Handler) pull(now time.Time) {
	var list struct {
		Revoked  []string `json:"revoked"`
		Complete bool     `json:"complete"`
	}
	text, err := h.get(context.Background(), "revoked", url.Values{"room": {string(h.Want.Room)}}, revokedEvery, maxList)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l := &h.revoked
	close(l.busy)
	l.busy = nil
	was := l.failed
	if l.failed = err != nil; l.failed {
		if !was {
			h.log().Warn("the list of revoked sessions cannot be fetched; passes of sessions revoked from now on are valid to their end", "error", err)
		}
		return
	}
	if was {
		h.log().Info("the list of revoked sessions is fetched again")
	}
	sids := make(map[string]bool, len(list.Revoked))
	// What a site said that does not answer now still holds: a session that was revoked never comes back.
	if !list.Complete && len(l.sids) < maxRevoked {
		maps.Copy(sids, l.sids)
	}
	for _, sid := range list.Revoked {
		sids[sid] = true
	}
	l.sids, l.at = sids, now
}
