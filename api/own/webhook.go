package own

import (
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

func specOf(w anteroom.Webhook) schema.WebhookSpec {
	return schema.WebhookSpec{Name: w.Name, URL: w.URL, Format: w.Format, Events: w.Events, Zone: schema.Optional(w.Zone), Room: schema.Optional(w.Room),
		LongerThan: w.LongerThan, MinutesBefore: w.MinutesBefore, SaturatedMinutes: w.SaturatedMinutes, Enabled: !w.Disabled}
}

// setWebhook changes what the body names; null is the default.
func setWebhook(w *anteroom.Webhook, p patch[schema.WebhookSpec]) error {
	s := specOf(*w)
	err := p.over(&s, specOf(anteroom.Webhook{}.WithDefaults()))
	w.Name, w.URL, w.Format, w.Events, w.Zone, w.Room = s.Name, s.URL, s.Format, s.Events, schema.Value(s.Zone), schema.Value(s.Room)
	w.LongerThan, w.MinutesBefore, w.SaturatedMinutes, w.Disabled = s.LongerThan, s.MinutesBefore, s.SaturatedMinutes, !s.Enabled
	return err
}

// shownWebhook is a webhook's JSON form. No secret is in it.
func shownWebhook(w manage.ShownWebhook) schema.Webhook {
	return schema.Webhook{ID: w.ID, WebhookSpec: specOf(w.Webhook), CreatedOn: w.CreatedOn.UTC(), ModifiedOn: w.ModifiedOn.UTC(), CreatedBy: w.CreatedBy,
		Secrets: shownSecrets(w.Secrets)}
}

func shownDelivery(d anteroom.Delivery) schema.Delivery {
	return schema.Delivery{ID: d.ID, Type: d.Type, Text: d.Text, CreatedOn: d.CreatedOn.UTC(), State: d.State, Attempts: d.Attempts,
		Status: schema.Optional(d.Status), Error: schema.Optional(d.Error), Milliseconds: d.Millis, LastOn: moment(d.LastOn), NextOn: moment(d.NextOn)}
}

func webhookID(r *api.Request) anteroom.WebhookID { return anteroom.WebhookID(r.PathValue("webhook")) }

func (f *face) listWebhooks(r *api.Request) ([]manage.ShownWebhook, func(manage.ShownWebhook) schema.Webhook, error) {
	all, err := f.manage.Webhooks(r.By)
	return all, shownWebhook, err
}

func (f *face) getWebhook(r *api.Request) (schema.Webhook, error) {
	w, err := f.manage.Webhook(r.By, webhookID(r))
	return shownWebhook(w), err
}

func (f *face) createWebhook(r *api.Request, p patch[schema.WebhookSpec]) (schema.NewWebhook, error) {
	w := anteroom.Webhook{}.WithDefaults()
	if err := setWebhook(&w, p); err != nil {
		return schema.NewWebhook{}, err
	}
	return newWebhook(f.manage.CreateWebhook(r.Context(), r.By, w))
}

func newWebhook(w manage.ShownWebhook, secret string, err error) (schema.NewWebhook, error) {
	return schema.NewWebhook{Webhook: shownWebhook(w), Secret: secret}, err
}

func (f *face) changeWebhook(r *api.Request, p patch[schema.WebhookSpec]) (schema.Webhook, error) {
	w, err := f.manage.ChangeWebhook(r.Context(), r.By, webhookID(r), func(w *anteroom.Webhook) error { return setWebhook(w, p) })
	return shownWebhook(w), err
}

func (f *face) deleteWebhook(r *api.Request) (schema.Deleted, error) {
	return deleted(webhookID(r)), f.manage.DeleteWebhook(r.Context(), r.By, webhookID(r))
}

func (f *face) rotateWebhook(r *api.Request, b schema.Rotation) (schema.NewWebhook, error) {
	return newWebhook(f.manage.RotateWebhook(r.Context(), r.By, webhookID(r), time.Duration(b.OverlapSeconds)*time.Second))
}

// testWebhook sends a test at once and says what came of it.
func (f *face) testWebhook(r *api.Request) (schema.Delivery, error) {
	d, err := f.manage.TestWebhook(r.Context(), r.By, webhookID(r))
	return shownDelivery(d), err
}

func (f *face) listDeliveries(r *api.Request) ([]anteroom.Delivery, func(anteroom.Delivery) schema.Delivery, error) {
	all, err := f.manage.Deliveries(r.Context(), r.By, webhookID(r))
	return all, shownDelivery, err
}
