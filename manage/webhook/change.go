package webhook

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Changed returns which webhooks get a notification about a record of the audit log, which concerns a zone and a room,
// or neither.
func Changed(c Change, at time.Time, zone anteroom.ZoneID, room anteroom.RoomID, about *Room, hooks []anteroom.Webhook) (told []Told) {
	if c.Fields == nil {
		c.Fields = []Field{}
	}
	for _, h := range hooks {
		if h.Wants(anteroom.ConfigChanged) && h.Covers(zone, room) {
			one := c
			told = append(told, Told{h.ID, Message{ID: newID(), Type: anteroom.ConfigChanged, At: at.UTC(), Text: c.text(), Room: about, Change: &one}})
		}
	}
	return told
}

// Called returns which webhooks hear that it is a visitor's turn.
func Called(v Visitor, at time.Time, about *Room, hooks []anteroom.Webhook) (told []Told) {
	for _, h := range hooks {
		if h.Wants(anteroom.VisitorCalled) && h.Covers(anteroom.ZoneID(about.Zone.ID), anteroom.RoomID(about.ID)) {
			text := fmt.Sprintf("%s (%s): it is the turn of visitor %s, until %s", about.Name, about.Zone.Name, v.Reference, v.Until.UTC().Format("15:04 UTC"))
			told = append(told, Told{h.ID, Message{ID: newID(), Type: anteroom.VisitorCalled, At: at.UTC(), Text: text, Room: about, Visitor: &v}})
		}
	}
	return told
}

var pasts = map[string]string{"create": "made", "change": "changed", "delete": "deleted", "rotate": "rotated"}

// text says a change in a sentence.
func (c Change) text() string {
	what, did, _ := strings.Cut(c.Operation, ".")
	name := cmp.Or(c.Name, c.Object)
	text := c.Actor + ": " + c.Operation + " " + name
	if past, ok := pasts[did]; ok {
		text = c.Actor + " " + past + " the " + what + " " + name
	}
	var all []string
	for _, f := range c.Fields[:min(len(c.Fields), shownFields)] {
		all = append(all, fmt.Sprintf("%s %s → %s", f.Field, orNothing(f.Before), orNothing(f.After)))
	}
	if more := len(c.Fields) - len(all) + c.Omitted; more > 0 {
		all = append(all, fmt.Sprintf("%d more", more))
	}
	if text = strings.TrimSpace(text); len(all) > 0 {
		text += ": " + strings.Join(all, "; ")
	}
	return text
}

func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return cut(value, maxValue)
}

// Test is the message that an operator asks for.
func Test(w anteroom.Webhook, at time.Time, by string) Message {
	return Message{ID: newID(), Type: anteroom.WebhookTest, At: at.UTC(), Webhook: Named{string(w.ID), w.Name},
		Text: cut(fmt.Sprintf("This is a test of the webhook %s, sent by %s.", w.Name, by), maxText)}
}
