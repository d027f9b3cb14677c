package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	mathrand "math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
	"github.com/anteroom/anteroom/gateway/push"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage/webhook"
	"github.com/anteroom/anteroom/node"
	"github.com/anteroom/anteroom/ticket"
)

const (
	pushesAtOnce  = 64 // attempts under way
	pushesPerHost = 16 // of these, to one host: a push service gets as many, and a server that never answers holds no more
	// pushTime bounds an attempt: an endpoint is a visitor's choice and may never answer.
	pushTime = 3 * time.Second
	// pushAgain is after how long a visitor's place is looked for again.
	pushAgain = 5 * time.Second
	// pushLook is how long a page that the visitor looks at has to enter before its browser is told.
	pushLook = 2 * time.Second
	// pushSlack is by how much less is promised than the place is kept for.
	pushSlack = 10 * time.Second
	// pushPause is how long after a failure a push service is asked again, doubled each time up to the other.
	pushPause, pushLongPause = 2 * time.Second, time.Minute
)

// pushes tells visitors by web push that it is their turn. The process that sends webhooks does: it holds a stream for each, as a page in
// the background does, so that the place is kept, and no seat.
type pushes struct {
	s     *Server
	book  *push.Book
	key   atomic.Pointer[push.Key]
	guard webhook.Guard
	slots pushSlots
	sent  [pushResults]atomic.Uint64
	look  time.Duration
}

// What came of what visitors were to be told by web push; index of pushes.sent.
const (
	pushSent   = iota // the push service has it
	pushGone          // the browser has ended the subscription
	pushFailed        // the push service did not take it before the turn was over
	pushResults
)

var pushWords = [pushResults]string{"sent", "gone", "failed"}

func (s *Server) newPushes(p prepared) *pushes {
	x := &pushes{s: s, book: push.NewBook(s.link), guard: webhook.Guard{Allow: func() []netip.Prefix { return s.opts.PushNetworks }}, slots: pushSlots{hosts: map[string]int{}}, look: pushLook}
	if s.opts.webhookLook > 0 {
		x.look = s.opts.webhookLook
	}
	x.use(p)
	return x
}

// CheckURL returns what is wrong with an endpoint, as far as that is known without a lookup. A visitor chose it, so that
// webhooks.allow_networks, by which operators may send inside, does not count, and is not mentioned.
func (x *pushes) CheckURL(url string) error {
	switch err := x.guard.CheckURL(url); {
	case errors.Is(err, webhook.ErrRefused):
		return errors.New("is not public")
	case err != nil:
		return errors.New("does not begin with https://")
	}
	return nil
}

// use puts a configuration in force.
func (x *pushes) use(p prepared) { x.key.Store(push.NewKey(p.ring.Fixed(ticket.PurposePush))) }

// send tells whoever is to be told, until ctx ends: browsers by itself, and webhooks by their sender.
func (x *pushes) send(ctx context.Context, sender *webhook.Sender) {
	var following sync.WaitGroup
	stops := map[string]context.CancelFunc{}
	x.book.Tell(func(key string, e *push.Entry) {
		if stop := stops[key]; stop != nil {
			stop()
			delete(stops, key)
		}
		if e == nil || ctx.Err() != nil {
			return
		}
		one, stop := context.WithCancel(ctx)
		stops[key] = stop
		following.Go(func() {
			defer stop()
			x.follow(one, e, sender)
		})
	})
	<-ctx.Done()
	x.book.Tell(nil)
	following.Wait()
}

// What has become of a visitor who is to be told.
const (
	pushWaits = iota // or nobody knows
	pushTurn
	pushOver   // nothing is left to tell
	pushRenews // the visitor checks in
)

// follow waits for the turn of a visitor and tells the visitor's browser.
func (x *pushes) follow(ctx context.Context, e *push.Entry, sender *webhook.Sender) {
	walltime.Sleep(ctx, mathrand.N(time.Second)) // after a start there may be thousands
	own := *e                                    // whose ticket changes
	for ctx.Err() == nil {
		switch x.await(ctx, &own) {
		case pushTurn:
			x.call(ctx, e, sender)
			return
		case pushOver:
			x.drop(ctx, e)
			return
		case pushRenews:
			continue
		}
		walltime.Sleep(ctx, pushAgain+mathrand.N(pushAgain))
	}
}

// drop ends a subscription. Where the store does not answer, it is found to be over after the next start.
func (x *pushes) drop(ctx context.Context, e *push.Entry) {
	saving, done := context.WithTimeout(ctx, webhookSave)
	defer done()
	if err := x.book.Delete(saving, e.Room, e.Ticket.ID); err != nil && ctx.Err() == nil {
		x.s.log.Warn("an ended web push subscription cannot be removed", "error", err)
	}
}

// await holds a stream for the visitor until something becomes of it.
func (x *pushes) await(ctx context.Context, e *push.Entry) int {
	room := x.s.node.Room(e.Room)
	if !x.offered(e.Room) {
		return pushOver
	} else if room == nil {
		return pushWaits
	}
	if was := x.standing(ctx, room, e); was != pushWaits {
		return was
	}
	v := anteroom.Visit{Ticket: e.Ticket, NoJoin: true, NoClaim: true, NoHold: true}
	rand.Read(v.NewID[:])
	// A look, which changes nothing: who has lost the place would be a new visitor.
	if d := room.Decide(ctx, v); d.Verdict == anteroom.Refuse && d.Reason != anteroom.ReasonReject || d.Verdict == anteroom.Wait && d.Ticket.ID != e.Ticket.ID {
		return pushOver
	}
	if in := room.Settings(); room.Status().Mode == "open" && !in.QueueAll && !in.Prequeueing && !in.OriginDown && in.QueueingMethod != anteroom.Reject {
		return pushTurn // there is no line any more: a stream would begin a session
	}
	v.NoClaim = false
	watching, stop := context.WithCancel(ctx)
	defer stop()
	d, updates := room.Watch(watching, v)
	if was := stateOf(&d); was != pushWaits || updates == nil {
		return was
	}
	// Opening a stream is a check-in, and the journal of a site forgets who has not checked in for long.
	e.Ticket = d.Ticket
	renew := time.NewTimer(room.Settings().PlaceHold / 2)
	defer renew.Stop()
	again := time.NewTicker(pushAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return pushWaits
		case <-again.C:
			if !x.offered(e.Room) {
				return pushOver
			}
		case <-renew.C:
			return pushRenews
		case d := <-updates:
			if d == nil {
				return pushWaits
			}
			if was := stateOf(d); was != pushWaits {
				return was
			}
		}
	}
}

// offered reports whether a room is there and offers web push.
func (x *pushes) offered(id anteroom.RoomID) bool {
	room := x.s.manage.State().Room(id)
	return room != nil && room.WebPush
}

// stateOf is what a decision says of a visitor who is to be told.
func stateOf(d *anteroom.Decision) int {
	switch {
	case d.Reason == anteroom.ReasonSession, d.Reason == anteroom.ReasonLeft, d.Reason == anteroom.ReasonNotJoining:
		return pushOver
	case d.Verdict == anteroom.Admit, d.Verdict == anteroom.Pass:
		return pushTurn
	}
	return pushWaits
}

// standing says whether the visitor has entered. Somebody who is not found may be known again by the ticket.
func (x *pushes) standing(ctx context.Context, room *node.Room, e *push.Entry) int {
	found, err := room.Find(ctx, hex.EncodeToString(e.Ticket.ID[:]))
	if err == nil && len(found) == 1 && (found[0].Standing == engine.Seated || found[0].Standing == engine.Used) {
		return pushOver
	}
	return pushWaits
}

// call tells a browser, or webhooks, that it is a visitor's turn, and tries until the turn is over.
func (x *pushes) call(ctx context.Context, e *push.Entry, sender *webhook.Sender) {
	room := x.s.node.Room(e.Room)
	if room == nil {
		return // and again after the next start
	}
	until := time.Now().Add(room.Settings().PlaceHold - pushSlack)
	log := x.s.log.With("visitor", e.Ticket.ID.Reference(), "service", hostOf(e.Subscription.Endpoint))
	walltime.Sleep(ctx, x.look)
	for pause := pushPause; ctx.Err() == nil; pause = min(2*pause, pushLongPause) {
		answer, after, err := x.attempt(ctx, room, e, until, pause > pushPause, sender)
		switch answer {
		case pushNeedless:
		case push.Sent:
			x.sent[pushSent].Add(1)
		case push.Gone:
			x.sent[pushGone].Add(1)
		case push.Never:
			if ctx.Err() != nil {
				return
			}
			x.sent[pushFailed].Add(1)
			log.Warn("a web push message could not be sent", "error", err)
		case push.Later:
			walltime.Sleep(ctx, min(max(after, pause), time.Until(until)))
			continue
		}
		x.drop(ctx, e)
		return
	}
}

// pushNeedless is an attempt that was not made: the visitor has entered.
const pushNeedless push.Answer = -1

// attempt makes one attempt while the turn is on.
func (x *pushes) attempt(ctx context.Context, room *node.Room, e *push.Entry, until time.Time, retry bool, sender *webhook.Sender) (push.Answer, time.Duration, error) {
	late := errors.New("it was not reached in time")
	if e.Visitor == "" {
		waiting, stop := context.WithDeadline(ctx, until)
		defer stop()
		host := slotHost(e.Subscription.Endpoint)
		if x.slots.take(waiting, host, retry) != nil {
			return push.Never, 0, late
		}
		defer x.slots.give(host)
		ctx, stop = context.WithTimeout(ctx, pushTime)
		defer stop()
	}
	// The wait for a slot may have been long.
	now := time.Now()
	switch {
	case x.standing(ctx, room, e) == pushOver:
		return pushNeedless, 0, nil
	case !now.Before(until):
		return push.Never, 0, late
	case e.Visitor != "":
		answer, err := x.tell(ctx, e, now, until, sender)
		return answer, 0, err
	}
	return x.post(ctx, e, now, until)
}

// tell hands the turn to the queues of the webhooks that hear of it, which try for a day.
func (x *pushes) tell(ctx context.Context, e *push.Entry, now, until time.Time, sender *webhook.Sender) (push.Answer, error) {
	about := roomOf(x.s.manage.State(), e.Room)
	if about == nil {
		return push.Never, errors.New("the room is gone")
	}
	told := webhook.Called(webhook.Visitor{Reference: e.Ticket.ID.Reference(), Contact: e.Visitor, URL: e.URL, Until: until.UTC().Truncate(time.Second)}, now, about, x.s.webhooks.enabled())
	for _, one := range told {
		sender.Tell(ctx, one.Webhook, one.Message)
	}
	if len(told) == 0 {
		return push.Never, errors.New("no webhook of the room hears of visitor.called")
	}
	return push.Sent, nil
}

// hears reports whether a webhook hears of visitors of a room whose turn it is.
func (x *pushes) hears(id anteroom.RoomID) bool {
	about := roomOf(x.s.manage.State(), id)
	return about != nil && slices.ContainsFunc(x.s.webhooks.enabled(), func(h anteroom.Webhook) bool {
		return h.Wants(anteroom.VisitorCalled) && h.Covers(anteroom.ZoneID(about.Zone.ID), id)
	})
}

// post sends to a push service.
func (x *pushes) post(ctx context.Context, e *push.Entry, now, until time.Time) (push.Answer, time.Duration, error) {
	message, err := e.Message(until)
	if err != nil {
		return push.Never, 0, err
	}
	r, err := x.key.Load().Request(ctx, e.Subscription, message, e.Contact, now, until)
	if err != nil {
		return push.Never, 0, err
	}
	r.Header.Set("User-Agent", "Anteroom-Push/"+x.s.opts.Version)
	status, header, err := x.guard.Do(r)
	switch {
	case errors.Is(err, webhook.ErrRefused):
		return push.Never, 0, errors.New("the address is not public")
	case err != nil:
		return push.Later, 0, err
	}
	answer, after := push.AnswerOf(status, header)
	return answer, after, anteroom.Errorf(anteroom.Unavailable, "the push service answered %d", status)
}

// hostOf is all of an endpoint that logs may say.
func hostOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}
