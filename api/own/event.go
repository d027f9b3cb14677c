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

// getChecklist checks what an event needs.
func (f *face) getChecklist(r *api.Request) (manage.Checklist, error) {
	return f.manage.Checklist(r.Context(), r.By, zoneID(r), roomID(r), eventID(r))
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

func (f *face) shuffle(r *api.Request) (e anteroom.Event, number int, sh *anteroom.Shuffle, err error) {
	if e, err = f.event(r); err != nil {
		return e, 0, nil, err
	}
	n, err := strconv.ParseUint(r.PathValue("number"), 10, 20)
	if err != nil {
		return e, 0, nil, api.Invalid("number", "is not the number of an occurrence", "0 for the first time that the event happens, 1 for the next")
	}
	sh, err = f.manage.Shuffle(roomID(r), e.ID, int(n))
	return e, int(n), sh, err
}

// getShuffle gives what was promised before the shuffle, and once it was done what anybody
// needs to recompute it: the same record that visitors get, in the envelope.
func (f *face) getShuffle(r *api.Request) (schema.Shuffle, error) {
	e, number, sh, err := f.shuffle(r)
	if err != nil {
		return schema.Shuffle{}, err
	}
	o, _ := e.Occurrence(number)
	out := schema.Shuffle{Room: roomID(r), Event: e.ID, Name: e.Name, Number: number, Start: moment(o.Start), Commitment: hex.EncodeToString(sh.Commitment[:]), Done: sh.Done}
	if sh.Done {
		seed, entries, ids, count := hex.EncodeToString(sh.Seed[:]), hex.EncodeToString(sh.Entries[:]), r.URL.Path+"/ids", len(sh.IDs)
		out.At, out.Seed, out.Entries, out.Count, out.IDs = roomMoment(sh.At), &seed, &entries, &count, &ids
	}
	return out, nil
}

// getShuffleIDs sends the ids of everybody who took part, sorted, 16 bytes each.
func (f *face) getShuffleIDs(w http.ResponseWriter, r *api.Request) error {
	_, _, sh, err := f.shuffle(r)
	if err != nil {
		return err
	}
	if !sh.Done {
		return api.Refuse(http.StatusNotFound, api.CodeNotFound, "The shuffle has not happened yet: the ids are known after it")
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTime)) // what has none keeps its own
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(sh.IDs)*len(anteroom.ID{})))
	w.Header().Set("Cache-Control", "no-store")
	b := bufio.NewWriter(w)
	for i := range sh.IDs {
		b.Write(sh.IDs[i][:])
	}
	b.Flush() // whoever went away misses the rest
	return nil
}
