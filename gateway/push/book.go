package push

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
)

const (
	// maxSubscriptions bounds those of an installation. Each counts as an open stream at the process that sends.
	maxSubscriptions = 2_000
	// KeptFor is how long one is kept.
	KeptFor = cluster.DefaultRetention
	// prefix begins the key of each. The room and the id of the ticket follow.
	prefix = "push."
	tries  = 5 // at a key that another tab of the visitor changes at the same time
)

// Entry is what is kept for a visitor who is to be told.
type Entry struct {
	Room         anteroom.RoomID `json:"room"`
	Ticket       anteroom.Ticket `json:"ticket"`
	Subscription Subscription    `json:"subscription"`
	// Contact is the URL of the site, for the push service.
	Contact string `json:"contact"`
	// Visitor is how the operator's system reaches the visitor, as entered: then webhooks are told, and there is no subscription.
	Visitor string `json:"visitor,omitempty"`
	// Title, Text and Language are of the notification; Text holds "{}" where the time stands until which the turn is kept.
	Title    string `json:"title"`
	Text     string `json:"text"`
	Language string `json:"lang"`
	// URL is that of the waiting page, with what brings the ticket back.
	URL string `json:"url"`
}

// Message is what the browser's service worker gets.
func (e *Entry) Message(until time.Time) ([]byte, error) {
	return json.Marshal(struct {
		Title    string `json:"title"`
		Text     string `json:"text"`
		Language string `json:"lang"`
		Until    int64  `json:"until"` // milliseconds since 1970
		URL      string `json:"url"`
	}{e.Title, e.Text, e.Language, until.UnixMilli(), e.URL})
}

// Key is under what it is kept.
func (e *Entry) Key() string { return keyOf(e.Room, e.Ticket.ID) }

func keyOf(room anteroom.RoomID, id anteroom.ID) string {
	return prefix + string(room) + "." + hex.EncodeToString(id[:])
}

// Book keeps the entries of all processes that share a space. Safe for concurrent use.
type Book struct {
	space cluster.Space

	mu      sync.Mutex
	entries map[string]*Entry // all that this process has heard of, by key; they do not change
	tell    func(key string, e *Entry)
}

// NewBook returns a book over a space.
func NewBook(space cluster.Space) *Book { return &Book{space: space, entries: map[string]*Entry{}} }

// Put keeps an entry, in the place of the ticket's former one. The error is of kind Unavailable when there is no room for it, or nobody
// can keep it.
func (b *Book) Put(ctx context.Context, e *Entry) error {
	key := e.Key()
	b.mu.Lock()
	full := b.entries[key] == nil && len(b.entries) >= maxSubscriptions
	b.mu.Unlock()
	if full {
		return anteroom.Errorf(anteroom.Unavailable, "%d visitors are to be told by web push, the maximum", maxSubscriptions)
	}
	value, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for range tries {
		old, err := b.space.Get(ctx, key)
		if errors.Is(err, cluster.ErrNotFound) {
			err = nil
		}
		if err == nil {
			_, err = b.space.Lease(ctx, key, value, old.Revision, KeptFor)
		}
		switch {
		case err == nil:
			b.hear(key, e)
			return nil
		case !errors.Is(err, cluster.ErrRevision):
			return anteroom.Errorf(anteroom.Unavailable, "the subscription cannot be kept now: %w", err)
		}
	}
	return anteroom.Errorf(anteroom.Unavailable, "the subscription cannot be kept now: others change it")
}

// Delete removes the entry of a ticket, if there is one.
func (b *Book) Delete(ctx context.Context, room anteroom.RoomID, id anteroom.ID) error {
	key := keyOf(room, id)
	b.mu.Lock()
	known := b.entries[key] != nil
	b.mu.Unlock()
	if !known {
		return nil
	}
	if err := b.space.Delete(ctx, key); err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "the subscription cannot be removed now: %w", err)
	}
	b.hear(key, nil)
	return nil
}

// Len is how many entries this process has heard of.
func (b *Book) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// Follow hears of the entries of all processes until ctx ends.
func (b *Book) Follow(ctx context.Context) {
	b.space.Watch(ctx, prefix, func(c cluster.Change) {
		e := new(Entry)
		switch {
		case c.Synced:
		case c.Gone:
			b.hear(c.Key, nil)
		case json.Unmarshal(c.Value, e) == nil && e.Key() == c.Key:
			b.hear(c.Key, e)
		}
	})
}

// hear takes note of an entry; nil: it is gone.
func (b *Book) hear(key string, e *Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.entries[key]
	switch {
	case e == nil && old == nil, e != nil && old != nil && *e == *old: // Follow repeats what Put and Delete have done
		return
	case e == nil:
		delete(b.entries, key)
	default:
		b.entries[key] = e
	}
	if b.tell != nil {
		b.tell(key, e)
	}
}

// Tell makes fn hear of every entry that there is, and then of each that is new or, as nil, gone. nil ends that. fn must not call the book.
func (b *Book) Tell(fn func(key string, e *Entry)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tell = fn; fn != nil {
		for key, e := range b.entries {
			fn(key, e)
		}
	}
}
