package node

// Places that moved to another device: which copies of a ticket were left behind.

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/ticket/invite"
)

const (
	// maxMoves bounds the moves that are remembered.
	maxMoves = 100_000
	// movesFor is how long a move is remembered: longer than anybody may come back with a copy from before it, except for one whose
	// visitor has waited for all that time.
	movesFor = cluster.DefaultRetention
	// movesPrefix begins the key of each move. The room, the ticket's id and the number of the move follow, which is all that is
	// to be known.
	movesPrefix = "moves."
)

// moves are those that this process has heard of.
type moves struct {
	count atomic.Int64 // of places; as a rule 0, and then nobody looks further
	mu    sync.RWMutex
	by    map[anteroom.ID]uint8 // the number of the newest move of each place
}

// Moved returns how often the place of a ticket has moved to another device, as far as this process has heard. It allocates nothing.
func (n *Node) Moved(id anteroom.ID) uint8 {
	if n.moves.count.Load() == 0 {
		return 0
	}
	n.moves.mu.RLock()
	defer n.moves.mu.RUnlock()
	return n.moves.by[id]
}

// Move moves the place of a waiting ticket, once for all copies of it that say the same of [anteroom.Ticket.Moved]: whoever is first, at
// any node. By names the device, which may do it again for a minute, because the answer was lost. The error is of kind Denied if the
// place has moved already, and Unavailable if nobody can say; then it may have.
func (n *Node) Move(ctx context.Context, room anteroom.RoomID, t *anteroom.Ticket, by string) error {
	if n.moves.count.Load() >= maxMoves {
		return anteroom.Errorf(anteroom.Unavailable, "%d places have moved to another device within %v, the maximum", maxMoves, movesFor)
	}
	if t.Moved == 1<<8-1 {
		return anteroom.Errorf(anteroom.Denied, "the place has moved too often")
	}
	now, next := time.Now(), t.Moved+1
	err := invite.Spend(ctx, n.cfg.Link, invite.Use{Key: moveKey(room, t.ID, next), Most: 1, Until: now.Add(movesFor), By: by, Now: now})
	switch {
	case errors.Is(err, invite.ErrSpent):
		return anteroom.Errorf(anteroom.Denied, "the place has moved already")
	case err != nil:
		return anteroom.Errorf(anteroom.Unavailable, "the move cannot be recorded: %w", err)
	}
	n.moved(room, t.ID, next)
	return nil
}

// moved takes note of a move. The place's open streams are those of a device that was left behind.
func (n *Node) moved(room anteroom.RoomID, id anteroom.ID, number uint8) {
	m := &n.moves
	m.mu.Lock()
	news := m.by[id] < number
	if news {
		if m.by == nil {
			m.by = map[anteroom.ID]uint8{}
		}
		m.by[id] = number
		m.count.Store(int64(len(m.by)))
	}
	m.mu.Unlock()
	if r := n.Room(room); news && r != nil {
		r.mu.Lock()
		r.drop(id)
		r.mu.Unlock()
	}
}

// followMoves hears of the moves of all processes, and of those before this one began.
func (n *Node) followMoves(ctx context.Context) {
	n.cfg.Link.Watch(ctx, movesPrefix, func(c cluster.Change) {
		room, id, number, ok := readMove(c.Key)
		switch {
		case !ok:
		case c.Gone:
			m := &n.moves
			m.mu.Lock()
			if m.by[id] == number {
				delete(m.by, id)
				m.count.Store(int64(len(m.by)))
			}
			m.mu.Unlock()
		default:
			n.moved(room, id, number)
		}
	})
}

func moveKey(room anteroom.RoomID, id anteroom.ID, number uint8) string {
	return movesPrefix + string(room) + "." + hex.EncodeToString(id[:]) + "." + strconv.Itoa(int(number))
}

func readMove(key string) (room anteroom.RoomID, id anteroom.ID, number uint8, ok bool) {
	parts := strings.Split(strings.TrimPrefix(key, movesPrefix), ".")
	if len(parts) != 3 {
		return "", id, 0, false
	}
	raw, err := hex.DecodeString(parts[1])
	count, cerr := strconv.ParseUint(parts[2], 10, 8)
	if err != nil || cerr != nil || len(raw) != len(id) {
		return "", id, 0, false
	}
	return anteroom.RoomID(parts[0]), anteroom.ID(raw), uint8(count), true
}
