package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/internal/wire"
)

// maxMessage bounds what travels at once, in bytes: under what links carry.
const maxMessage = 900 << 10

// question is a query on its way to a store, or the rest of one.
type question struct {
	analytics.Query
	// Room and Since say where the answer goes on: at rows of that room that begin then or later.
	Room  int       `json:"room,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// head is what comes before the rows of an answer.
type head struct {
	Every      analytics.Resolution `json:"every"`
	AsOf       time.Time            `json:"as_of"`
	Incomplete string               `json:"incomplete,omitempty"`
	Kind       anteroom.Kind        `json:"kind,omitempty"` // of Error
	Error      string               `json:"error,omitempty"`
	More       bool                 `json:"more,omitempty"` // ask on, at Room and Since
	Room       int                  `json:"room,omitempty"`
	Since      time.Time            `json:"since,omitzero"`
}

// together is how many rooms are asked for at once for a message.
const together = 64

// Serve answers what a Remote asks, with one message.
func (s *Store) Serve(ctx context.Context, asked []byte) (answer []byte) {
	var q question
	var h head
	var rows []byte
	err := json.Unmarshal(asked, &q)
	if err == nil && (q.Room < 0 || q.Room > len(q.Rooms)) {
		err = anteroom.Errorf(anteroom.Invalid, "the answer has no room %d", q.Room)
	}
	if err == nil {
		if h.Every, err = s.plan(ctx, q.Query); err == nil {
			q.Every = h.Every
			rows, err = s.serve(ctx, &q, &h)
		}
	}
	if err != nil {
		h, rows = head{Kind: anteroom.KindOf(err), Error: err.Error()}, nil
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil
	}
	return append(wire.AppendSized(nil, b), rows...)
}

// serve returns rows from where the question goes on, and writes into the head where the next goes on.
func (s *Store) serve(ctx context.Context, q *question, h *head) (rows []byte, err error) {
	for i := q.Room; i < len(q.Rooms); {
		some := q.Query
		some.Rooms = q.Rooms[i:min(i+together, len(q.Rooms))]
		if i == q.Room && !q.Since.IsZero() && !q.Total {
			some.Rooms, some.From = some.Rooms[:1], q.Since
		}
		a, err := s.Query(ctx, some)
		if err != nil {
			return nil, err
		}
		h.AsOf, h.Incomplete = a.AsOf, a.Incomplete
		for _, r := range a.Rows {
			at := i + slices.Index(some.Rooms, r.Room)
			before := len(rows)
			rows = appendAnswerRow(rows, at, &r)
			if len(rows) > maxMessage && before > 0 {
				h.More, h.Room, h.Since = true, at, r.Start
				return rows[:before], nil
			}
		}
		i += len(some.Rooms)
	}
	return rows, nil
}

// appendAnswerRow appends the room's place in the question, its time, and the row with its length.
func appendAnswerRow(b []byte, room int, r *analytics.Row) []byte {
	b = binary.AppendUvarint(b, uint64(room))
	b = binary.AppendVarint(b, r.Start.UnixNano())
	b = binary.AppendVarint(b, int64(r.Every))
	for _, part := range [][]byte{appendRow(nil, r), appendDetails(nil, r), appendHistograms(nil, r)} {
		b = wire.AppendSized(b, part)
	}
	return b
}

// Remote is a Reader that asks a store elsewhere. Ask carries a message there and the answer
// back, as [Store.Serve] gives it.
type Remote struct {
	Ask func(ctx context.Context, message []byte) (answer []byte, err error)
}

// errAnswer: the store elsewhere is of another release, or something is broken.
var errAnswer = errors.New("analytics: the answer of another node cannot be read; run the same release everywhere")

// Query asks until everything is there.
func (r Remote) Query(ctx context.Context, q analytics.Query) (answer analytics.Answer, err error) {
	ask := question{Query: q}
	for first := true; ; first = false {
		message, err := json.Marshal(&ask)
		if err != nil {
			return answer, err
		}
		b, err := r.Ask(ctx, message)
		if err != nil {
			return answer, anteroom.Errorf(anteroom.Unavailable, "no node that keeps analytics answers: %w", err)
		}
		h, rows, err := parseAnswer(b, q.Rooms)
		if err != nil {
			return answer, anteroom.Errorf(anteroom.Unavailable, "%w", err)
		}
		if h.Error != "" {
			return analytics.Answer{}, anteroom.Errorf(h.Kind, "%s", h.Error)
		}
		answer.Rows = append(answer.Rows, rows...)
		if first {
			answer.AsOf = h.AsOf
		}
		answer.Every, answer.Incomplete = h.Every, h.Incomplete
		if !h.More {
			return answer, nil
		}
		if h.Room < ask.Room || h.Room == ask.Room && !h.Since.After(ask.Since) || len(answer.Rows) > analytics.MaxRows {
			return answer, anteroom.Errorf(anteroom.Unavailable, "%w", errAnswer)
		}
		ask.Every, ask.Room, ask.Since = h.Every, h.Room, h.Since
	}
}

func parseAnswer(b []byte, rooms []anteroom.RoomID) (h head, rows []analytics.Row, err error) {
	d := wire.Read(b)
	if err := json.Unmarshal(d.Sized(maxMessage), &h); err != nil {
		return h, nil, errAnswer
	}
	for d.Left() > 0 {
		room := int(d.Number(int64(len(rooms))))
		start, every := d.Varint(), d.Varint()
		parts := parts(&d, 2*maxMessage)
		if room == len(rooms) {
			d.Failf("a row is of a room that was not asked for")
		}
		if err := d.Err(); err != nil {
			return h, nil, fmt.Errorf("%w: %w", errAnswer, err)
		}
		r := analytics.Row{Room: rooms[room], Start: time.Unix(0, start).UTC(), Every: analytics.Resolution(every)}
		if err := parseRow(&r, parts[0], parts[1], parts[2]); err != nil {
			return h, nil, fmt.Errorf("%w: %w", errAnswer, err)
		}
		rows = append(rows, r)
	}
	return h, rows, nil
}

// parts reads the three parts of a row, each with its length.
func parts(d *wire.Reader, most int64) (parts [3][]byte) {
	for i := range parts {
		parts[i] = d.Sized(most)
	}
	return parts
}
