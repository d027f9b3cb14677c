package own

import (
	"fmt"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// webhookFields are the members of a webhook that callers set.
var webhookFields = api.Fields[anteroom.Webhook]{
	webhookText("name", func(w *anteroom.Webhook) *string { return &w.Name }),
	webhookText("url", func(w *anteroom.Webhook) *string { return &w.URL }),
	webhookText("format", func(w *anteroom.Webhook) *string { return &w.Format }),
	{Name: "events",
		Get: func(w *anteroom.Webhook) any { return append([]string{}, w.Events...) },
		Set: func(w *anteroom.Webhook, v api.Value) error {
			values, err := v.Array(api.MaxBodyMembers)
			if err != nil {
				return err
			}
			w.Events = nil
			for _, one := range values {
				text, err := one.Text()
				if err != nil {
					return err
				}
				w.Events = append(w.Events, text)
			}
			return nil
		},
		Reset: func(w *anteroom.Webhook) { w.Events = nil }},
	{Name: "zone",
		Get: func(w *anteroom.Webhook) any { return optional(w.Zone) },
		Set: func(w *anteroom.Webhook, v api.Value) error {
			text, err := v.Text()
			w.Zone = anteroom.ZoneID(text)
			return err
		},
		Reset: func(w *anteroom.Webhook) { w.Zone = "" }},
	{Name: "room",
		Get: func(w *anteroom.Webhook) any { return optional(w.Room) },
		Set: func(w *anteroom.Webhook, v api.Value) error {
			text, err := v.Text()
			w.Room = anteroom.RoomID(text)
			return err
		},
		Reset: func(w *anteroom.Webhook) { w.Room = "" }},
	webhookNumber("longer_than", func(w *anteroom.Webhook) *int { return &w.LongerThan }),
	webhookNumber("minutes_before", func(w *anteroom.Webhook) *int { return &w.MinutesBefore }),
	webhookNumber("saturated_minutes", func(w *anteroom.Webhook) *int { return &w.SaturatedMinutes }),
	{Name: "enabled",
		Get: func(w *anteroom.Webhook) any { return !w.Disabled },
		Set: func(w *anteroom.Webhook, v api.Value) error {
			on, err := v.Bool()
			w.Disabled = !on
			return err
		},
		Reset: func(w *anteroom.Webhook) { w.Disabled = false }},
}

func webhookText(name string, of func(*anteroom.Webhook) *string) api.Field[anteroom.Webhook] {
	return api.Field[anteroom.Webhook]{Name: name, Get: func(w *anteroom.Webhook) any { return *of(w) },
		Set:   func(w *anteroom.Webhook, v api.Value) (err error) { *of(w), err = v.Text(); return err },
		Reset: func(w *anteroom.Webhook) { *of(w) = ""; *w = w.WithDefaults() }}
}

func webhookNumber(name string, of func(*anteroom.Webhook) *int) api.Field[anteroom.Webhook] {
	return api.Field[anteroom.Webhook]{Name: name, Get: func(w *anteroom.Webhook) any { return *of(w) },
		Set:   func(w *anteroom.Webhook, v api.Value) (err error) { *of(w), err = v.Int(); return err },
		Reset: func(w *anteroom.Webhook) { *of(w) = 0; *w = w.WithDefaults() }}
}

// webhookBody reads the members of a webhook, none but those.
func webhookBody(r *api.Request) (api.Object, error) {
	names := make([]string, len(webhookFields))
	for i, f := range webhookFields {
		names[i] = f.Name
	}
	return body(r, names...)
}

// shownWebhook is a webhook's JSON form. No secret is in it.
func shownWebhook(w manage.ShownWebhook) api.Members {
	secrets := make([]api.Members, len(w.Secrets))
	for i, s := range w.Secrets {
		secrets[i] = api.Members{{Name: "prefix", Value: s.Prefix}, {Name: "created_on", Value: moment(s.CreatedOn)}, {Name: "expires_on", Value: moment(s.ExpiresOn)}}
	}
	out := append(api.Members{{Name: "id", Value: w.ID}}, webhookFields.Of(&w.Webhook)...)
	return append(out, api.Member{Name: "created_on", Value: moment(w.CreatedOn)}, api.Member{Name: "modified_on", Value: moment(w.ModifiedOn)},
		api.Member{Name: "created_by", Value: w.CreatedBy}, api.Member{Name: "secrets", Value: secrets})
}

func shownDelivery(d manage.Delivery) api.Members {
	var status any
	if d.Status != 0 {
		status = d.Status
	}
	return api.Members{
		{Name: "id", Value: d.ID}, {Name: "type", Value: d.Type}, {Name: "text", Value: d.Text}, {Name: "created_on", Value: moment(d.CreatedOn)},
		{Name: "state", Value: d.State}, {Name: "attempts", Value: d.Attempts}, {Name: "status", Value: status}, {Name: "error", Value: optional(d.Error)},
		{Name: "milliseconds", Value: d.Millis}, {Name: "last_attempt_on", Value: moment(d.LastOn)}, {Name: "next_attempt_on", Value: moment(d.NextOn)},
	}
}

func webhookID(r *api.Request) anteroom.WebhookID { return anteroom.WebhookID(r.Param("webhook")) }

func (f *face) listWebhooks(r *api.Request) (api.Answer, error) {
	all, err := f.manage.Webhooks(r.By)
	if err != nil {
		return api.Answer{}, err
	}
	return part(r, all, shownWebhook)
}

func (f *face) getWebhook(r *api.Request) (api.Answer, error) {
	w, err := f.manage.Webhook(r.By, webhookID(r))
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: shownWebhook(w)}, nil
}

func (f *face) createWebhook(r *api.Request) (api.Answer, error) {
	o, err := webhookBody(r)
	if err != nil {
		return api.Answer{}, err
	}
	w := anteroom.Webhook{}.WithDefaults()
	if err := webhookFields.Merge(&w, o); err != nil {
		return api.Answer{}, err
	}
	return webhookWithSecret(f.manage.CreateWebhook(r.Context(), r.By, w))
}

func webhookWithSecret(w manage.ShownWebhook, secret string, err error) (api.Answer, error) {
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: append(shownWebhook(w), api.Member{Name: "secret", Value: secret})}, nil
}

func (f *face) changeWebhook(r *api.Request) (api.Answer, error) {
	o, err := webhookBody(r)
	if err != nil {
		return api.Answer{}, err
	}
	w, err := f.manage.ChangeWebhook(r.Context(), r.By, webhookID(r), func(w *anteroom.Webhook) error { return webhookFields.Merge(w, o) })
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: shownWebhook(w)}, nil
}

func (f *face) deleteWebhook(r *api.Request) (api.Answer, error) {
	return deleted(webhookID(r)), f.manage.DeleteWebhook(r.Context(), r.By, webhookID(r))
}

func (f *face) rotateWebhook(r *api.Request) (api.Answer, error) {
	o, err := body(r, "overlap_seconds")
	if err != nil {
		return api.Answer{}, err
	}
	v := o.Get("overlap_seconds")
	n, err := v.Int()
	if err != nil {
		return api.Answer{}, err
	}
	if most := int(manage.MaxWebhookOverlap / time.Second); !v.Sent() || n < 0 || n > most {
		return api.Answer{}, api.Invalid("overlap_seconds", "is missing or out of range", fmt.Sprintf("0 to %d: how long the secret of now signs, too", most))
	}
	return webhookWithSecret(f.manage.RotateWebhook(r.Context(), r.By, webhookID(r), time.Duration(n)*time.Second))
}

// testWebhook sends a test at once and says what came of it.
func (f *face) testWebhook(r *api.Request) (api.Answer, error) {
	d, err := f.manage.TestWebhook(r.Context(), r.By, webhookID(r))
	if err != nil {
		return api.Answer{}, err
	}
	return api.Answer{Result: shownDelivery(d)}, nil
}

func (f *face) listDeliveries(r *api.Request) (api.Answer, error) {
	all, err := f.manage.Deliveries(r.Context(), r.By, webhookID(r))
	if err != nil {
		return api.Answer{}, err
	}
	return part(r, all, shownDelivery)
}
