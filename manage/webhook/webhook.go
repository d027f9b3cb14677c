// Package webhook notifies other systems of what happens in rooms: it detects what is worth a notification, words it as
// JSON, for Slack or for Microsoft Teams, signs it, and retries until the receiver accepts it or a day has passed.
//
// It has three independent parts. A [Detector] is pure: it sees the rooms once per second and returns what has
// happened. A [Sender] has a queue for each webhook and sends from it. A [Guard] makes sure that nothing is sent to a
// forbidden address, whatever a name resolves to. Package server connects them.
package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Message is the content of a delivery. Fields that do not belong to its type are nil.
type Message struct {
	ID      string    `json:"id"`   // the same at every attempt; 32 hexadecimal digits
	Type    string    `json:"type"` // one of anteroom.Happenings, or anteroom.WebhookTest
	At      time.Time `json:"at"`
	Text    string    `json:"text"` // the same for people
	Webhook Named     `json:"webhook"`
	Room    *Room     `json:"room,omitempty"`
	Figures *Figures  `json:"figures,omitempty"`
	Line    *Line     `json:"line,omitempty"`    // of room.recovered
	Event   *Event    `json:"event,omitempty"`   // of room.event_starting
	Limit   *Limit    `json:"limit,omitempty"`   // of room.limit_saturated
	Change  *Change   `json:"change,omitempty"`  // of config.changed
	Visitor *Visitor  `json:"visitor,omitempty"` // of visitor.called
	// LongerThan is the queue length that the webhook asked room.queue_longer to report.
	LongerThan int `json:"longer_than,omitempty"`
}

// Named is something with a name.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Room is the room that a message is about.
type Room struct {
	Named
	Zone Named `json:"zone"`
}

// Figures are a room's numbers at the moment.
type Figures struct {
	Waiting           int  `json:"waiting"`
	ActiveUsers       int  `json:"active_users"`
	TotalActiveUsers  int  `json:"total_active_users"`   // the limit in force
	AdmittedLastMin   int  `json:"admitted_last_minute"` // sessions that began
	NewUsersPerMinute int  `json:"new_users_per_minute"` // the limit in force
	EstimateSeconds   *int `json:"estimate_seconds"`     // for somebody who would join; null while unknown
}

// Line is what a line was that is gone.
type Line struct {
	Seconds int `json:"seconds"` // from the first who had to wait to the last
	Longest int `json:"longest"` // how many were in it at most
}

// Event is an event that is about to start.
type Event struct {
	Named
	Number   int        `json:"number"` // of the occurrence, from 0
	Prequeue *time.Time `json:"prequeue_start_time"`
	Start    time.Time  `json:"event_start_time"`
	End      time.Time  `json:"event_end_time"`
}

// Limit is a limit that is used up.
type Limit struct {
	Name    string `json:"name"` // total_active_users or new_users_per_minute
	Minutes int    `json:"minutes"`
}

// Change is a record of the audit log.
type Change struct {
	Seq       uint64  `json:"seq"`
	Actor     string  `json:"actor"` // name of the token
	Operation string  `json:"operation"`
	Object    string  `json:"object,omitempty"`
	Name      string  `json:"name,omitempty"`
	Fields    []Field `json:"fields"`            // secrets are masked, long values cut
	Omitted   int     `json:"omitted,omitempty"` // fields that Fields leaves out
}

// Visitor is somebody whose turn it is.
type Visitor struct {
	Reference string    `json:"reference"` // see anteroom.ID
	Contact   string    `json:"contact"`   // what the visitor has entered
	URL       string    `json:"url"`       // brings the place along, whoever opens it
	Until     time.Time `json:"until"`     // how long the turn is kept
}

// Field is a field before and after, as JSON; empty means that it was not there.
type Field struct {
	Field  string `json:"field"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Bounds of what one message says.
const (
	maxText     = 400     // bytes
	maxMessage  = 6 << 10 // bytes of a message as JSON: a full queue of them fits into a key of the store
	shownFields = 5       // of a change, in its text
	maxValue    = 60      // bytes of a value, in its text
)

// Body returns the body of a delivery in one of the formats of anteroom.Webhook.
func (m Message) Body(format string) ([]byte, error) {
	switch format {
	case anteroom.FormatJSON:
		return json.Marshal(m)
	case anteroom.FormatSlack:
		return json.Marshal(map[string]string{"text": slackText.Replace(m.Text)})
	case anteroom.FormatTeams:
		// The runs of a RichTextBlock are plain text: nothing in them is read as Markdown.
		return json.Marshal(teamsMessage(m.Text))
	}
	return nil, fmt.Errorf("webhook: unknown format %.40q", format)
}

// slackText escapes what Slack would read as links, mentions and the like.
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func teamsMessage(text string) any {
	type object = map[string]any
	return object{"type": "message", "attachments": []object{{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content": object{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
			"body": []object{{"type": "RichTextBlock", "inlines": []object{{"type": "TextRun", "text": text}}}},
		},
	}}}
}

// bounded shortens a message to what a queue has room for.
func (m Message) bounded() Message {
	m.Text = cut(m.Text, maxText)
	if m.Change == nil {
		return m
	}
	c := *m.Change
	for len(c.Fields) > 0 {
		m.Change = &c
		if b, err := json.Marshal(m); err == nil && len(b) <= maxMessage {
			return m
		}
		c.Omitted += len(c.Fields) - len(c.Fields)/2
		c.Fields = c.Fields[:len(c.Fields)/2]
	}
	c.Object, c.Name, c.Actor = cut(c.Object, 200), cut(c.Name, 200), cut(c.Actor, 200)
	m.Change = &c
	return m
}

// cut shortens a text to a number of bytes, between characters.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
