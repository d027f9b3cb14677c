package engine

import "github.com/anteroom/anteroom"

// recent remembers a value by ticket for a while, and at most a number of them: beyond it
// the oldest is forgotten.
type recent[T any] struct {
	most  int
	items map[anteroom.ID]recentItem[T]
	order []recentMark
}

type recentItem[T any] struct {
	value T
	until anteroom.Time
}

// recentMark is when an item was to be forgotten as it was put first, or looked at last; it may have been put again since.
type recentMark struct {
	id    anteroom.ID
	until anteroom.Time
}

func newRecent[T any](most int) recent[T] {
	return recent[T]{most: most, items: map[anteroom.ID]recentItem[T]{}}
}

func (r *recent[T]) get(id anteroom.ID) (T, bool) {
	it, ok := r.items[id]
	return it.value, ok
}

// put remembers the value; the untils of one recent must not descend.
func (r *recent[T]) put(id anteroom.ID, value T, until anteroom.Time) {
	if _, again := r.items[id]; !again {
		r.order = append(r.order, recentMark{id, until})
	}
	r.items[id] = recentItem[T]{value, until}
	for len(r.items) > r.most || len(r.order) > 2*r.most {
		r.pop()
	}
}

func (r *recent[T]) drop(id anteroom.ID) { delete(r.items, id) }

// forget drops what is over.
func (r *recent[T]) forget(now anteroom.Time) {
	for len(r.order) > 0 && r.order[0].until <= now {
		r.pop()
	}
	if len(r.order) == 0 {
		r.order = nil
	}
}

func (r *recent[T]) pop() {
	m := r.order[0]
	r.order = r.order[1:]
	switch it, ok := r.items[m.id]; {
	case !ok:
	case it.until > m.until:
		r.order = append(r.order, recentMark{m.id, it.until})
	default:
		delete(r.items, m.id)
	}
}
