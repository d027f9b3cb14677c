package report

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/manage"
)

// Bounds of a report.
const (
	maxRange  = 400 * 24 * time.Hour // between its moments
	maxEvents = 50                   // occurrences that it names
)

// Query says what a report is about: a room between two moments, or an occurrence of an event.
type Query struct {
	Zone     anteroom.ZoneID
	Room     anteroom.RoomID
	From, To time.Time // ignored with an Event
	// Event is the event of the report, which begins with its prequeue or, without one, with its start.
	Event  anteroom.EventID
	Number int // of the occurrence, from 0
}

// Collect makes a report of what the caller may read. Now is the wall clock. An error of kind Invalid
// holds faults with the paths "from" and "number".
func Collect(ctx context.Context, m *manage.Manager, by manage.Caller, q Query, now time.Time) (*Report, error) {
	room, err := m.Room(by, q.Zone, q.Room)
	if err != nil {
		return nil, err
	}
	f := facts{Made: now.UTC(), Room: room, From: q.From.UTC(), To: q.To.UTC()}
	if q.Event != "" {
		e := eventOf(room, q.Event)
		if e == nil {
			return nil, anteroom.Errorf(anteroom.NotFound, "there is no event %.64q", string(q.Event))
		}
		o, ok := e.Occurrence(q.Number)
		if !ok {
			return nil, fault("number", "is not the number of an occurrence", "0 for the first time that the event happens, 1 for the next")
		}
		f.Event, f.Number, f.From, f.To = e, q.Number, o.From.UTC(), o.End.UTC()
	}
	if !f.From.Before(f.To) || f.To.Sub(f.From) > maxRange {
		return nil, fault("from", "is not before to, or too long before it", fmt.Sprintf("at most %d days", maxRange/(24*time.Hour)))
	}
	if f.From.After(now) {
		return nil, fault("from", "is in the future", "a report is about what has happened")
	}
	if err := f.ask(ctx, m, by, q); err != nil {
		return nil, err
	}
	return makeReport(f), nil
}

func fault(path, problem, fix string) error {
	return anteroom.Faults{{Path: path, Problem: problem, Fix: fix}}.Err()
}

func eventOf(room anteroom.Room, id anteroom.EventID) *anteroom.Event {
	for i := range room.Events {
		if room.Events[i].ID == id {
			return &room.Events[i]
		}
	}
	return nil
}

// ask reads what was recorded, drawn and done. A draw or a log that cannot be read is a note of the
// report; without the analytics there is none.
func (f *facts) ask(ctx context.Context, m *manage.Manager, by manage.Caller, q Query) error {
	recorded := analytics.Query{Rooms: []anteroom.RoomID{q.Room}, From: f.From, To: f.To, Summaries: true}
	var err error
	if f.Rows, err = m.Analytics(ctx, by, recorded); err != nil {
		return err
	}
	recorded.Total, recorded.Histograms, recorded.Details = true, true, true
	total, err := m.Analytics(ctx, by, recorded)
	if err != nil {
		return err
	}
	for i := range total.Rows {
		if f.Total == nil {
			f.Total = &total.Rows[i]
		} else {
			f.Total.Add(&total.Rows[i])
		}
	}
	f.Rows.Incomplete = cmp.Or(f.Rows.Incomplete, total.Incomplete)
	if f.History, err = m.RoomHistory(ctx, by, q.Zone, q.Room, f.From, f.To); err != nil {
		f.Notes = append(f.Notes, unreadChanges+err.Error()+".")
	}
	f.Occurrences, f.MoreEvents = occurrences(f.Room, f.From, f.To)
	for _, o := range f.Occurrences {
		if !o.Event.ShuffleAtStart {
			continue
		}
		sh, err := m.Shuffle(q.Room, o.Event.ID, o.Number)
		if err != nil {
			f.Notes = append(f.Notes, fmt.Sprintf("The shuffle of event %s, number %d, cannot be read: %v.", o.Event.Name, o.Number, err))
			continue
		}
		f.Draws = append(f.Draws, drawFact{o, sh})
	}
	return nil
}

// occurrences returns those of the room's events that are active between two moments, in the order of
// their starts per event, and whether there are more.
func occurrences(room anteroom.Room, from, to time.Time) (found []occurrence, more bool) {
	for i := range room.Events {
		e := &room.Events[i]
		if e.Suspended {
			continue
		}
		for o, ok := e.Next(from); ok && o.From.Before(to); o, ok = e.Occurrence(o.Number + 1) {
			if len(found) == maxEvents {
				return found, true
			}
			found = append(found, occurrence{e, o})
		}
	}
	return found, false
}

// unreadChanges begins the note that stands in for the changes of the audit log; the statement about the order then does not say
// that nobody intervened.
const unreadChanges = "The changes cannot be read: "
