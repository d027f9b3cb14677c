package rest

import (
	"cmp"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
)

// eventFields are an event's members.
var eventFields = append(api.Fields[anteroom.Event]{
	{Name: "id", Get: func(e *anteroom.Event) any { return e.ID }},
	{Name: "created_on", Get: func(e *anteroom.Event) any { return stamp(e.CreatedOn) }},
	{Name: "modified_on", Get: func(e *anteroom.Event) any { return stamp(e.ModifiedOn) }},
}, members[anteroom.Event](anteroom.EventFields())...)

func eventTag(e *anteroom.Event) string { return tagOf(eventFields.Of(e)) }

func oneEvent(e anteroom.Event, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, api.Rename(err, func(path string) string {
			return cmp.Or(below("events", path), "event_start_time") // of an event as a whole: it overlaps
		})
	}
	return api.Answer{Result: eventFields.Of(&e), ETag: eventTag(&e)}, nil
}

// eventOf returns the event that the path names, with its room.
func (a *API) eventOf(r *api.Request) (anteroom.Room, anteroom.Event, error) {
	room, err := a.roomOf(r)
	if err != nil {
		return room, anteroom.Event{}, err
	}
	for _, e := range room.Events {
		if string(e.ID) == r.PathValue("event") {
			return room, e, nil
		}
	}
	return room, anteroom.Event{}, api.NotFound()
}

func (a *API) listEvents(r *api.Request) (api.Answer, error) {
	room, err := a.roomOf(r)
	return page(r, eventFields.Of)(room.Events, err)
}

func (a *API) createEvent(r *api.Request, zone anteroom.ZoneID, o api.Object) (api.Answer, error) {
	var e anteroom.Event
	if err := eventFields.Replace(&e, o); err != nil {
		return api.Answer{}, err
	}
	return oneEvent(a.manage.CreateEvent(r.Context(), r.By, zone, roomID(r), e))
}

func (a *API) getEvent(r *api.Request) (api.Answer, error) {
	_, e, err := a.eventOf(r)
	return oneEvent(e, err)
}

// getEventDetails shows the event as if it were active: what it inherits is filled in.
func (a *API) getEventDetails(r *api.Request) (api.Answer, error) {
	room, e, err := a.eventOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	e.Overrides = e.Over(room.WithDefaults()).Overriding()
	return api.Answer{Result: eventFields.Of(&e)}, nil
}

func (a *API) changeEvent(write func(*anteroom.Event, api.Object) error) operation {
	return a.inZone(func(r *api.Request, zone anteroom.ZoneID, o api.Object) (api.Answer, error) {
		return oneEvent(a.manage.ChangeEvent(r.Context(), r.By, zone, roomID(r), anteroom.EventID(r.PathValue("event")), matched(r, eventTag, write, o)))
	})
}

func (a *API) deleteEvent(r *api.Request) (api.Answer, error) {
	room, e, err := a.eventOf(r)
	return remove(r, string(e.ID), err, eventTag, func(sure func(*anteroom.Event) error) error {
		return a.manage.DeleteEvent(r.Context(), r.By, anteroom.ZoneID(r.PathValue("zone")), room.ID, e.ID, sure)
	})
}
