package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/gateway"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
)

// startSale serves a room whose event starts soon, in this process: no prequeue that an
// operator may plan is as short as a test. It returns the address.
func startSale(t *testing.T, until time.Duration, shuffle bool) string {
	t.Helper()
	start := time.Now().Add(until)
	room := anteroom.Room{
		Name: "sale", Routes: []anteroom.Route{{Host: "*"}},
		Settings: anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 600, Refresh: 2 * time.Second},
		Events: []anteroom.Event{{
			ID: "25756b2dfe6e378a06b033b670413757", Name: "drop", ShuffleAtStart: shuffle,
			Prequeue: anteroom.StampOf(start.Add(-2 * time.Hour)), Start: anteroom.StampOf(start), End: anteroom.StampOf(start.Add(time.Hour)),
		}},
	}.WithDefaults()
	ctx, stop := context.WithCancel(context.Background())
	link := memlink.New()
	n, err := node.New(ctx, node.Config{Link: link})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Apply(ctx, []anteroom.Room{room}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	g, err := gateway.New(gateway.Config{Rooms: []anteroom.Room{room}, Node: n, Keys: ticket.NewKeyring(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(g.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `<!doctype html><title>shop</title><p id="inside"><b>welcome</b></p>`)
	})))
	t.Cleanup(func() {
		g.Drain(ctx)
		front.CloseClientConnections()
		front.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		link.Close()
	})
	return front.URL
}

// The page counts the seconds by itself, and when the event starts it goes on to the shop
// without anybody touching it.
func TestPrequeueCountsDownAndLetsIn(t *testing.T) {
	t.Parallel()
	b := open(t) // first, for it may take a while
	address := startSale(t, 15*time.Second, false)
	b.visit(address + "/drop?size=42")
	b.waits()
	if got := b.text("h1"); got != "It has not started yet" {
		t.Errorf("heading: %q", got)
	}
	if got := b.text("#lead"); !strings.Contains(got, "in order of arrival") {
		t.Errorf("lead: %q", got)
	}
	const left = `+(/^0:(\d\d)$/.exec(document.getElementById('prequeueTime').textContent) || [])[1]`
	b.becomes(5*time.Second, left+" > 0")
	first := eval[int](b, left)
	b.becomes(5*time.Second, fmt.Sprintf("%s == %d", left, first-2))
	if title := eval[string](b, "document.title"); !strings.HasPrefix(title, "(1 min) It has not started yet") {
		t.Errorf("title: %q", title)
	}
	if said := b.text("#say"); said != "" {
		t.Errorf("a countdown is read aloud: %q", said)
	}
	if at := b.text(".at time"); at == "" || strings.Contains(at, "UTC") {
		t.Errorf("the start is not in the visitor's own time: %q", at)
	}
	b.getsIn()
	if got := eval[string](b, "location.href"); got != address+"/drop?size=42" {
		t.Errorf("the shop stands at %s", got)
	}
}

func TestShuffledPrequeueSaysSo(t *testing.T) {
	t.Parallel()
	address := startSale(t, time.Hour+90*time.Second, true)
	b := open(t)
	b.visit(address + "/drop?size=42#top")
	b.waits()
	if got := b.text("#lead"); !strings.Contains(got, "arriving early gives no advantage") {
		t.Errorf("lead: %q", got)
	}
	b.becomes(5*time.Second, `/^1:01:\d\d$/.test(document.getElementById('prequeueTime').textContent)`)
	if !eval[bool](b, `document.getElementById('ahead').parentNode.hidden`) {
		t.Error("a place is shown before the draw")
	}
	if got, want := eval[string](b, "document.getElementById('check').href"), address+page.VerifyPath+"#"+address+"/drop?size=42"; got != want {
		t.Errorf("the link to the draw is %s, want %s", got, want)
	}
	script := axe(t)
	for _, v := range b.violations(script) {
		t.Errorf("the prequeue: %v", v)
	}
	b.visit(address + page.VerifyPath)
	for _, v := range b.violations(script) {
		t.Errorf("the page that checks a draw: %v", v)
	}
}

// What the page that checks a draw says of one that is right, and of any that is not.
func TestDrawIsCheckedInTheBrowser(t *testing.T) {
	t.Parallel()
	seed := [32]byte{7}
	var ids []anteroom.ID
	for range 300 {
		ids = append(ids, ticket.NewID())
	}
	slices.SortFunc(ids, func(a, b anteroom.ID) int { return bytes.Compare(a[:], b[:]) })
	entries, commitment := engine.Entries(ids), engine.Commitment(seed[:])
	order := engine.Order(engine.ShuffleKey(seed[:], entries), ids)
	own := 123
	receipt := map[string]any{
		"name": "drop", "done": true, "commitment": hex.EncodeToString(commitment[:]), "seed": hex.EncodeToString(seed[:]),
		"entries": hex.EncodeToString(entries[:]), "count": len(ids), "ids": "/ids",
		"id": hex.EncodeToString(ids[own][:]), "took_part": true, "place": slices.Index(order, own) + 1,
	}
	stranger := ticket.NewID()
	for _, c := range []struct {
		name   string
		change map[string]any
		result string
		step   string
	}{
		{"right", nil, "Everything is correct.", fmt.Sprintf("✓ Your place in the shuffle is %d;", slices.Index(order, own)+1)},
		{"before", map[string]any{"done": false}, "The shuffle has not happened yet.", ""},
		{"came later", map[string]any{"id": hex.EncodeToString(stranger[:]), "took_part": false}, "Everything is correct.", "✓ Your id is not in the list"},
		{"left out", map[string]any{"id": hex.EncodeToString(stranger[:])}, "Something is not correct", "✗ Your id is not in the list"},
		{"another seed", map[string]any{"seed": strings.Repeat("00", 32)}, "Something is not correct", "✗ The seed matches"},
		{"another list", map[string]any{"entries": strings.Repeat("00", 32)}, "Something is not correct", "✗ The list matches"},
		{"another place", map[string]any{"place": 5000}, "Something is not correct", "✗ Your place in the shuffle"},
		{"another number", map[string]any{"count": 301}, "Something is not correct", "✗ The list has 300 ids"},
		{"no receipt", map[string]any{"commitment": "zz"}, "The receipt has no commitment of 32 bytes.", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			given := map[string]any{}
			for k, v := range receipt {
				given[k] = v
			}
			for k, v := range c.change {
				given[k] = v
			}
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == page.VerifyPath:
					w.Header().Set("Content-Type", "text/html; charset=utf-8")
					w.Header().Set("Content-Security-Policy", page.VerifyPolicy())
					w.Write(page.AppendVerify(nil))
				case r.URL.Path == "/ids":
					for _, id := range ids {
						w.Write(id[:])
					}
				case r.URL.Path == "/drop" && r.URL.RawQuery == "size=42&__anteroom=receipt":
					w.Header().Set("Content-Type", "application/json")
					json.NewEncoder(w).Encode(given)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(front.Close)
			b := open(t)
			b.visit(front.URL + page.VerifyPath + "#" + front.URL + "/drop?size=42")
			b.becomes(15*time.Second, fmt.Sprintf("document.getElementById('result').textContent.startsWith(%q)", c.result))
			if steps := b.text("#steps"); !strings.Contains(steps, c.step) {
				t.Errorf("the steps are %q, want %q among them", steps, c.step)
			}
		})
	}
}
