package engine

import "iter"

// asks holds the requests of a door that the site decides, by token. Tokens ascend, so that a
// queue serves where a map would need the order beside it. The zero value is not usable: first
// is at least 1, because the token 0 means that a request was decided at once.
type asks struct {
	list  []*asking // nil: decided
	first uint64    // token of list[0]
	open  int
	spare []*asking
}

func (q *asks) add(a asking) (token uint64) {
	var p *asking
	if n := len(q.spare); n > 0 {
		p, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		p = &asking{}
	}
	*p = a
	q.list = append(q.list, p)
	q.open++
	return q.first + uint64(len(q.list)) - 1
}

// get returns the request, or nil when it is not open any more.
func (q *asks) get(token uint64) *asking {
	if token < q.first || token-q.first >= uint64(len(q.list)) {
		return nil
	}
	return q.list[token-q.first]
}

// drop forgets a request. The pointer that get returned must not be used after it.
func (q *asks) drop(token uint64) {
	p := q.get(token)
	if p == nil {
		return
	}
	const spares = 64
	if len(q.spare) < spares {
		q.spare = append(q.spare, p)
	}
	q.list[token-q.first] = nil
	q.open--
	n := 0
	for n < len(q.list) && q.list[n] == nil {
		n++
	}
	q.first += uint64(n)
	if n == len(q.list) {
		q.list = q.list[:0]
	} else {
		q.list = q.list[n:]
	}
}

// all yields the open requests, the oldest first. A request may be dropped, and others added,
// while it runs; added ones are not among those yielded.
func (q *asks) all() iter.Seq2[uint64, *asking] {
	return func(yield func(uint64, *asking) bool) {
		for token, end := q.first, q.first+uint64(len(q.list)); token < end; token++ {
			if p := q.get(token); p != nil && !yield(token, p) {
				return
			}
		}
	}
}
