package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
	"github.com/anteroom/anteroom/manage/webhook"
)

const loopbackAllowed = "webhooks: {allow_networks: 127.0.0.0/8}\n"

var hookOwner = manage.Caller{Name: "owner", Grants: []manage.Grant{{Permission: manage.Admin}}}

// hookReceiver is a receiver that keeps what it gets.
type hookReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*http.Request
	bodies []string
	status int
}

func newHookReceiver(t *testing.T) *hookReceiver {
	t.Helper()
	l := &hookReceiver{status: http.StatusOK}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.got, l.bodies = append(l.got, r), append(l.bodies, string(body))
		w.WriteHeader(l.status)
	}))
	t.Cleanup(l.Close)
	return l
}

// types are those of the messages, in the order in which they came.
func (l *hookReceiver) types() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.got {
		all = append(all, r.Header.Get(webhook.TypeHeader))
	}
	return all
}

func (l *hookReceiver) await(t *testing.T, types ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("not told %v", types), func() bool { return len(l.types()) >= len(types) })
	if got := l.types(); !slices.Equal(got, types) {
		t.Fatalf("told %v, want %v", got, types)
	}
}

// impatient starts a server that tells at once what it would tell after a while.
func (r *running) impatient() *running {
	r.t.Helper()
	o := r.options()
	o.webhookLook = 20 * time.Millisecond
	o.webhookPace = webhook.Pace{Queueing: 100 * time.Millisecond, Gap: 300 * time.Millisecond}
	s, err := New(r.t.Context(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.serve(s)
	return r
}

func (r *running) hook(w anteroom.Webhook) (manage.ShownWebhook, string) {
	r.t.Helper()
	made, secret, err := r.s.Manager().CreateWebhook(r.t.Context(), hookOwner, w)
	if err != nil {
		r.t.Fatal(err)
	}
	return made, secret
}

// A room fills, and recovers: each is told once, signed, and the log knows neither the secret nor
// the address.
func TestWebhooksTellWhatHappens(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	l := newHookReceiver(t)
	r := prepareServer(t, listenAnywhere+loopbackAllowed+"rooms: [{name: shop, host: \"*\", total_active_users: 1, new_users_per_minute: 100, session_duration: 1s}]\n").impatient()
	made, secret := r.hook(anteroom.Webhook{Name: "on call", URL: l.URL + "/secret-path", Events: []string{anteroom.RoomQueueing, anteroom.RoomRecovered}})
	if a := r.visit("/"); !a.isIn() {
		t.Fatal("the first visitor waits")
	}
	waiting := r.visit("/")
	if waiting.isIn() {
		t.Fatal("two are in")
	}
	cookies := waiting.Cookies()
	l.await(t, anteroom.RoomQueueing)
	eventually(t, "the second visitor is not let in", func() bool {
		a := r.visit("/", cookies...)
		if next := a.Cookies(); len(next) > 0 {
			cookies = next
		}
		return a.isIn()
	})
	l.await(t, anteroom.RoomQueueing, anteroom.RoomRecovered)

	for i, req := range l.got {
		if err := webhook.Verify(req.Header.Get(webhook.SignatureHeader), []byte(l.bodies[i]), secret, time.Now(), webhook.DefaultTolerance); err != nil {
			t.Error(err)
		}
	}
	var m webhook.Message
	if err := json.Unmarshal([]byte(l.bodies[0]), &m); err != nil || m.Room.Name != "shop" || m.Webhook.ID != string(made.ID) || m.Figures.Waiting != 1 || m.Figures.TotalActiveUsers != 1 {
		t.Errorf("%s, %v", l.bodies[0], err)
	}
	eventually(t, "the deliveries do not say so", func() bool {
		all, err := r.s.Manager().Deliveries(t.Context(), hookOwner, made.ID)
		return err == nil && len(all) == 2 && all[0].Type == anteroom.RoomRecovered && all[0].State == anteroom.DeliveryDelivered && all[1].State == anteroom.DeliveryDelivered
	})
	if log := r.log.String(); strings.Contains(log, secret) || strings.Contains(log, "secret-path") {
		t.Error("the log has the secret or the address")
	}
}

// Changes are told whom they concern, without secrets; what was not taken waits over a restart.
func TestWebhooksTellOfChanges(t *testing.T) {
	l, other := newHookReceiver(t), newHookReceiver(t)
	r := prepareServer(t, listenAnywhere+loopbackAllowed+roomForTwo).impatient()
	shop := r.s.Config().Rooms[0]
	zone, _ := r.s.Manager().State().ZoneNamed(shop.Zone)
	all, _ := r.hook(anteroom.Webhook{Name: "all", URL: l.URL, Format: anteroom.FormatSlack, Events: []string{anteroom.ConfigChanged}})
	r.hook(anteroom.Webhook{Name: "one zone", URL: other.URL, Zone: zone.ID, Events: []string{anteroom.ConfigChanged}})
	l.await(t, anteroom.ConfigChanged) // the second webhook is a change, too
	if strings.Contains(l.bodies[0], strings.TrimPrefix(other.URL, "http://")+"/") && strings.Contains(l.bodies[0], `salt`) {
		t.Errorf("%s", l.bodies[0])
	}
	other.mu.Lock()
	other.status = http.StatusInternalServerError
	other.mu.Unlock()
	if _, err := r.s.Manager().ChangeControls(t.Context(), hookOwner, zone.ID, shop.ID, func(c *anteroom.Controls) error { c.Paused = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.s.Manager().CreateToken(t.Context(), hookOwner, manage.TokenSpec{Name: "t", Grants: hookOwner.Grants}); err != nil {
		t.Fatal(err)
	}
	l.await(t, anteroom.ConfigChanged, anteroom.ConfigChanged, anteroom.ConfigChanged)
	other.await(t, anteroom.ConfigChanged)
	if want := `{"text":"owner: room.controls shop: room.controls.paused false → true"}`; l.bodies[1] != want {
		t.Errorf("%s, want %s", l.bodies[1], want)
	}
	var m webhook.Message
	if err := json.Unmarshal([]byte(other.bodies[0]), &m); err != nil || m.Change.Operation != "room.controls" || m.Room.ID != string(shop.ID) || m.Change.Actor != "owner" {
		t.Errorf("%s, %v", other.bodies[0], err)
	}

	hooks, err := r.s.Manager().Webhooks(hookOwner)
	if err != nil || len(hooks) != 2 {
		t.Fatal(hooks, err)
	}
	pending := func() bool {
		d, err := r.s.Manager().Deliveries(t.Context(), hookOwner, hooks[1].ID)
		return err == nil && len(d) == 1 && d[0].State == anteroom.DeliveryPending && d[0].Status == 500 && d[0].Attempts == 1 && !d[0].NextOn.IsZero()
	}
	eventually(t, "it is not tried again", pending)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.impatient()
	if !pending() {
		t.Error("the restart has lost a delivery")
	}
	if err := r.s.Manager().DeleteWebhook(t.Context(), hookOwner, all.ID); err != nil {
		t.Fatal(err)
	}
	if got := l.types(); len(got) != 3 {
		t.Errorf("after the restart it was told again: %v", got)
	}
}

func TestWebhooksReachOnlyWhatIsAllowed(t *testing.T) {
	l := newHookReceiver(t)
	r := startServer(t, oneRoom)
	m := r.s.Manager()
	for _, url := range []string{l.URL, "https" + strings.TrimPrefix(l.URL, "http"), "https://169.254.169.254/", "http://example.com/", "https://" + r.s.Addresses().Admin} {
		if _, _, err := m.CreateWebhook(t.Context(), hookOwner, anteroom.Webhook{Name: "x", URL: url}); url != "https://"+r.s.Addresses().Admin && anteroom.KindOf(err) != anteroom.Invalid {
			t.Errorf("%s: %v", url, err)
		}
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(l.URL, "http://"), ":")
	named, _ := r.hook(anteroom.Webhook{Name: "by name", URL: "https://localhost:" + port + "/"})
	d, err := m.TestWebhook(t.Context(), hookOwner, named.ID)
	if err != nil || d.State != anteroom.DeliveryFailed || !strings.Contains(d.Error, "webhooks.allow_networks") || len(l.types()) != 0 {
		t.Errorf("%+v, %v, reached %v", d, err, l.types())
	}
	r.mustReload(loopbackAllowed + oneRoom)
	made, secret := r.hook(anteroom.Webhook{Name: "allowed", URL: l.URL, Disabled: true})
	d, err = m.TestWebhook(t.Context(), hookOwner, made.ID)
	if err != nil || d.State != anteroom.DeliveryDelivered || d.Status != 200 {
		t.Errorf("%+v, %v", d, err)
	}
	l.await(t, anteroom.WebhookTest)
	if err := webhook.Verify(l.got[0].Header.Get(webhook.SignatureHeader), []byte(l.bodies[0]), secret, time.Now(), webhook.DefaultTolerance); err != nil {
		t.Error(err)
	}
	if all, err := m.Deliveries(t.Context(), hookOwner, made.ID); err != nil || len(all) != 1 || all[0].ID != d.ID || !strings.Contains(all[0].Text, "sent by owner") {
		t.Errorf("%+v, %v", all, err)
	}
}

// In a cluster one node sends, whoever was asked.
func TestOneNodeSendsWebhooks(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	t.Parallel()
	l := newHookReceiver(t)
	r, core := prepareCore(t, loopbackAllowed+oneRoom)
	r.impatient()
	second := prepareEdge(t, core, clusterSecret, loopbackAllowed)
	second.impatient()
	made, secret := second.hook(anteroom.Webhook{Name: "on call", URL: l.URL, Events: []string{anteroom.ConfigChanged}})
	for i, at := range []*running{r, second} {
		eventually(t, "a node does not know the webhook", func() bool { return at.s.Manager().State().HasWebhook(made.ID) })
		if _, _, err := at.s.Manager().CreateToken(t.Context(), hookOwner, manage.TokenSpec{Name: fmt.Sprint(i), Grants: hookOwner.Grants}); err != nil {
			t.Fatal(err)
		}
	}
	l.await(t, anteroom.ConfigChanged, anteroom.ConfigChanged)
	if err := webhook.Verify(l.got[0].Header.Get(webhook.SignatureHeader), []byte(l.bodies[0]), secret, time.Now(), webhook.DefaultTolerance); err != nil {
		t.Errorf("the nodes sign differently: %v", err)
	}
	if n := strings.Count(r.log.String()+second.log.String(), "this node now sends webhooks"); n != 1 {
		t.Errorf("%d nodes send", n)
	}
	for _, at := range []*running{r, second} {
		eventually(t, "a node does not see the deliveries", func() bool {
			all, err := at.s.Manager().Deliveries(t.Context(), hookOwner, made.ID)
			return err == nil && len(all) == 2 && all[0].State == anteroom.DeliveryDelivered
		})
	}
}
