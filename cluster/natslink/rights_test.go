//go:build unix

package natslink

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestEdgeChangesNoStoreOfKeys: an edge keeps the journals' retention and can take nothing
// else from the site at once.
func TestEdgeChangesNoStoreOfKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	cfg := single(t, "dublin")
	core := join(t, cfg)
	edge := join(t, edgeOf(t, cfg))
	put(t, core.Site(), "roles.a", "1")
	put(t, core, "keys.ring", "1")

	for _, account := range []struct {
		what, stream string
		link         *joined
	}{{"the site's keys", core.site.keys.stream, edge}, {"the shared keys", core.hub.stream, edge}} {
		nc, own := edge.att.site, core.att.site
		if account.stream == core.hub.stream {
			nc, own = edge.att.shared, core.att.shared
		}
		theirs, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		s, err := theirs.Stream(t.Context(), account.stream)
		if err != nil {
			t.Fatal(err)
		}
		was := s.CachedInfo()
		// What is not allowed is not answered.
		denied, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		config := was.Config
		config.MaxAge = time.Second
		if _, err := theirs.UpdateStream(denied, config); err == nil {
			t.Errorf("%s: an edge changed their stream", account.what)
		}
		denied, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Purge(denied); err == nil {
			t.Errorf("%s: an edge purged them", account.what)
		}
		js, err := jetstream.New(own)
		if err != nil {
			t.Fatal(err)
		}
		now, err := js.Stream(t.Context(), account.stream)
		if err != nil {
			t.Fatal(err)
		}
		if info := now.CachedInfo(); info.Config.MaxAge != 0 || info.State.Msgs < was.State.Msgs {
			t.Errorf("%s: they expire after %v, %d of %d are there", account.what, info.Config.MaxAge, info.State.Msgs, was.State.Msgs)
		}
	}

	// What the journals need goes on.
	if err := edge.Retain(t.Context(), 48*time.Hour); err != nil {
		t.Error(err)
	}
	book := journal(t, edge, "of.edge")
	for _, r := range []string{"1", "2", "3"} {
		if err := book.Append(t.Context(), []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := edge.books.stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := edge.books.forget(t.Context(), s, edge.books.store.subjects+"of.edge", time.Now().Add(time.Minute)); err != nil {
		t.Error(err)
	}
	if left := pages(t, book); len(left) != 1 {
		t.Errorf("%q are left of the journal, want the last", left)
	}
}
