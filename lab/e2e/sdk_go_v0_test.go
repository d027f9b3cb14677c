package e2e

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/cloudflare-go"
)

// The first Go SDK, which Terraform's provider used for years: whole objects, read,
// modified and written back, with zero values where nothing was set.
func TestFirstGoSDKRunsRoomsFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"token", "key and email"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startOffice(t)
			count := &sent{round: http.DefaultTransport}
			options := []cloudflare.Option{cloudflare.BaseURL(o.api), cloudflare.UsingRateLimit(1000), cloudflare.HTTPClient(&http.Client{Transport: count})}
			api, err := cloudflare.NewWithAPIToken(operatorToken, options...)
			if name != "token" {
				api, err = cloudflare.New(operatorToken, "operator@shop.example", options...)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := sdkV0{t: t, o: o, sent: count, api: api}
			c.zones()
			room := c.rooms()
			c.events(room)
			c.rules(room)
			c.others(room)
			c.refusals(room)
			c.end(room)
		})
	}
}

type sdkV0 struct {
	t    *testing.T
	o    *office
	sent *sent
	api  *cloudflare.API
	zone string
}

func (c *sdkV0) zones() {
	t, ctx := c.t, c.t.Context()
	if got := must[cloudflare.APITokenVerifyBody](t)(c.api.VerifyAPIToken(ctx)); got.Status != "active" {
		t.Errorf("the token: %+v", got)
	}
	accounts, _, err := c.api.Accounts(ctx, cloudflare.AccountsListParams{})
	if err != nil || len(accounts) != 1 || accounts[0].ID != c.o.account {
		t.Fatalf("accounts: %+v, %v", accounts, err)
	}
	zone := must[cloudflare.Zone](t)
	made := zone(c.api.CreateZone(ctx, "tickets.example", false, cloudflare.Account{ID: c.o.account}, "full"))
	c.zone = made.ID
	if id, err := c.api.ZoneIDByName("tickets.example"); err != nil || id != c.zone {
		t.Errorf("the zone's id by its name: %q, %v; want %q", id, err, c.zone)
	}
	if got := zone(c.api.ZoneDetails(ctx, c.zone)); got.Name != "tickets.example" || got.Account.ID != c.o.account || got.Status != "active" {
		t.Errorf("the zone: %+v", got)
	}
	if all := must[[]cloudflare.Zone](t)(c.api.ListZones(ctx)); len(all) != 2 {
		t.Errorf("zones: %+v", all)
	}
}

func (c *sdkV0) rooms() string {
	t, ctx := c.t, c.t.Context()
	room := must[cloudflare.WaitingRoom](t)
	// Sparsely filled: path "", session duration 0, status code 0.
	made, err := c.api.CreateWaitingRoom(ctx, c.zone, cloudflare.WaitingRoom{Name: "shop", Host: "tickets.example", TotalActiveUsers: 300, NewUsersPerMinute: 200})
	if err != nil {
		t.Fatal(err)
	}
	if made.Path != "/" || made.SessionDuration != 5 || made.QueueingStatusCode != 200 || made.QueueingMethod != "fifo" ||
		made.DefaultTemplateLanguage != "en-US" || made.CookieAttributes == nil || *made.CookieAttributes != (cloudflare.WaitingRoomCookieAttributes{Samesite: "auto", Secure: "auto"}) ||
		made.NextEventStartTime != nil || made.NextEventPrequeueStartTime != nil || made.TurnstileMode != "invisible" {
		t.Errorf("a room by its defaults: %+v", made)
	}
	// Read, modify, write: what came back goes out again, the read-only members included.
	got := room(c.api.WaitingRoom(ctx, c.zone, made.ID))
	got.Description, got.Path, got.CookieSuffix, got.SessionDuration, got.QueueingStatusCode = "Everything", "/buy", "tickets", 12, 429
	got.AdditionalRoutes = []*cloudflare.WaitingRoomRoute{{Host: "www.tickets.example", Path: "/buy"}}
	got.EnabledOriginCommands = []string{"revoke"}
	put := room(c.api.UpdateWaitingRoom(ctx, c.zone, got))
	if put.ID != made.ID || put.Description != "Everything" || put.SessionDuration != 12 || len(put.AdditionalRoutes) != 1 || !slices.Equal(put.EnabledOriginCommands, []string{"revoke"}) {
		t.Errorf("after PUT: %+v", put)
	}
	put.QueueAll, put.Description = true, "Closed for now"
	patched := room(c.api.ChangeWaitingRoom(ctx, c.zone, made.ID, put))
	if !patched.QueueAll || patched.Description != "Closed for now" || patched.Path != "/buy" || len(patched.AdditionalRoutes) != 1 || !patched.CreatedOn.Equal(made.CreatedOn) {
		t.Errorf("after PATCH of the whole: %+v", patched)
	}
	// A sparse PATCH sends 0 and "" for what it does not name; they stand for the defaults.
	sparse := room(c.api.ChangeWaitingRoom(ctx, c.zone, made.ID, cloudflare.WaitingRoom{Name: "shop", Host: "tickets.example", TotalActiveUsers: 250, NewUsersPerMinute: 200, CookieSuffix: "tickets"}))
	if sparse.TotalActiveUsers != 250 || sparse.SessionDuration != 5 || sparse.QueueingStatusCode != 200 || sparse.Path != "/" || sparse.QueueAll {
		t.Errorf("after a sparse PATCH: %+v", sparse)
	}
	if all := must[[]cloudflare.WaitingRoom](t)(c.api.ListWaitingRooms(ctx, c.zone)); len(all) != 1 || all[0].ID != made.ID {
		t.Errorf("rooms: %+v", all)
	}
	return made.ID
}

func (c *sdkV0) events(room string) {
	t, ctx := c.t, c.t.Context()
	event := must[cloudflare.WaitingRoomEvent](t)
	// With the nanoseconds that a clock gives.
	start := time.Now().Add(time.Hour)
	prequeue := start.Add(-5 * time.Minute)
	made, err := c.api.CreateWaitingRoomEvent(ctx, c.zone, room, cloudflare.WaitingRoomEvent{Name: "sale", EventStartTime: start, EventEndTime: start.Add(time.Minute),
		PrequeueStartTime: &prequeue, ShuffleAtEventStart: true})
	if err != nil {
		t.Fatal(err)
	}
	if !made.EventStartTime.Equal(start) || made.PrequeueStartTime == nil || !made.PrequeueStartTime.Equal(prequeue) || !made.ShuffleAtEventStart || made.SessionDuration != 0 || made.DisableSessionRenewal != nil {
		t.Errorf("the event: %+v", made)
	}
	got := event(c.api.WaitingRoomEvent(ctx, c.zone, room, made.ID))
	got.QueueingMethod, got.TotalActiveUsers, got.NewUsersPerMinute = "random", 500, 400
	put := event(c.api.UpdateWaitingRoomEvent(ctx, c.zone, room, got))
	if put.QueueingMethod != "random" || put.TotalActiveUsers != 500 || !put.EventStartTime.Equal(start) {
		t.Errorf("after PUT: %+v", put)
	}
	put.Description = "The big one"
	if patched := event(c.api.ChangeWaitingRoomEvent(ctx, c.zone, room, put)); patched.Description != "The big one" || patched.QueueingMethod != "random" {
		t.Errorf("after PATCH: %+v", patched)
	}
	if preview := event(c.api.WaitingRoomEventPreview(ctx, c.zone, room, made.ID)); preview.SessionDuration != 5 || preview.TotalActiveUsers != 500 || preview.QueueingMethod != "random" {
		t.Errorf("details: %+v", preview)
	}
	planned := must[cloudflare.WaitingRoom](t)(c.api.WaitingRoom(ctx, c.zone, room))
	if planned.NextEventStartTime == nil || !planned.NextEventStartTime.Equal(start) || planned.NextEventPrequeueStartTime == nil || !planned.NextEventPrequeueStartTime.Equal(prequeue) {
		t.Errorf("the room's next event: %v, %v", planned.NextEventPrequeueStartTime, planned.NextEventStartTime)
	}
	if all := must[[]cloudflare.WaitingRoomEvent](t)(c.api.ListWaitingRoomEvents(ctx, c.zone, room)); len(all) != 1 {
		t.Errorf("events: %+v", all)
	}
	if err := c.api.DeleteWaitingRoomEvent(ctx, c.zone, room, made.ID); err != nil {
		t.Error(err)
	}
}

func (c *sdkV0) rules(room string) {
	t, ctx := c.t, c.t.Context()
	list := must[[]cloudflare.WaitingRoomRule](t)
	zone := cloudflare.ZoneIdentifier(c.zone)
	rule := func(expression string) cloudflare.WaitingRoomRule { // "enabled": null
		return cloudflare.WaitingRoomRule{Action: "bypass_waiting_room", Expression: expression}
	}
	all := list(c.api.CreateWaitingRoomRule(ctx, zone, cloudflare.CreateWaitingRoomRuleParams{WaitingRoomID: room, Rule: rule("ssl")}))
	if len(all) != 1 || all[0].Enabled == nil || !*all[0].Enabled || all[0].Version != "1" || all[0].LastUpdated == nil {
		t.Fatalf("rules: %+v", all)
	}
	all[0].Enabled = cloudflare.BoolPtr(false)
	all = list(c.api.UpdateWaitingRoomRule(ctx, zone, cloudflare.UpdateWaitingRoomRuleParams{WaitingRoomID: room, Rule: all[0]}))
	if *all[0].Enabled || all[0].Version == "1" {
		t.Errorf("the changed rule: %+v", all[0])
	}
	all = list(c.api.ReplaceWaitingRoomRules(ctx, zone, cloudflare.ReplaceWaitingRoomRuleParams{WaitingRoomID: room,
		Rules: []cloudflare.WaitingRoomRule{rule(`http.request.uri.path eq "/health"`), rule("ip.src in {192.0.2.1}")}}))
	if len(all) != 2 {
		t.Fatalf("replaced: %+v", all)
	}
	all = list(c.api.DeleteWaitingRoomRule(ctx, zone, cloudflare.DeleteWaitingRoomRuleParams{WaitingRoomID: room, RuleID: all[0].ID}))
	if len(all) != 1 || all[0].Expression != "ip.src in {192.0.2.1}" {
		t.Errorf("after deletion: %+v", all)
	}
	if again := list(c.api.ListWaitingRoomRules(ctx, zone, cloudflare.ListWaitingRoomRuleParams{WaitingRoomID: room})); len(again) != 1 || again[0].ID != all[0].ID {
		t.Errorf("read after that: %+v", again)
	}
}

func (c *sdkV0) others(room string) {
	t, ctx := c.t, c.t.Context()
	zone, account := cloudflare.ZoneIdentifier(c.zone), cloudflare.AccountIdentifier(c.o.account)
	settings := must[cloudflare.WaitingRoomSettings](t)
	if settings(c.api.GetWaitingRoomSettings(ctx, zone)).SearchEngineCrawlerBypass {
		t.Error("crawlers pass a new zone")
	}
	if !settings(c.api.UpdateWaitingRoomSettings(ctx, zone, cloudflare.UpdateWaitingRoomSettingsParams{SearchEngineCrawlerBypass: cloudflare.BoolPtr(true)})).SearchEngineCrawlerBypass {
		t.Error("PUT did not change the setting")
	}
	if settings(c.api.PatchWaitingRoomSettings(ctx, zone, cloudflare.PatchWaitingRoomSettingsParams{SearchEngineCrawlerBypass: cloudflare.BoolPtr(false)})).SearchEngineCrawlerBypass {
		t.Error("PATCH did not change the setting")
	}
	if got := must[cloudflare.WaitingRoomStatus](t)(c.api.WaitingRoomStatus(ctx, c.zone, room)); got != (cloudflare.WaitingRoomStatus{Status: "not_queueing"}) {
		t.Errorf("status: %+v", got)
	}
	preview := must[cloudflare.WaitingRoomPagePreviewURL](t)(c.api.WaitingRoomPagePreview(ctx, c.zone, "<p>{{waitTime}} minutes"))
	res, err := http.Get(preview.PreviewURL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), "<p>10 minutes") {
		t.Errorf("%s shows %s %v %s", preview.PreviewURL, res.Status, err, body)
	}
	list := must[cloudflare.List](t)(c.api.CreateList(ctx, account, cloudflare.ListCreateParams{Name: "office", Kind: cloudflare.ListTypeIP}))
	items := must[[]cloudflare.ListItem](t)(c.api.CreateListItem(ctx, account, cloudflare.ListCreateItemParams{ID: list.ID,
		Item: cloudflare.ListItemCreateRequest{IP: cloudflare.StringPtr("192.0.2.7"), Comment: "the desk"}}))
	if len(items) != 1 || items[0].IP == nil || *items[0].IP != "192.0.2.7" || items[0].Comment != "the desk" {
		t.Errorf("the list holds %+v", items)
	}
	if all := must[[]cloudflare.List](t)(c.api.ListLists(ctx, account, cloudflare.ListListsParams{})); len(all) != 1 || all[0].NumItems != 1 {
		t.Errorf("lists: %+v", all)
	}
	if _, err := c.api.DeleteList(ctx, account, list.ID); err != nil {
		t.Error(err)
	}
}

func (c *sdkV0) refusals(room string) {
	t, ctx := c.t, c.t.Context()
	before := c.sent.n.Load()
	_, err := c.api.CreateWaitingRoom(ctx, c.zone, cloudflare.WaitingRoom{Name: "shop", Host: "tickets.example", Path: "/x", TotalActiveUsers: 200, NewUsersPerMinute: 201})
	var bad *cloudflare.RequestError
	if !errors.As(err, &bad) || !slices.Contains(bad.ErrorCodes(), 1002) {
		t.Errorf("more a minute than inside: %v", err)
	}
	if n := c.sent.n.Load() - before; n != 1 {
		t.Errorf("the client tried %d times", n)
	}
	var missing *cloudflare.NotFoundError
	if _, err := c.api.WaitingRoom(ctx, c.zone, strings.Repeat("0", 32)); !errors.As(err, &missing) || !slices.Contains(missing.ErrorCodes(), 1001) {
		t.Errorf("a room that is not there: %v", err)
	}
	if _, err := c.api.WaitingRoom(ctx, c.zone, room+"/no/such/path"); !errors.As(err, &missing) && !errors.As(err, &bad) {
		t.Errorf("a path that is not there: %v", err)
	}
	stranger, err := cloudflare.NewWithAPIToken(operatorToken+"x", cloudflare.BaseURL(c.o.api))
	if err != nil {
		t.Fatal(err)
	}
	var denied *cloudflare.AuthenticationError
	if _, err := stranger.WaitingRoom(ctx, c.zone, room); !errors.As(err, &denied) {
		t.Errorf("a token that is not ours: %v", err)
	}
}

func (c *sdkV0) end(room string) {
	t, ctx := c.t, c.t.Context()
	if err := c.api.DeleteWaitingRoom(ctx, c.zone, room); err != nil {
		t.Error(err)
	}
	if got := must[cloudflare.ZoneID](t)(c.api.DeleteZone(ctx, c.zone)); got.ID != c.zone {
		t.Errorf("deleting zone %s answered %q", c.zone, got.ID)
	}
}
