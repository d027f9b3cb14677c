package push

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

func entryOf(n byte) *Entry {
	return &Entry{Room: "0123456789abcdef0123456789abcdef", Ticket: anteroom.Ticket{ID: anteroom.ID{n, 1: 7}, Arrival: 5}, Subscription: Subscription{Endpoint: "https://push.example.net/" + string('a'+rune(n%26))}, URL: "https://shop.example.com/?__anteroom=back.x"}
}

// Every process that shares the space hears of an entry, also one that comes later; one for each ticket.
func TestEntriesAreSharedAndOneForEachTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := memlink.New()
		defer link.Close()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		one, two := NewBook(link), NewBook(link)
		go two.Follow(ctx)
		first, again, other := entryOf(1), entryOf(1), entryOf(2)
		again.Title = "again"
		for _, e := range []*Entry{first, again, other} {
			if err := one.Put(ctx, e); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		heard := map[string]string{}
		two.Tell(func(key string, e *Entry) {
			if e == nil {
				delete(heard, key)
			} else {
				heard[key] = e.Title
			}
		})
		if len(heard) != 2 || heard[first.Key()] != "again" || one.Len() != 2 || two.Len() != 2 {
			t.Errorf("heard %v, %d and %d", heard, one.Len(), two.Len())
		}
		if err := one.Delete(ctx, other.Room, other.Ticket.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(heard) != 1 || two.Len() != 1 {
			t.Errorf("after the end of one: %v", heard)
		}
		three := NewBook(link) // a process that starts later
		go three.Follow(ctx)
		synctest.Wait()
		if three.Len() != 1 {
			t.Errorf("a new process has heard of %d", three.Len())
		}
		time.Sleep(KeptFor + time.Hour)
		synctest.Wait()
		if two.Len() != 0 || len(heard) != 0 {
			t.Errorf("after a day there are %d still", two.Len())
		}
		stop()
		synctest.Wait()
	})
}

func TestEntriesAreBounded(t *testing.T) {
	link := memlink.New()
	defer link.Close()
	b := NewBook(link)
	for n := range maxSubscriptions {
		e := entryOf(byte(n))
		e.Ticket.ID[2], e.Ticket.ID[3] = byte(n>>8), 1
		b.hear(e.Key(), e)
	}
	err := b.Put(t.Context(), entryOf(1))
	if anteroom.KindOf(err) != anteroom.Unavailable || !strings.Contains(err.Error(), "maximum") {
		t.Errorf("one more: %v", err)
	}
	known := entryOf(0)
	known.Ticket.ID[3] = 1
	if err := b.Put(t.Context(), known); err != nil {
		t.Errorf("one that is there already: %v", err)
	}
}
