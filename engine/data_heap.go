package engine

// queue is a binary heap of slots. It exists beside container/heap because it holds a
// million bare slots in a line, without interface calls and with the position written
// back into the slot's own record.
type queue struct {
	slots []uint32
	less  func(a, b uint32) bool
	moved func(slot uint32, pos int) // records where a slot stands; pos -1: nowhere. May be nil.
}

func (q *queue) len() int { return len(q.slots) }

func (q *queue) top() uint32 { return q.slots[0] }

func (q *queue) set(i int, slot uint32) {
	q.slots[i] = slot
	if q.moved != nil {
		q.moved(slot, i)
	}
}

func (q *queue) push(slot uint32) {
	q.slots = append(q.slots, slot)
	q.up(len(q.slots) - 1)
}

func (q *queue) pop() uint32 {
	top := q.slots[0]
	q.removeAt(0)
	return top
}

func (q *queue) removeAt(i int) {
	last := len(q.slots) - 1
	gone, moved := q.slots[i], q.slots[last]
	q.slots = q.slots[:last]
	if i < last {
		q.set(i, moved)
		if !q.up(i) {
			q.down(i)
		}
	}
	if q.moved != nil {
		q.moved(gone, -1)
	}
}

func (q *queue) up(i int) bool {
	slot, start := q.slots[i], i
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(slot, q.slots[parent]) {
			break
		}
		q.set(i, q.slots[parent])
		i = parent
	}
	q.set(i, slot)
	return i < start
}

func (q *queue) down(i int) {
	slot := q.slots[i]
	for {
		child := 2*i + 1
		if child >= len(q.slots) {
			break
		}
		if r := child + 1; r < len(q.slots) && q.less(q.slots[r], q.slots[child]) {
			child = r
		}
		if !q.less(q.slots[child], slot) {
			break
		}
		q.set(i, q.slots[child])
		i = child
	}
	q.set(i, slot)
}
