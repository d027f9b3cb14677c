package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster"
	"github.com/anteroom/anteroom/internal/walltime"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/manage/webhook"
	"github.com/anteroom/anteroom/ticket"
)

// Keys of the shared space. docs/state.md lists them.
const (
	webhookLeader = "webhook.leader" // a lease: who sends
	webhookTold   = "webhook.told"   // what was told of the rooms, and of the audit log
	webhookQueue  = "webhook.queue." // with a webhook's id: what it is to be told and was told
	webhookTried  = "webhook.tried." // with a webhook's id: the last test
)

const (
	webhookLease = 10 * time.Second // how long whoever sends is not heard of before another does
	webhookRenew = 3 * time.Second
	webhookLook  = time.Second // between two looks at the rooms
	webhookSweep = time.Minute // between two looks for what deleted webhooks have left
	webhookSave  = 5 * time.Second
	// webhookCatchUp is how many records of the audit log are told that were made while nobody
	// sent.
	webhookCatchUp = webhook.MaxPending
)

// webhooks tells others what happens. One process of a cluster does: the one with the lease.
type webhooks struct {
	s     *Server
	key   atomic.Pointer[[32]byte]
	allow atomic.Pointer[[]netip.Prefix]
	guard webhook.Guard
	tests *webhook.Sender // without queues: every process sends tests
	look  time.Duration
	pace  webhook.Pace
}

func (s *Server) newWebhooks(p prepared) *webhooks {
	h := &webhooks{s: s, look: webhookLook, pace: s.opts.webhookPace}
	if s.opts.webhookLook > 0 {
		h.look = s.opts.webhookLook
	}
	h.guard = webhook.Guard{Allow: func() []netip.Prefix { return *h.allow.Load() }}
	h.tests = webhook.NewSender(h.config())
	h.use(p)
	return h
}

func (h *webhooks) config() webhook.Config {
	return webhook.Config{Store: webhookStore{h.s}, Guard: h.guard, UserAgent: "Anteroom-Webhook/" + h.s.opts.Version, Log: h.s.log}
}

// use puts a configuration in force.
func (h *webhooks) use(p prepared) {
	key := [32]byte(p.ring.Fixed(ticket.PurposeWebhook))
	h.key.Store(&key)
	h.allow.Store(&p.cfg.Webhooks.AllowNetworks)
}

// Key is what secrets are made from.
func (h *webhooks) Key() [32]byte { return *h.key.Load() }

// CheckURL returns what is wrong with an address here.
func (h *webhooks) CheckURL(url string) error { return h.guard.CheckURL(url) }

// enabled are those that are not disabled.
func (h *webhooks) enabled() (out []anteroom.Webhook) {
	for _, one := range h.s.manage.SignedWebhooks() {
		out = append(out, one.Webhook)
	}
	return out
}

// Test sends a test now, and stores the result.
func (h *webhooks) Test(ctx context.Context, w manage.SignedWebhook, by string) (anteroom.Delivery, error) {
	m := webhook.Test(w.Webhook, time.Now().Truncate(time.Millisecond), by)
	out := h.tests.Try(ctx, webhook.Target(w), m)
	d := webhook.DeliveryOf(m, out, time.Now().UTC().Truncate(time.Millisecond))
	data, err := json.Marshal(d)
	if err == nil {
		saving, done := context.WithTimeout(context.WithoutCancel(ctx), webhookSave)
		defer done()
		_, err = h.s.link.Put(saving, webhookTried+string(w.ID), data)
	}
	if err != nil {
		h.s.log.Warn("the test delivery of a webhook cannot be stored", "webhook", string(w.ID), "error", err)
	}
	return d, nil
}

// Deliveries returns the recent deliveries of a webhook, whichever process sent them.
func (h *webhooks) Deliveries(ctx context.Context, id anteroom.WebhookID) ([]anteroom.Delivery, error) {
	queue, err := webhookStore{h.s}.Load(ctx, id)
	if err != nil {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the deliveries of the webhook are not known: %w", err)
	}
	out, err := webhook.Deliveries(queue)
	if err != nil {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the deliveries of the webhook are not known: %w", err)
	}
	e, err := h.s.link.Get(ctx, webhookTried+string(id))
	var test anteroom.Delivery
	if err == nil && json.Unmarshal(e.Value, &test) == nil {
		out = append(out, test)
		slices.SortStableFunc(out, func(a, b anteroom.Delivery) int { return b.CreatedOn.Compare(a.CreatedOn) })
	}
	return out, nil
}

// webhookStore keeps queues in the shared space.
type webhookStore struct{ s *Server }

// Load implements webhook.Store.
func (w webhookStore) Load(ctx context.Context, id anteroom.WebhookID) ([]byte, error) {
	e, err := w.s.link.Get(ctx, webhookQueue+string(id))
	if errors.Is(err, cluster.ErrNotFound) {
		return nil, nil
	}
	return e.Value, err
}

// Save implements webhook.Store.
func (w webhookStore) Save(ctx context.Context, id anteroom.WebhookID, queue []byte) error {
	_, err := w.s.link.Put(ctx, webhookQueue+string(id), queue)
	return err
}

// run sends until ctx ends, with what visitors are told by web push; in a cluster, while this process has the lease.
func (h *webhooks) run(ctx context.Context) {
	if h.s.link.Health().Alone {
		h.sendAll(ctx)
		return
	}
	if h.s.ring.edge {
		return // what was sent is kept in the store, where cores write
	}
	for ctx.Err() == nil {
		if len(h.s.manage.SignedWebhooks()) > 0 || h.s.pushes.book.Len() > 0 {
			if revision, ok := h.take(ctx); ok {
				h.term(ctx, revision)
			}
		}
		walltime.Sleep(ctx, webhookRenew)
	}
}

// take takes the lease if nobody has it.
func (h *webhooks) take(ctx context.Context) (revision uint64, ok bool) {
	ctx, done := context.WithTimeout(ctx, webhookRenew)
	defer done()
	e, err := h.s.link.Get(ctx, webhookLeader)
	if err == nil && len(e.Value) > 0 || err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return 0, false
	}
	revision, err = h.s.link.Lease(ctx, webhookLeader, h.self(), e.Revision, webhookLease)
	return revision, err == nil
}

// self is how this process stands in the lease: no other process writes the same.
func (h *webhooks) self() []byte {
	name, _ := nodeName(h.s.Config())
	return []byte(name + " " + h.s.started.UTC().Format(time.RFC3339Nano))
}

// term sends while the lease is renewed.
func (h *webhooks) term(ctx context.Context, revision uint64) {
	h.s.log.Info("this node now sends webhooks")
	working, stop := context.WithCancel(ctx)
	defer stop()
	var sending sync.WaitGroup
	sending.Go(func() { h.sendAll(working) })
	self := h.self()
	for renewed := time.Now(); ; {
		walltime.Sleep(ctx, webhookRenew)
		if ctx.Err() != nil {
			break
		}
		begun := time.Now()
		renewing, done := context.WithTimeout(ctx, webhookRenew)
		next, err := h.s.link.Lease(renewing, webhookLeader, self, revision, webhookLease)
		if errors.Is(err, cluster.ErrRevision) { // another's, or ours by a renewal whose answer was lost
			if e, got := h.s.link.Get(renewing, webhookLeader); got == nil && string(e.Value) == string(self) && e.Revision != revision {
				next, err = h.s.link.Lease(renewing, webhookLeader, self, e.Revision, webhookLease)
			}
		}
		done()
		if err == nil {
			revision, renewed = next, begun
		} else if errors.Is(err, cluster.ErrRevision) || time.Since(renewed) > webhookLease-2*webhookRenew {
			h.s.log.Warn("this node no longer sends webhooks: it could not renew the lease", "error", err)
			break
		}
	}
	stop()
	sending.Wait()
	releasing, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	h.s.link.Lease(releasing, webhookLeader, []byte{}, revision, cluster.MinLease) // else it ends by itself
}

func (h *webhooks) sendAll(ctx context.Context) {
	var sending sync.WaitGroup
	sender := webhook.NewSender(h.config())
	sending.Go(func() { h.s.pushes.send(ctx, sender) })
	h.send(ctx, sender)
	sending.Wait()
}

// told is what is kept beside the queues.
type told struct {
	Version int             `json:"version"`
	Seq     uint64          `json:"seq"` // of the audit log: told up to here
	Rooms   json.RawMessage `json:"rooms,omitempty"`
}

// sending is one process's turn to send.
type sending struct {
	*webhooks
	sender   *webhook.Sender
	detector *webhook.Detector
	told     told
	swept    time.Time
	failing  bool // in the log, that nothing can be saved
}

// send looks at the rooms and sends, until ctx ends.
func (h *webhooks) send(ctx context.Context, sender *webhook.Sender) {
	w := &sending{webhooks: h, sender: sender}
	if !w.load(ctx) {
		return
	}
	defer w.sender.Wait()
	timer := time.NewTicker(h.look)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			w.once(ctx)
		}
	}
}

// load reads what was told before.
func (w *sending) load(ctx context.Context) bool {
	for {
		e, err := w.s.link.Get(ctx, webhookTold)
		if err == nil {
			err = json.Unmarshal(e.Value, &w.told)
			if err == nil {
				w.detector, err = webhook.NewDetector(w.pace, w.told.Rooms)
			}
			if err != nil {
				w.s.log.Error("past webhook deliveries are not known: some may be sent again", "error", err)
			}
		} else if ctx.Err() != nil || errors.Is(err, cluster.ErrClosed) {
			return false
		} else if !errors.Is(err, cluster.ErrNotFound) {
			walltime.Sleep(ctx, webhookRenew)
			continue
		}
		if w.detector == nil {
			w.detector, _ = webhook.NewDetector(w.pace, nil)
		}
		w.told.Version = 1
		return true
	}
}

// once is one look at everything.
func (w *sending) once(ctx context.Context) {
	state := w.s.manage.State()
	signed := w.s.manage.SignedWebhooks()
	if now := time.Now(); now.Sub(w.swept) >= webhookSweep {
		w.swept = now
		w.sweep(ctx, state)
	}
	targets := make([]webhook.Target, len(signed))
	hooks := make([]anteroom.Webhook, len(signed))
	for i, one := range signed {
		targets[i], hooks[i] = webhook.Target(one), one.Webhook
	}
	w.sender.Use(ctx, targets)
	if len(hooks) == 0 {
		w.told.Seq = state.Seq()
		return
	}
	happened := w.detector.Look(time.Now(), w.views(state, hooks), hooks, func(id anteroom.RoomID) bool { return state.Room(id) != nil })
	changes, seq := w.changes(ctx, state, hooks)
	for _, one := range append(happened, changes...) {
		w.sender.Tell(ctx, one.Webhook, one.Message)
	}
	// The queues first: whoever ends between the two tells something twice rather than not at all.
	rooms, changed := w.detector.Save()
	if changed {
		w.told.Rooms = rooms
	}
	if changed || seq != w.told.Seq {
		w.told.Seq = seq
		w.save(ctx)
	}
}

func (w *sending) save(ctx context.Context) {
	data, err := json.Marshal(w.told)
	if err == nil {
		ctx, done := context.WithTimeout(ctx, webhookSave)
		defer done()
		_, err = w.s.link.Put(ctx, webhookTold, data)
	}
	if err != nil && !w.failing && ctx.Err() == nil {
		w.s.log.Error("webhook deliveries cannot be saved: after a restart some may be sent again", "error", err)
	}
	w.failing = err != nil
}

// viewers is how many rooms are asked for their figures at once: in a cluster each question may
// go to another node.
const viewers = 16

// views returns the rooms that some webhook is about, with their figures.
func (w *sending) views(state *manage.State, hooks []anteroom.Webhook) []webhook.View {
	about := slices.DeleteFunc(slices.Clone(hooks), func(h anteroom.Webhook) bool {
		return len(h.Events) == 1 && h.Events[0] == anteroom.ConfigChanged
	})
	if len(about) == 0 {
		return nil
	}
	zones := map[string]anteroom.Zone{}
	for _, z := range state.Zones() {
		zones[z.Name] = z
	}
	var all []webhook.View
	for r := range state.Rooms() {
		zone := zones[r.Zone]
		if slices.ContainsFunc(about, func(h anteroom.Webhook) bool { return h.Covers(zone.ID, r.ID) }) {
			all = append(all, webhook.View{Zone: zone, Room: &r.Room})
		}
	}
	known := make([]bool, len(all))
	var next atomic.Int64
	var asking sync.WaitGroup
	for range min(viewers, len(all)) {
		asking.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				if r := w.s.node.Room(all[i].Room.ID); r != nil {
					all[i].Status = r.Status()
					// Nobody has answered: what it says then is not how the room is.
					known[i] = w.s.ring == nil || all[i].Status.Mode != "cut"
				}
			}
		})
	}
	asking.Wait()
	i := -1
	return slices.DeleteFunc(all, func(webhook.View) bool { i++; return !known[i] })
}

// noChanges are operations that the audit log has and that change nothing of the configuration.
var noChanges = []string{"account.create", "backup.create", "session.revoke", "room.admit_now", "room.send_crowd", "webhook.test", "bridge.increment", "bridge.reset"}

// changes returns whom to tell of what was changed since the last time, and up to where that is.
func (w *sending) changes(ctx context.Context, state *manage.State, hooks []anteroom.Webhook) (out []webhook.Told, seq uint64) {
	last := state.Seq()
	if w.told.Seq > last { // a backup of an older store, or another store
		w.told.Seq = last
	}
	if last-w.told.Seq > webhookCatchUp { // what was changed before there were webhooks is not told anyway
		w.told.Seq = last - webhookCatchUp
	}
	if last == w.told.Seq || !slices.ContainsFunc(hooks, func(h anteroom.Webhook) bool { return h.Wants(anteroom.ConfigChanged) }) {
		return nil, last
	}
	records, err := w.s.manage.Audit(ctx, manage.Caller{Name: "anteroom", Grants: []manage.Grant{{Permission: manage.Admin}}}, w.told.Seq, webhookCatchUp)
	if err != nil {
		return nil, w.told.Seq // and again with the next look
	}
	seq = w.told.Seq
	for _, r := range records {
		if seq = r.Seq; slices.Contains(noChanges, r.Operation) {
			continue
		}
		// Who is told is whom there was before the change.
		before := slices.DeleteFunc(slices.Clone(hooks), func(h anteroom.Webhook) bool { return !r.At.After(h.CreatedOn) })
		out = append(out, webhook.Changed(changeOf(r), r.At, r.Zone, r.Room, roomOf(state, r.Room), before)...)
	}
	return out, seq
}

func changeOf(r manage.AuditRecord) webhook.Change {
	c := webhook.Change{Seq: r.Seq, Actor: r.Actor, Operation: r.Operation, Object: r.Object, Name: r.Name, Omitted: r.Omitted}
	for _, f := range r.Changes {
		c.Fields = append(c.Fields, webhook.Field{Field: f.Field, Before: f.Before, After: f.After})
	}
	return c
}

// roomOf is the room that a message is about; nil when it is about none, or that is gone.
func roomOf(state *manage.State, id anteroom.RoomID) *webhook.Room {
	room := state.Room(id)
	if room == nil {
		return nil
	}
	zone, _ := state.ZoneNamed(room.Zone)
	return &webhook.Room{Named: webhook.Named{ID: string(room.ID), Name: room.Name}, Zone: webhook.Named{ID: string(zone.ID), Name: zone.Name}}
}

// sweep removes what deleted webhooks have left.
func (w *sending) sweep(ctx context.Context, state *manage.State) {
	for _, prefix := range []string{webhookQueue, webhookTried} {
		keys, err := w.s.link.Keys(ctx, prefix)
		if err != nil {
			return
		}
		for _, key := range keys {
			if !state.HasWebhook(anteroom.WebhookID(strings.TrimPrefix(key, prefix))) {
				w.s.link.Delete(ctx, key) // else the next time
			}
		}
	}
}
