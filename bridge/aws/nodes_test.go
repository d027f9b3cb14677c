package aws

import (
	"context"
	"strings"
	"testing"
)

// Two nodes with the same event give out each number once, open each other's request ids, and sign with one key. A code
// is used once.
func TestNodesShareAnEvent(t *testing.T) {
	inWorld(t, sale, withOpenID, func(w *world) {
		first := w.bridge
		second, err := Open(w.Context(), first.cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); second.Run(ctx) }()
		defer func() { stop(); <-ended }()
		on := func(b *Bridge) *world { w.bridge = b; return w }
		var ids []string
		for range 10 {
			ids = append(ids, on(first).join(), on(second).join())
		}
		w.serving()
		for _, b := range []*Bridge{first, second} {
			for i, id := range ids {
				if a := on(b).ask("GET", "/queue_num?event_id=Sample&request_id="+id, ""); a.read("queue_number") != float64(i+1) {
					t.Errorf("visitor %d: %s", i+1, a.body)
				}
			}
			w.is(w.ask("GET", "/serving_num?event_id=Sample", ""), 200, `{"serving_counter": "2"}`)
		}
		one, two := on(first).claim(ids[0]), on(second).claim(ids[0])
		if one.status != 200 || one.body != two.body {
			t.Errorf("other tokens at the other node: %s %s", one.body, two.body)
		}
		on(second).claim(ids[1])
		w.pass(inviteEvery) // each node looks once a second
		w.serving()
		w.is(on(first).ask("GET", "/waiting_num?event_id=Sample", ""), 200, `{"waiting_num": 18}`)

		page := on(first).ask("GET", "/authorize?"+authorizeQuery("request_id", ids[0]).Encode(), "")
		_, code, _ := strings.Cut(page.header.Get("Location"), "code=")
		code, _, _ = strings.Cut(code, "&")
		if a := on(second).exchange(code); a.status != 200 {
			t.Errorf("the code at the other node: %d %s", a.status, a.body)
		}
		if a := on(first).exchange(code); a.status != 400 {
			t.Errorf("the code again: %d %s", a.status, a.body)
		}
		w.bridge = first
	})
}
