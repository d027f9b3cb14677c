package rest

import (
	"cmp"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
)

// eventFields are an event's members.
var eventFields = api.Fields[anteroom.Event]{
	{Name: "id", Get: func(e *anteroom.Event) any { return e.ID }},
	{Name: "created_on", Get: func(e *anteroom.Event) any { return stamp(e.CreatedOn) }},
	{Name: "modified_on", Get: func(e *anteroom.Event) any { return stamp(e.ModifiedOn) }},
	required(text("name", func(e *anteroom.Event) *string { return &e.Name })),
	text("description", func(e *anteroom.Event) *string { return &e.Description }),
	required(moment("event_start_time", func(e *anteroom.Event) *anteroom.Stamp { return &e.Start })),
	required(moment("event_end_time", func(e *anteroom.Event) *anteroom.Stamp { return &e.End })),
	moment("prequeue_start_time", func(e *anteroom.Event) *anteroom.Stamp { return &e.Prequeue }),
	flag("shuffle_at_event_start", func(e *anteroom.Event) *bool { return &e.ShuffleAtStart }),
	flag("suspended", func(e *anteroom.Event) *bool { return &e.Suspended }),

	override("total_active_users", func(e *anteroom.Event) **int { return &e.TotalActiveUsers }, api.Value.Int, asIs),
	override("new_users_per_minute", func(e *anteroom.Event) **int { return &e.NewUsersPerMinute }, api.Value.Int, asIs),
	unlessEmpty(override("session_duration", func(e *anteroom.Event) **time.Duration { return &e.SessionDuration }, minutesOf,
		func(d time.Duration) any { return minutes(d) })),
	override("disable_session_renewal", func(e *anteroom.Event) **bool { return &e.DisableSessionRenewal }, api.Value.Bool, asIs),
	unlessEmpty(override("queueing_method", func(e *anteroom.Event) **anteroom.QueueingMethod { return &e.QueueingMethod }, methodOf, asIs)),
	override("custom_page_html", func(e *anteroom.Event) **string { return &e.CustomPageHTML }, api.Value.Text, asIs),
	unlessEmpty(override("turnstile_mode", func(e *anteroom.Event) **string { return &e.TurnstileMode }, api.Value.Text, asIs)),
	unlessEmpty(override("turnstile_action", func(e *anteroom.Event) **string { return &e.TurnstileAction }, api.Value.Text, asIs)),

	// Ours.
	{Name: "repeat",
		Get: func(e *anteroom.Event) any {
			if e.Repeat == (anteroom.Repeat{}) {
				return nil
			}
			return repeatFields.Of(&e.Repeat)
		},
		Set: func(e *anteroom.Event, v api.Value) error {
			if v.Null() {
				e.Repeat = anteroom.Repeat{}
				return nil
			}
			o, err := v.Object()
			if err != nil {
				return err
			}
			return repeatFields.Merge(&e.Repeat, o)
		}},
}

var repeatFields = api.Fields[anteroom.Repeat]{
	text("every", func(r *anteroom.Repeat) *string { return &r.Every }),
	number("interval", func(r *anteroom.Repeat) *int { return &r.Interval }),
	number("times", func(r *anteroom.Repeat) *int { return &r.Times }),
	moment("until", func(r *anteroom.Repeat) *anteroom.Stamp { return &r.Until }),
	text("time_zone", func(r *anteroom.Repeat) *string { return &r.TimeZone }),
}

// moment is a field that is given back as it was written; null when it is not set. What is
// RFC 3339 to the letter is all that every client can read.
func moment[T any](name string, at func(*T) *anteroom.Stamp) api.Field[T] {
	f := field(name, at, func(v api.Value) (anteroom.Stamp, error) {
		s, err := v.Text()
		if err != nil || s == "" {
			return "", err
		}
		var strict time.Time
		if strict.UnmarshalText([]byte(s)) != nil {
			return "", v.Fault("is not a moment", "write it like 2026-11-27T10:00:00Z")
		}
		return anteroom.Stamp(s), nil
	})
	f.Get = func(t *T) any {
		if s := *at(t); s != "" {
			return s
		}
		return nil
	}
	return f
}

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
		if string(e.ID) == r.Param("event") {
			return room, e, nil
		}
	}
	return room, anteroom.Event{}, api.NotFound()
}

func (a *API) listEvents(r *api.Request) (api.Answer, error) {
	room, err := a.roomOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	return page(r, room.Events, eventFields.Of)
}

func (a *API) createEvent(r *api.Request) (api.Answer, error) {
	z, err := a.zoneOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	o, err := r.Object()
	if err != nil {
		return api.Answer{}, err
	}
	var e anteroom.Event
	if err := eventFields.Replace(&e, o); err != nil {
		return api.Answer{}, err
	}
	return oneEvent(a.manage.CreateEvent(r.Context(), r.By, z.ID, roomID(r), e))
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
	full := e.Over(room.WithDefaults())
	e.Overrides = anteroom.Overrides{
		TotalActiveUsers:      &full.TotalActiveUsers,
		NewUsersPerMinute:     &full.NewUsersPerMinute,
		SessionDuration:       &full.SessionDuration,
		DisableSessionRenewal: &full.DisableSessionRenewal,
		QueueingMethod:        &full.QueueingMethod,
		CustomPageHTML:        &full.CustomPageHTML,
		TurnstileMode:         &full.TurnstileMode,
		TurnstileAction:       &full.TurnstileAction,
	}
	return api.Answer{Result: eventFields.Of(&e)}, nil
}

func (a *API) changeEvent(write func(*anteroom.Event, api.Object) error) func(*api.Request) (api.Answer, error) {
	return func(r *api.Request) (api.Answer, error) {
		z, err := a.zoneOf(r)
		if err != nil {
			return api.Answer{}, err
		}
		o, err := r.Object()
		if err != nil {
			return api.Answer{}, err
		}
		return oneEvent(a.manage.ChangeEvent(r.Context(), r.By, z.ID, roomID(r), anteroom.EventID(r.Param("event")), func(e *anteroom.Event) error {
			if err := r.Match(eventTag(e)); err != nil {
				return err
			}
			return write(e, o)
		}))
	}
}

func (a *API) deleteEvent(r *api.Request) (api.Answer, error) {
	room, e, err := a.eventOf(r)
	if err != nil {
		return api.Answer{}, err
	}
	if err := r.Match(eventTag(&e)); err != nil {
		return api.Answer{}, err
	}
	if err := a.manage.DeleteEvent(r.Context(), r.By, anteroom.ZoneID(r.Param("zone")), room.ID, e.ID); err != nil {
		return api.Answer{}, err
	}
	return deleted(string(e.ID)), nil
}
