package node

// What operators do with rooms of a cluster: they may ask any node, and the sites and the coordinator answer.

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/engine"
)

const (
	// askWait bounds how long to wait for a site or a coordinator.
	askWait = 2 * time.Second
	// maxVia bounds how many questions for a shard the hub passes on at the same time.
	maxVia = 32
)

// question is a request to the site role of a shard, as JSON.
type question struct {
	Op   string          `json:"op"` // find, revoke, revoked, state
	Room anteroom.RoomID `json:"room,omitempty"`
	ID   string          `json:"id,omitempty"`   // in hexadecimal digits; for find, the beginning of one
	Site string          `json:"site,omitempty"` // for the hub: which site to ask
}

// reply is the answer of a site role.
type reply struct {
	Error    string           `json:"error,omitempty"`
	Visitors []engine.Visitor `json:"visitors,omitempty"`
	Done     bool             `json:"done,omitempty"`    // revoke: there was such a session
	Revoked  []byte           `json:"revoked,omitempty"` // ids, one behind the other
	More     bool             `json:"more,omitempty"`    // revoked: these are not all
	State    *ShardStatus     `json:"state,omitempty"`
}

// ask asks the role of a shard in a site.
func (x *member) ask(ctx context.Context, site string, shard int, q question) (a reply, err error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	var answer []byte
	if site == x.cfg.Site { // works while this site is cut off from the others
		answer, err = x.link.Site().Request(ctx, askSiteSubject(shard), raw)
	} else {
		answer, err = x.link.Request(ctx, askThatSite(site, shard), raw)
	}
	if errors.Is(err, cluster.ErrNobody) && site != x.cfg.Site && !x.cfg.Hub {
		// Sites other than the hub do not hear each other, so the hub passes the question on.
		q.Site = site
		if raw, err = json.Marshal(q); err == nil {
			answer, err = x.link.Request(ctx, askViaHub(shard), raw)
		}
	}
	if err == nil {
		err = json.Unmarshal(answer, &a)
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return a, err
}

// askedVia passes a question on to the site that it names. It runs at the hub, in the goroutine of the subscription.
func (s *siteShard) askedVia(m cluster.Message) {
	if m.Reply == nil {
		return
	}
	answer := func(a reply) {
		if raw, err := json.Marshal(a); err != nil || m.Reply(raw) != nil {
			s.member.unsent.Add(1)
		}
	}
	var q question
	if err := json.Unmarshal(m.Data, &q); err != nil {
		answer(reply{Error: "the request cannot be read"})
		return
	}
	if !siteName(q.Site) {
		answer(reply{Error: fmt.Sprintf("%q is not the name of a site", q.Site)})
		return
	}
	// Each question may take seconds. Beyond the bound, refusing is kinder than a long wait.
	select {
	case s.passing <- struct{}{}:
	default:
		answer(reply{Error: "the hub is passing on too many requests; try again"})
		return
	}
	// The subscription has to go on with the questions for other sites.
	go func() {
		defer func() { <-s.passing }()
		site := q.Site
		q.Site = ""
		a, err := s.member.ask(context.Background(), site, s.number, q)
		if err != nil {
			a = reply{Error: fmt.Sprintf("site %s does not answer the hub: %v", site, err)}
		}
		answer(a)
	}()
}

// askAll asks the role of a shard in every site at the same time. unheard names the sites that did not answer.
func (x *member) askAll(ctx context.Context, shard int, q question) (answers []reply, unheard []string) {
	listing, cancel := context.WithTimeout(ctx, askWait)
	sites, err := x.siteNames(listing)
	cancel()
	if err != nil {
		unheard = append(unheard, "the other sites, whose names cannot be read")
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	for _, site := range sites {
		work.Go(func() {
			a, err := x.ask(ctx, site, shard, q)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unheard = append(unheard, site)
				return
			}
			answers = append(answers, a)
		})
	}
	work.Wait()
	slices.Sort(unheard)
	return answers, unheard
}

func unheardError(what string, unheard []string) error {
	return anteroom.Errorf(anteroom.Unavailable, "%s; these sites did not answer: %s (try again, or run anteroom cluster status)", what, strings.Join(unheard, ", "))
}

// shuffling is shuffles for callers without the lock.
func (r *Room) shuffling() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow()
	return r.shuffles()
}

// asked answers a question. It runs in the goroutine of the subscription.
func (s *siteShard) asked(m cluster.Message) {
	if m.Reply == nil {
		return
	}
	var q question
	var a reply
	if err := json.Unmarshal(m.Data, &q); err != nil {
		a.Error = "the request cannot be read"
	} else {
		a = s.answer(&q)
	}
	raw, err := json.Marshal(a)
	if err != nil || m.Reply(raw) != nil {
		s.member.unsent.Add(1)
	}
}

func (s *siteShard) answer(q *question) (a reply) {
	switch q.Op {
	case "state":
		state := s.status()
		a.State = &state
		return a
	case "revoked":
		return s.revoked(q.Room)
	}
	id, err := hex.DecodeString(q.ID)
	if err != nil || len(id) == 0 || len(id) > len(anteroom.ID{}) {
		return reply{Error: fmt.Sprintf("%q is not the beginning of an id", q.ID)}
	}
	switch q.Op {
	case "find":
		a.Visitors = s.find(q.Room, id)
	case "revoke":
		a.Done = len(id) == len(anteroom.ID{}) && s.revoke(q.Room, anteroom.ID(id))
	default:
		a.Error = fmt.Sprintf("unknown request %q", q.Op)
	}
	return a
}

// find looks for tickets by the beginning of their id.
func (s *siteShard) find(room anteroom.RoomID, prefix []byte) (found []engine.Visitor) {
	// In portions, with the lock released in between: a queue may have millions of tickets, and admissions wait for the
	// lock.
	ids, _ := matching(prefix, func(at engine.Place) (some []anteroom.ID, next engine.Place, more bool, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r := s.rooms[room]; r != nil {
			some, next, more = r.site.Search(prefix, at)
		}
		return some, next, more, nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	if r == nil {
		return nil
	}
	now := s.clock.now()
	for _, id := range ids {
		if v, ok := r.site.Visitor(now, id); ok {
			found = append(found, v)
		}
	}
	return found
}

// revoke ends a session.
func (s *siteShard) revoke(room anteroom.RoomID, id anteroom.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[room]
	if r == nil || s.over {
		return false
	}
	now := s.clock.now()
	ok := r.site.Revoke(now, id)
	s.settle(r, now)
	s.ship()
	return ok
}

// revoked lists the revoked sessions of a room whose passes may be valid still.
func (s *siteShard) revoked(room anteroom.RoomID) (a reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return reply{Error: "another process is taking over"}
	}
	if r := s.rooms[room]; r != nil {
		ids, complete := r.site.Revoked()
		for _, id := range ids {
			a.Revoked = append(a.Revoked, id[:]...)
		}
		a.More = !complete
	}
	return a
}
