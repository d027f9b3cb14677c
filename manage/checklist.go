package manage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// Checklist is what was looked at before an event, and what came of it.
type Checklist struct {
	Number int       `json:"number" min:"0" doc:"Number of the occurrence that was checked, from 0: the one that runs or comes next, or the last."`
	Start  time.Time `json:"event_start_time" doc:"Its start."`
	Result string    `json:"result" enum:"ok,unknown,note,warning,error" doc:"The worst of the results below."`
	Checks []Check   `json:"checks"`
}

// Check is one thing of a [Checklist].
type Check struct {
	Check  string `json:"check" enum:"event,limits,invites,page,webhook,challenge,clock,certificate,installation" doc:"What was checked."`
	Result string `json:"result" enum:"ok,unknown,note,warning,error" doc:"unknown: this process cannot tell. note: worth knowing. warning: the event works, but something is not as it should be. error: visitors will not get what the event promises."`
	Where  string `json:"where" doc:"The event, room, setting, webhook, host or node that it is about."`
	What   string `json:"what" doc:"What was found."`
	Why    string `json:"why" doc:"What follows from it; empty for ok."`
	Fix    string `json:"fix" doc:"What to do; empty for ok."`
}

// What came of a check, from the best to the worst.
const (
	CheckOK      = "ok"
	CheckUnknown = "unknown"
	CheckNote    = "note"
	CheckWarning = "warning"
	CheckError   = "error"
)

var checkResults = []string{CheckOK, CheckUnknown, CheckNote, CheckWarning, CheckError}

// Machine is what a process knows of what events need beside their settings.
type Machine struct {
	// Challenge says that the configuration names a provider of challenges.
	Challenge bool
	// Clock is what the machine says of its clock.
	Clock Clock
	// TLS says that visitors are served over TLS by this process.
	TLS bool
	// Certificate returns when the certificate for a host ends, and whether it is renewed before that without an operator; no
	// time if there is none. "*" asks for the one that ends first.
	Certificate func(host string) (ends time.Time, renewed bool)
}

// Clock says whether something keeps a clock right.
type Clock uint8

const (
	ClockUnknown Clock = iota // the system does not say
	ClockSynced
	ClockUnsynced
)

// Bounds of checklists.
const (
	// testedFor is how far back a room's figures tell what the application has carried.
	testedFor = 90 * 24 * time.Hour
	// renewalFailing is how long before its end a certificate that is renewed by itself should have been.
	renewalFailing = 7 * 24 * time.Hour
	// doctorAhead and doctorEvents bound the events whose checklists the doctor goes through: those that begin soon, the first ones.
	doctorAhead  = 7 * 24 * time.Hour
	doctorEvents = 10
)

// eve is what the checks of an event look at.
type eve struct {
	m     *Manager
	by    Caller
	zone  anteroom.ZoneID
	room  *anteroom.Room
	event *anteroom.Event
	when  anteroom.Occurrence
	over  bool          // the event will not happen again
	on    anteroom.Room // the room with the event's settings
	now   time.Time
	in    Machine
	// installation is what the doctor has found beside checklists.
	installation []ClusterFinding
}

// checks are made for an event, in this order. The doctor reports what they find about the events of the next days.
var checks = []struct {
	name string
	make func(*eve, context.Context) Check
}{
	{"event", (*eve).planned},
	{"limits", (*eve).limits},
	{"invites", (*eve).invites},
	{"page", (*eve).page},
	{"webhook", (*eve).webhook},
	{"challenge", (*eve).challenge},
	{"clock", (*eve).clock},
	{"certificate", (*eve).certificate},
	{"installation", (*eve).rest},
}

// Checklist checks what an event needs, before it begins. It requires the permission to read the room.
func (m *Manager) Checklist(ctx context.Context, by Caller, zone anteroom.ZoneID, room anteroom.RoomID, event anteroom.EventID) (Checklist, error) {
	r, err := m.Room(by, zone, room)
	if err != nil {
		return Checklist{}, err
	}
	i := slices.IndexFunc(r.Events, func(e anteroom.Event) bool { return e.ID == event })
	if i < 0 {
		return Checklist{}, notFound("event", string(event))
	}
	if m.cfg.Cluster == nil || m.cfg.Machine == nil {
		return Checklist{}, anteroom.Errorf(anteroom.Unavailable, "this process serves no rooms")
	}
	st, err := m.cfg.Cluster(ctx)
	if err != nil {
		return Checklist{}, err
	}
	return m.checklist(ctx, by, &r, &r.Events[i], m.cfg.Machine(), st.Findings, len(checks)), nil
}

// checklist makes the first n checks.
func (m *Manager) checklist(ctx context.Context, by Caller, r *anteroom.Room, e *anteroom.Event, in Machine, found []ClusterFinding, n int) Checklist {
	now := m.now()
	when, ok := e.Next(now)
	if !ok {
		when, _ = e.Latest(now)
	}
	x := &eve{m: m, by: by, zone: m.State().zoneOf(r.ID), room: r, event: e, when: when, over: !ok, on: e.Over(*r), now: now, in: in, installation: found}
	out := Checklist{Number: when.Number, Start: when.Start.UTC(), Result: CheckOK}
	for _, one := range checks[:n] {
		c := one.make(x, ctx)
		c.Check = one.name
		out.Checks = append(out.Checks, c)
		if slices.Index(checkResults, c.Result) > slices.Index(checkResults, out.Result) {
			out.Result = c.Result
		}
	}
	return out
}

// soon goes through the checklists of the events that begin in the next days, and returns what the doctor says of them. What the
// installation as a whole lacks, the doctor has said.
func (m *Manager) soon(ctx context.Context, by Caller) (found []ClusterFinding) {
	type coming struct {
		room  *anteroom.Room
		event *anteroom.Event
		from  time.Time
	}
	var all []coming
	now := m.now()
	for r := range m.State().Rooms() {
		for i := range r.Events {
			if o, ok := r.Events[i].Next(now); ok && !r.Events[i].Suspended && !r.Suspended && o.From.Before(now.Add(doctorAhead)) {
				all = append(all, coming{&r.Room, &r.Events[i], o.From})
			}
		}
	}
	if len(all) == 0 || m.cfg.Machine == nil {
		return nil
	}
	slices.SortStableFunc(all, func(a, b coming) int { return a.from.Compare(b.from) })
	in := m.cfg.Machine()
	for _, c := range all[:min(len(all), doctorEvents)] {
		for _, check := range m.checklist(ctx, by, c.room, c.event, in, nil, len(checks)-1).Checks {
			if check.Result != CheckWarning && check.Result != CheckError || slices.ContainsFunc(found, func(f ClusterFinding) bool { return f.What == check.What }) {
				continue
			}
			found = append(found, ClusterFinding{Severity: check.Result, What: check.What, Why: check.Why, Fix: check.Fix})
		}
	}
	return found
}

func (x *eve) roomName() string  { return "room " + x.room.Zone + "/" + x.room.Name }
func (x *eve) eventName() string { return "event " + x.event.Name + " of " + x.roomName() }

// setting names a setting where it is: in the event, if that has one of its own.
func (x *eve) setting(own bool, key string) string {
	if own {
		return x.eventName() + ": " + key
	}
	return x.roomName() + ": " + key
}

func ok(where, what string, args ...any) Check {
	return Check{Result: CheckOK, Where: where, What: fmt.Sprintf(what, args...)}
}

func finding(result, where, what, why, fix string) Check {
	return Check{Result: result, Where: where, What: what, Why: why, Fix: fix}
}

// planned finds what keeps the event from happening as planned.
func (x *eve) planned(context.Context) Check {
	c := x.room.Controls
	switch {
	case x.over:
		return finding(CheckWarning, x.eventName(), x.eventName()+" is over", "It does not happen again.", "Move its start and end, or schedule another event.")
	case x.event.Suspended:
		return finding(CheckError, x.setting(true, "suspended"), x.eventName()+" is suspended", "It has no effect.", "Resume the event.")
	case x.room.Suspended:
		return finding(CheckError, x.setting(false, "suspended"), x.roomName()+" is suspended", "Requests bypass the room, and its events do not run.", "Turn suspended off.")
	case c.Remaining.Told && c.Remaining.Count == 0:
		return finding(CheckError, x.roomName(), x.roomName()+" is closed as sold out", "No new visitor is admitted, even in an event.", "Set how many are left, or remove the number.")
	case c.Paused || x.room.QueueAll:
		return finding(CheckError, x.setting(false, "queue_all"), x.roomName()+" admits no new visitors", "It is paused or queues all visitors, and an event does not end that.", "Resume the room and turn queue_all off, at the latest when the event starts.")
	case c.Draining:
		return finding(CheckError, x.roomName(), "the queue of "+x.roomName()+" is closed (drain)", "New visitors are turned away, even in an event.", "Resume the room.")
	case x.room.Shadow:
		return finding(CheckWarning, x.setting(false, "shadow"), x.roomName()+" is in shadow mode", "Every visitor passes, whatever the limits say.", "Turn shadow off, unless the event is for choosing limits.")
	}
	return ok(x.eventName(), "%s is planned for %s to %s", x.eventName(), x.when.Start.UTC().Format(time.RFC3339), x.when.End.UTC().Format(time.RFC3339))
}

// limits compares what the event admits with what the application has carried behind this room.
func (x *eve) limits(ctx context.Context) Check {
	own := x.event.TotalActiveUsers != nil
	active, perMinute := x.on.TotalActiveUsers, x.on.NewUsersPerMinute
	where := x.setting(own, "total_active_users, new_users_per_minute")
	switch {
	case x.on.QueueingMethod == anteroom.Reject:
		return ok(where, "%s admits no new visitors (queueing_method reject)", x.eventName())
	case x.on.QueueingMethod == anteroom.Passthrough || x.on.LotteryPercent > 0:
		return finding(CheckNote, where, x.eventName()+" has no limits", "It is a lottery, or its queueing_method is passthrough: every visitor reaches the application, at once or by chance.", "Choose queueing_method fifo or random, without lottery_percent, for hard limits.")
	case active == 0 || perMinute == 0:
		return finding(CheckError, where, x.eventName()+" admits nobody", "total_active_users or new_users_per_minute is 0.", "Set both, or queueing_method reject if that is meant.")
	}
	mostActive, mostNew, known := x.carried(ctx)
	switch {
	case x.on.Protect:
		return ok(where, "%s admits up to %d new users per minute and %d active users, and fewer while the application is slow or fails (protect)", x.eventName(), perMinute, active)
	case !known:
		return finding(CheckUnknown, where, "what the application can carry is not known: this process keeps no figures of "+x.roomName(), "There is nothing to compare the limits with.", "Keep analytics (analytics.store), or compare the limits with a load test.")
	case mostActive >= int64(active) && mostNew >= int64(perMinute):
		return ok(where, "the application has carried %d new users in a minute and %d active users; %s admits up to %d and %d", mostNew, mostActive, x.eventName(), perMinute, active)
	}
	return finding(CheckWarning, where,
		fmt.Sprintf("%s admits up to %d new users per minute and %d active users; the most in the last 90 days was %d and %d", x.eventName(), perMinute, active, mostNew, mostActive),
		"The application has not carried this many behind this room yet, and may fail when everybody is watching.",
		"Run a load test through the room, lower the limits, or set protect, which admits fewer visitors while the application fails.")
}

// carried returns the most active users, and the most new users in a minute, that were recorded.
func (x *eve) carried(ctx context.Context) (active, perMinute int64, known bool) {
	answer, err := x.m.Analytics(ctx, x.by, analytics.Query{Rooms: []anteroom.RoomID{x.room.ID}, From: x.now.Add(-testedFor), To: x.now, Total: true})
	if err != nil {
		return 0, 0, false
	}
	for _, row := range answer.Rows {
		active, perMinute = max(active, row.Stats[analytics.ActiveUsers].Max), max(perMinute, row.Stats[analytics.NewUsers].Max)
	}
	return active, perMinute, true
}

// invites looks whether visitors who need a code can have one, and whether codes that were made are asked for.
func (x *eve) invites(ctx context.Context) Check {
	asks := x.on.InviteOnly && x.on.QueueingMethod != anteroom.Passthrough && x.on.QueueingMethod != anteroom.Reject
	where := x.setting(x.event.InviteOnly != nil, "invite_only")
	var batches []Invites // whose codes are good when the event begins
	own, last := false, time.Time{}
	for _, b := range x.m.State().invites {
		i := b.Invites
		if i.Room != x.room.ID || i.Event != "" && i.Event != x.event.ID || !i.ExpiresOn.After(x.when.From) || !i.ExpiresOn.After(x.now) {
			continue
		}
		batches = append(batches, i)
		own = own || i.Event != "" && i.Lane == ""
		if i.ExpiresOn.After(last) {
			last = i.ExpiresOn
		}
	}
	switch {
	case !asks && own:
		return finding(CheckWarning, where, "there are invite codes for "+x.eventName()+", and it asks nobody for one", "Visitors without a code join the queue too.", "Set invite_only for the event, with queueing_method fifo or random.")
	case !asks:
		return ok(where, "%s asks for no invite codes", x.eventName())
	case len(batches) == 0:
		return finding(CheckError, where, x.eventName()+" is for invited visitors only, and there are no invite codes for it", "Nobody can join the queue.", "Make codes: anteroom room invite create, or the page Invites of the room.")
	case last.Before(x.when.End):
		return finding(CheckWarning, where, fmt.Sprintf("the invite codes for %s expire on %s, before it ends", x.eventName(), last.Format(time.RFC3339)), "Visitors who enter a code later are turned away.", "Make codes that last until the event ends.")
	}
	for _, i := range batches {
		switch left, err := x.m.inviteLeft(ctx, i); {
		case err != nil:
			return finding(CheckUnknown, where, "whether invite codes for "+x.eventName()+" are left is not known", "The store of the site does not answer.", "Try again.")
		case left:
			return ok(where, "%s is for invited visitors only, and there are invite codes for it", x.eventName())
		}
	}
	return finding(CheckError, where, "all invite codes for "+x.eventName()+" are used up", "Nobody else can join the queue.", "Make more codes: anteroom room invite create, or the page Invites of the room.")
}

// page looks whether visitors see whose line they stand in.
func (x *eve) page(context.Context) Check {
	switch b := x.on.Branding; {
	case x.on.CustomPageHTML != "":
		return ok(x.setting(x.event.CustomPageHTML != nil, "custom_page_html"), "%s shows a custom page", x.eventName())
	case b.SiteName != "" || b.Title != "" || b.LogoFile != "":
		return ok(x.setting(false, "page_site_name, page_title, page_logo"), "%s shows the built-in page with your name or logo", x.eventName())
	}
	return finding(CheckWarning, x.setting(false, "page_site_name, page_title, page_logo"), "the waiting page of "+x.eventName()+" names neither the site nor what visitors wait for",
		"Visitors who do not recognize the page leave, or take it for a fake.", "Set page_site_name, page_title and page_logo, or a custom page, and look at the preview.")
}

// webhook looks whether somebody is told what happens in the room, and whether that arrives.
func (x *eve) webhook(ctx context.Context) Check {
	const why = "Nobody is notified when a queue forms, when the room is stuck or when the limits are used up."
	var untold, untested, failed, unknown string // the first webhook of each kind
	covered := false
	for _, w := range x.m.State().hooks {
		if !w.Webhook.Covers(x.zone, x.room.ID) || !slices.ContainsFunc(anteroom.Happenings(), func(h string) bool { return h != anteroom.ConfigChanged && w.Webhook.Wants(h) }) {
			continue
		}
		name := "a webhook of an administrator"
		if x.by.oversee(w.Webhook.Zone, w.Webhook.Room) == nil {
			name = "webhook " + w.Webhook.Name
		}
		covered = true
		if w.Webhook.Disabled {
			untold = cmp.Or(untold, name)
			continue
		}
		switch last, known := x.lastDelivery(ctx, w.Webhook.ID); {
		case !known:
			unknown = cmp.Or(unknown, name)
		case last.State == anteroom.DeliveryDelivered:
			return ok(name, "%s is notified about %s, and its last delivery arrived", name, x.roomName())
		case last.State == "":
			untested = cmp.Or(untested, name)
		default:
			failed = cmp.Or(failed, name)
		}
	}
	switch {
	case !covered:
		return finding(CheckWarning, x.roomName(), "no webhook is notified about "+x.roomName(), why, "Create a webhook for the room, and send a test event.")
	case failed != "":
		return finding(CheckWarning, failed, "the last delivery of "+failed+" has not arrived", why, "Look at its deliveries, fix the receiver, and send a test event.")
	case untested != "":
		return finding(CheckWarning, untested, untested+" has never been tested", "Whether its messages arrive is not known.", "Send a test event: anteroom webhook test, or the button in the dashboard.")
	case untold != "":
		return finding(CheckWarning, untold, untold+" is disabled", why, "Enable it, and send a test event.")
	}
	return finding(CheckUnknown, unknown, "what "+unknown+" has delivered is not known", "The store of the site does not answer.", "Try again, and send a test event.")
}

// lastDelivery returns the newest delivery of a webhook that is not under way; an empty one if there is none.
func (x *eve) lastDelivery(ctx context.Context, id anteroom.WebhookID) (anteroom.Delivery, bool) {
	if x.m.cfg.Webhooks == nil {
		return anteroom.Delivery{}, false
	}
	all, err := x.m.cfg.Webhooks.Deliveries(ctx, id)
	for _, d := range all {
		if d.State != anteroom.DeliveryPending || d.Attempts > 1 {
			return d, true
		}
	}
	return anteroom.Delivery{}, err == nil
}

// challenge looks whether bots are kept out of the queue.
func (x *eve) challenge(context.Context) Check {
	mode := x.setting(x.event.TurnstileMode != nil, "turnstile_mode")
	action := x.setting(x.event.TurnstileAction != nil, "turnstile_action")
	const bots = "Bots may take as many places as they like."
	switch {
	case !x.in.Challenge:
		return finding(CheckWarning, "configuration: challenge", "no provider of challenges is configured", bots, "Set challenge in the configuration; provider work needs no other service (docs/bots.md).")
	case x.on.TurnstileMode == anteroom.ChallengeOff:
		return finding(CheckWarning, mode, "the challenge of "+x.eventName()+" is off", bots, "Set turnstile_mode to invisible.")
	case x.on.TurnstileAction != anteroom.InfiniteQueue:
		return finding(CheckNote, action, x.eventName()+" counts visitors who have not solved the challenge, and admits them", bots, "Set turnstile_action to infinite_queue if you expect bots.")
	}
	return ok(mode, "%s admits only visitors who have solved the challenge", x.eventName())
}

// clock looks whether the event begins when clocks say so.
func (x *eve) clock(context.Context) Check {
	const where = "this node"
	switch x.in.Clock {
	case ClockSynced:
		return ok(where, "the clock of this node is in sync")
	case ClockUnsynced:
		return finding(CheckWarning, where, "nothing keeps the clock of this node right", "Events may start and end at another time than visitors expect.", "Let NTP or chrony set the clock of this machine.")
	}
	return finding(CheckUnknown, where, "whether the clock of this node is in sync is not known", "The system does not say.", "Compare it with another clock: events start by this one.")
}

// certificate looks whether browsers trust the site until the event is over.
func (x *eve) certificate(context.Context) Check {
	var hosts []string
	for _, rt := range x.room.Routes {
		if !slices.Contains(hosts, rt.Host) {
			hosts = append(hosts, rt.Host)
		}
	}
	all := strings.Join(hosts, ", ")
	if !x.in.TLS || x.in.Certificate == nil {
		return Check{Result: CheckUnknown, Where: all, What: "the certificate of " + all + " is not known: this process serves visitors without TLS", Why: "The proxy or load balancer in front has the certificate.",
			Fix: "Check it there: it has to be valid until the event ends."}
	}
	first := time.Time{}
	for _, host := range hosts {
		name := "the certificate of " + host
		if host == "*" {
			name = "the certificate that expires first"
		}
		ends, renewed := x.in.Certificate(host)
		const why = "Browsers show visitors a warning instead of the page."
		switch {
		case ends.IsZero():
			return finding(CheckError, host, "there is no certificate for "+host, why, "Add one to tls.certificates, or the host to tls.acme.hosts; the log says why ACME could not get one.")
		case renewed && ends.After(x.now.Add(renewalFailing)):
		case renewed:
			return finding(CheckError, host, fmt.Sprintf("%s expires on %s and has not been renewed", name, ends.UTC().Format(time.RFC3339)), why, "The log says why ACME does not renew it; often ports 80 and 443 do not lead here.")
		case ends.Before(x.when.End):
			return finding(CheckError, host, fmt.Sprintf("%s expires on %s, before %s ends", name, ends.UTC().Format(time.RFC3339), x.eventName()), why, "Replace the files in tls.certificates; Anteroom reads them again at once.")
		}
		if first.IsZero() || ends.Before(first) {
			first = ends
		}
	}
	return ok(all, "the certificates of %s are valid until %s", all, first.UTC().Format(time.RFC3339))
}

// rest says what the doctor has found about the nodes, their stores, origins and edges.
func (x *eve) rest(context.Context) Check {
	const where = "anteroom doctor"
	result, others := CheckOK, -1
	var worst ClusterFinding
	for _, f := range x.installation {
		if f.Severity == CheckNote {
			continue
		}
		others++
		if slices.Index(checkResults, f.Severity) > slices.Index(checkResults, result) {
			result, worst = f.Severity, f
		}
	}
	switch {
	case result == CheckOK:
		return ok(where, "nodes, stores, origins and edges are fine")
	case x.by.need(Read, "", "") != nil:
		return finding(result, where, fmt.Sprintf("the doctor has %d findings", others+1), "Your token may not read about the whole installation.", "Ask someone whose token may to run: anteroom doctor.")
	case others > 0:
		worst.What += fmt.Sprintf(" (and %d more)", others)
	}
	return finding(result, where, worst.What, worst.Why, worst.Fix)
}
