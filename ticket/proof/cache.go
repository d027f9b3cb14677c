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
	young, old map[cacheKey]cached
	_          [40]byte // a cache line for each
}

type cacheKey struct {
	room anteroom.RoomID
	aud  string
	id   anteroom.ID
}

type cached struct {
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

// get returns the proof of k if there is one that was signed within the last half
// minute, and not in the future either: a clock that was set back must not make proofs
// that origins refuse.
func (c *cache) get(k cacheKey, now time.Time) (string, bool) {
	if c.most == 0 {
		return "", false
	}
	s := c.shard(k)
	s.mu.Lock()
	e, ok := s.young[k]
	if !ok {
		e, ok = s.old[k]
	}
	s.mu.Unlock()
	if age := now.Sub(e.signed); !ok || age < 0 || age > Reuse {
		return "", false
	}
	return e.token, true
}

func (c *cache) put(k cacheKey, token string, now time.Time) {
	if c.most == 0 {
		return
	}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.young[k]; !again && len(s.young) >= c.most {
		s.old, s.young = s.young, nil
	}
	if s.young == nil {
		s.young = make(map[cacheKey]cached)
	}
	s.young[k] = cached{token, now.Truncate(time.Second)}
}

// shard: ids are random, or as good as that.
func (c *cache) shard(k cacheKey) *shard {
	return &c.shards[k.id[0]%shards]
}
