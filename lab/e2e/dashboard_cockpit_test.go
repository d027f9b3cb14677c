package e2e

import (
	"fmt"
	"testing"
	"time"
)

// The cockpit's hand on a room, as the visitor in line sees it: a message, drain, and another limit.
func TestDashboardCockpitMessageDrainAndLimits(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	o.zone = o.newZone("127.0.0.1")
	id := o.newRoom(fields{"name": "checkout", "host": "127.0.0.1", "total_active_users": 1, "new_users_per_minute": 1})
	newVisitor(t, o.gate).enter()
	visitor := open(t)
	visitor.visit(o.url("/"))
	visitor.waits()
	d := sitDown(t, o, operatorToken)
	d.goes("/rooms/127.0.0.1/checkout")
	d.says("1 person is waiting.")

	d.fill("message", "We are restocking.")
	d.presses("Show")
	d.says("Visitors will see this at their next update.")
	visitor.becomes(30*time.Second, `document.body.innerText.includes('We are restocking.')`)

	d.presses("Drain")
	d.becomes(5*time.Second, `document.querySelector('dialog[open]')`)
	d.presses("Drain")
	d.says("Drain is on.")
	if a := newVisitor(t, o.gate).get("/"); a.admitted() {
		t.Errorf("a newcomer is let in while the room drains: %s", a.Status)
	}
	if !eval[bool](visitor, "!!"+showsLine) {
		t.Error("who waited lost the place when the room was drained")
	}
	d.becomes(10*time.Second, `document.querySelector('main h1').innerText.includes('Draining')`)

	for _, f := range []string{"total_active_users", "new_users_per_minute"} {
		d.becomes(10*time.Second, field(f))
		d.fill(f, "5")
	}
	d.presses("Apply")
	d.says("Up to 5 active users and 5 new users per minute.")
	visitor.getsIn()
	var room struct {
		Total int `json:"total_active_users"`
		New   int `json:"new_users_per_minute"`
	}
	o.good("GET", o.under("/"+id), "", &room)
	if got := fmt.Sprint(room.Total, room.New); got != "5 5" {
		t.Errorf("the API says %s", got)
	}
}

// In the middle of a ramp the limits are those of its step, and are not the event's. Set by hand they are in force at once, and the ramp is
// over; undone, it goes on.
func TestDashboardCockpitLimitsInARamp(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	now := time.Now().UTC().Truncate(time.Second)
	var event struct{ ID string }
	o.good("POST", o.under("/"+id+"/events"), fields{"name": "warm-up", "event_start_time": now.Add(-time.Minute).Format(time.RFC3339), "event_end_time": now.Add(time.Hour).Format(time.RFC3339),
		"total_active_users": 2000, "new_users_per_minute": 1200, "ramp": []fields{{"after": "0s", "new_users_per_minute": 200}, {"after": "20m", "new_users_per_minute": 600}}}.String(), &event)
	is := func(active, perMinute, steps int) {
		t.Helper()
		eventually(t, 10*time.Second, func() string {
			var e struct {
				Active    int `json:"total_active_users"`
				PerMinute int `json:"new_users_per_minute"`
				Ramp      []struct{}
			}
			o.good("GET", o.under("/"+id+"/events/"+event.ID), "", &e)
			if e.Active != active || e.PerMinute != perMinute || len(e.Ramp) != steps {
				return fmt.Sprintf("the event is %+v, want %d, %d and %d steps", e, active, perMinute, steps)
			}
			return ""
		})
	}
	d := sitDown(t, o, operatorToken)
	d.goes(toRoom("checkout", ""))
	o.arrive("/")
	d.becomes(15*time.Second, field("new_users_per_minute")+`?.value == '200' && `+field("total_active_users")+`.value == '2000'`)
	d.fill("new_users_per_minute", "100")
	d.says("This removes the ramp of the event.")
	d.presses("Apply")
	d.says("Up to 2,000 active users and 100 new users per minute.")
	is(2000, 100, 0)
	eval[bool](d.tab, `[...document.querySelectorAll('.toast button')].find(b => b.innerText.startsWith('Undo')).click(), true`)
	is(2000, 1200, 2)
}

// What a colleague has set by hand in the meantime is not overwritten by Undo.
func TestDashboardHandOfTwoOperators(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	id := o.newRoom(fields{"name": "checkout"})
	own := "/anteroom/v1/zones/" + o.zone + "/rooms/" + id
	is := func(want string) {
		t.Helper()
		eventually(t, 10*time.Second, func() string {
			var room struct {
				Controls struct {
					Paused, Draining bool
					Message          *string
					Remaining        *int
				}
			}
			o.good("GET", own, "", &room)
			c := room.Controls
			got := fmt.Sprintf("paused %v, draining %v", c.Paused, c.Draining)
			if c.Message != nil {
				got += ", " + *c.Message
			}
			if c.Remaining != nil {
				got += fmt.Sprintf(", %d left", *c.Remaining)
			}
			if got != want {
				return fmt.Sprintf("%s; want %s", got, want)
			}
			return ""
		})
	}
	d := sitDown(t, o, operatorToken)
	undo := func() {
		t.Helper()
		eval[bool](d.tab, `[...document.querySelectorAll('.toast button')].filter(b => b.innerText.startsWith('Undo')).at(-1).click(), true`)
	}
	d.goes(toRoom("checkout", ""))
	d.becomes(10*time.Second, field("message"))
	d.fill("message", "mine")
	d.presses("Show")
	d.says("Visitors will see this at their next update.")
	o.good("PUT", own+"/message", `{"text": "theirs"}`, nil)
	undo()
	d.says("Could not undo: someone else changed this in the meantime")
	is("paused false, draining false, theirs")

	d.fill("remaining", "100")
	d.presses("Show")
	d.says("The waiting page now shows 100 items left.")
	o.good("POST", own+"/remaining", `{"sold": 3}`, nil)
	undo()
	d.becomes(10*time.Second, `[...document.querySelectorAll('.toast')].filter(t => t.innerText.includes('Could not undo')).length == 2`)
	is("paused false, draining false, theirs, 97 left")

	d.presses("Pause")
	d.becomes(5*time.Second, `document.querySelector('dialog[open]')`)
	d.presses("Pause")
	d.says("Pause is on.")
	o.good("POST", own+"/drain", "", nil)
	undo()
	is("paused false, draining true, theirs, 97 left")
}

// An operator tries a room: simulated visitors come, fill it and wait, and go when the operator stops them. Nobody else
// notices, and the origin hears nothing.
func TestDashboardTriesARoom(t *testing.T) {
	t.Parallel()
	script := axe(t)
	o := startOffice(t)
	o.zone = o.newZone("127.0.0.1")
	o.newRoom(fields{"name": "checkout", "host": "127.0.0.1", "total_active_users": 10, "new_users_per_minute": 10})
	d := sitDown(t, o, operatorToken)
	d.goes("/rooms/127.0.0.1/checkout")
	d.becomes(10*time.Second, field("visitors"))
	d.fill("visitors", "2001")
	d.becomes(5*time.Second, `[...document.querySelectorAll('button')].some(b => b.innerText == 'Send' && b.disabled)`)
	d.fill("visitors", "40")
	d.fill("over_seconds", "1")
	d.presses("Send")
	d.becomes(5*time.Second, `(`+dialogText+`).includes('Your origin gets no requests')`)
	d.presses("Send")
	d.says("40 of 40 visitors arrived")
	d.becomes(20*time.Second, `/\b10 were admitted/.test(document.body.innerText) && [...document.querySelectorAll('.figure-card')].some(f => f.innerText.includes('Active users') && f.innerText.includes('10 / 10'))`)
	for _, v := range d.violations(script) {
		t.Errorf("with a crowd: %s (%s): %v", v.ID, v.Help, v.Nodes)
	}
	d.goes("/rooms/127.0.0.1/checkout") // whoever comes back sees it, too
	d.becomes(10*time.Second, `[...document.querySelectorAll('button')].some(b => b.innerText == 'Stop the visitors')`)
	d.presses("Stop the visitors")
	d.says("Last time: 40 of 40 visitors arrived, 0 wait, 10 were admitted")
	d.says("Visitors are waiting in this room. Try a quiet one.")
	if said := d.said("network", "exception"); len(said) > 0 {
		t.Errorf("the console says %v", said)
	}
}
