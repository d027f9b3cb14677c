package dashboard

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"net/http"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

// Times of the stream.
const (
	liveEvery  = time.Second
	liveWithin = 10 * time.Second // in which a browser takes an event
)

// frame is an event of the stream: what has changed since the one before.
type frame struct {
	At    time.Time         `json:"at"`
	All   bool              `json:"all,omitzero"`   // Rooms are all there are
	Rooms []jsontext.Value  `json:"rooms,omitzero"` // that are new or differ
	Gone  []anteroom.RoomID `json:"gone,omitzero"`
}

// live streams the figures of the rooms that the caller may read, once a second, until the
// browser or the session goes.
func (d *Dashboard) live(w http.ResponseWriter, r *http.Request) error {
	_, by, err := d.who(r)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	rc := http.NewResponseController(w)
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	sent := map[anteroom.RoomID][]byte{}
	for first := true; ; first = false {
		f, err := d.frame(by, sent)
		if err != nil {
			if first {
				return err
			}
			return nil // the browser asks again, and is told why
		}
		f.All = first
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		// A recorder of a test knows no deadlines.
		rc.SetWriteDeadline(d.Now().Add(liveWithin))
		w.Write([]byte("data: "))
		w.Write(text)
		if _, err := w.Write([]byte("\n\n")); err != nil || rc.Flush() != nil {
			return nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-d.stopped:
			return nil
		case <-tick.C:
		}
		if _, by, err = d.who(r); err != nil {
			w.Write([]byte("event: over\ndata: {}\n\n"))
			rc.Flush()
			return nil
		}
	}
}

// frame returns what differs from what was sent, and notes it.
func (d *Dashboard) frame(by manage.Caller, sent map[anteroom.RoomID][]byte) (frame, error) {
	rooms, err := d.Live(by)
	if err != nil {
		return frame{}, err
	}
	f := frame{At: d.Now().UTC()}
	there := make(map[anteroom.RoomID]bool, len(rooms))
	for _, room := range rooms {
		there[room.ID] = true
		text, err := json.Marshal(room.Value, json.Deterministic(true))
		if err != nil {
			return frame{}, err
		}
		if !bytes.Equal(text, sent[room.ID]) {
			sent[room.ID] = text
			f.Rooms = append(f.Rooms, text)
		}
	}
	for id := range sent {
		if !there[id] {
			delete(sent, id)
			f.Gone = append(f.Gone, id)
		}
	}
	return f, nil
}
