package graph

import (
	"maps"
	"sync"
	"time"

	"github.com/anteroom/anteroom/manage"
)

// budget counts the queries of each token in windows of time. The token of the environment has one,
// too. It is this process's own.
type budget struct {
	now    func() time.Time
	mu     sync.Mutex
	tokens map[manage.TokenID]*window
}

type window struct {
	end  time.Time
	used int
}

// take uses one of a token's queries and returns how many are left. If there was none, wait is how
// long to wait.
func (b *budget) take(token manage.TokenID) (left int, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	w := b.tokens[token]
	if w == nil || !now.Before(w.end) {
		if b.tokens == nil {
			b.tokens = map[manage.TokenID]*window{}
		}
		if len(b.tokens) > manage.MaxTokens { // those that were deleted
			maps.DeleteFunc(b.tokens, func(_ manage.TokenID, w *window) bool { return !now.Before(w.end) })
		}
		w = &window{end: now.Add(budgetWindow)}
		b.tokens[token] = w
	}
	if w.used == maxQueries {
		return 0, w.end.Sub(now)
	}
	w.used++
	return maxQueries - w.used, 0
}
