package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

// request is what a process asks for an operator.
type request struct {
	Op   string          `json:"op"`
	Room anteroom.RoomID `json:"room,omitempty"`
	N    int             `json:"n,omitempty"`
	Site string          `json:"site,omitempty"`
}

const (
	opAdmit  = "admit"
	opStatus = "status"
	opSites  = "sites"
	opForget = "forget"
	opTime   = "time"
)

// maxRequest bounds a request, in bytes.
const maxRequest = 4 << 10

// admitFor bounds one AdmitNow: it may have to wait until the store accepts a record.
const admitFor = 12 * time.Second

// reply answers a request. Error is nil on success.
type reply struct {
	Error  *failure      `json:"error,omitempty"`
	Given  int           `json:"given,omitempty"`
	Status *Status       `json:"status,omitempty"`
	Sites  []SiteSummary `json:"sites,omitempty"`
	Forgot *Forgotten    `json:"forgot,omitempty"`
	Time   anteroom.Time `json:"time,omitempty"`
}

// failure is an error with its kind.
type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// kinds names the kinds of errors in messages.
var kinds = map[anteroom.Kind]string{anteroom.Invalid: "invalid", anteroom.NotFound: "not_found", anteroom.Conflict: "conflict",
	anteroom.Denied: "denied", anteroom.Unavailable: "unavailable", anteroom.Elsewhere: "elsewhere"}

func failureOf(err error) *failure {
	kind, ok := kinds[anteroom.KindOf(err)]
	if !ok {
		kind = "other"
	}
	return &failure{Kind: kind, Message: err.Error()}
}

func (f *failure) err() error {
	for kind, name := range kinds {
		if name == f.Kind {
			return anteroom.Errorf(kind, "%s", f.Message)
		}
	}
	return errors.New(f.Message)
}

// Status is what the coordinator of a room knows about all sites. Its InForce is nil: every process computes it from
// the plan.
type Status struct {
	anteroom.Status
	Epoch uint64              `json:"epoch"` // of this coordinator; 0 if the room is unused and has none
	Pool  [2]int64            `json:"pool"`  // seats and rate slots that no site holds; negative after a limit was lowered
	Sites []engine.SiteStatus `json:"sites"` // sites with an account, in order of appearance
}

// SiteSummary is a site as the coordinators see it, summed over the rooms that it serves.
type SiteSummary struct {
	Name    string        `json:"name"`
	Rooms   int           `json:"rooms"`
	Heard   time.Duration `json:"heard"` // the longest time since the last report of a room
	Trip    time.Duration `json:"trip"`  // the shortest recent round trip; 0 while unknown
	Granted uint64        `json:"granted"`
	Used    uint64        `json:"used"` // seats in use or reserved for visitors who were called
	Idle    uint64        `json:"idle"` // free permits there
	Silent  int           `json:"silent"`
}

// ask answers an operator's request.
func (s *shard) ask(m cluster.Message) {
	if m.Reply == nil {
		return
	}
	select {
	case s.host.asked <- struct{}{}:
	// Refusing is better than queueing: the asker times out after seconds, and admissions come before figures.
	default:
		s.answer(m, reply{Error: failureOf(anteroom.Errorf(anteroom.Unavailable, "too many requests right now: try again in a few seconds"))})
		return
	}
	// An answer may wait for the store, and the subscription has to go on delivering reports meanwhile.
	go func() {
		defer func() { <-s.host.asked }()
		s.answer(m, s.answerTo(m.Data))
	}()
}

func (s *shard) answer(m cluster.Message, r reply) {
	data, err := json.Marshal(r)
	if err == nil && len(data) > cluster.MaxMessage {
		data, err = json.Marshal(reply{Error: failureOf(errors.New("the answer is too large"))})
	}
	if err == nil {
		err = m.Reply(data)
	}
	if err != nil {
		s.complain("a request cannot be answered", "error", err)
	}
}

func (s *shard) answerTo(data []byte) (out reply) {
	var q request
	if len(data) > maxRequest || json.Unmarshal(data, &q) != nil {
		s.undecodable(errors.New("not a request"))
		return reply{Error: failureOf(anteroom.Errorf(anteroom.Invalid, "this is not a request; it may come from another version"))}
	}
	switch q.Op {
	case opSites:
		return reply{Sites: s.sites()}
	case opTime:
		if !s.synced.Load() {
			return reply{Error: failureOf(errElected())}
		}
		return reply{Time: s.now()}
	case opForget:
		forgot, err := s.forget(q.Site)
		if err != nil {
			return reply{Error: failureOf(err)}
		}
		return reply{Forgot: &forgot}
	}
	if _, ok := s.host.cfg.Plan(q.Room); !ok || cluster.ShardOf(string(q.Room)) != s.number {
		return reply{Error: failureOf(anteroom.Errorf(anteroom.NotFound, "there is no room with the id %.40q", q.Room))}
	}
	var err error
	switch q.Op {
	case opStatus:
		out.Status, err = s.status(q.Room)
	case opAdmit:
		out.Given, err = s.admitNow(q.Room, q.N)
	default:
		err = anteroom.Errorf(anteroom.Invalid, "unknown request %.20q; it may come from another version", q.Op)
	}
	if err != nil {
		out = reply{Error: failureOf(err)}
	}
	return out
}

// live returns the room if it has a coordinator, nil if the room is unused, and an error while that is not known.
func (s *shard) live(id anteroom.RoomID) (*room, error) {
	r := s.room(id)
	if r == nil {
		// A shard that has just begun may not have heard from the sites yet; only later does silence mean that the room is
		// unused.
		if s.host.cfg.Now().Sub(s.begun) < engine.GuessAfter {
			return nil, errElected()
		}
		return nil, nil
	}
	return r, nil
}

// errElected returns a new error each time, because the kind of an error is found by its type.
func errElected() error {
	return anteroom.Errorf(anteroom.Unavailable, "the coordinator of this room is being elected: try again in a few seconds")
}

func (s *shard) status(id anteroom.RoomID) (*Status, error) {
	r, err := s.live(id)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return &Status{Status: s.unused(id)}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine == nil {
		return nil, errElected()
	}
	now := r.follow()
	st := &Status{Status: r.machine.Status(now), Epoch: r.machine.Epoch(), Pool: r.machine.Numbers().Pool, Sites: r.machine.Sites(now)}
	st.Room = id
	r.drain()
	return st, nil
}

// admitNow calls visitors. When the reserved units are used up, it reserves more and tries again.
func (s *shard) admitNow(id anteroom.RoomID, n int) (given int, err error) {
	if n < 1 || n > anteroom.MaxUsers {
		return 0, anteroom.Errorf(anteroom.Invalid, "%d visitors cannot be admitted: give a number from 1 to %d", n, anteroom.MaxUsers)
	}
	r, err := s.live(id)
	if r == nil || err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, admitFor)
	defer cancel()
	defer s.flush()
	// Two rounds: the first spends what is reserved, the second what the store has just allowed.
	for try := 0; try < 2 && given < n; try++ {
		r.mu.Lock()
		if r.machine == nil {
			r.mu.Unlock()
			if given > 0 {
				return given, nil
			}
			return 0, errElected()
		}
		given += r.machine.AdmitNow(r.follow(), n-given)
		again := r.machine.MustStore()
		r.drain()
		r.mu.Unlock()
		if !again || r.store(ctx) != nil {
			break
		}
	}
	return given, nil
}

// sites sums up what the shard's coordinators know about sites.
func (s *shard) sites() []SiteSummary {
	sums := map[string]*SiteSummary{}
	for _, r := range s.all() {
		r.mu.Lock()
		var sites []engine.SiteStatus
		if r.machine != nil {
			sites = r.machine.Sites(s.now())
		}
		r.mu.Unlock()
		for _, one := range sites {
			sum := SiteSummary{Name: one.Key.Name, Granted: one.Granted[engine.Seat] - one.Returned[engine.Seat], Used: one.Used[engine.Seat], Idle: one.Idle}
			if !one.Lost { // else its successor speaks for the room
				sum.Rooms, sum.Heard, sum.Trip, sum.Silent = 1, one.Age, one.Trip, silent(one)
			}
			add(sums, sum)
		}
	}
	return summed(sums)
}

func silent(one engine.SiteStatus) int {
	if one.Answers || one.Granted == one.Returned {
		return 0
	}
	return 1
}

func add(sums map[string]*SiteSummary, one SiteSummary) {
	sum := sums[one.Name]
	if sum == nil {
		sums[one.Name] = &one
		return
	}
	sum.Rooms += one.Rooms
	sum.Heard = max(sum.Heard, one.Heard)
	if sum.Trip == 0 || one.Trip != 0 && one.Trip < sum.Trip {
		sum.Trip = one.Trip
	}
	sum.Granted += one.Granted
	sum.Used += one.Used
	sum.Idle += one.Idle
	sum.Silent += one.Silent
}

func summed(sums map[string]*SiteSummary) []SiteSummary {
	out := make([]SiteSummary, 0, len(sums))
	for _, sum := range sums {
		out = append(out, *sum)
	}
	slices.SortFunc(out, func(a, b SiteSummary) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	return out
}
