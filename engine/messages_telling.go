package engine

// telling is what the other side is to hear, in order. It is told from the oldest on until it is
// confirmed, so that whoever hears a message has heard of everything before its end. Positions
// count what was ever added.
type telling[T any] struct {
	items []T
	first uint64 // position of items[0]
}

func (l *telling[T]) add(v T)     { l.items = append(l.items, v) }
func (l *telling[T]) end() uint64 { return l.first + uint64(len(l.items)) }

// tell returns the oldest, at most so many, and the position after them.
func (l *telling[T]) tell(most int) (items []T, upTo uint64) {
	n := min(most, len(l.items))
	return l.items[:n:n], l.first + uint64(n)
}

// heard drops what is before a position.
func (l *telling[T]) heard(upTo uint64) {
	if upTo <= l.first {
		return
	}
	n := min(upTo-l.first, uint64(len(l.items)))
	l.first += n
	if l.items = l.items[n:]; len(l.items) == 0 {
		l.items = nil // what was told may still be read
	}
}

// flights remembers what was in messages that are not confirmed. A later message held whatever
// an earlier one did and was not confirmed, so that a few of them do.
type flights[T any] struct {
	list []flight[T]
}

type flight[T any] struct {
	batch uint64
	what  T
}

const maxFlights = 64

func (f *flights[T]) add(batch uint64, what T) {
	if len(f.list) == maxFlights { // every other is dropped: the one before is confirmed instead
		n := 0
		for i := 0; i < len(f.list); i += 2 {
			f.list[n] = f.list[i]
			n++
		}
		f.list = f.list[:n]
	}
	f.list = append(f.list, flight[T]{batch, what})
}

// landed returns what a confirmation covers: all that was in the newest message which is
// remembered and not newer.
func (f *flights[T]) landed(batch uint64) (what T, ok bool) {
	n := 0
	for n < len(f.list) && f.list[n].batch <= batch {
		n++
	}
	if n == 0 {
		return what, false
	}
	what = f.list[n-1].what
	f.list = append(f.list[:0], f.list[n:]...)
	return what, true
}
