package manage

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/cluster/memlink"
)

// sender remembers the webhooks that were to be tested.
type sender struct{ tested []SignedWebhook }

func (*sender) Key() [32]byte { return [32]byte{7} }

func (*sender) CheckURL(url string) error {
	if strings.HasPrefix(url, "http:") {
		return errors.New("does not begin with https://")
	}
	return nil
}

func (s *sender) Test(_ context.Context, w SignedWebhook, _ string) (anteroom.Delivery, error) {
	s.tested = append(s.tested, w)
	return anteroom.Delivery{State: anteroom.DeliveryDelivered}, nil
}

func (*sender) Deliveries(context.Context, anteroom.WebhookID) ([]anteroom.Delivery, error) {
	return nil, nil
}

const slackURL = "https://hooks.slack.example/services/T0/B0/hushhush"

func TestLifeOfAWebhook(t *testing.T) {
	t.Parallel()
	ctx, link, s := t.Context(), memlink.New(), &sender{}
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	m := open(t, Config{Link: link, Webhooks: s, Now: func() time.Time { return now }})
	made, first, err := m.CreateWebhook(ctx, root, anteroom.Webhook{Name: "on call", URL: slackURL, Events: []string{anteroom.RoomQueueing}})
	if err != nil || made.Format != anteroom.FormatJSON || made.LongerThan != anteroom.DefaultLongerThan || !strings.HasPrefix(first, webhookPrefixText) || len(made.Secrets) != 1 || made.CreatedBy != "root" {
		t.Fatalf("%+v, %v", made, err)
	}
	secrets := func() []string {
		t.Helper()
		if _, err := m.TestWebhook(ctx, root, made.ID); err != nil {
			t.Fatal(err)
		}
		return s.tested[len(s.tested)-1].Secrets
	}
	if got := secrets(); len(got) != 1 || got[0] != first {
		t.Errorf("%v signs, not %s", got, first)
	}
	_, second, err := m.RotateWebhook(ctx, root, made.ID, time.Hour)
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	if got := secrets(); len(got) != 2 || got[0] != second || got[1] != first {
		t.Errorf("during the overlap %v sign", got)
	}
	now = now.Add(time.Hour)
	if got := secrets(); len(got) != 1 || got[0] != second {
		t.Errorf("after the overlap %v signs", got)
	}
	changed, err := m.ChangeWebhook(ctx, root, made.ID, func(w *anteroom.Webhook) error {
		w.ID, w.Name, w.Disabled, w.URL = "other", "nights", true, slackURL+"er"
		return nil
	})
	if err != nil || changed.ID != made.ID || changed.Name != "nights" || !changed.ModifiedOn.After(changed.CreatedOn) {
		t.Errorf("%+v, %v", changed, err)
	}
	if len(m.SignedWebhooks()) != 0 {
		t.Error("a disabled one is told")
	}
	again := open(t, Config{Link: link, Webhooks: s, Now: m.cfg.Now})
	if got := must[ShownWebhook](t)(again.Webhook(root, made.ID)); got.Name != "nights" || got.URL != slackURL+"er" || !got.Disabled || len(got.Secrets) != 1 {
		t.Errorf("after a restart: %+v", got)
	}

	// Neither store nor audit log nor backup has a secret, and the log not even the address.
	for _, key := range must[[]string](t)(link.Keys(ctx, "")) {
		e, err := link.Get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{first, second} {
			if bytes.Contains(e.Value, []byte(secret)) {
				t.Errorf("%s has a secret", key)
			}
		}
	}
	zip, err := gzip.NewReader(bytes.NewReader(backupOf(t, m, false)))
	if err != nil {
		t.Fatal(err)
	}
	if text := must[[]byte](t)(io.ReadAll(zip)); bytes.Contains(text, []byte(first)) || bytes.Contains(text, []byte(second)) {
		t.Error("the backup has a secret")
	}
	var operations []string
	for _, r := range must[[]AuditRecord](t)(m.Audit(ctx, root, 0, 0)) {
		if operations = append(operations, r.Operation); r.Object != string(made.ID) {
			continue
		}
		for _, c := range r.Changes {
			if strings.Contains(c.Before+c.After, "hushhush") || strings.HasPrefix(c.Field, "secrets") && c.Before+c.After != strings.Repeat(`"[secret]"`, strings.Count(c.Before+c.After, "[secret]")) {
				t.Errorf("%s: %+v", r.Operation, c)
			}
			if r.Operation == "webhook.change" && c.Field == "webhook.url" && (c.Before == c.After || !strings.Contains(c.After, "hooks.slack.example")) {
				t.Errorf("another address cannot be told: %+v", c)
			}
		}
	}
	if got := strings.Join(operations, " "); !strings.HasSuffix(got, "webhook.create webhook.test webhook.rotate webhook.test webhook.test webhook.change backup.create") {
		t.Error(got)
	}
	if err := m.DeleteWebhook(ctx, root, made.ID); err != nil {
		t.Fatal(err)
	}
	if keys := must[[]string](t)(link.Keys(ctx, webhookPrefix)); len(keys) != 0 || m.State().HasWebhook(made.ID) {
		t.Errorf("%v is left", keys)
	}
}

// Who may edit a zone or room makes webhooks for it; one that is told of everything is for
// administrators.
func TestWhoMayHaveWebhooks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m := open(t, Config{Webhooks: &sender{}})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	other := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.org")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("one"))).ID
	as := func(p Permission, z anteroom.ZoneID, r anteroom.RoomID) Caller {
		return Caller{Name: "x", Grants: []Grant{{z, r, p}}}
	}
	hooks := map[string]anteroom.Webhook{"all": {}, "zone": {Zone: zone}, "room": {Zone: zone, Room: room}, "other": {Zone: other}}
	ids := map[string]anteroom.WebhookID{}
	for name, w := range hooks {
		w.Name, w.URL = name, slackURL
		made, _, err := m.CreateWebhook(ctx, root, w)
		if err != nil {
			t.Fatal(name, err)
		}
		ids[name] = made.ID
	}
	for _, c := range []struct {
		by   Caller
		sees string
	}{
		{as(Admin, "", ""), "all zone room other"},
		{as(Edit, "", ""), "zone room other"},
		{as(Edit, zone, ""), "zone room"},
		{as(Edit, zone, room), "room"},
		{as(Edit, other, ""), "other"},
		{as(Read, "", ""), ""},
		{Caller{}, ""},
	} {
		listed, err := m.Webhooks(c.by)
		if (err == nil) != (c.sees != "") || len(listed) != len(strings.Fields(c.sees)) {
			t.Errorf("%+v lists %d, %v", c.by.Grants, len(listed), err)
		}
		for name, w := range hooks {
			want := anteroom.Denied
			if strings.Contains(" "+c.sees+" ", " "+name+" ") {
				want = anteroom.Other
			}
			w.Name, w.URL = "new", slackURL
			made, _, err := m.CreateWebhook(ctx, c.by, w)
			if anteroom.KindOf(err) != want {
				t.Errorf("%+v makes one for %s: %v", c.by.Grants, name, err)
			}
			if err == nil {
				if err := m.DeleteWebhook(ctx, c.by, made.ID); err != nil {
					t.Error(err)
				}
			}
			_, shown := m.Webhook(c.by, ids[name])
			_, changed := m.ChangeWebhook(ctx, c.by, ids[name], func(w *anteroom.Webhook) error { w.LongerThan++; return nil })
			_, _, rotated := m.RotateWebhook(ctx, c.by, ids[name], 0)
			_, tested := m.TestWebhook(ctx, c.by, ids[name])
			_, told := m.Deliveries(ctx, c.by, ids[name])
			for what, err := range map[string]error{"shown": shown, "changed": changed, "rotated": rotated, "tested": tested, "told": told} {
				if anteroom.KindOf(err) != want {
					t.Errorf("%+v, %s, %s: %v", c.by.Grants, name, what, err)
				}
			}
			if want == anteroom.Denied {
				if err := m.DeleteWebhook(ctx, c.by, ids[name]); anteroom.KindOf(err) != want {
					t.Errorf("%+v deletes %s: %v", c.by.Grants, name, err)
				}
			}
		}
	}
	if _, err := m.ChangeWebhook(ctx, as(Edit, zone, room), ids["room"], func(w *anteroom.Webhook) error { w.Zone, w.Room = "", ""; return nil }); anteroom.KindOf(err) != anteroom.Denied {
		t.Errorf("a webhook takes more than its owner may: %v", err)
	}
}

func TestWebhooksThatAreRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	m := open(t, Config{Webhooks: &sender{}})
	zone := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.com")).ID
	elsewhere := must[anteroom.Zone](t)(m.CreateZone(ctx, root, "example.org")).ID
	room := must[anteroom.Room](t)(m.CreateRoom(ctx, root, zone, shop("one"))).ID
	for path, change := range map[string]func(*anteroom.Webhook){
		"name":              func(w *anteroom.Webhook) { w.Name = "a\nb" },
		"url":               func(w *anteroom.Webhook) { w.URL = "http://example.com/" },
		"format":            func(w *anteroom.Webhook) { w.Format = "xml" },
		"events[0]":         func(w *anteroom.Webhook) { w.Events = []string{anteroom.WebhookTest} },
		"events[1]":         func(w *anteroom.Webhook) { w.Events = []string{anteroom.RoomStuck, anteroom.RoomStuck} },
		"events":            func(w *anteroom.Webhook) { w.Events = make([]string, 100) },
		"longer_than":       func(w *anteroom.Webhook) { w.LongerThan = -1 },
		"minutes_before":    func(w *anteroom.Webhook) { w.MinutesBefore = anteroom.MaxMinutesBefore + 1 },
		"saturated_minutes": func(w *anteroom.Webhook) { w.SaturatedMinutes = anteroom.MaxSaturatedMinutes + 1 },
		"zone":              func(w *anteroom.Webhook) { w.Zone = "none" },
		"room":              func(w *anteroom.Webhook) { w.Zone, w.Room = elsewhere, room },
	} {
		w := anteroom.Webhook{Name: "x", URL: slackURL}
		change(&w)
		_, _, err := m.CreateWebhook(ctx, root, w)
		var f anteroom.Faults
		if !errors.As(err, &f) || len(f) != 1 || f[0].Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := m.CreateWebhook(ctx, root, anteroom.Webhook{Name: "x", URL: slackURL, Room: room}); err == nil || !strings.Contains(err.Error(), "zone") {
		t.Errorf("a room without its zone: %v", err)
	}
	if _, _, err := m.RotateWebhook(ctx, root, "x", MaxWebhookOverlap+1); anteroom.KindOf(err) != anteroom.Invalid {
		t.Error(err)
	}
	for range anteroom.MaxWebhooks {
		if _, _, err := m.CreateWebhook(ctx, root, anteroom.Webhook{Name: "x", URL: slackURL}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := m.CreateWebhook(ctx, root, anteroom.Webhook{Name: "x", URL: slackURL}); anteroom.KindOf(err) != anteroom.Invalid {
		t.Errorf("one too many: %v", err)
	}
	none := open(t, Config{})
	if _, _, err := none.CreateWebhook(ctx, root, anteroom.Webhook{Name: "x", URL: slackURL}); anteroom.KindOf(err) != anteroom.Unavailable {
		t.Errorf("where nothing is sent: %v", err)
	}
}
