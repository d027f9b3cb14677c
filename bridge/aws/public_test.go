package aws

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// A visitor joins, learns the number, waits for the counter and gets tokens, as the sample site does it.
func TestAVisitorIsAdmittedInTurn(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		first, second, third := w.join(), w.join(), w.join()
		for i, id := range []string{first, second, third} {
			a := w.ask("GET", "/queue_num?event_id=Sample&request_id="+id, "")
			if want := fmt.Sprintf(`{"queue_number": %d, "entry_time": %d, "event_id": "Sample", "status": 1}`, i+1, time.Now().Unix()); a.body != want || a.status != 200 {
				t.Errorf("visitor %d: %d %s, want %s", i, a.status, a.body, want)
			}
		}
		if s := w.serving(); s != "2" { // two seats
			t.Errorf("serving %s", s)
		}
		w.is(w.ask("GET", "/waiting_num?event_id=Sample", ""), 200, `{"waiting_num": 3}`)
		w.is(w.claim(third), 202, `{"error": "Request ID not being served yet"}`)
		w.is(w.ask("GET", "/queue_pos_expiry?event_id=Sample&request_id="+third, ""), 202, `{"error": "Request ID not being served yet"}`)
		w.is(w.ask("GET", "/queue_pos_expiry?event_id=Sample&request_id="+first, ""), 200, `{"expires_in": 298}`)
		one := w.claim(first)
		if one.status != 200 || one.read("token_type") != "Bearer" || one.read("expires_in") != 600.0 || one.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Fatalf("the first: %d %s", one.status, one.body)
		}
		if a := w.claim(second); a.status != 200 {
			t.Errorf("the second: %d %s", a.status, a.body)
		}
		// Asking again extends nothing.
		w.pass(time.Minute)
		again := w.claim(first)
		if again.read("access_token") != one.read("access_token") || again.read("expires_in") != 540.0 {
			t.Errorf("again: %s", again.body)
		}
		w.is(w.ask("GET", "/waiting_num?event_id=Sample", ""), 200, `{"waiting_num": 1}`)
		w.is(w.claim(third), 202, `{"error": "Request ID not being served yet"}`)
		// The sessions end, and the third may come.
		w.pass(10 * time.Minute)
		w.is(w.claim(first), 410, `{"error": "Token corresponding to request id has expired"}`)
		if s := w.serving(); s != "3" {
			t.Errorf("serving %s", s)
		}
		if a := w.claim(third); a.status != 200 {
			t.Errorf("the third: %d %s", a.status, a.body)
		}
	})
}

// A client that does not wait for its number is not admitted, although a seat is free and the request is good.
func TestTheCounterIsTheOrder(t *testing.T) {
	inWorld(t, sale, func(c *Config) { c.Custom = true }, func(w *world) {
		first, second := w.join(), w.join()
		w.is(w.claim(first), 202, `{"error": "Request ID not being served yet"}`)
		w.operate("POST", "/increment_serving_counter", `{"event_id": "Sample", "increment_by": 1}`)
		w.is(w.claim(second), 202, `{"error": "Request ID not being served yet"}`)
		if a := w.claim(first); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

// However far operators move the counter, both limits hold, and positions are admitted in order as seats come free.
func TestTheCounterDoesNotLiftTheLimits(t *testing.T) {
	inWorld(t, sale, func(c *Config) { c.Custom = true }, func(w *world) {
		var ids []string
		for range 5 {
			ids = append(ids, w.join())
		}
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id": "Sample", "increment_by": 100}`), 200, `{"serving_num": 100}`)
		admitted := func() (n int) {
			for _, id := range ids {
				if w.claim(id).status == 200 {
					n++
				}
			}
			return n
		}
		if n := admitted(); n != 2 {
			t.Errorf("%d were admitted to two seats", n)
		}
		w.operate("POST", "/update_session", `{"event_id": "Sample", "request_id": "`+ids[0]+`", "status": 1}`)
		w.pass(time.Second)
		fourth, third := w.claim(ids[3]).status, w.claim(ids[2]).status
		if fourth != 202 || third != 200 {
			t.Errorf("the fourth got %d, the third %d", fourth, third)
		}
		w.is(w.operate("GET", "/num_active_tokens?event_id=Sample", ""), 200, `{"active_tokens": 2}`)
	})
}

// A position that nobody claims expires, and those behind it do not wait for that.
func TestAPositionExpires(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		var ids []string
		for range 4 {
			ids = append(ids, w.join())
		}
		if s := w.serving(); s != "2" {
			t.Fatalf("serving %s", s)
		}
		w.pass(claimWithin)
		if s := w.serving(); s != "4" {
			t.Errorf("serving %s, and nobody came", s)
		}
		// Whoever missed the turn still has it.
		if a := w.claim(ids[0]); a.status != 200 {
			t.Errorf("late: %d %s", a.status, a.body)
		}
		w.pass(sale.PlaceHold + time.Minute)
		w.is(w.claim(ids[1]), 410, `{"error": "Queue position has expired"}`)
		w.is(w.ask("GET", "/queue_pos_expiry?event_id=Sample&request_id="+ids[1], ""), 410, `{"error": "Queue position has expired"}`)
		w.is(w.ask("GET", "/waiting_num?event_id=Sample", ""), 200, `{"waiting_num": 0}`)
		if a := w.claim(ids[0]); a.status != 200 {
			t.Errorf("a session outlives the position: %d %s", a.status, a.body)
		}
	})
}

// One request id is good for one session, even when that is over before the position would expire.
func TestAPositionIsSpentOnce(t *testing.T) {
	room := sale
	room.SessionDuration, room.DisableSessionRenewal, room.PlaceHold = 20*time.Second, true, time.Hour
	inWorld(t, room, nil, func(w *world) {
		id := w.join()
		w.serving()
		if a := w.claim(id); a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		// Looked at for longer than the position and what the room remembers of it last.
		for range 150 {
			w.pass(30 * time.Second)
			if a := w.claim(id); a.status != 410 {
				t.Fatalf("again: %d %s", a.status, a.body)
			}
		}
	})
}

// Request ids are all that visitors have, and all that is needed: another process knows the place and the session.
func TestPlacesSurviveARestart(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		ids := []string{w.join(), w.join(), w.join()}
		w.serving()
		one := w.claim(ids[0])
		w.pass(2 * time.Second)
		w.end()
		w.start(sale, nil)
		w.is(w.ask("GET", "/serving_num?event_id=Sample", ""), 200, `{"serving_counter": "2"}`)
		for i, id := range ids {
			if a := w.ask("GET", "/queue_num?event_id=Sample&request_id="+id, ""); a.read("queue_number") != float64(i+1) {
				t.Errorf("visitor %d: %s", i+1, a.body)
			}
		}
		if a := w.claim(ids[0]); a.read("access_token") != one.read("access_token") {
			t.Errorf("other tokens after the restart: %d %s", a.status, a.body)
		}
		if a := w.claim(ids[1]); a.status != 200 {
			t.Errorf("invited before the restart: %d %s", a.status, a.body)
		}
		if id := w.join(); w.ask("GET", "/queue_num?event_id=Sample&request_id="+id, "").read("queue_number") != 4.0 {
			t.Error("a number was given out twice")
		}
	})
}

// claimsAtStatus is a room at which something happens once, right after its figures have been read.
type claimsAtStatus struct {
	Room
	then *atomic.Pointer[func()]
}

func (r claimsAtStatus) Status() anteroom.Status {
	s := r.Room.Status()
	if then := r.then.Swap(nil); then != nil {
		(*then)()
	}
	return s
}

// A seat that is taken while the counter is looked at is not free for the next in line.
func TestAClaimAtTheMomentOfAnInvitation(t *testing.T) {
	var then atomic.Pointer[func()]
	inWorld(t, sale, func(cfg *Config) {
		find := cfg.Room
		cfg.Room = func() (Room, anteroom.RoomID) {
			room, id := find()
			return claimsAtStatus{room, &then}, id
		}
	}, func(w *world) {
		ids := []string{w.join(), w.join(), w.join()}
		if s := w.serving(); s != "2" {
			t.Fatalf("serving %s", s)
		}
		w.pass(inviteEvery / 2)
		claim := func() {
			if a := w.claim(ids[0]); a.status != 200 {
				t.Errorf("claim: %d %s", a.status, a.body)
			}
		}
		then.Store(&claim)
		if s := w.serving(); s != "2" || then.Load() != nil {
			t.Errorf("serving %s of two seats, one taken and one kept for the second", s)
		}
	})
}

// Operators stop a room as any other.
func TestARoomThatAdmitsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*anteroom.Room)
		join   int
		claim  int
	}{
		"queue_all": {func(r *anteroom.Room) { r.QueueAll = true }, 200, 202},
		"reject":    {func(r *anteroom.Room) { r.QueueingMethod = anteroom.Reject }, 400, 0},
		"challenge": {func(r *anteroom.Room) { r.TurnstileAction = anteroom.InfiniteQueue }, 200, 202},
		"draining":  {func(r *anteroom.Room) { r.Controls.Draining = true }, 400, 0},
		"suspended": {func(r *anteroom.Room) { r.Suspended = true }, 200, 200},
		"everyone":  {func(r *anteroom.Room) { r.QueueingMethod = anteroom.Passthrough }, 200, 200},
	} {
		t.Run(name, func(t *testing.T) {
			room := sale
			c.change(&room)
			inWorld(t, room, nil, func(w *world) {
				a := w.ask("POST", "/assign_queue_num", `{"event_id":"Sample"}`)
				if a.status != c.join || a.status == 400 && a.body != "" {
					t.Fatalf("join: %d %q", a.status, a.body)
				}
				if c.claim == 0 {
					return
				}
				w.serving()
				id := a.read("api_request_id").(string)
				if a := w.claim(id); a.status != c.claim {
					t.Errorf("claim: %d %s", a.status, a.body)
				}
			})
		})
	}
}

// The answers of the gateway before the functions, of the functions to bad input, and of none of both.
func TestAnswersOfTheOriginal(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		id := w.join()
		other := "26a07142-098a-4bea-b67d-1fe5a098bf29"
		missing := `{"message": "Missing required request parameters: [event_id]"}`
		noRoute := `{"message":"Missing Authentication Token"}`
		notFound := `{"error": "Request ID not found"}`
		for _, c := range []struct {
			method, target, body string
			status               int
			want                 string
		}{
			{"GET", "/queue_num?request_id=" + id, "", 400, missing},
			{"GET", "/serving_num", "", 400, missing},
			{"GET", "/queue_num", "", 400, `{"message": "Missing required request parameters: [event_id, request_id]"}`},
			{"GET", "/queue_num?event_id=;&request_id=x", "", 400, `{"message": "Missing required request parameters: [event_id]"}`},
			{"POST", "/assign_queue_num", "", 400, `{"message": "Invalid request body"}`},
			{"POST", "/assign_queue_num", "{}", 400, `{"message": "Invalid request body"}`},
			{"POST", "/assign_queue_num", `{"event_id": 7}`, 400, `{"message": "Invalid request body"}`},
			{"POST", "/generate_token", `{"event_id": "Sample"}`, 400, `{"message": "Invalid request body"}`},
			{"POST", "/generate_token", strings.Repeat(" ", maxBody) + "{}", 413, `{"message": "Request Too Long"}`},
			{"GET", "/assign_queue_num", "", 403, noRoute},
			{"HEAD", "/serving_num?event_id=Sample", "", 403, noRoute},
			{"POST", "/serving_num", `{"event_id":"Sample"}`, 403, noRoute},
			{"GET", "/serving_num/", "", 403, noRoute},
			{"GET", "/serving%5fnum?event_id=Sample", "", 403, noRoute},
			{"GET", "/", "", 403, noRoute},
			{"POST", "/increment_serving_counter", `{"event_id":"Sample","increment_by":9}`, 403, noRoute},
			{"GET", "/authorize?client_id=Sample", "", 403, noRoute}, // the adapter is off
			{"OPTIONS", "/generate_token", "", 200, "{}"},
			{"GET", "/queue_num?event_id=Sample&request_id=" + other, "", 202, notFound},
			{"GET", "/queue_num?event_id=Sample&request_id=zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzz____", "", 202, notFound},
			{"GET", "/queue_num?event_id=Sample&request_id=" + id + "x", "", 202, notFound},
			{"GET", "/queue_num?event_id=Sample&request_id=" + strings.ToUpper(id), "", 202, notFound},
			{"GET", "/queue_num?event_id=Sample&request_id=short", "", 400, `{"error": "Invalid event or request ID"}`},
			{"GET", "/queue_num?event_id=Other&request_id=" + id, "", 400, `{"error": "Invalid event or request ID"}`},
			{"GET", "/serving_num?event_id=Other", "", 400, `{"error": "Invalid event ID"}`},
			{"GET", "/waiting_num?event_id=a%26b", "", 400, `{"error": "Invalid event ID"}`},
			{"GET", "/queue_pos_expiry?event_id=Sample&request_id=" + other, "", 404, `{"error": "Invalid request ID"}`},
			{"GET", "/public_key?event_id=Other", "", 400, `{"error": "Invalid request ID"}`},
			{"POST", "/generate_token", claimOf(other), 400, `{"error": "Invalid request ID"}`},
			{"POST", "/generate_token", claimOf("short"), 400, `{"error": "Invalid event or request ID"}`},
			{"POST", "/generate_token", strings.Replace(claimOf(id), "Sample", "Other", 1), 400, `{"error": "Invalid event or request ID"}`},
		} {
			a := w.ask(c.method, c.target, c.body)
			if a.status != c.status || a.body != c.want || a.header.Get("Content-Type") != jsonType || a.header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("%s %s %.60s: %d %s %v, want %d %s", c.method, c.target, c.body, a.status, a.body, a.header, c.status, c.want)
			}
		}
		pre := w.ask("OPTIONS", "/serving_num", "")
		if pre.header.Get("Access-Control-Allow-Methods") != "GET,OPTIONS" || !strings.Contains(pre.header.Get("Access-Control-Allow-Headers"), "Authorization") {
			t.Errorf("preflight: %v", pre.header)
		}
		// A join for another event is answered as one for this, and never gets a number.
		lost := w.ask("POST", "/assign_queue_num", `{"event_id": "Other"}`)
		name, _ := lost.read("api_request_id").(string)
		if lost.status != 200 || !regexp.MustCompile(`^\{"api_request_id": "[0-9a-f-]{36}"\}$`).MatchString(lost.body) {
			t.Errorf("%d %s", lost.status, lost.body)
		}
		w.is(w.ask("GET", "/queue_num?event_id=Sample&request_id="+name, ""), 202, notFound)
		if n := w.bridge.line.now().Queue; n != 1 {
			t.Errorf("%d numbers were given out", n)
		}
	})
}

// A request id says its number and arrival, and no other UUID is one.
func TestRequestIDs(t *testing.T) {
	k := newRequestIDs([32]byte{1}, 0)
	seen := map[string]bool{}
	for i := range 2000 {
		p := position{number: uint32(i)*2_147_483 + 1, arrival: epoch + anteroom.Time(i)*987_654_321_012}
		id := k.of(p)
		back, ok := k.open(id)
		if !ok || back != p || seen[id] || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) {
			t.Fatalf("%+v became %s and %+v", p, id, back)
		}
		seen[id] = true
		for _, guess := range []string{id[:35], id + "0", strings.Replace(id, "-", "_", 1), flip(id, 0), flip(id, 35)} {
			if p, ok := k.open(guess); ok {
				t.Fatalf("%s opens: %+v", guess, p)
			}
		}
		if _, ok := newRequestIDs([32]byte{1}, 1).open(id); ok {
			t.Fatal("opens after a reset")
		}
		if _, ok := newRequestIDs([32]byte{2}, 0).open(id); ok {
			t.Fatal("opens at another bridge")
		}
	}
}

func flip(id string, i int) string {
	c := byte('0')
	if id[i] == c {
		c = '1'
	}
	return id[:i] + string(c) + id[i+1:]
}

func FuzzRequestID(f *testing.F) {
	k := newRequestIDs([32]byte{1}, 0)
	f.Add(k.of(position{number: 1, arrival: epoch + 1}))
	f.Add("26a07142-098a-4bea-b67d-1fe5a098bf29")
	f.Fuzz(func(t *testing.T, id string) {
		if p, ok := k.open(id); ok && k.of(p) != id {
			t.Errorf("%q opens as %+v, whose id is another", id, p)
		}
		k.ticketID(id)
	})
}
