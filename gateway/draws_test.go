package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
)

// sale is a shuffled event whose prequeue opened a minute ago.
func sale() anteroom.Event {
	now := time.Now()
	return anteroom.Event{
		ID: "25756b2dfe6e378a06b033b670413757", Name: "sale", ShuffleAtStart: true,
		Prequeue: anteroom.StampOf(now.Add(-time.Minute)), Start: anteroom.StampOf(now.Add(10 * time.Minute)), End: anteroom.StampOf(now.Add(time.Hour)),
	}
}

// shuffled is the record of a shuffle of ids.
func shuffled(done bool, ids ...anteroom.ID) *anteroom.Shuffle {
	seed := [32]byte{1, 2, 3}
	sh := &anteroom.Shuffle{Commitment: engine.Commitment(seed[:])}
	if !done {
		return sh
	}
	slices.SortFunc(ids, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	sh.Done, sh.Seed, sh.IDs, sh.Entries = true, seed, ids, engine.Entries(ids)
	return sh
}

func withSale(t *testing.T, sh *anteroom.Shuffle) *world {
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.Events = []anteroom.Event{sale()} }))
	w.door.shuffle = func(event anteroom.EventID, number int) (*anteroom.Shuffle, bool) {
		return sh, sh != nil && event == sale().ID && number == 0
	}
	return w
}

func drawURL(w *world) string { return drawPath + string(w.room.ID) + "/" + string(sale().ID) + "/0" }

func TestReceiptBeforeAndAfterTheDraw(t *testing.T) {
	own := waiting()
	others := make([]anteroom.ID, 50)
	for i := range others {
		others[i] = ticket.NewID()
	}
	ask := func(w *world, tk anteroom.Ticket) (r receipt, body string) {
		t.Helper()
		res, body := w.do("GET", "/checkout?color=red&__anteroom=receipt", header("Cookie", w.seal(tk)))
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" || !strings.Contains(res.Header.Get("Cache-Control"), "no-store") {
			t.Fatalf("%s %v %s", res.Status, res.Header, body)
		}
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		return r, body
	}

	w := withSale(t, shuffled(false))
	r, body := ask(w, own)
	if r.Done || r.Name != "sale" || r.ID != hex.EncodeToString(own.ID[:]) || len(r.Commitment) != 64 {
		t.Errorf("%+v", r)
	}
	for _, secret := range []string{"seed", "entries", "count", "ids", "place", "took_part"} {
		if strings.Contains(body, `"`+secret+`"`) {
			t.Errorf("before the draw the receipt tells %s: %s", secret, body)
		}
	}
	if n := len(w.door.seen()); n != 0 {
		t.Errorf("asking for a receipt was a visit")
	}

	all := append(slices.Clone(others), own.ID)
	w = withSale(t, shuffled(true, all...))
	r, _ = ask(w, own)
	seed, _ := hex.DecodeString(r.Seed)
	if sum := sha256.Sum256(seed); hex.EncodeToString(sum[:]) != r.Commitment {
		t.Error("the seed is not what was committed to")
	}
	var entries [32]byte
	hex.Decode(entries[:], []byte(r.Entries))
	key := engine.ShuffleKey(seed, entries)
	place := 1
	for _, id := range others {
		if engine.Priority(key, id) < engine.Priority(key, own.ID) {
			place++
		}
	}
	if r.Place != place || r.Count != 51 || r.TookPart == nil || !*r.TookPart {
		t.Errorf("%+v, want place %d", r, place)
	}
	if late, body := ask(w, waiting()); late.Place != 0 || late.TookPart == nil || *late.TookPart {
		t.Errorf("who came later has a place in the draw: %s", body)
	}
	// With the session, too: who got in can check afterwards.
	inside := session()
	inside.ID = own.ID
	if again, _ := ask(w, inside); again.Place != place {
		t.Errorf("%+v", again)
	}
}

func TestReceiptNeedsATicketAndADraw(t *testing.T) {
	w := withSale(t, shuffled(false))
	if res, body := w.do("GET", "/?__anteroom=receipt", nil); res.StatusCode != 404 || !strings.Contains(body, "ticket") {
		t.Errorf("%s: %s", res.Status, body)
	}
	if res, _ := w.do("POST", "/?__anteroom=receipt", header("Cookie", w.seal(waiting()))); res.StatusCode != 405 {
		t.Errorf("POST: %s", res.Status)
	}
	w = withSale(t, nil)
	if res, body := w.do("GET", "/?__anteroom=receipt", header("Cookie", w.seal(waiting()))); res.StatusCode != 404 || !strings.Contains(body, "no shuffle") {
		t.Errorf("%s: %s", res.Status, body)
	}
	refused := 0
	for range 3 * receiptsBurst {
		if res, _ := w.do("GET", "/?__anteroom=receipt", nil); res.StatusCode == 429 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("receipts are not bounded")
	}
}

func TestDrawIsPublic(t *testing.T) {
	ids := []anteroom.ID{ticket.NewID(), ticket.NewID(), ticket.NewID()}
	w := withSale(t, shuffled(false))
	for _, host := range []string{testHost, "open.example.com"} {
		res, body := w.do("GET", drawURL(w), func(r *http.Request) { r.Host = host })
		var d draw
		if err := json.Unmarshal([]byte(body), &d); err != nil || res.StatusCode != 200 || d.Done || d.Seed != "" || d.Commitment == "" || d.Start == "" {
			t.Errorf("%s: %s %s", host, res.Status, body)
		}
		if cache := res.Header.Get("Cache-Control"); cache != "public, max-age=1" {
			t.Errorf("before the draw: %s", cache)
		}
	}
	if res, body := w.do("GET", drawURL(w)+"/ids", nil); res.StatusCode != 404 || !strings.Contains(body, "not happened yet") {
		t.Errorf("ids before the draw: %s %s", res.Status, body)
	}

	sh := shuffled(true, ids...)
	w = withSale(t, sh)
	res, body := w.do("GET", drawURL(w), nil)
	var d draw
	if err := json.Unmarshal([]byte(body), &d); err != nil || !d.Done || d.Count != 3 || d.IDs != drawURL(w)+"/ids" {
		t.Errorf("%s %s", res.Status, body)
	}
	res, body = w.do("GET", d.IDs, nil)
	sum := sha256.Sum256([]byte(body))
	if hex.EncodeToString(sum[:]) != d.Entries || len(body) != 48 || res.Header.Get("Content-Length") != "48" {
		t.Errorf("the list's digest is %x, want %s", sum, d.Entries)
	}
	if cache := res.Header.Get("Cache-Control"); !strings.Contains(cache, "immutable") {
		t.Errorf("after the draw: %s", cache)
	}
	if res, _ := w.do("GET", d.IDs, header("If-None-Match", res.Header.Get("Etag"))); res.StatusCode != 304 {
		t.Errorf("the same list again: %s", res.Status)
	}
	if res, part := w.do("GET", d.IDs, header("Range", "bytes=16-31")); res.StatusCode != 206 || part != body[16:32] {
		t.Errorf("a part: %s %x", res.Status, part)
	}
	if res, _ := w.do("HEAD", d.IDs, nil); res.StatusCode != 200 || res.ContentLength != 48 {
		t.Errorf("HEAD: %s %d", res.Status, res.ContentLength)
	}
	refused := 0
	for range 2 * drawsBurst {
		if res, _ := w.do("GET", d.IDs, nil); res.StatusCode == 429 {
			refused++
		}
	}
	if refused < drawsBurst {
		t.Errorf("%d of %d more downloads were refused", refused, 2*drawsBurst)
	}
}

func TestUnknownDraws(t *testing.T) {
	w := withSale(t, shuffled(true, ticket.NewID()))
	base := drawPath + string(w.room.ID) + "/"
	for _, path := range []string{drawPath, base, base + string(sale().ID), base + string(sale().ID) + "/1", base + string(sale().ID) + "/-1",
		base + string(sale().ID) + "/00", base + string(sale().ID) + "/0/", base + string(sale().ID) + "/0/ids/", base + string(sale().ID) + "/0/seed",
		base + "none/0", drawPath + "none/" + string(sale().ID) + "/0", base + string(sale().ID) + "/99999999999999999999", base + strings.Repeat("/", 100)} {
		if res, _ := w.do("GET", path, nil); res.StatusCode != 404 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	if res, _ := w.do("POST", drawURL(w), nil); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %s", res.Status)
	}
	if len(w.origin.requests()) != 0 {
		t.Error("the origin saw a question for a draw")
	}
}

func TestVerifyPageStandsOnEveryHost(t *testing.T) {
	w := newWorld(t, line)
	for _, host := range []string{testHost, "open.example.com"} {
		res, body := w.do("GET", page.VerifyPath, func(r *http.Request) { r.Host = host })
		if res.StatusCode != 200 || !strings.Contains(body, "<h1>Check a shuffle</h1>") || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %s", host, res.Status)
		}
		if policy := res.Header.Get("Content-Security-Policy"); policy != page.VerifyPolicy() || strings.Contains(policy, "unsafe") {
			t.Errorf("policy: %s", policy)
		}
	}
	// What else stands below the path is the application's.
	if res, _ := w.do("GET", "/.well-known/anteroom/other", func(r *http.Request) { r.Host = "open.example.com" }); res.StatusCode != 200 || len(w.origin.requests()) != 1 {
		t.Errorf("%s", res.Status)
	}
}

// The newest draw that a ticket took part in is the one that it gets a receipt of.
func TestReceiptFindsTheDraw(t *testing.T) {
	own := waiting()
	now := time.Now()
	event := func(name string, start time.Duration) anteroom.Event {
		return anteroom.Event{ID: anteroom.EventID(fmt.Sprintf("%032x", name)), Name: name, ShuffleAtStart: true, Prequeue: anteroom.StampOf(now.Add(start - 10*time.Minute)),
			Start: anteroom.StampOf(now.Add(start)), End: anteroom.StampOf(now.Add(start + time.Minute))}
	}
	events := []anteroom.Event{event("old", -3*time.Hour), event("mine", -time.Hour), event("next", 5*time.Minute), event("far", 5*time.Hour)}
	suspended := event("suspended", -2*time.Minute)
	suspended.Suspended = true
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.Events = append(events, suspended) }))
	w.door.shuffle = func(id anteroom.EventID, _ int) (*anteroom.Shuffle, bool) {
		switch id {
		case events[0].ID:
			return shuffled(true, ticket.NewID()), true
		case events[1].ID:
			return shuffled(true, own.ID), true
		}
		return shuffled(false), true
	}
	for name, tk := range map[string]anteroom.Ticket{"mine": own, "next": waiting()} {
		_, body := w.do("GET", "/?__anteroom=receipt", header("Cookie", w.seal(tk)))
		var r receipt
		if err := json.Unmarshal([]byte(body), &r); err != nil || r.Name != name {
			t.Errorf("want the receipt of %s: %s", name, body)
		}
	}
}

func TestIDReader(t *testing.T) {
	ids := idReader{{0: 1, 15: 2}, {0: 3}, {7: 4}}
	var want []byte
	for _, id := range ids {
		want = append(want, id[:]...)
	}
	for offset := range int64(50) {
		r := io.NewSectionReader(ids, 0, ids.size())
		if _, err := r.Seek(offset, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.MultiReader(io.LimitReader(r, 5), r))
		if err != nil || !bytes.Equal(got, want[min(int(offset), len(want)):]) {
			t.Errorf("from %d: %x, %v", offset, got, err)
		}
	}
}

// Places are computed once for a shuffle, and those of the oldest are forgotten.
func TestPlacesAreKeptInBounds(t *testing.T) {
	d := newDraws()
	for i := range 3 * drawPlaces {
		sh := shuffled(true, anteroom.ID{1}, anteroom.ID{2}, anteroom.ID{3})
		sh.Commitment[0] = byte(i)
		places := d.places(sh)
		if again := d.places(sh); &again[0] != &places[0] {
			t.Error("computed twice")
		}
		if sorted := slices.Sorted(slices.Values(places)); !slices.Equal(sorted, []int{1, 2, 3}) {
			t.Errorf("places %v", places)
		}
	}
	if len(d.known) != drawPlaces || len(d.oldest) != drawPlaces {
		t.Errorf("%d kept, want %d", len(d.known), drawPlaces)
	}
}
