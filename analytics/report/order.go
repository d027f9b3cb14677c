package report

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
)

// Operations of the log that have to do with the order.
const (
	admitNow = "room.admit_now"
	controls = "room.controls"
)

// order says what can be said of the order in which people were let in.
func (r *Report) order(f facts, total *analytics.Row) {
	o := &r.Order
	o.Overtakes = total.Stats[analytics.Overtakes].Sum
	for _, s := range r.InForce {
		if !slices.Contains(o.Methods, s.Method) {
			o.Methods = append(o.Methods, s.Method)
		}
	}
	for _, h := range f.History.Records {
		for _, c := range h.Changes {
			switch {
			case h.Operation == admitNow && c.Field == "count":
				n, _ := strconv.ParseInt(c.After, 10, 64)
				o.Manual = append(o.Manual, Manual{h.At.UTC(), n, h.Actor})
			case h.Operation == controls && strings.HasSuffix(c.Field, "controls.reset_at"):
				o.Resets++
			}
		}
	}
	say := func(text string, args ...any) { o.Statement = append(o.Statement, fmt.Sprintf(text, args...)) }
	for _, method := range o.Methods {
		say("%s", meaning[method])
	}
	if len(o.Methods) == 0 {
		say("The queueing method is not known.")
	}
	fifo := slices.Equal(o.Methods, []anteroom.QueueingMethod{anteroom.FIFO})
	switch {
	case o.Overtakes > 0:
		say("%s admitted without a turn while another visitor in touch waited at the same site, %s of all.", people(o.Overtakes, "visitor was", "visitors were"), percent(share(o.Overtakes, max(1, r.Figures.LetIn))))
	case r.Figures.LetIn > 0 && fifo:
		say("No visitor was admitted without a turn while another one in touch waited: no overtaking among %s.", people(r.Figures.LetIn, "visitor", "visitors"))
	case r.Figures.LetIn > 0:
		say("No visitor was admitted without a turn while another one in touch waited.")
	}
	if len(o.Manual) > 0 {
		var n int64
		for _, m := range o.Manual {
			n += m.Count
		}
		say("Operators admitted visitors by hand %s, %d in all: the first ones in the queue, in its order.", people(int64(len(o.Manual)), "time", "times"), n)
	} else if r.logKnown(f) {
		say("No operator admitted visitors by hand.")
	}
	if o.Resets > 0 {
		say("An operator reset the queue %s: visitors who were waiting started over.", people(int64(o.Resets), "time", "times"))
	}
	for _, d := range r.Draws {
		if d.Done {
			say("At the start of event %s, the order of %s was shuffled; anyone can recompute it (see below).", d.Event, people(d.Count, "visitor", "visitors"))
		}
	}
	if total.Stats[analytics.Bypassed].Sum > 0 {
		say("%s the room by a rule, as a verified crawler, or in shadow mode.", people(total.Stats[analytics.Bypassed].Sum, "request bypassed", "requests bypassed"))
	}
}

// logKnown reports whether the log was read from the beginning of the report.
func (r *Report) logKnown(f facts) bool {
	return f.History.Since.IsZero() && !f.History.Omitted && !slices.ContainsFunc(f.Notes, func(n string) bool { return strings.HasPrefix(n, unreadChanges) })
}

// meaning says what a method does.
var meaning = map[anteroom.QueueingMethod]string{
	anteroom.FIFO:        "fifo: visitors were admitted in order of arrival, by the time of their first request.",
	anteroom.Random:      "random: each next visitor was picked at random from all who were waiting.",
	anteroom.Passthrough: "passthrough: every visitor was admitted and only counted.",
	anteroom.Reject:      "reject: no new visitor was admitted.",
}

// drawn is a draw with the command that recomputes it.
func drawn(room anteroom.Room, f drawFact) Draw {
	d := Draw{Event: f.occurrence.Event.Name, Number: f.occurrence.Number, Start: f.Start.UTC(), Commitment: hex.EncodeToString(f.Commitment[:]), Done: f.Done}
	if f.Done {
		at := f.At.Std()
		d.At, d.Seed, d.Entries, d.Count = &at, hex.EncodeToString(f.Seed[:]), hex.EncodeToString(f.Entries[:]), int64(len(f.IDs))
	}
	host := "HOST"
	if len(room.Routes) > 0 && room.Routes[0].Host != "*" {
		host = room.Routes[0].Host
	}
	d.Command = fmt.Sprintf("anteroom verify https://%s/.well-known/anteroom/draw/%s/%s/%d --commitment %s", host, room.ID, f.occurrence.Event.ID, d.Number, d.Commitment)
	return d
}

// text is a JSON value as people read it.
func text(value string) string {
	var s string
	if json.Unmarshal([]byte(value), &s) == nil {
		return s
	}
	return value
}
