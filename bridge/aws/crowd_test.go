package aws

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
)

// crowd is visitors of the sample site who come and wait for their numbers.
type crowd struct {
	*world
	all     sync.WaitGroup
	mu      sync.Mutex
	entered []entry
}

type entry struct {
	number int
	at     time.Time
}

// wait lets a visitor look at the counter until the room admits the request id. The entry counts from when the token says
// that the session began, which may be a call before the one that brings the token.
func (c *crowd) wait(id string) {
	c.all.Go(func() {
		for {
			if p, r, _ := c.bridge.place(id); int64(p.number) <= r.Serving {
				if a := c.claim(id); a.status == 200 {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.entered = append(c.entered, entry{int(p.number), a.began(c)})
					return
				}
			}
			c.pass(3 * time.Second) // as the sample site does
		}
	})
}

// began is when the session of an access token began, to the second.
func (a said) began(t testing.TB) time.Time {
	t.Helper()
	token, _ := a.read("access_token").(string)
	var claims struct {
		At int64 `json:"iat"`
	}
	parts := strings.Split(token, ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	if err != nil || claims.At == 0 {
		t.Errorf("the access token %q has no iat: %v", token, err)
	}
	return time.Unix(claims.At, 0)
}

// inOrder waits until so many have entered, and checks both limits, and the order from an entry on.
func (c *crowd) inOrder(room anteroom.Room, visitors, from int) {
	c.Helper()
	c.all.Wait()
	if len(c.entered) != visitors {
		c.Fatalf("%d entered", len(c.entered))
	}
	slices.SortStableFunc(c.entered, func(a, b entry) int { return a.at.Compare(b.at) })
	for i, e := range c.entered {
		if j := i - room.NewUsersPerMinute; j >= 0 && e.at.Sub(c.entered[j].at) < time.Minute {
			c.Errorf("entry %d came %v after entry %d", i, e.at.Sub(c.entered[j].at), j)
		}
		if j := i - room.TotalActiveUsers; j >= 0 && e.at.Sub(c.entered[j].at) < room.SessionDuration {
			c.Errorf("entry %d came while %d sessions were active, %v after entry %d", i, room.TotalActiveUsers, e.at.Sub(c.entered[j].at), j)
		}
		if i < from {
			continue
		}
		// A position is not admitted long before an earlier one that comes at each call.
		if j := slices.IndexFunc(c.entered[i:], func(later entry) bool { return later.number < e.number && later.at.Sub(e.at) > 15*time.Second }); j >= 0 {
			c.Errorf("number %d entered at %v, number %d at %v", e.number, e.at, c.entered[i+j].number, c.entered[i+j].at)
		}
	}
}

// crowded is a room for 40 active users with short sessions.
func crowded() anteroom.Room {
	room := sale
	room.TotalActiveUsers, room.NewUsersPerMinute, room.SessionDuration, room.DisableSessionRenewal = 40, 60, 30*time.Second, true
	return room
}

// A crowd that waits for its numbers, of which every fifth never comes, is admitted within both limits and in order, and
// those who leave cost the others little time.
func TestACrowdWithinBothLimits(t *testing.T) {
	room := crowded()
	inWorld(t, room, nil, func(w *world) {
		const visitors = 150
		c := &crowd{world: w}
		began := time.Now()
		for i := range visitors {
			id := w.join()
			w.pass(50 * time.Millisecond)
			if i%5 != 4 {
				c.wait(id)
			}
		}
		c.inOrder(room, visitors*4/5, 0)
		took := time.Since(began)
		if least := time.Duration(len(c.entered)-room.NewUsersPerMinute) * time.Second; took < least || took > 2*least+time.Minute {
			t.Errorf("it took %v", took)
		}
		t.Logf("%d visitors in %v", len(c.entered), took)
		if a := w.operate("GET", "/num_active_tokens?event_id=Sample", ""); a.status != 200 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

// After a flood of joins that nobody claims, more of a crowd are invited than can be admitted. Those who ask first take the
// free seats. The others enter in order, and all of them within both limits, as fast as the room allows.
func TestACrowdAfterAFlood(t *testing.T) {
	room := crowded()
	inWorld(t, room, nil, func(w *world) {
		for range 3_000 {
			w.joinFrom("")
			w.pass(10 * time.Millisecond)
		}
		const visitors = 150
		c := &crowd{world: w}
		began := time.Now()
		for range visitors {
			c.wait(w.join())
		}
		c.inOrder(room, visitors, room.TotalActiveUsers)
		if took := time.Since(began); took > 2*(visitors/60)*time.Minute {
			t.Errorf("it took %v", took)
		} else {
			t.Logf("%d visitors in %v", visitors, took)
		}
	})
}
