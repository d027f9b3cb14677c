package manage

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"time"

	"github.com/anteroom/anteroom"
)

// Webhooks is the side of webhooks that sends.
type Webhooks interface {
	// Key is what the secrets of webhooks are made from: the same at every node, and over every
	// rotation of the ticket keys.
	Key() [32]byte
	// CheckURL returns what is wrong with an address under the configuration of this process.
	CheckURL(url string) error
	// Test sends a webhook.test now, without retries, and returns the result.
	Test(ctx context.Context, w SignedWebhook, by string) (anteroom.Delivery, error)
	// Deliveries returns what was sent lately, the newest first.
	Deliveries(ctx context.Context, id anteroom.WebhookID) ([]anteroom.Delivery, error)
}

// SignedWebhook is a webhook with the secrets that sign what it sends, the newest first.
type SignedWebhook struct {
	anteroom.Webhook
	Secrets []string
}

// ShownWebhook is a webhook without its secrets.
type ShownWebhook struct {
	anteroom.Webhook
	CreatedBy string
	Secrets   []TokenSecret // those that sign, the newest first
}

// storedWebhook is a webhook as it is stored. Its secrets are made from the salts and a key that
// is not in the store.
type storedWebhook struct {
	Made      uint64           `json:"made"`
	Webhook   anteroom.Webhook `json:"webhook"`
	CreatedBy string           `json:"created_by"`
	Secrets   []salted         `json:"secrets"` // the newest first
}

type salted struct {
	Salt      string    `json:"salt"`
	Prefix    string    `json:"prefix"`
	CreatedOn time.Time `json:"created_on"`
	ExpiresOn time.Time `json:"expires_on,omitzero"`
}

type webhookDocument struct {
	header
	storedWebhook
}

// readWebhook reads a document.
func readWebhook(key string, data []byte) (*storedWebhook, error) {
	var d webhookDocument
	if err := decode(key, data, &d); err != nil {
		return nil, err
	}
	if webhookPrefix+string(d.Webhook.ID) != key || len(d.Secrets) == 0 {
		return nil, anteroom.Errorf(anteroom.Unavailable, "the stored document %s cannot be used: it is not this webhook; %s", key, wayBack)
	}
	return &d.storedWebhook, nil
}

const (
	webhookPrefixText = "anw_"
	// MaxWebhookOverlap bounds how long two secrets sign.
	MaxWebhookOverlap = 30 * 24 * time.Hour
)

// secretOfWebhook makes the secret of a salt: "anw_", 32 bytes in base 62 and their CRC-32.
func secretOfWebhook(key [32]byte, id anteroom.WebhookID, salt string) string {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte("anteroom-webhook\x00" + string(id) + "\x00" + salt))
	return spelled(webhookPrefixText, mac.Sum(nil))
}

func (m *Manager) webhooks() (Webhooks, error) {
	if m.cfg.Webhooks == nil {
		return nil, anteroom.Errorf(anteroom.Unavailable, "this process sends no webhooks")
	}
	return m.cfg.Webhooks, nil
}

// oversee returns nil for a caller who may see and change a webhook with this scope: edit in its
// zone or room; admin where it is told of all.
func (by Caller) oversee(zone anteroom.ZoneID, room anteroom.RoomID) error {
	if zone == "" {
		return by.need(Admin, "", "")
	}
	return by.need(Edit, zone, room)
}

func (s *State) webhook(id anteroom.WebhookID) (*storedWebhook, error) {
	return find(s.hooks, "webhook", string(id))
}

// HasWebhook reports whether there is such a webhook, disabled ones included.
func (s *State) HasWebhook(id anteroom.WebhookID) bool {
	_, err := s.webhook(id)
	return err == nil
}

// overseen returns a webhook that the caller may see and change.
func (s *State) overseen(by Caller, id anteroom.WebhookID) (*storedWebhook, error) {
	w, err := s.webhook(id)
	if err != nil {
		return nil, err
	}
	return w, by.oversee(w.Webhook.Zone, w.Webhook.Room)
}

func (m *Manager) shownWebhook(w *storedWebhook) ShownWebhook {
	out := ShownWebhook{Webhook: copyWebhook(w.Webhook), CreatedBy: w.CreatedBy}
	for _, s := range w.Secrets {
		if !over(s.ExpiresOn, m.now()) {
			out.Secrets = append(out.Secrets, TokenSecret{Prefix: s.Prefix, CreatedOn: s.CreatedOn, ExpiresOn: s.ExpiresOn})
		}
	}
	return out
}

func copyWebhook(w anteroom.Webhook) anteroom.Webhook {
	w.Events = slices.Clone(w.Events)
	return w
}

// Webhooks returns the webhooks that the caller may change, in the order of their creation.
func (m *Manager) Webhooks(by Caller) ([]ShownWebhook, error) {
	if !slices.ContainsFunc(by.Grants, func(g Grant) bool { return g.Permission == Edit || g.Permission == Admin }) {
		return nil, denied(Edit)
	}
	out := []ShownWebhook{}
	for _, w := range m.State().hooks {
		if by.oversee(w.Webhook.Zone, w.Webhook.Room) == nil {
			out = append(out, m.shownWebhook(w))
		}
	}
	return out, nil
}

// Webhook returns a webhook.
func (m *Manager) Webhook(by Caller, id anteroom.WebhookID) (ShownWebhook, error) {
	w, err := m.State().overseen(by, id)
	if err != nil {
		return ShownWebhook{}, err
	}
	return m.shownWebhook(w), nil
}

// SignedWebhooks returns all enabled webhooks, with their secrets, for the process that sends.
func (m *Manager) SignedWebhooks() []SignedWebhook {
	var out []SignedWebhook
	for _, w := range m.State().hooks {
		if !w.Webhook.Disabled {
			out = append(out, m.signed(w))
		}
	}
	return out
}

func (m *Manager) signed(w *storedWebhook) SignedWebhook {
	out := SignedWebhook{Webhook: w.Webhook}
	if m.cfg.Webhooks == nil {
		return out
	}
	key := m.cfg.Webhooks.Key()
	for _, s := range w.Secrets {
		if !over(s.ExpiresOn, m.now()) {
			out.Secrets = append(out.Secrets, secretOfWebhook(key, w.Webhook.ID, s.Salt))
		}
	}
	return out
}

// CreateWebhook makes a webhook. The secret is returned this once.
func (m *Manager) CreateWebhook(ctx context.Context, by Caller, w anteroom.Webhook) (made ShownWebhook, text string, err error) {
	sender, err := m.webhooks()
	if err != nil {
		return made, "", err
	}
	if err := by.oversee(w.Zone, w.Room); err != nil {
		return made, "", err
	}
	w = copyWebhook(w.WithDefaults())
	err = m.change(ctx, by, func(t *tx) error {
		if len(t.old.hooks) >= anteroom.MaxWebhooks {
			return anteroom.Errorf(anteroom.Invalid, "there are already %d webhooks, the maximum: delete unused ones", len(t.old.hooks))
		}
		w.ID, w.CreatedOn = anteroom.WebhookID(newID()), t.now
		one := &storedWebhook{Made: t.seq(), Webhook: w, CreatedBy: by.Name}
		text = one.freshSecret(sender.Key(), t.now, 0)
		if err := t.setWebhook("webhook.create", nil, one); err != nil {
			return err
		}
		made = m.shownWebhook(one)
		return nil
	})
	return made, text, err
}

// freshSecret puts a new secret before that of now, which signs for the overlap, too.
func (w *storedWebhook) freshSecret(key [32]byte, now time.Time, overlap time.Duration) (text string) {
	salt := newID() // what the secret is made from, beside the key
	text = secretOfWebhook(key, w.Webhook.ID, salt)
	all := []salted{{Salt: salt, Prefix: text[:shownPrefix], CreatedOn: now}}
	if overlap > 0 {
		last := w.Secrets[0]
		last.ExpiresOn = now.Add(overlap)
		all = append(all, last)
	}
	w.Secrets = all
	return text
}

// ChangeWebhook changes a webhook. What fn does to id and times is ignored.
func (m *Manager) ChangeWebhook(ctx context.Context, by Caller, id anteroom.WebhookID, fn func(*anteroom.Webhook) error) (changed ShownWebhook, err error) {
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.old.overseen(by, id)
		if err != nil {
			return err
		}
		w := copyWebhook(old.Webhook)
		if err := fn(&w); err != nil {
			return err
		}
		w.ID, w.CreatedOn, w.ModifiedOn = old.Webhook.ID, old.Webhook.CreatedOn, old.Webhook.ModifiedOn
		one := *old
		one.Webhook = copyWebhook(w)
		if reflect.DeepEqual(w, old.Webhook) {
			changed = m.shownWebhook(old)
			return nil
		}
		if err := t.setWebhook("webhook.change", old, &one); err != nil {
			return err
		}
		changed = m.shownWebhook(&one)
		return nil
	})
	return changed, err
}

// RotateWebhook gives a webhook a new secret. Until the overlap ends, at most MaxWebhookOverlap, both secrets sign;
// zero ends the old one now.
func (m *Manager) RotateWebhook(ctx context.Context, by Caller, id anteroom.WebhookID, overlap time.Duration) (made ShownWebhook, text string, err error) {
	sender, err := m.webhooks()
	if err != nil {
		return made, "", err
	}
	if overlap < 0 || overlap > MaxWebhookOverlap {
		return made, "", anteroom.Faults{{Path: "overlap", Problem: fmt.Sprintf("%v is out of range", overlap), Fix: fmt.Sprintf("0 to %v", MaxWebhookOverlap)}}.Err()
	}
	err = m.change(ctx, by, func(t *tx) error {
		old, err := t.old.overseen(by, id)
		if err != nil {
			return err
		}
		one := *old
		text = one.freshSecret(sender.Key(), t.now, overlap)
		made = m.shownWebhook(&one)
		return t.putWebhook("webhook.rotate", old, &one)
	})
	return made, text, err
}

// DeleteWebhook deletes a webhook. What it was to be told and has not been is dropped.
func (m *Manager) DeleteWebhook(ctx context.Context, by Caller, id anteroom.WebhookID) error {
	return m.change(ctx, by, func(t *tx) error {
		old, err := t.old.overseen(by, id)
		if err != nil {
			return err
		}
		t.next.hooks = without(t.next.hooks, func(w *storedWebhook) bool { return w.Webhook.ID == id })
		t.entry.Zone, t.entry.Room = old.Webhook.Zone, old.Webhook.Room
		t.note("webhook.delete", string(id), old.Webhook.Name, old.audited(), nil)
		t.drop(webhookPrefix + string(id))
		return nil
	})
}

// TestWebhook sends a webhook.test now, even to a disabled webhook.
func (m *Manager) TestWebhook(ctx context.Context, by Caller, id anteroom.WebhookID) (anteroom.Delivery, error) {
	sender, err := m.webhooks()
	if err != nil {
		return anteroom.Delivery{}, err
	}
	w, err := m.State().overseen(by, id)
	if err != nil {
		return anteroom.Delivery{}, err
	}
	if err := m.act(ctx, by, "webhook.test", w.Webhook.Zone, w.Webhook.Room, string(id), nil); err != nil {
		return anteroom.Delivery{}, err
	}
	return sender.Test(ctx, m.signed(w), by.Name)
}

// Deliveries returns the recent deliveries of a webhook, newest first.
func (m *Manager) Deliveries(ctx context.Context, by Caller, id anteroom.WebhookID) ([]anteroom.Delivery, error) {
	sender, err := m.webhooks()
	if err != nil {
		return nil, err
	}
	if _, err := m.State().overseen(by, id); err != nil {
		return nil, err
	}
	return sender.Deliveries(ctx, id)
}

// setWebhook checks a webhook and puts it in its place.
func (t *tx) setWebhook(operation string, before, after *storedWebhook) error {
	w := &after.Webhook
	w.ModifiedOn = t.now
	if err := t.by.oversee(w.Zone, w.Room); err != nil {
		return err
	}
	f := t.old.checkWebhook(*w)
	if len(f) == 0 && t.m.cfg.Webhooks != nil && (before == nil || before.Webhook.URL != w.URL) {
		if err := t.m.cfg.Webhooks.CheckURL(w.URL); err != nil {
			return anteroom.Faults{{Path: "url", Problem: err.Error()}}.Err()
		}
	}
	if err := f.Err(); err != nil {
		return err
	}
	return t.putWebhook(operation, before, after)
}

func (t *tx) putWebhook(operation string, before, after *storedWebhook) error {
	id := after.Webhook.ID
	t.next.hooks = put(t.next.hooks, after, func(o *storedWebhook) bool { return o.Webhook.ID == id })
	var old any
	if before != nil {
		old = before.audited()
	}
	t.entry.Zone, t.entry.Room = after.Webhook.Zone, after.Webhook.Room
	t.note(operation, string(id), after.Webhook.Name, old, after.audited())
	return t.put(webhookPrefix+string(id), webhookDocument{t.header(), *after})
}

// checkWebhook finds what is wrong with a webhook among the zones and rooms of now.
func (s *State) checkWebhook(w anteroom.Webhook) anteroom.Faults {
	f := w.Check()
	if len(f) > 0 || w.Zone == "" {
		return f
	}
	zone, ok := s.Zone(w.Zone)
	if !ok {
		return append(f, anteroom.Fault{Path: "zone", Problem: fmt.Sprintf("there is no zone %.64q", w.Zone)})
	}
	if r := s.byID[w.Room]; w.Room != "" && (r == nil || r.Zone != zone.Name) {
		f = append(f, anteroom.Fault{Path: "room", Problem: fmt.Sprintf("there is no room %.64q in that zone", w.Room)})
	}
	return f
}

// audited is what the audit log shows of a webhook. The path of a URL may be a secret, as
// Slack's is: only whether it is another one is told.
func (w *storedWebhook) audited() storedWebhook {
	shown := *w
	shown.Webhook.URL = maskURL(w.Webhook.URL)
	return shown
}

// maskURL shows of a URL its scheme and host, and by eight digits whether the rest is that of
// another one.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "[secret]"
	}
	sum := sha256.Sum256([]byte(text))
	return u.Scheme + "://" + u.Host + "/… (" + hex.EncodeToString(sum[:4]) + ")"
}
