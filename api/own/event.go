package own

import (
	"bufio"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// shownRepeat is when an event happens again; null when it does not.
func shownRepeat(p anteroom.Repeat) any {
	if p.Every == "" {
		return nil
	}
	var times any
	if p.Times > 0 {
		times = p.Times
	}
	zone := p.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	return api.Members{{Name: "every", Value: p.Every}, {Name: "interval", Value: max(1, p.Interval)}, {Name: "times", Value: times},
		{Name: "until", Value: optional(p.Until)}, {Name: "time_zone", Value: zone}}
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

func (f *face) getRepeat(r *api.Request) (api.Answer, error) {
	e, err := f.event(r)
	return api.Answer{Result: shownRepeat(e.Repeat)}, err
}

func (f *face) putRepeat(r *api.Request) (api.Answer, error) {
	o, err := body(r, "every", "interval", "times", "until", "time_zone")
	if err != nil {
		return api.Answer{}, err
	}
	var p anteroom.Repeat
	var until string
	for _, one := range []struct {
		name string
		text *string
	}{{"every", &p.Every}, {"until", &until}, {"time_zone", &p.TimeZone}} {
		if *one.text, err = o.Get(one.name).Text(); err != nil {
			return api.Answer{}, err
		}
	}
	p.Until = anteroom.Stamp(until)
	if p.Interval, err = o.Get("interval").Int(); err != nil {
		return api.Answer{}, err
	}
	if p.Times, err = o.Get("times").Int(); err != nil {
		return api.Answer{}, err
	}
	if p.Every == "" {
		return api.Answer{}, api.Invalid("every", "is missing", "day or week; DELETE ends the repetition")
	}
	return f.setRepeat(r, p)
}

func (f *face) deleteRepeat(r *api.Request) (api.Answer, error) {
	return f.setRepeat(r, anteroom.Repeat{})
}

func (f *face) setRepeat(r *api.Request, p anteroom.Repeat) (api.Answer, error) {
	e, err := f.manage.ChangeEvent(r.Context(), r.By, zoneID(r), roomID(r), eventID(r), func(e *anteroom.Event) error {
		e.Repeat = p
		return nil
	})
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: shownRepeat(e.Repeat)}, nil
}

func (f *face) shuffle(r *api.Request) (e anteroom.Event, rec manage.ShuffleRecord, err error) {
	if e, err = f.event(r); err != nil {
		return e, rec, err
	}
	number, err := strconv.ParseUint(r.Param("number"), 10, 20)
	if err != nil {
		return e, rec, api.Invalid("number", "is not the number of an occurrence", "0 for the first time that the event happens, 1 for the next")
	}
	rec, err = f.manage.Shuffle(roomID(r), e.ID, int(number))
	return e, rec, err
}

// getShuffle gives what was promised before the shuffle, and once it was done what anybody
// needs to recompute it: the same record that visitors get, in the envelope.
func (f *face) getShuffle(r *api.Request) (api.Answer, error) {
	e, rec, err := f.shuffle(r)
	if err != nil {
		return api.Answer{}, err
	}
	var at, seed, entries, count, ids any
	if rec.Done {
		at, seed, entries, count = roomMoment(rec.At), hex.EncodeToString(rec.Seed[:]), hex.EncodeToString(rec.Entries[:]), rec.Count
		ids = r.URL.Path + "/ids"
	}
	o, _ := e.Occurrence(rec.Number)
	return api.Answer{Result: api.Members{
		{Name: "room", Value: r.Param("room")}, {Name: "event", Value: e.ID}, {Name: "name", Value: e.Name}, {Name: "number", Value: rec.Number},
		{Name: "start", Value: moment(o.Start)}, {Name: "commitment", Value: hex.EncodeToString(rec.Commitment[:])}, {Name: "done", Value: rec.Done},
		{Name: "at", Value: at}, {Name: "seed", Value: seed}, {Name: "entries", Value: entries}, {Name: "count", Value: count}, {Name: "ids", Value: ids},
	}}, nil
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
