package anteroom

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// WebhookID names a webhook: 32 lower-case hexadecimal digits.
type WebhookID string

// What a webhook can be told.
const (
	// RoomQueueing: somebody has to wait in a room where nobody had to.
	RoomQueueing = "room.queueing"
	// RoomRecovered: the line of which RoomQueueing told has been gone for a while.
	RoomRecovered = "room.recovered"
	// RoomQueueLonger: more than Webhook.LongerThan wait.
	RoomQueueLonger = "room.queue_longer"
	// RoomEventStarting: an event starts in Webhook.MinutesBefore or less.
	RoomEventStarting = "room.event_starting"
	// RoomStuck: there are free slots, somebody waits, and nobody has been let in.
	RoomStuck = "room.stuck"
	// RoomLimitSaturated: one of the limits has been used up for Webhook.SaturatedMinutes.
	RoomLimitSaturated = "room.limit_saturated"
	// ConfigChanged: an operator has changed something.
	ConfigChanged = "config.changed"
	// VisitorCalled: it is the turn of a visitor who is away and asked to be written to. It says what the visitor has entered for that,
	// so that it is sent only where Events names it.
	VisitorCalled = "visitor.called"
	// WebhookTest: an operator wants to see it work. It is sent whatever Events says.
	WebhookTest = "webhook.test"
)

// Happenings are those that a webhook can name.
var happenings = []string{RoomQueueing, RoomRecovered, RoomQueueLonger, RoomEventStarting, RoomStuck, RoomLimitSaturated, ConfigChanged, VisitorCalled}

// Happenings returns what a webhook can name in Events.
func Happenings() []string { return slices.Clone(happenings) }

// Formats of what is sent.
const (
	FormatJSON  = "json"  // ours, with all there is to tell
	FormatSlack = "slack" // {"text": …}, as Slack's incoming webhooks take it
	FormatTeams = "teams" // a message with an Adaptive Card, as the workflows of Microsoft Teams take it
)

var webhookFormats = []string{FormatJSON, FormatSlack, FormatTeams}

// Webhook says whom to tell what.
type Webhook struct {
	ID     WebhookID
	Name   string // 1 to MaxNameLength bytes of text
	URL    string // https, or http where the operator of the process allows it
	Format string // FormatJSON, FormatSlack or FormatTeams
	// Events are those of Happenings that it is told; empty means all but VisitorCalled, also those of later
	// releases.
	Events []string
	// Zone and Room say of which rooms it is told; empty means of all. What belongs to no zone
	// is told only where both are empty.
	Zone ZoneID
	Room RoomID

	LongerThan       int // 1 to MaxUsers waiting
	MinutesBefore    int // 1 to MaxMinutesBefore
	SaturatedMinutes int // 1 to MaxSaturatedMinutes
	Disabled         bool

	CreatedOn, ModifiedOn time.Time
}

// WithDefaults returns the webhook with the defaults in the place of what is empty.
func (w Webhook) WithDefaults() Webhook {
	orElse := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	orElse(&w.LongerThan, DefaultLongerThan)
	orElse(&w.MinutesBefore, DefaultMinutesBefore)
	orElse(&w.SaturatedMinutes, DefaultSaturatedMinutes)
	w.Format = cmp.Or(w.Format, FormatJSON)
	return w
}

// Wants reports whether it is to be told.
func (w Webhook) Wants(happening string) bool {
	return len(w.Events) == 0 && happening != VisitorCalled || slices.Contains(w.Events, happening)
}

// Covers reports whether it is about a room; for what belongs to no room, or to no zone, these
// are empty.
func (w Webhook) Covers(zone ZoneID, room RoomID) bool {
	return (w.Zone == "" || w.Zone == zone) && (w.Room == "" || w.Room == room)
}

// Check returns what is wrong with a webhook that has its defaults. Whether its address may be
// reached is not known before it is dialed.
func (w Webhook) Check() Faults {
	var f Faults
	add := func(path, problem, fix string) { f = append(f, Fault{Path: path, Problem: problem, Fix: fix}) }
	if w.Name == "" || len(w.Name) > MaxNameLength || !printable(w.Name) {
		add("name", fmt.Sprintf("%.80q is not a name", w.Name), fmt.Sprintf("1 to %d bytes of text that say who is notified", MaxNameLength))
	}
	if problem, fix := webhookURL(w.URL); problem != "" {
		add("url", problem, fix)
	}
	if !slices.Contains(webhookFormats, w.Format) {
		add("format", fmt.Sprintf("%.40q is not known", w.Format), "json, slack or teams")
	}
	if len(w.Events) > len(happenings) {
		add("events", fmt.Sprintf("has %d members", len(w.Events)), "each of "+strings.Join(happenings, ", ")+" once, or none for all")
	} else {
		for i, one := range w.Events {
			if at := fmt.Sprintf("events[%d]", i); !slices.Contains(happenings, one) {
				add(at, fmt.Sprintf("%.40q is not known", one), "one of "+strings.Join(happenings, ", "))
			} else if slices.Contains(w.Events[:i], one) {
				add(at, "is there twice", "once is enough")
			}
		}
	}
	if w.Room != "" && w.Zone == "" {
		add("zone", "is missing", "say the zone of the room, too")
	}
	within := func(path string, n, most int) {
		if n < 1 || n > most {
			add(path, fmt.Sprintf("%d is out of range", n), fmt.Sprintf("1 to %d", most))
		}
	}
	within("longer_than", w.LongerThan, MaxUsers)
	within("minutes_before", w.MinutesBefore, MaxMinutesBefore)
	within("saturated_minutes", w.SaturatedMinutes, MaxSaturatedMinutes)
	return f
}

func printable(s string) bool {
	return strings.ToValidUTF8(s, "") == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// webhookURL says what is wrong with an address, without repeating it: it may be a secret.
func webhookURL(text string) (problem, fix string) {
	const like = "like https://hooks.example.com/anteroom"
	if len(text) > MaxWebhookURL {
		return fmt.Sprintf("has %d bytes", len(text)), fmt.Sprintf("at most %d", MaxWebhookURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || text == "" || !printable(text) || strings.Contains(text, " "):
		return "is not a URL", like
	case u.Scheme != "https" && u.Scheme != "http":
		return "does not begin with https://", like
	case u.Hostname() == "" || u.Opaque != "":
		return "names no host", like
	case u.User != nil:
		return "has a user or password", "leave it out: the receiver checks the signature"
	case u.Fragment != "" || strings.Contains(text, "#"):
		return "has a fragment", "leave out what begins with #: it is not sent"
	case strings.Contains(u.Hostname(), "%"):
		return "names a network interface", like
	}
	return "", ""
}

// States of a [Delivery].
const (
	DeliveryPending   = "pending"   // to be sent, or again
	DeliveryDelivered = "delivered" // the receiver took it
	DeliveryFailed    = "failed"    // it was given up
)

// Delivery is one message to one webhook.
type Delivery struct {
	ID        string    `json:"id"` // the same at every attempt
	Type      string    `json:"type"`
	Text      string    `json:"text"`
	CreatedOn time.Time `json:"created_on"`
	State     string    `json:"state"`
	Attempts  int       `json:"attempts"`
	Status    int       `json:"status,omitempty"`       // of the last answer; 0 when there was none
	Error     string    `json:"error,omitempty"`        // why the last attempt failed
	LastOn    time.Time `json:"last_on,omitzero"`       // of the last attempt
	NextOn    time.Time `json:"next_on,omitzero"`       // of the next one, while pending
	Millis    int64     `json:"milliseconds,omitempty"` // that the last attempt took
}
