package own

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// shownRepeat is when an event happens again; nil when it does not.
func shownRepeat(p anteroom.Repeat) *schema.Repeat {
	if p.Every == "" {
		return nil
	}
	return &schema.Repeat{Every: p.Every, Interval: max(1, p.Interval), Times: schema.Optional(p.Times), Until: schema.Optional(p.Until), TimeZone: cmp.Or(p.TimeZone, "UTC")}
}

func (f *face) event(r *api.Request) (anteroom.Event, error) {
	room, err := f.room(r)
	if err != nil {
		return anteroom.Event{}, err
	}
	for _, e := range room.Events {
		if e.ID == eventID(r) {
			return e, nil
		}
	}
	return anteroom.Event{}, api.NotFound()
}

func (f *face) getRepeat(r *api.Request) (*schema.Repeat, error) {
	e, err := f.event(r)
	return shownRepeat(e.Repeat), err
}

func (f *face) putRepeat(r *api.Request, b schema.Repeat) (schema.Repeat, error) {
	if b.Every == "" {
		return b, api.Invalid("every", "is missing", "day or week; DELETE ends the repetition")
	}
	e, err := f.setRepeat(r, anteroom.Repeat{Every: b.Every, Interval: b.Interval, Times: schema.Value(b.Times), Until: schema.Value(b.Until), TimeZone: b.TimeZone})
	return schema.Value(shownRepeat(e.Repeat)), err
}

func (f *face) deleteRepeat(r *api.Request) (schema.None, error) {
	_, err := f.setRepeat(r, anteroom.Repeat{})
	return nil, err
}

func (f *face) setRepeat(r *api.Request, p anteroom.Repeat) (anteroom.Event, error) {
	return f.manage.ChangeEvent(r.Context(), r.By, zoneID(r), roomID(r), eventID(r), func(e *anteroom.Event) error {
		e.Repeat = p
		return nil
	})
}

func (f *face) shuffle(r *api.Request) (e anteroom.Event, rec manage.ShuffleRecord, err error) {
	if e, err = f.event(r); err != nil {
		return e, rec, err
	}
	number, err := strconv.ParseUint(r.PathValue("number"), 10, 20)
	if err != nil {
		return e, rec, api.Invalid("number", "is not the number of an occurrence", "0 for the first time that the event happens, 1 for the next")
	}
	rec, err = f.manage.Shuffle(roomID(r), e.ID, int(number))
	return e, rec, err
}

// getShuffle gives what was promised before the shuffle, and once it was done what anybody
// needs to recompute it: the same record that visitors get, in the envelope.
func (f *face) getShuffle(r *api.Request) (schema.Shuffle, error) {
	e, rec, err := f.shuffle(r)
	if err != nil {
		return schema.Shuffle{}, err
	}
	o, _ := e.Occurrence(rec.Number)
	out := schema.Shuffle{Room: roomID(r), Event: e.ID, Name: e.Name, Number: rec.Number, Start: moment(o.Start), Commitment: hex.EncodeToString(rec.Commitment[:]), Done: rec.Done}
	if rec.Done {
		seed, entries, ids := hex.EncodeToString(rec.Seed[:]), hex.EncodeToString(rec.Entries[:]), r.URL.Path+"/ids"
		out.At, out.Seed, out.Entries, out.Count, out.IDs = roomMoment(rec.At), &seed, &entries, &rec.Count, &ids
	}
	return out, nil
}

// getShuffleIDs sends the ids of everybody who took part, sorted, 16 bytes each.
func (f *face) getShuffleIDs(w http.ResponseWriter, r *api.Request) error {
	_, rec, err := f.shuffle(r)
	if err != nil {
		return err
	}
	if !rec.Done {
		return api.Refuse(http.StatusNotFound, api.CodeNotFound, "The shuffle has not happened yet: the ids are known after it")
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTime)) // what has none keeps its own
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(rec.IDs)*len(anteroom.ID{})))
	w.Header().Set("Cache-Control", "no-store")
	b := bufio.NewWriter(w)
	for i := range rec.IDs {
		b.Write(rec.IDs[i][:])
	}
	b.Flush() // whoever went away misses the rest
	return nil
}
