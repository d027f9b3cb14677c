package gateway

import (
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket"
)

// TestConnectionRemembersOneSession: what a connection remembers is for the same value and
// the same keys only, and who waits is not remembered.
func TestConnectionRemembersOneSession(t *testing.T) {
	old, fresh := ticket.NewKeyring(time.Now()), ticket.NewKeyring(time.Now())
	was, is := old.Sealer("zone", "room", "name"), fresh.Sealer("zone", "room", "name")
	sealed := func(tk anteroom.Ticket) string { return string(was.Seal(nil, tk)) }
	one, other, queued := sealed(session()), sealed(session()), sealed(waiting())
	steps := []struct {
		name   string
		by     *ticket.Sealer
		value  string
		shared bool
		opens  bool
		then   string // the value that the connection remembers afterwards
	}{
		{"a session", was, one, false, true, one},
		{"again", was, one, false, true, one},
		{"another session", was, other, false, true, other},
		{"somebody who waits", was, queued, false, true, other},
		{"on a connection of many", was, one, true, true, other},
		{"with other keys", is, other, false, false, other},
		{"nothing", was, "", false, false, other},
		{"a forged one", was, one[:len(one)-2] + "AA", false, false, other},
	}
	c := &conn{}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			x := &exchange{request: request{conn: c, room: &room{sealer: s.by}, shared: s.shared}}
			got, _, result := x.open(s.value)
			want, clean := s.by.Open(s.value)
			if result != clean || (result == ticket.OK) != s.opens || result == ticket.OK && got != want {
				t.Errorf("opened %+v, %v; want %+v, %v", got, result, want, clean)
			}
			if o := c.last.Load(); o == nil && s.then != "" || o != nil && o.value != s.then {
				t.Error("the connection remembers another value than it should")
			}
		})
	}
	if _, _, result := (&exchange{request: request{room: &room{sealer: was}}}).open(one); result != ticket.OK {
		t.Errorf("without a connection: %v", result)
	}
}
