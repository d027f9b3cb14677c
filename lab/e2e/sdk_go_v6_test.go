package e2e

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cloudflare/cloudflare-go/v6/option"
	"github.com/cloudflare/cloudflare-go/v6/rules"
	"github.com/cloudflare/cloudflare-go/v6/waiting_rooms"
	"github.com/cloudflare/cloudflare-go/v6/zones"
)

// given returns parameters of the SDK with the named fields set; nil is an explicit null. It
// stands for the SDK's own F and Null, which lie in its root package: that one compiles
// every product there is, for minutes.
func given[P any](values map[string]any) P {
	var p P
	for name, value := range values {
		field := reflect.ValueOf(&p).Elem().FieldByName(name)
		present := reflect.Value{}
		if field.Kind() == reflect.Struct {
			present = field.FieldByName("Present")
		}
		if !present.IsValid() {
			field.Set(reflect.ValueOf(value))
			continue
		}
		present.SetBool(true)
		if value == nil {
			field.FieldByName("Null").SetBool(true)
			continue
		}
		to := field.FieldByName("Value")
		to.Set(reflect.ValueOf(value).Convert(to.Type()))
	}
	return p
}

type set = map[string]any

// sent counts the requests that a client makes: what it repeats counts again.
type sent struct {
	n     atomic.Int64
	round http.RoundTripper
}

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.n.Add(1)
	return s.round.RoundTrip(r)
}

// must returns a call's result, or fails.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestGoSDKRunsRoomsFromCreationToDeletion(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string][]option.RequestOption{
		"token":         {option.WithAPIToken(operatorToken)},
		"key and email": {option.WithAPIKey(operatorToken), option.WithAPIEmail("operator@shop.example")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := startOffice(t)
			count := &sent{round: http.DefaultTransport}
			c := sdkV6{t: t, o: o, sent: count, options: append(credentials,
				option.WithBaseURL(o.api), option.WithHTTPClient(&http.Client{Transport: count}))}
			c.zones()
			c.settings()
			room := c.rooms()
			c.events(room)
			c.rules(room)
			c.statusAndPreview(room)
			c.lists(room)
			c.refusals(room)
			c.end(room)
		})
	}
}

type sdkV6 struct {
	t       *testing.T
	o       *office
	sent    *sent
	options []option.RequestOption
	zone    string
	api     *waiting_rooms.WaitingRoomService
}

func (c *sdkV6) zones() {
	t, ctx := c.t, c.t.Context()
	api := zones.NewZoneService(c.options...)
	made := must[*zones.Zone](t)(api.New(ctx, given[zones.ZoneNewParams](set{"Name": "tickets.example", "Type": "full",
		"Account": given[zones.ZoneNewParamsAccount](set{"ID": c.o.account})})))
	if len(made.ID) != 32 || made.Name != "tickets.example" || made.Account.ID != c.o.account {
		t.Fatalf("the zone: %s", made.JSON.RawJSON())
	}
	named := must[any](t)
	page, err := api.List(ctx, given[zones.ZoneListParams](set{"Name": "tickets.example"}))
	named(page, err)
	if len(page.Result) != 1 || page.Result[0].ID != made.ID {
		t.Fatalf("zones of that name: %+v", page.Result)
	}
	all := 0
	for pages := api.ListAutoPaging(ctx, given[zones.ZoneListParams](set{"PerPage": 5.0})); pages.Next(); {
		all++
	}
	if all != 2 {
		t.Errorf("%d zones, want 2", all)
	}
	if got := must[*zones.Zone](t)(api.Get(ctx, given[zones.ZoneGetParams](set{"ZoneID": made.ID}))); got.Name != made.Name {
		t.Errorf("the zone by its id: %s", got.JSON.RawJSON())
	}
	c.zone = made.ID
	c.api = waiting_rooms.NewWaitingRoomService(c.options...)
}

func (c *sdkV6) settings() {
	t, ctx, api := c.t, c.t.Context(), c.api.Settings
	get := func() bool {
		t.Helper()
		return must[*waiting_rooms.SettingGetResponse](t)(api.Get(ctx, given[waiting_rooms.SettingGetParams](set{"ZoneID": c.zone}))).SearchEngineCrawlerBypass
	}
	if get() {
		t.Error("crawlers pass a new zone")
	}
	update := must[*waiting_rooms.SettingUpdateResponse](t)
	if !update(api.Update(ctx, given[waiting_rooms.SettingUpdateParams](set{"ZoneID": c.zone, "SearchEngineCrawlerBypass": true}))).SearchEngineCrawlerBypass || !get() {
		t.Error("the zone's setting did not change")
	}
	edit := must[*waiting_rooms.SettingEditResponse](t)
	if !edit(api.Edit(ctx, given[waiting_rooms.SettingEditParams](set{"ZoneID": c.zone}))).SearchEngineCrawlerBypass {
		t.Error("PATCH without the setting changed it")
	}
	if edit(api.Edit(ctx, given[waiting_rooms.SettingEditParams](set{"ZoneID": c.zone, "SearchEngineCrawlerBypass": false}))).SearchEngineCrawlerBypass || get() {
		t.Error("the zone's setting did not change back")
	}
}

func (c *sdkV6) rooms() string {
	t, ctx, api := c.t, c.t.Context(), c.api
	room := must[*waiting_rooms.WaitingRoom](t)
	least := set{"Name": "shop", "Host": "tickets.example", "TotalActiveUsers": 300, "NewUsersPerMinute": 200}
	query := func(more set) waiting_rooms.QueryParam {
		all := set{}
		for _, from := range []set{least, more} {
			for k, v := range from {
				all[k] = v
			}
		}
		return given[waiting_rooms.QueryParam](all)
	}
	made := room(api.New(ctx, given[waiting_rooms.WaitingRoomNewParams](set{"ZoneID": c.zone, "Query": query(nil)})))
	// Members that change are checked apart, the others word by word.
	stable := func(r *waiting_rooms.WaitingRoom) string {
		return published(t, strings.NewReplacer(r.ID, "ID", r.JSON.CreatedOn.Raw(), `"created"`, r.JSON.ModifiedOn.Raw(), `"modified"`).Replace(r.JSON.RawJSON()))
	}
	if len(made.ID) != 32 || made.CreatedOn.IsZero() || made.ModifiedOn.IsZero() {
		t.Errorf("the room: %s", made.JSON.RawJSON())
	}
	const defaults = `{"id":"ID","created_on":"created","modified_on":"modified","name":"shop","description":"",
		"host":"tickets.example","path":"/","additional_routes":[],"cookie_suffix":"",
		"cookie_attributes":{"samesite":"auto","secure":"auto"},"total_active_users":300,"new_users_per_minute":200,
		"session_duration":5,"disable_session_renewal":false,"queueing_method":"fifo","queueing_status_code":200,
		"queue_all":false,"suspended":false,"custom_page_html":"","default_template_language":"en-US",
		"json_response_enabled":false,"enabled_origin_commands":[],"turnstile_mode":"invisible","turnstile_action":"log",
		"next_event_prequeue_start_time":null,"next_event_start_time":null}`
	sameJSON(t, "a room by its defaults", []byte(stable(made)), strings.Replace(defaults, `"modified"`, `"created"`, 1))
	full := set{"Description": "Everything", "Path": "/buy", "CookieSuffix": "tickets", "QueueAll": true, "SessionDuration": 12,
		"AdditionalRoutes":        []waiting_rooms.AdditionalRoutesParam{given[waiting_rooms.AdditionalRoutesParam](set{"Host": "www.tickets.example", "Path": "/buy"})},
		"CookieAttributes":        given[waiting_rooms.CookieAttributesParam](set{"Samesite": "none", "Secure": "always"}),
		"DefaultTemplateLanguage": "de-DE", "DisableSessionRenewal": true, "JsonResponseEnabled": true, "QueueingMethod": "random",
		"EnabledOriginCommands": []waiting_rooms.QueryEnabledOriginCommand{"revoke"}, "QueueingStatusCode": 429,
		"CustomPageHTML": "<p>{{waitTime}}</p>", "TurnstileMode": "off"}
	update := func(more set) *waiting_rooms.WaitingRoom {
		t.Helper()
		return room(api.Update(ctx, made.ID, given[waiting_rooms.WaitingRoomUpdateParams](set{"ZoneID": c.zone, "Query": query(more)})))
	}
	updated := update(full)
	if updated.SessionDuration != 12 || updated.CookieAttributes.Samesite != "none" || len(updated.AdditionalRoutes) != 1 ||
		updated.QueueingStatusCode != 429 || updated.CustomPageHTML != "<p>{{waitTime}}</p>" || len(updated.EnabledOriginCommands) != 1 {
		t.Errorf("after PUT: %s", updated.JSON.RawJSON())
	}
	if !updated.CreatedOn.Equal(made.CreatedOn) || !updated.ModifiedOn.After(made.ModifiedOn) {
		t.Errorf("created %v, then %v; modified %v, then %v", made.CreatedOn, updated.CreatedOn, made.ModifiedOn, updated.ModifiedOn)
	}
	edited := room(api.Edit(ctx, made.ID, given[waiting_rooms.WaitingRoomEditParams](set{"ZoneID": c.zone,
		"Query": given[waiting_rooms.QueryParam](set{"Description": "Only this", "CookieAttributes": given[waiting_rooms.CookieAttributesParam](set{"Samesite": "lax"})})})))
	want := strings.Replace(stable(updated), `"Everything"`, `"Only this"`, 1)
	if got := strings.Replace(stable(edited), `"samesite":"lax"`, `"samesite":"none"`, 1); edited.CookieAttributes.Samesite != "lax" {
		t.Errorf("after PATCH: %s", got)
	} else if edited.CookieAttributes.Secure == "always" {
		sameJSON(t, "PATCH changes what it names", []byte(got), want)
	}
	sameJSON(t, "PUT resets what it does not name", []byte(stable(update(nil))), defaults)
	got := room(api.Get(ctx, made.ID, given[waiting_rooms.WaitingRoomGetParams](set{"ZoneID": c.zone})))
	sameJSON(t, "GET says the same", []byte(stable(got)), defaults)

	// Pages: seven rooms, five to a page, until a page is empty.
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		room(api.New(ctx, given[waiting_rooms.WaitingRoomNewParams](set{"ZoneID": c.zone, "Query": query(set{"Name": name, "Path": "/" + name})})))
	}
	for _, where := range []set{{"ZoneID": c.zone}, {"AccountID": c.o.account}} {
		where["PerPage"] = 5.0
		var names []string
		pages := api.ListAutoPaging(ctx, given[waiting_rooms.WaitingRoomListParams](where))
		for pages.Next() && len(names) < 100 {
			names = append(names, pages.Current().Name)
		}
		if err := pages.Err(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names, " "); got != "shop a b c d e f" {
			t.Errorf("all pages with %v: %s", where, got)
		}
	}
	return made.ID
}

func (c *sdkV6) events(room string) {
	t, ctx, api := c.t, c.t.Context(), c.api.Events
	event := must[*waiting_rooms.Event](t)
	// As an operator writes it: an offset, and a fraction that is not ours.
	start := time.Now().Add(time.Hour).In(time.FixedZone("", 2*3600)).Format("2006-01-02T15:04:05.000-07:00")
	end := time.Now().Add(3 * time.Hour).UTC().Format("2006-01-02T15:04:05Z")
	prequeue := time.Now().Add(30 * time.Minute).UTC().Format("2006-01-02T15:04:05.00Z")
	least := set{"Name": "sale", "EventStartTime": start, "EventEndTime": end}
	made := event(api.New(ctx, room, given[waiting_rooms.EventNewParams](set{"ZoneID": c.zone, "EventQuery": given[waiting_rooms.EventQueryParam](least)})))
	if made.EventStartTime != start || made.EventEndTime != end || len(made.ID) != 32 {
		t.Errorf("the event's times came back as %q, %q; sent %q, %q", made.EventStartTime, made.EventEndTime, start, end)
	}
	nulls := func(e *waiting_rooms.Event) map[string]bool {
		return map[string]bool{"custom_page_html": e.JSON.CustomPageHTML.IsNull(), "disable_session_renewal": e.JSON.DisableSessionRenewal.IsNull(),
			"new_users_per_minute": e.JSON.NewUsersPerMinute.IsNull(), "prequeue_start_time": e.JSON.PrequeueStartTime.IsNull(),
			"queueing_method": e.JSON.QueueingMethod.IsNull(), "session_duration": e.JSON.SessionDuration.IsNull(),
			"total_active_users": e.JSON.TotalActiveUsers.IsNull(), "turnstile_action": e.JSON.TurnstileAction.IsNull(), "turnstile_mode": e.JSON.TurnstileMode.IsNull()}
	}
	for field, null := range nulls(made) {
		if !null {
			t.Errorf("%s of a new event is not null: %s", field, made.JSON.RawJSON())
		}
	}
	edit := func(query set) *waiting_rooms.Event {
		t.Helper()
		return event(api.Edit(ctx, room, made.ID, given[waiting_rooms.EventEditParams](set{"ZoneID": c.zone, "EventQuery": given[waiting_rooms.EventQueryParam](query)})))
	}
	edited := edit(set{"PrequeueStartTime": prequeue, "ShuffleAtEventStart": true, "QueueingMethod": "random", "SessionDuration": 7,
		"TotalActiveUsers": 500, "NewUsersPerMinute": 400, "DisableSessionRenewal": false})
	if edited.Name != "sale" || edited.PrequeueStartTime != prequeue || !edited.ShuffleAtEventStart || edited.QueueingMethod != "random" ||
		edited.SessionDuration != 7 || edited.TotalActiveUsers != 500 || edited.JSON.DisableSessionRenewal.IsNull() {
		t.Errorf("after PATCH: %s", edited.JSON.RawJSON())
	}
	back := edit(set{"QueueingMethod": nil, "SessionDuration": nil, "DisableSessionRenewal": nil})
	if !back.JSON.QueueingMethod.IsNull() || !back.JSON.SessionDuration.IsNull() || !back.JSON.DisableSessionRenewal.IsNull() || back.TotalActiveUsers != 500 {
		t.Errorf("after PATCH with nulls: %s", back.JSON.RawJSON())
	}
	details := must[*waiting_rooms.EventDetailGetResponse](t)(api.Details.Get(ctx, room, made.ID, given[waiting_rooms.EventDetailGetParams](set{"ZoneID": c.zone})))
	if details.QueueingMethod != "fifo" || details.SessionDuration != 5 || details.TotalActiveUsers != 500 || details.JSON.DisableSessionRenewal.IsNull() ||
		details.JSON.CustomPageHTML.IsNull() || details.PrequeueStartTime != prequeue {
		t.Errorf("details: %s", details.JSON.RawJSON())
	}
	planned := must[*waiting_rooms.WaitingRoom](t)(c.api.Get(ctx, room, given[waiting_rooms.WaitingRoomGetParams](set{"ZoneID": c.zone})))
	for what, pair := range map[string][2]string{"start": {planned.NextEventStartTime, start}, "prequeue": {planned.NextEventPrequeueStartTime, prequeue}} {
		got, err := time.Parse(time.RFC3339Nano, pair[0])
		want, err2 := time.Parse(time.RFC3339Nano, pair[1])
		if err != nil || err2 != nil || !got.Equal(want) {
			t.Errorf("the room says that the next %s is %q, not %q", what, pair[0], pair[1])
		}
	}
	replaced := event(api.Update(ctx, room, made.ID, given[waiting_rooms.EventUpdateParams](set{"ZoneID": c.zone, "EventQuery": given[waiting_rooms.EventQueryParam](least)})))
	for field, null := range nulls(replaced) {
		if !null {
			t.Errorf("PUT left %s as it was: %s", field, replaced.JSON.RawJSON())
		}
	}
	if replaced.EventStartTime != start || replaced.ShuffleAtEventStart {
		t.Errorf("after PUT: %s", replaced.JSON.RawJSON())
	}
	n := 0
	pages := api.ListAutoPaging(ctx, room, given[waiting_rooms.EventListParams](set{"ZoneID": c.zone}))
	for pages.Next() && n < 100 {
		n++
	}
	if pages.Err() != nil || n != 1 {
		t.Errorf("%d events, %v", n, pages.Err())
	}
	gone := must[*waiting_rooms.EventDeleteResponse](t)(api.Delete(ctx, room, made.ID, given[waiting_rooms.EventDeleteParams](set{"ZoneID": c.zone})))
	if gone.ID != made.ID {
		t.Errorf("deleting %s answered %q", made.ID, gone.ID)
	}
	_, err := api.Get(ctx, room, made.ID, given[waiting_rooms.EventGetParams](set{"ZoneID": c.zone}))
	c.refused(err, http.StatusNotFound, 1001)
}

func (c *sdkV6) rules(room string) {
	t, ctx, api := c.t, c.t.Context(), c.api.Rules
	const action = "bypass_waiting_room"
	order := func(rules []waiting_rooms.WaitingRoomRule) string {
		var s []string
		for _, r := range rules {
			s = append(s, r.Description)
		}
		return strings.Join(s, " ")
	}
	create := func(description string) []waiting_rooms.WaitingRoomRule {
		t.Helper()
		page, err := api.New(ctx, room, given[waiting_rooms.RuleNewParams](set{"ZoneID": c.zone, "Rules": given[waiting_rooms.RuleNewParamsRules](set{
			"Action": action, "Description": description, "Expression": `http.request.uri.path eq "/` + description + `"`})}))
		if err != nil {
			t.Fatal(err)
		}
		return page.Result
	}
	create("one")
	create("two")
	all := create("three")
	if order(all) != "one two three" || all[0].Version != "1" || len(all[0].ID) != 32 || !all[0].Enabled || all[0].LastUpdated.IsZero() {
		t.Fatalf("rules: %+v", all)
	}
	move := func(rule waiting_rooms.WaitingRoomRule, position waiting_rooms.RuleEditParamsPositionUnion) string {
		t.Helper()
		page, err := api.Edit(ctx, room, rule.ID, given[waiting_rooms.RuleEditParams](set{"ZoneID": c.zone, "Action": action, "Expression": rule.Expression, "Position": position}))
		if err != nil {
			t.Fatal(err)
		}
		return order(page.Result)
	}
	for _, step := range []struct {
		rule     int
		position waiting_rooms.RuleEditParamsPositionUnion
		want     string
	}{
		{2, given[waiting_rooms.RuleEditParamsPositionIndex](set{"Index": 1}), "three one two"},
		{2, given[waiting_rooms.RuleEditParamsPositionAfter](set{"After": all[0].ID}), "one three two"},
		{1, given[waiting_rooms.RuleEditParamsPositionBefore](set{"Before": ""}), "two one three"},
		{1, given[waiting_rooms.RuleEditParamsPositionAfter](set{"After": ""}), "one three two"},
		{1, given[waiting_rooms.RuleEditParamsPositionBefore](set{"Before": all[2].ID}), "one two three"},
	} {
		if got := move(all[step.rule], step.position); got != step.want {
			t.Errorf("moved: %s, want %s", got, step.want)
		}
	}
	page, err := api.Edit(ctx, room, all[1].ID, given[waiting_rooms.RuleEditParams](set{"ZoneID": c.zone, "Action": action, "Expression": "ssl", "Enabled": false}))
	if err != nil {
		t.Fatal(err)
	}
	if r := page.Result[1]; r.Expression != "ssl" || r.Enabled || r.Version == "1" || r.Description != "two" {
		t.Errorf("the changed rule: %+v", r)
	}
	page, err = api.Update(ctx, room, given[waiting_rooms.RuleUpdateParams](set{"ZoneID": c.zone, "Rules": []waiting_rooms.RuleUpdateParamsRule{
		given[waiting_rooms.RuleUpdateParamsRule](set{"Action": action, "Expression": `ip.src in {192.0.2.0/24 2001:db8::/32}`}),
		given[waiting_rooms.RuleUpdateParamsRule](set{"Action": action, "Expression": `http.user_agent contains "monitor"`, "Enabled": false})}}))
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Result) != 2 || page.Result[1].Enabled || page.Result[0].Description != "" {
		t.Fatalf("replaced: %+v", page.Result)
	}
	page, err = api.Delete(ctx, room, page.Result[1].ID, given[waiting_rooms.RuleDeleteParams](set{"ZoneID": c.zone}))
	if err != nil || len(page.Result) != 1 {
		t.Fatalf("after deletion: %+v, %v", page, err)
	}
	page, err = api.Update(ctx, room, given[waiting_rooms.RuleUpdateParams](set{"ZoneID": c.zone, "Rules": []waiting_rooms.RuleUpdateParamsRule{}}))
	if err != nil || len(page.Result) != 0 {
		t.Fatalf("after replacing with nothing: %+v, %v", page, err)
	}
	page, err = api.Get(ctx, room, given[waiting_rooms.RuleGetParams](set{"ZoneID": c.zone}))
	if err != nil || len(page.Result) != 0 {
		t.Fatalf("read after that: %+v, %v", page, err)
	}
}

func (c *sdkV6) statusAndPreview(room string) {
	t, ctx := c.t, c.t.Context()
	status := must[*waiting_rooms.StatusGetResponse](t)(c.api.Statuses.Get(ctx, room, given[waiting_rooms.StatusGetParams](set{"ZoneID": c.zone})))
	sameJSON(t, "status", []byte(status.JSON.RawJSON()), `{"status":"not_queueing","event_id":"","estimated_queued_users":0,"estimated_total_active_users":0,"max_estimated_time_minutes":0}`)
	preview := must[*waiting_rooms.PagePreviewResponse](t)(c.api.Page.Preview(ctx, given[waiting_rooms.PagePreviewParams](set{"ZoneID": c.zone, "CustomHTML": "<title>Ours</title><p>{{waitTime}} minutes"})))
	res, err := http.Get(preview.PreviewURL + "?waitTime=42")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(body), "<p>42 minutes") {
		t.Errorf("%s shows %s %v %s", preview.PreviewURL, res.Status, err, body)
	}
}

func (c *sdkV6) lists(room string) {
	t, ctx, api := c.t, c.t.Context(), rules.NewListService(c.options...)
	made := must[*rules.ListNewResponse](t)(api.New(ctx, given[rules.ListNewParams](set{"AccountID": c.o.account, "Kind": "ip", "Name": "office", "Description": "Our own"})))
	operation := must[*rules.ListItemNewResponse](t)(api.Items.New(ctx, made.ID, given[rules.ListItemNewParams](set{"AccountID": c.o.account,
		"Body": []rules.ListItemNewParamsBodyUnion{given[rules.ListItemNewParamsBody](set{"IP": "192.0.2.7", "Comment": "the desk"}),
			given[rules.ListItemNewParamsBody](set{"IP": "2001:db8::/32"})}})))
	done := must[*rules.ListBulkOperationGetResponse](t)(api.BulkOperations.Get(ctx, operation.OperationID, given[rules.ListBulkOperationGetParams](set{"AccountID": c.o.account})))
	if done.Status != "completed" {
		t.Errorf("adding to the list is %s", done.JSON.RawJSON())
	}
	var items []string
	pages := api.Items.ListAutoPaging(ctx, made.ID, given[rules.ListItemListParams](set{"AccountID": c.o.account}))
	for pages.Next() && len(items) < 100 {
		items = append(items, pages.Current().IP)
	}
	if pages.Err() != nil || strings.Join(items, " ") != "192.0.2.7 2001:db8::/32" {
		t.Errorf("the list holds %v, %v", items, pages.Err())
	}
	rule := given[waiting_rooms.RuleNewParams](set{"ZoneID": c.zone, "Rules": given[waiting_rooms.RuleNewParamsRules](set{
		"Action": "bypass_waiting_room", "Expression": "ip.src in $office"})})
	if _, err := c.api.Rules.New(ctx, room, rule); err != nil {
		t.Errorf("a rule with the list: %v", err)
	}
	// A list that a rule needs stays.
	if _, err := api.Delete(ctx, made.ID, given[rules.ListDeleteParams](set{"AccountID": c.o.account})); err == nil {
		t.Error("a list in use was deleted")
	} else {
		c.refused(err, http.StatusBadRequest, 0)
	}
	if _, err := c.api.Rules.Update(ctx, room, given[waiting_rooms.RuleUpdateParams](set{"ZoneID": c.zone, "Rules": []waiting_rooms.RuleUpdateParamsRule{}})); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Delete(ctx, made.ID, given[rules.ListDeleteParams](set{"AccountID": c.o.account})); err != nil {
		t.Error(err)
	}
}

// refused checks how a call failed, and that the client did not try again.
func (c *sdkV6) refused(err error, status, code int) {
	c.t.Helper()
	var refusal *waiting_rooms.Error
	if !errors.As(err, &refusal) {
		c.t.Fatalf("not an answer of the API: %v", err)
	}
	if refusal.StatusCode != status || len(refusal.Errors) == 0 || refusal.Errors[0].Code < 1000 || code != 0 && refusal.Errors[0].Code != int64(code) {
		c.t.Errorf("refused with %v, want %d and code %d", err, status, code)
	}
}

func (c *sdkV6) refusals(room string) {
	t, ctx := c.t, c.t.Context()
	query := func(q set) waiting_rooms.WaitingRoomNewParams {
		return given[waiting_rooms.WaitingRoomNewParams](set{"ZoneID": c.zone, "Query": given[waiting_rooms.QueryParam](q)})
	}
	for what, q := range map[string]set{
		"without a host":            {"Name": "x", "TotalActiveUsers": 200, "NewUsersPerMinute": 200},
		"more a minute than inside": {"Name": "x", "Host": "tickets.example", "Path": "/x", "TotalActiveUsers": 200, "NewUsersPerMinute": 201},
		"a name that is taken":      {"Name": "shop", "Host": "tickets.example", "Path": "/x", "TotalActiveUsers": 200, "NewUsersPerMinute": 200},
		"a route that is taken":     {"Name": "x", "Host": "tickets.example", "TotalActiveUsers": 200, "NewUsersPerMinute": 200},
		"a host of somebody else":   {"Name": "x", "Host": "example.org", "TotalActiveUsers": 200, "NewUsersPerMinute": 200},
	} {
		before := c.sent.n.Load()
		_, err := c.api.New(ctx, query(q))
		if err == nil {
			t.Errorf("a room with %s was made", what)
			continue
		}
		c.refused(err, http.StatusBadRequest, 1002)
		if n := c.sent.n.Load() - before; n != 1 {
			t.Errorf("%s: the client tried %d times", what, n)
		}
	}
	_, err := c.api.Rules.New(ctx, room, given[waiting_rooms.RuleNewParams](set{"ZoneID": c.zone, "Rules": given[waiting_rooms.RuleNewParamsRules](set{
		"Action": "bypass_waiting_room", "Expression": `http.host eq`})}))
	c.refused(err, http.StatusBadRequest, 0)
	_, err = c.api.Get(ctx, strings.Repeat("0", 32), given[waiting_rooms.WaitingRoomGetParams](set{"ZoneID": c.zone}))
	c.refused(err, http.StatusNotFound, 1001)
	_, err = c.api.Get(ctx, room, given[waiting_rooms.WaitingRoomGetParams](set{"ZoneID": strings.Repeat("0", 32)}))
	c.refused(err, http.StatusNotFound, 7003)
	_, err = c.api.Get(ctx, room, given[waiting_rooms.WaitingRoomGetParams](set{"ZoneID": c.zone}), option.WithHeaderDel("X-Auth-Key"), option.WithAPIToken(operatorToken+"x"))
	c.refused(err, http.StatusForbidden, 10000)
}

func (c *sdkV6) end(room string) {
	t, ctx := c.t, c.t.Context()
	gone := must[*waiting_rooms.WaitingRoomDeleteResponse](t)(c.api.Delete(ctx, room, given[waiting_rooms.WaitingRoomDeleteParams](set{"ZoneID": c.zone})))
	if gone.ID != room {
		t.Errorf("deleting %s answered %q", room, gone.ID)
	}
	_, err := c.api.Get(ctx, room, given[waiting_rooms.WaitingRoomGetParams](set{"ZoneID": c.zone}))
	c.refused(err, http.StatusNotFound, 1001)
	pages := c.api.ListAutoPaging(ctx, given[waiting_rooms.WaitingRoomListParams](set{"ZoneID": c.zone}))
	for pages.Next() {
		if _, err := c.api.Delete(ctx, pages.Current().ID, given[waiting_rooms.WaitingRoomDeleteParams](set{"ZoneID": c.zone})); err != nil {
			t.Fatal(err)
		}
	}
	if pages.Err() != nil {
		t.Fatal(pages.Err())
	}
	api := zones.NewZoneService(c.options...)
	if deleted := must[*zones.ZoneDeleteResponse](t)(api.Delete(ctx, given[zones.ZoneDeleteParams](set{"ZoneID": c.zone}))); deleted.ID != c.zone {
		t.Errorf("deleting zone %s answered %q", c.zone, deleted.ID)
	}
	_, err = api.Get(ctx, given[zones.ZoneGetParams](set{"ZoneID": c.zone}))
	c.refused(err, http.StatusNotFound, 0)
}

// Tokens that reach less than everything: the SDK is told 403, or sees nothing, at once.
func TestScopedTokensReachNoFurtherThanTheirGrants(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	room := o.newRoom(nil)
	other := o.newZone("other.example")
	token := func(grant fields) []option.RequestOption {
		t.Helper()
		var made struct{ ID, Secret string }
		o.good("POST", "/anteroom/v1/tokens", fields{"name": "t", "grants": []fields{grant}}.String(), &made)
		return []option.RequestOption{option.WithBaseURL(o.api), option.WithAPIToken(made.Secret)}
	}
	get := func(zone string) waiting_rooms.WaitingRoomGetParams {
		return given[waiting_rooms.WaitingRoomGetParams](set{"ZoneID": zone})
	}
	edit := func(zone string) waiting_rooms.WaitingRoomEditParams {
		return given[waiting_rooms.WaitingRoomEditParams](set{"ZoneID": zone, "Query": given[waiting_rooms.QueryParam](set{"QueueAll": true})})
	}
	list := func(api *waiting_rooms.WaitingRoomService) int {
		t.Helper()
		n := 0
		pages := api.ListAutoPaging(t.Context(), given[waiting_rooms.WaitingRoomListParams](set{"AccountID": o.account}))
		for pages.Next() {
			n++
		}
		if pages.Err() != nil {
			t.Error(pages.Err())
		}
		return n
	}
	check := sdkV6{t: t, o: o}
	reader := waiting_rooms.NewWaitingRoomService(token(fields{"permission": "read", "zone": o.zone})...)
	if _, err := reader.Get(t.Context(), room, get(o.zone)); err != nil {
		t.Errorf("a reader cannot read: %v", err)
	}
	_, err := reader.Edit(t.Context(), room, edit(o.zone))
	check.refused(err, http.StatusForbidden, 10000)
	elsewhere := waiting_rooms.NewWaitingRoomService(token(fields{"permission": "edit", "zone": other})...)
	if _, err := elsewhere.Get(t.Context(), room, get(o.zone)); err == nil {
		t.Error("a token of another zone reads the room")
	}
	if _, err := elsewhere.Edit(t.Context(), room, edit(other)); err == nil {
		t.Error("the room is changed under another zone's path")
	}
	if n, m := list(reader), list(elsewhere); n != 1 || m != 0 {
		t.Errorf("the account's rooms: the reader sees %d, a token of another zone %d", n, m)
	}
	editor := waiting_rooms.NewWaitingRoomService(token(fields{"permission": "edit", "zone": o.zone, "room": room})...)
	if got, err := editor.Edit(t.Context(), room, edit(o.zone)); err != nil || !got.QueueAll {
		t.Errorf("an editor of the room: %v", err)
	}
	_, err = editor.New(t.Context(), given[waiting_rooms.WaitingRoomNewParams](set{"ZoneID": o.zone, "Query": given[waiting_rooms.QueryParam](set{
		"Name": "another", "Host": "shop.example", "Path": "/x", "TotalActiveUsers": 200, "NewUsersPerMinute": 200})}))
	check.refused(err, http.StatusForbidden, 10000)
}
