package gateway

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/gateway/push"
	"github.com/anteroom/anteroom/gateway/push/pushtest"
)

// inPushBooth is inBooth with web push, and the book in which subscriptions are.
func inPushBooth(t *testing.T, f func(booth, *push.Book)) {
	book := push.NewBook(memlink.New())
	inEmptyBooth(t, func(r *anteroom.Room) { r.WebPush, r.PlaceHold = true, time.Minute }, func(b booth) {
		if holder := b.guest(); !holder.ask().Admitted {
			t.Fatal("the first visitor waits")
		}
		f(b, book)
	}, func(c *Config) { c.Push = Push{Book: book, Key: push.NewKey([32]byte{1})} })
}

// subscribe posts a subscription from an address, and returns the status.
func (m *mover) subscribe(endpoint, address string) int {
	to := pushtest.NewBrowser(m.t, endpoint)
	return m.press(address+"__anteroom=push", url.Values{"endpoint": {to.Endpoint}, "p256dh": {to.P256DH}, "auth": {to.Auth}}.Encode()).Code
}

// entries are those of a book.
func entries(b *push.Book) (all []*push.Entry) {
	b.Tell(func(_ string, e *push.Entry) { all = append(all, e) })
	b.Tell(nil)
	return all
}

// The link of a notification brings the ticket back to a browser that has lost it, and nothing to anybody else.
func TestALinkBack(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	inPushBooth(t, func(b booth, book *push.Book) {
		phone, behind := b.device().waits(), b.device().waits()
		if got := phone.subscribe("https://push.example.net/1", "/cart?id=5&"); got != http.StatusNoContent {
			t.Fatal(got)
		}
		kept := entries(book)
		if len(kept) != 1 || kept[0].Title != "It’s your turn" || kept[0].Contact != "https://example.com" || !strings.HasPrefix(kept[0].URL, "http://example.com/cart?id=5&__anteroom=back.") {
			t.Fatalf("%+v", kept)
		}
		link := strings.TrimPrefix(kept[0].URL, "http://example.com")
		lost := b.device()
		if rec := lost.get(link); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "?id=5" || lost.jar["__cfwaitingroom"] == "" || !strings.Contains(rec.Header().Get("Cache-Control"), "no-store") {
			t.Fatalf("%d %v", rec.Code, rec.Header())
		}
		if p := lost.ask(); p.Ahead != 0 || p.Admitted {
			t.Errorf("the place is %+v", p)
		}
		// Somebody who queued again in the meantime gets the earlier place; one with an earlier place keeps that.
		if behind.get(link); behind.ask().Ahead != 0 {
			t.Error("the later place is kept")
		}
		second := b.device().waits()
		second.subscribe("https://push.example.net/2", "/cart?")
		for _, e := range entries(book) {
			if strings.HasSuffix(e.Subscription.Endpoint, "/2") {
				if phone.get(strings.TrimPrefix(e.URL, "http://example.com")); phone.ask().Ahead != 0 {
					t.Error("the earlier place is lost")
				}
			}
		}

		before, token, _ := strings.Cut(link, "back.")
		until, sealed, _ := strings.Cut(token, ".")
		moving := phone.link()
		_, move, _ := strings.Cut(moving, "move.")
		for name, bad := range map[string]string{
			"another end":           before + "back.7" + until[1:] + "." + sealed,
			"no end":                before + "back." + sealed,
			"nothing":               before + "back.",
			"the ticket":            before + "back." + until + "." + phone.jar["__cfwaitingroom"],
			"a link to move":        before + "back." + move,
			"a changed seal":        before + "back." + until + ".AAAA" + sealed[4:],
			"another host":          "http://other.example" + link,
			"new lines":             before + "back." + until + ".%0d%0aSet-Cookie:%20a=b",
			"a place, by this link": before + "move." + token,
		} {
			other := b.device()
			if rec := other.get(bad); other.jar["__cfwaitingroom"] != "" || rec.Header().Get("A") != "" {
				t.Errorf("%s: %d %v", name, rec.Code, rec.Header())
			}
		}
		b.pass(push.KeptFor + time.Minute)
		if late := b.device(); late.get(link).Code != http.StatusSeeOther || late.jar["__cfwaitingroom"] != "" {
			t.Error("a link of yesterday works")
		}
	})
}

// A link of a place that is no more takes nobody's place.
func TestALinkBackToNothing(t *testing.T) {
	inPushBooth(t, func(b booth, book *push.Book) {
		phone, waiting, last := b.device().waits(), b.device().waits(), b.device().waits()
		phone.subscribe("https://push.example.net/1", "/?")
		link := strings.TrimPrefix(entries(book)[0].URL, "http://example.com")
		phone.do("POST", "/?__anteroom=leave", "", "Sec-Fetch-Site", "same-origin")
		if p := waiting.ask(); p.Ahead != 0 {
			t.Fatalf("the place is %+v", p)
		}
		waiting.get(link)
		if p := waiting.ask(); p.Ahead != 0 || last.ask().Ahead != 1 {
			t.Errorf("the place is %+v", p)
		}
	})
}

// An address has so many subscriptions kept, and no more in a minute.
func TestSubscriptionsOfAnAddressAreBounded(t *testing.T) {
	inPushBooth(t, func(b booth, book *push.Book) {
		phone := b.device().waits()
		for n := range pushesAtOnce {
			if got := phone.subscribe("https://push.example.net/1", "/?"); got != http.StatusNoContent {
				t.Fatalf("%d: %d", n, got)
			}
		}
		if got := phone.subscribe("https://push.example.net/1", "/?"); got != http.StatusTooManyRequests {
			t.Errorf("one more: %d", got)
		}
		elsewhere := b.device()
		elsewhere.from = "198.51.100.7"
		elsewhere.waits()
		if got := elsewhere.subscribe("https://push.example.net/2", "/?"); got != http.StatusNoContent {
			t.Errorf("from another address: %d", got)
		}
		if got := len(entries(book)); got != 2 {
			t.Errorf("%d subscriptions of two visitors", got)
		}
		// An address that no message could hold.
		if got := elsewhere.subscribe("https://push.example.net/2", "/?q="+strings.Repeat("a", maxBackURL)+"&"); got != http.StatusBadRequest {
			t.Errorf("a long address: %d", got)
		}
	})
}
