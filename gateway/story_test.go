package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anteroom/anteroom"
)

// customer is a visitor of a bubble who keeps the newest cookie.
type customer struct {
	t      *testing.T
	shop   http.Handler
	cookie string
	last   *httptest.ResponseRecorder
}

// ask returns what the shop answers, or what the JSON of the waiting room says.
func (c *customer) ask(target string) (body string, in map[string]any) {
	c.t.Helper()
	r := httptest.NewRequest("GET", target, nil)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Cookie", c.cookie)
	c.last = httptest.NewRecorder()
	c.shop.ServeHTTP(c.last, r)
	if line := c.last.Header().Get("Set-Cookie"); line != "" {
		c.cookie, _, _ = strings.Cut(line, ";")
	}
	var object struct{ CfWaitingRoom map[string]any }
	body = c.last.Body.String()
	_ = json.Unmarshal([]byte(body), &object) // the shop does not speak JSON
	return body, object.CfWaitingRoom
}

// A landing page, a prequeue, a sale in the order of arrival, and five minutes to finish
// afterwards: what visitors are told, to the second.
func TestTheStoryOfASale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(begun.Add(d))) }
		stamp := func(d time.Duration) anteroom.Stamp { return anteroom.StampOf(begun.Add(d)) }
		fifo, reject, two, sixty, five, yes := anteroom.FIFO, anteroom.Reject, 2, 60, 5*time.Minute, true
		rm := anteroom.Room{Name: "drop", Routes: []anteroom.Route{{Host: "*"}}, JSONResponse: true, QueueingStatusCode: 202,
			Settings: anteroom.Settings{QueueingMethod: anteroom.Passthrough, TotalActiveUsers: 100, NewUsersPerMinute: 600, SessionDuration: time.Minute},
			Events: []anteroom.Event{
				{ID: anteroom.EventID(strings.Repeat("a", 32)), Name: "sale", Prequeue: stamp(10 * time.Minute), Start: stamp(20 * time.Minute), End: stamp(30 * time.Minute),
					Overrides: anteroom.Overrides{QueueingMethod: &fifo, TotalActiveUsers: &two, NewUsersPerMinute: &sixty, SessionDuration: &five}},
				{ID: anteroom.EventID(strings.Repeat("b", 32)), Name: "after", Start: stamp(30 * time.Minute), End: stamp(60 * time.Minute),
					Overrides: anteroom.Overrides{QueueingMethod: &reject, SessionDuration: &five, DisableSessionRenewal: &yes}},
			}}.WithDefaults()
		_, shop := bubbleGateway(t, rm, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the shop") }))
		come := func() *customer { return &customer{t: t, shop: shop} }
		inside := func(c *customer) {
			t.Helper()
			if body, _ := c.ask("/"); body != "the shop" {
				t.Fatalf("%v: not inside: %s", time.Since(begun), body)
			}
		}
		told := func(c *customer, want map[string]any) {
			t.Helper()
			body, in := c.ask("/")
			if in == nil {
				t.Fatalf("%v: no waiting room: %s", time.Since(begun), body)
			}
			for name, value := range want {
				if in[name] != value {
					t.Errorf("%v: %s is %v, want %v", time.Since(begun), name, in[name], value)
				}
			}
		}

		at(10*time.Minute - time.Second)
		inside(come())
		at(10 * time.Minute)
		ann, bob, cid := come(), come(), come()
		early := map[string]any{"isEventActive": true, "isEventPrequeueing": true, "timeUntilEventStart": 10.0, "timeUntilEventStartFormatted": "10 minutes",
			"timeUntilEventEnd": 20.0, "queueingMethod": "fifo", "isFIFOQueue": true, "waitTimeKnown": false, "queueAll": false, "shuffleAtEventStart": false}
		told(ann, early)
		if ann.last.Code != 202 || ann.last.Header().Get("Refresh") == "" {
			t.Errorf("the prequeue: %d %v", ann.last.Code, ann.last.Header())
		}
		at(10*time.Minute + time.Second)
		told(bob, early)
		at(10*time.Minute + 2*time.Second)
		told(cid, early)
		for m := 11; m < 20; m++ { // they stay in touch
			at(time.Duration(m) * time.Minute)
			told(ann, map[string]any{"timeUntilEventStart": float64(20 - m), "isEventPrequeueing": true})
			bob.ask("/?__anteroom=status")
			cid.ask("/?__anteroom=status")
		}
		at(20*time.Minute - time.Second)
		told(come(), map[string]any{"timeUntilEventStart": 1.0, "timeUntilEventStartFormatted": "1 minute"})

		at(20*time.Minute + 30*time.Second)
		inside(ann)
		if got := ann.last.Header().Get("Set-Cookie"); !strings.Contains(got, "Max-Age=600;") {
			t.Errorf("the cookie of a session of the event: %q", got)
		}
		inside(bob)
		told(cid, map[string]any{"isEventActive": true, "isEventPrequeueing": false, "timeUntilEventStart": 0.0, "timeUntilEventStartFormatted": "unavailable",
			"timeUntilEventEnd": 10.0, "timeUntilEventEndFormatted": "10 minutes", "queueingMethod": "fifo"})
		for m := 21; m < 30; m++ {
			at(time.Duration(m) * time.Minute)
			inside(ann)
			bob.ask("/")
		}

		at(30 * time.Minute)
		late := come()
		told(late, map[string]any{"isRejectQueue": true, "queueingMethod": "reject", "refreshIntervalSeconds": 0.0, "isEventActive": true, "timeUntilEventEnd": 30.0})
		if late.last.Code != 202 || late.last.Header().Get("Refresh") != "" || late.last.Header().Get("Set-Cookie") != "" {
			t.Errorf("after the sale: %d %v", late.last.Code, late.last.Header())
		}
		at(34*time.Minute + 55*time.Second)
		inside(ann) // who is inside may finish
		at(36 * time.Minute)
		told(ann, map[string]any{"isRejectQueue": true})
		at(60*time.Minute - time.Second)
		told(come(), map[string]any{"isRejectQueue": true, "timeUntilEventEnd": 1.0})
		at(60 * time.Minute)
		inside(ann)
		inside(come())
	})
}

// Everybody in the prequeue has the same chance, knows the commitment before the start, and
// finds the own place in the draw afterwards; who comes later stands behind all of them.
func TestTheStoryOfAShuffle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		at := func(d time.Duration) { time.Sleep(time.Until(begun.Add(d))) }
		rm := anteroom.Room{Name: "drop", Routes: []anteroom.Route{{Host: "*"}}, JSONResponse: true,
			Settings: anteroom.Settings{TotalActiveUsers: 1, NewUsersPerMinute: 600, SessionDuration: 30 * time.Minute},
			Events: []anteroom.Event{{ID: anteroom.EventID(strings.Repeat("a", 32)), Name: "sale", ShuffleAtStart: true, Seed: [32]byte{1, 2, 3},
				Prequeue: anteroom.StampOf(begun.Add(time.Minute)), Start: anteroom.StampOf(begun.Add(6 * time.Minute)), End: anteroom.StampOf(begun.Add(time.Hour))}},
		}.WithDefaults()
		_, shop := bubbleGateway(t, rm, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the shop") }))
		path := drawPath + string(rm.ID) + "/" + string(rm.Events[0].ID) + "/0"
		receiptOf := func(c *customer) (r receipt) {
			t.Helper()
			body, _ := c.ask("/?__anteroom=receipt")
			if err := json.Unmarshal([]byte(body), &r); err != nil {
				t.Fatalf("%v: %s", time.Since(begun), body)
			}
			return r
		}
		stranger := &customer{t: t, shop: shop}
		if stranger.ask(path); stranger.last.Code != http.StatusNotFound {
			t.Errorf("before the prequeue there is a record: %s", stranger.last.Body)
		}
		at(time.Minute)
		var early []*customer
		for range 8 {
			c := &customer{t: t, shop: shop}
			if _, in := c.ask("/"); in["shuffleAtEventStart"] != true {
				t.Fatalf("%v", in)
			}
			early = append(early, c)
			time.Sleep(time.Second)
		}
		commitment := receiptOf(early[0]).Commitment
		stay := func(until time.Duration) { // as pages do
			for time.Since(begun) < until {
				time.Sleep(time.Second)
				for _, c := range early {
					c.ask("/?__anteroom=status")
				}
			}
		}
		stay(6*time.Minute + 5*time.Second)
		late := &customer{t: t, shop: shop}
		late.ask("/")
		stay(7 * time.Minute)
		seen := map[int]bool{}
		inside := 0
		for _, c := range early {
			r := receiptOf(c)
			if !r.Done || r.Commitment != commitment || r.Count != len(early) || r.TookPart == nil || !*r.TookPart || seen[r.Place] || r.Place < 1 || r.Place > len(early) {
				t.Errorf("%+v", r)
			}
			seen[r.Place] = true
			body, _ := c.ask("/")
			if in := body == "the shop"; in {
				inside++
				if r.Place != 1 {
					t.Errorf("place %d is inside", r.Place)
				}
			}
		}
		if inside != 1 {
			t.Errorf("%d inside, want 1", inside)
		}
		if r := receiptOf(late); r.Place != 0 || r.TookPart == nil || *r.TookPart {
			t.Errorf("who came late took part: %+v", r)
		}
		stranger.ask(path + "/ids")
		if n := stranger.last.Body.Len(); n != 16*len(early) {
			t.Errorf("the list has %d bytes", n)
		}
	})
}
