package proof

import (
	"sync"
	"time"

	"github.com/anteroom/anteroom"
)

const shards = 64

// cache keeps proofs for use again: at most size of them, in shards with a lock each.
// A shard is two maps. When the young one is full it becomes the old one and what the old
// one held goes: no list to maintain, and what lasts half a minute needs none.
type cache struct {
	most   int // entries of one map; 0 keeps nothing
	shards [shards]shard
}

type shard struct {
	mu         sync.Mutex
	young, old map[anteroom.ID]cached
	_          [40]byte // a cache line for each
}

// cached is the proof of a session. Room and site stand in it, not in the key: a session is in one room, whose site has one
// name, and text costs more to hash than to compare.
type cached struct {
	room   anteroom.RoomID
	aud    string
	token  string
	signed time.Time // in whole seconds, as the proof says it
}

func newCache(size int) *cache {
	c := new(cache)
	if size > 0 {
		c.most = max(1, size/(2*shards))
	}
	return c
}

// get returns the proof of a session if there is one that was signed within the last half
// minute, and not in the future either: a clock that was set back must not make proofs
// that origins refuse.
func (c *cache) get(room anteroom.RoomID, aud string, id anteroom.ID, now time.Time) (string, bool) {
	if c.most == 0 {
		return "", false
	}
	s := c.shard(id)
	s.mu.Lock()
	e, ok := s.young[id]
	if !ok {
		e, ok = s.old[id]
	}
	s.mu.Unlock()
	if age := now.Sub(e.signed); !ok || e.room != room || e.aud != aud || age < 0 || age > Reuse {
		return "", false
	}
	return e.token, true
}

func (c *cache) put(id anteroom.ID, e cached) {
	if c.most == 0 {
		return
	}
	e.signed = e.signed.Truncate(time.Second)
	s := c.shard(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.young[id]; !again && len(s.young) >= c.most {
		s.old, s.young = s.young, nil
	}
	if s.young == nil {
		s.young = make(map[anteroom.ID]cached)
	}
	s.young[id] = e
}

// shard: ids are random, or as good as that.
func (c *cache) shard(id anteroom.ID) *shard { return &c.shards[id[0]%shards] }
