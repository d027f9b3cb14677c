package manage

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/ticket/invite"
)

// carried answers with what a room has carried at most.
type carried struct{ active, perMinute int64 }

func (c carried) Query(_ context.Context, q analytics.Query) (answer analytics.Answer, err error) {
	row := analytics.Row{Room: q.Rooms[0]}
	row.Stats[analytics.ActiveUsers].Record(c.active)
	row.Stats[analytics.NewUsers].Record(c.perMinute)
	return analytics.Answer{Rows: []analytics.Row{row}}, nil
}

// delivered is the sending side of webhooks, of which these are the deliveries.
type delivered struct {
	Webhooks
	all []anteroom.Delivery
	err error
}

func (d *delivered) Key() [32]byte         { return [32]byte{1} }
func (d *delivered) CheckURL(string) error { return nil }
func (d *delivered) Deliveries(context.Context, anteroom.WebhookID) ([]anteroom.Delivery, error) {
	return d.all, d.err
}

// sale is a manager with a room, an event tomorrow and everything that it needs, which tests take away.
type sale struct {
	t       *testing.T
	m       *Manager
	now     time.Time
	zone    anteroom.ZoneID
	room    anteroom.Room
	event   anteroom.Event
	hook    anteroom.WebhookID
	machine Machine
	sent    *delivered
	ends    time.Time // of the certificate
	renewed bool
	carried *carried
	found   []ClusterFinding
	code    invite.Hash
}

func newSale(t *testing.T) *sale {
	t.Helper()
	s := &sale{t: t, now: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), sent: &delivered{all: []anteroom.Delivery{{State: anteroom.DeliveryDelivered}}}, carried: &carried{active: 300, perMinute: 200}}
	s.ends = s.now.AddDate(0, 2, 0)
	s.machine = Machine{Challenge: true, Clock: ClockSynced, TLS: true, Certificate: func(string) (time.Time, bool) { return s.ends, s.renewed }}
	s.m = open(t, Config{Now: func() time.Time { return s.now }, Webhooks: s.sent, Machine: func() Machine { return s.machine }, Analytics: reading{s},
		Cluster: func(context.Context) (ClusterStatus, error) { return ClusterStatus{Findings: s.found}, nil }})
	zone := must[anteroom.Zone](t)(s.m.CreateZone(t.Context(), root, "example.com"))
	s.zone = zone.ID
	r := shop("sale")
	r.SiteName, r.TurnstileAction = "Example", anteroom.InfiniteQueue
	s.room = must[anteroom.Room](t)(s.m.CreateRoom(t.Context(), root, s.zone, r))
	s.event = must[anteroom.Event](t)(s.m.CreateEvent(t.Context(), root, s.zone, s.room.ID, anteroom.Event{Name: "drop", Start: "2026-11-27T10:00:00Z", End: "2026-11-27T12:00:00Z"}))
	hook, _, err := s.m.CreateWebhook(t.Context(), root, anteroom.Webhook{Name: "ops", URL: "https://hooks.example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	s.hook = hook.ID
	return s
}

// reading is the analytics of a sale.
type reading struct{ s *sale }

func (r reading) Query(ctx context.Context, q analytics.Query) (analytics.Answer, error) {
	if r.s.carried == nil {
		return analytics.Answer{}, errors.New("the file is gone")
	}
	return r.s.carried.Query(ctx, q)
}

func (s *sale) setRoom(fn func(*anteroom.Room)) {
	s.t.Helper()
	must[anteroom.Room](s.t)(s.m.ChangeRoom(s.t.Context(), root, s.zone, s.room.ID, func(r *anteroom.Room) error { fn(r); return nil }))
}

func (s *sale) setEvent(fn func(*anteroom.Event)) {
	s.t.Helper()
	must[anteroom.Event](s.t)(s.m.ChangeEvent(s.t.Context(), root, s.zone, s.room.ID, s.event.ID, func(e *anteroom.Event) error { fn(e); return nil }))
}

func (s *sale) setControls(fn func(*anteroom.Controls)) {
	s.t.Helper()
	must[anteroom.Controls](s.t)(s.m.ChangeControls(s.t.Context(), root, s.zone, s.room.ID, func(c *anteroom.Controls) error { fn(c); return nil }))
}

func (s *sale) setHook(fn func(*anteroom.Webhook)) {
	s.t.Helper()
	must[ShownWebhook](s.t)(s.m.ChangeWebhook(s.t.Context(), root, s.hook, func(w *anteroom.Webhook) error { fn(w); return nil }))
}

func (s *sale) inviteOnly() { s.setEvent(func(e *anteroom.Event) { e.InviteOnly = new(true) }) }

// invite makes codes, of which the first is kept.
func (s *sale) invite(spec InviteSpec) {
	s.t.Helper()
	_, codes, err := s.m.CreateInvites(s.t.Context(), root, s.zone, s.room.ID, spec)
	if err != nil {
		s.t.Fatal(err)
	}
	s.code, _ = invite.Read(codes[0])
}

// use takes uses of the code, each for another visitor.
func (s *sale) use(times int) {
	s.t.Helper()
	for i := range times {
		if _, err := s.m.Redeem(s.t.Context(), s.room.ID, s.event.ID, s.code, anteroom.ID{byte(i + 1)}, AnyCode); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *sale) list(by Caller) Checklist {
	s.t.Helper()
	return must[Checklist](s.t)(s.m.Checklist(s.t.Context(), by, s.zone, s.room.ID, s.event.ID))
}

// Everything that an event needs is there; then one thing at a time is not, and the list says which, where and what to do.
func TestChecklist(t *testing.T) {
	t.Parallel()
	if list := newSale(t).list(root); list.Result != CheckOK || len(list.Checks) != len(checks) || !list.Start.Equal(time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("of an event that has everything: %+v", list)
	}
	for _, c := range []struct {
		check, result, where, what string
		spoil                      func(*sale)
	}{
		{"event", CheckError, "event drop of room example.com/sale: suspended", "is suspended", func(s *sale) { s.setEvent(func(e *anteroom.Event) { e.Suspended = true }) }},
		{"event", CheckError, "room example.com/sale: suspended", "is suspended", func(s *sale) { s.setRoom(func(r *anteroom.Room) { r.Suspended = true }) }},
		{"event", CheckError, "room example.com/sale", "admits no new visitors", func(s *sale) { s.setControls(func(c *anteroom.Controls) { c.Paused = true }) }},
		{"event", CheckError, "room example.com/sale", "admits no new visitors", func(s *sale) { s.setRoom(func(r *anteroom.Room) { r.QueueAll = true }) }},
		{"event", CheckError, "room example.com/sale", "(drain)", func(s *sale) { s.setControls(func(c *anteroom.Controls) { c.Draining = true }) }},
		{"event", CheckError, "room example.com/sale", "sold out", func(s *sale) {
			s.setControls(func(c *anteroom.Controls) { c.Remaining = anteroom.Remaining{Told: true} })
		}},
		{"event", CheckWarning, "room example.com/sale: shadow", "shadow mode", func(s *sale) { s.setRoom(func(r *anteroom.Room) { r.Shadow = true }) }},
		{"event", CheckWarning, "event drop", "is over", func(s *sale) { s.now = s.now.AddDate(0, 0, 7) }},

		{"limits", CheckWarning, "room example.com/sale: total_active_users, new_users_per_minute", "up to 200 new users per minute and 300 active users; the most in the last 90 days was 199 and 300", func(s *sale) { s.carried.perMinute-- }},
		{"limits", CheckWarning, "room example.com/sale", "was 200 and 299", func(s *sale) { s.carried.active-- }},
		{"limits", CheckWarning, "event drop of room example.com/sale: total_active_users", "up to 200 new users per minute and 301", func(s *sale) {
			s.setEvent(func(e *anteroom.Event) { e.TotalActiveUsers, e.NewUsersPerMinute = new(301), new(200) })
		}},
		{"limits", CheckOK, "room", "(protect)", func(s *sale) { s.carried.active = 0; s.setRoom(func(r *anteroom.Room) { r.Protect = true }) }},
		{"limits", CheckUnknown, "room", "keeps no figures", func(s *sale) { s.carried = nil }},
		{"limits", CheckError, "event drop", "admits nobody", func(s *sale) {
			s.setEvent(func(e *anteroom.Event) { e.TotalActiveUsers, e.NewUsersPerMinute = new(5), new(0) })
		}},
		{"limits", CheckNote, "room", "has no limits", func(s *sale) { s.setRoom(func(r *anteroom.Room) { r.QueueingMethod = anteroom.Passthrough }) }},
		{"limits", CheckOK, "room", "reject", func(s *sale) { s.setRoom(func(r *anteroom.Room) { r.QueueingMethod = anteroom.Reject }) }},

		{"invites", CheckError, "event drop of room example.com/sale: invite_only", "there are no invite codes for it", func(s *sale) { s.inviteOnly() }},
		{"invites", CheckError, "room example.com/sale: invite_only", "there are no invite codes for it", func(s *sale) {
			s.setRoom(func(r *anteroom.Room) { r.InviteOnly = true })
		}},
		{"invites", CheckError, "event drop", "there are no invite codes for it", func(s *sale) {
			s.invite(InviteSpec{Count: 5, ExpiresOn: time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)})
			s.inviteOnly()
		}},
		{"invites", CheckError, "event drop", "there are no invite codes for it", func(s *sale) {
			other := must[anteroom.Event](s.t)(s.m.CreateEvent(s.t.Context(), root, s.zone, s.room.ID, anteroom.Event{Name: "later", Start: "2026-12-27T10:00:00Z", End: "2026-12-27T12:00:00Z"}))
			s.invite(InviteSpec{Event: other.ID, Count: 5, ExpiresOn: time.Date(2026, 12, 28, 0, 0, 0, 0, time.UTC)})
			s.inviteOnly()
		}},
		{"invites", CheckWarning, "event drop", "expire on 2026-11-27T11:59:59Z, before it ends", func(s *sale) {
			s.invite(InviteSpec{Event: s.event.ID, Count: 5, ExpiresOn: time.Date(2026, 11, 27, 11, 59, 59, 0, time.UTC)})
			s.inviteOnly()
		}},
		{"invites", CheckOK, "event drop", "there are invite codes for it", func(s *sale) { s.invite(InviteSpec{Count: 1}); s.inviteOnly() }},
		{"invites", CheckOK, "event drop", "there are invite codes for it", func(s *sale) {
			s.invite(InviteSpec{Event: s.event.ID, Count: 1, Uses: 2})
			s.use(1)
			s.inviteOnly()
		}},
		{"invites", CheckError, "event drop", "are used up", func(s *sale) {
			s.invite(InviteSpec{Event: s.event.ID, Count: 1, Uses: 2})
			s.use(2)
			s.inviteOnly()
		}},
		{"invites", CheckWarning, "room example.com/sale: invite_only", "asks nobody for one", func(s *sale) { s.invite(InviteSpec{Event: s.event.ID, Count: 1}) }},
		{"invites", CheckOK, "room", "asks for no invite codes", func(s *sale) { s.invite(InviteSpec{Count: 1}) }},

		{"page", CheckWarning, "room example.com/sale: page_site_name", "names neither", func(s *sale) { s.setRoom(func(r *anteroom.Room) { r.SiteName = "" }) }},
		{"page", CheckOK, "event drop of room example.com/sale: custom_page_html", "custom page", func(s *sale) { s.setEvent(func(e *anteroom.Event) { e.CustomPageHTML = new("<p>hello</p>") }) }},

		{"webhook", CheckWarning, "room example.com/sale", "no webhook is notified", func(s *sale) { s.setHook(func(w *anteroom.Webhook) { w.Events = []string{anteroom.ConfigChanged} }) }},
		{"webhook", CheckWarning, "webhook ops", "disabled", func(s *sale) { s.setHook(func(w *anteroom.Webhook) { w.Disabled = true }) }},
		{"webhook", CheckWarning, "webhook ops", "never been tested", func(s *sale) { s.sent.all = nil }},
		{"webhook", CheckWarning, "webhook ops", "has not arrived", func(s *sale) { s.sent.all[0].State = anteroom.DeliveryFailed }},
		{"webhook", CheckWarning, "webhook ops", "has not arrived", func(s *sale) {
			s.sent.all = append([]anteroom.Delivery{{State: anteroom.DeliveryPending, Attempts: 3}}, s.sent.all...)
		}},
		{"webhook", CheckOK, "webhook ops", "arrived", func(s *sale) {
			s.sent.all = append([]anteroom.Delivery{{State: anteroom.DeliveryPending}}, s.sent.all...)
		}},
		{"webhook", CheckUnknown, "webhook ops", "is not known", func(s *sale) { s.sent.all, s.sent.err = nil, errors.New("gone") }},

		{"challenge", CheckWarning, "configuration: challenge", "no provider", func(s *sale) { s.machine.Challenge = false }},
		{"challenge", CheckWarning, "room example.com/sale: turnstile_mode", "is off", func(s *sale) { s.setRoom(func(r *anteroom.Room) { r.TurnstileMode = anteroom.ChallengeOff }) }},
		{"challenge", CheckNote, "event drop of room example.com/sale: turnstile_action", "admits them", func(s *sale) { s.setEvent(func(e *anteroom.Event) { e.TurnstileAction = new("log") }) }},

		{"clock", CheckWarning, "this node", "nothing keeps the clock", func(s *sale) { s.machine.Clock = ClockUnsynced }},
		{"clock", CheckUnknown, "this node", "not known", func(s *sale) { s.machine.Clock = ClockUnknown }},

		{"certificate", CheckError, "shop.example.com", "no certificate", func(s *sale) { s.ends = time.Time{} }},
		{"certificate", CheckError, "shop.example.com", "before event drop", func(s *sale) { s.ends = time.Date(2026, 11, 27, 11, 59, 59, 0, time.UTC) }},
		{"certificate", CheckOK, "shop.example.com", "2026-11-27T12:00:00Z", func(s *sale) { s.ends = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }},
		{"certificate", CheckError, "shop.example.com", "has not been renewed", func(s *sale) { s.renewed, s.ends = true, s.now.Add(renewalFailing) }},
		{"certificate", CheckUnknown, "shop.example.com", "without TLS", func(s *sale) { s.machine.TLS = false }},

		{"installation", CheckError, "anteroom doctor", "the disk is full (and 1 more)", func(s *sale) {
			s.found = []ClusterFinding{{Severity: CheckWarning, What: "slow"}, {Severity: CheckError, What: "the disk is full", Fix: "free some"}, {Severity: CheckNote, What: "one core"}}
		}},
		{"installation", CheckOK, "anteroom doctor", "fine", func(s *sale) { s.found = []ClusterFinding{{Severity: CheckNote, What: "one core"}} }},
	} {
		s := newSale(t)
		c.spoil(s)
		list := s.list(root)
		for _, got := range list.Checks {
			if got.Check != c.check {
				if got.Result != CheckOK && list.Result != CheckOK && c.check != "event" && c.check != "limits" {
					t.Errorf("%s %q: also %s: %s", c.check, c.what, got.Check, got.What)
				}
				continue
			}
			if got.Result != c.result || !strings.HasPrefix(got.Where, c.where) || !strings.Contains(got.What, c.what) || (got.Result == CheckOK) != (got.Fix == "") {
				t.Errorf("%s %q: %+v", c.check, c.what, got)
			}
		}
		if c.check != "event" && list.Result != c.result {
			t.Errorf("%s %q: the result of the list is %s", c.check, c.what, list.Result)
		}
	}
}

// A repeated event is checked for the time that comes next.
func TestChecklistOfARepeatedEvent(t *testing.T) {
	t.Parallel()
	s := newSale(t)
	s.setEvent(func(e *anteroom.Event) { e.Repeat = anteroom.Repeat{Every: anteroom.EveryWeek} })
	s.now = s.now.AddDate(0, 0, 2)
	if list := s.list(root); list.Number != 1 || list.Start.Day() != 4 || list.Result != CheckOK {
		t.Errorf("%+v", list)
	}
}

// Who may read the room sees its list, and of the rest only what concerns it.
func TestChecklistTellsNoMoreThanTheTokenMay(t *testing.T) {
	t.Parallel()
	s := newSale(t)
	s.found = []ClusterFinding{{Severity: CheckError, What: "10.0.0.7 is gone", Why: "10.0.0.7", Fix: "start 10.0.0.7"}}
	s.sent.all = nil
	reader := Caller{Grants: []Grant{{Zone: s.zone, Room: s.room.ID, Permission: Read}}}
	for _, c := range s.list(reader).Checks {
		if text := c.What + c.Why + c.Fix + c.Where; strings.Contains(text, "10.0.0.7") || strings.Contains(text, "ops") {
			t.Errorf("%+v", c)
		}
		if (c.Check == "installation" || c.Check == "webhook") && c.Result == CheckOK {
			t.Errorf("%+v", c)
		}
	}
	stranger := Caller{Grants: []Grant{{Zone: "other", Permission: Read}}}
	if _, err := s.m.Checklist(t.Context(), stranger, s.zone, s.room.ID, s.event.ID); anteroom.KindOf(err) != anteroom.Denied && anteroom.KindOf(err) != anteroom.NotFound {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := s.m.Checklist(t.Context(), root, s.zone, s.room.ID, "nothing"); anteroom.KindOf(err) != anteroom.NotFound {
		t.Errorf("no event: %v", err)
	}
}

// The doctor goes through the lists of the events that come next, says everything once, and says nothing of later ones.
func TestDoctorGoesThroughTheChecklists(t *testing.T) {
	t.Parallel()
	s := newSale(t)
	s.machine.Clock, s.machine.Challenge = ClockUnsynced, false
	s.found = []ClusterFinding{{Severity: CheckNote, What: "one core"}}
	must[anteroom.Event](t)(s.m.CreateEvent(t.Context(), root, s.zone, s.room.ID, anteroom.Event{Name: "again", Start: "2026-11-28T10:00:00Z", End: "2026-11-28T12:00:00Z"}))
	s.setControls(func(c *anteroom.Controls) { c.Paused = true })
	says := func() (what []string) {
		for _, f := range must[ClusterStatus](t)(s.m.Cluster(t.Context(), root)).Findings {
			what = append(what, f.Severity+" "+f.What)
		}
		return what
	}
	want := "error room example.com/sale admits no new visitors|warning no provider of challenges is configured|warning nothing keeps the clock of this node right|note one core"
	if got := strings.Join(says(), "|"); got != want {
		t.Errorf("the doctor says\n%s, want\n%s", got, want)
	}
	s.now = s.now.AddDate(0, 0, -8)
	if got := strings.Join(says(), "|"); got != "note one core" {
		t.Errorf("eight days before, the doctor says %s", got)
	}
}
