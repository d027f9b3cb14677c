package rest

import (
	"encoding/json/v2"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// TestChecklist walks the checklist of compatibility with the published API, as far as it is
// this package's. The stories of testdata show the same at length.
func TestChecklist(t *testing.T) {
	t.Parallel()
	in := open(t)
	room := in.room(t)
	zone := strings.TrimSuffix(room[:strings.LastIndex(room, "/")], "/waiting_rooms")
	event := in.created(t, room+"/events", `{"name":"sale","event_start_time":"2026-11-27T15:30:00Z","event_end_time":"2026-11-27T17:00:00.000Z"}`)
	object := func(a answer) map[string]any { m, _ := a.Result.(map[string]any); return m }

	for i, item := range []struct {
		says  string
		check func(t *testing.T)
	}{
		{"all 24 operations, literal preview and settings before the room", func(t *testing.T) {
			published := 0
			for _, r := range in.routes() {
				if strings.Contains(r.Path, "/waiting_rooms") {
					published++
				}
			}
			if published != 24 {
				t.Errorf("%d operations", published)
			}
			if a := in.ask(t, "GET", zone+"/waiting_rooms/settings", ""); a.Status != 200 || object(a)["search_engine_crawler_bypass"] != false {
				t.Errorf("settings: %s", a.Text)
			}
			if a := in.ask(t, "POST", zone+"/waiting_rooms/preview", `{"custom_html":"x"}`); a.Status != 200 {
				t.Errorf("preview: %s", a.Text)
			}
		}},
		{"envelope, and result_info on lists", func(t *testing.T) {
			for _, list := range []string{"/zones", zone + "/waiting_rooms", room + "/events", "/accounts"} {
				a := in.ask(t, "GET", list, "")
				for _, name := range []string{"page", "per_page", "count", "total_count", "total_pages"} {
					if _, ok := a.ResultInfo[name].(float64); !ok {
						t.Errorf("%s: result_info %v", list, a.ResultInfo)
					}
				}
			}
		}},
		{"an empty page past the end", func(t *testing.T) {
			for _, list := range []string{"/zones", zone + "/waiting_rooms", room + "/events", "/accounts"} {
				seen := 0
				for page := 1; ; page++ {
					part, ok := in.ask(t, "GET", fmt.Sprintf("%s?page=%d&per_page=5", list, page), "").Result.([]any)
					if !ok || page > 3 {
						t.Fatalf("%s: page %d: %v", list, page, part)
					}
					if seen += len(part); len(part) == 0 {
						break
					}
				}
				if seen == 0 {
					t.Errorf("%s: nothing", list)
				}
			}
		}},
		{"404 with 1001, 400 with 1002", func(t *testing.T) {
			a := in.ask(t, "GET", zone+"/waiting_rooms/699d98642c564d2e855e9661899b7252", "")
			if a.Status != 404 || a.Errors[0]["code"] != 1001. {
				t.Error(a.Text)
			}
			a = in.ask(t, "PATCH", room, `{"session_duration":-1}`)
			if a.Status != 400 || a.Errors[0]["code"] != 1002. || !strings.HasSuffix(a.Errors[0]["message"].(string), ": invalid data") {
				t.Error(a.Text)
			}
		}},
		{"PUT resets, PATCH merges, null and [] are taken", func(t *testing.T) {
			in.ask(t, "PATCH", room, `{"description":"d","queue_all":true}`)
			if a := object(in.ask(t, "PATCH", room, `{"queue_all":null}`)); a["description"] != "d" || a["queue_all"] != false {
				t.Error(a)
			}
			if a := object(in.ask(t, "PUT", room, minimalRoom)); a["description"] != "" {
				t.Error(a)
			}
			if a := in.ask(t, "PUT", room+"/rules", `[]`); a.Status != 200 || !reflect.DeepEqual(a.Result, []any{}) {
				t.Error(a.Text)
			}
		}},
		{"empty texts stay, cookie_attributes are complete, times are RFC 3339 and stable", func(t *testing.T) {
			a := object(in.ask(t, "GET", room, ""))
			for _, name := range []string{"description", "cookie_suffix", "custom_page_html"} {
				if a[name] != "" {
					t.Errorf("%s: %v", name, a[name])
				}
			}
			if !reflect.DeepEqual(a["cookie_attributes"], map[string]any{"samesite": "auto", "secure": "auto"}) {
				t.Error(a["cookie_attributes"])
			}
			for _, name := range []string{"created_on", "modified_on"} {
				var when time.Time
				if err := when.UnmarshalText([]byte(a[name].(string))); err != nil {
					t.Error(err)
				}
			}
			in.advance(time.Minute)
			if b := object(in.ask(t, "GET", room, "")); !reflect.DeepEqual(a, b) {
				t.Errorf("%v became %v", a, b)
			}
		}},
		{"event times are echoed, overrides are null until /details", func(t *testing.T) {
			e := object(in.ask(t, "GET", room+"/events/"+event, ""))
			d := object(in.ask(t, "GET", room+"/events/"+event+"/details", ""))
			if e["event_start_time"] != "2026-11-27T15:30:00Z" || e["event_end_time"] != "2026-11-27T17:00:00.000Z" || e["prequeue_start_time"] != nil {
				t.Error(e)
			}
			for _, name := range []string{"total_active_users", "new_users_per_minute", "session_duration", "disable_session_renewal", "queueing_method", "custom_page_html", "turnstile_mode", "turnstile_action"} {
				if v, ok := e[name]; !ok || v != nil || d[name] == nil {
					t.Errorf("%s: %v, in details %v", name, v, d[name])
				}
			}
		}},
		{"rules answer the whole list", func(t *testing.T) {
			const rule = `{"expression":"ip.src eq 192.0.2.%d","action":"bypass_waiting_room"}`
			in.ask(t, "POST", room+"/rules", fmt.Sprintf(rule, 1))
			all := in.ask(t, "POST", room+"/rules", fmt.Sprintf(rule, 2)).Result.([]any)
			if len(all) != 2 {
				t.Fatal(all)
			}
			first := room + "/rules/" + all[0].(map[string]any)["id"].(string)
			for n, a := range map[int]answer{2: in.ask(t, "PATCH", first, `{"position":{"after":""}}`), 1: in.ask(t, "DELETE", first, "")} {
				if got, ok := a.Result.([]any); !ok || len(got) != n {
					t.Errorf("%d: %s", n, a.Text)
				}
			}
		}},
		{"DELETE with a body, or without", func(t *testing.T) {
			for _, body := range []string{"", "{}", `{"anything":[1]}`, "not even JSON"} {
				id := in.created(t, room+"/events", `{"name":"gone","event_start_time":"2027-01-01T00:00:00Z","event_end_time":"2027-01-02T00:00:00Z"}`)
				if a := in.ask(t, "DELETE", room+"/events/"+id, body); a.Status != 200 || !reflect.DeepEqual(a.Result, map[string]any{"id": id}) {
					t.Errorf("%q: %s", body, a.Text)
				}
			}
		}},
		{"both styles of authentication", func(t *testing.T) {
			for _, headers := range [][]string{{"Authorization", "Bearer " + adminToken}, {"Authorization", "", "X-Auth-Email", "a@example.com", "X-Auth-Key", adminToken}} {
				if a := in.ask(t, "GET", room, "", headers...); a.Status != 200 {
					t.Errorf("%v: %s", headers, a.Text)
				}
			}
			for status, headers := range map[int][]string{401: {"Authorization", ""}, 403: {"Authorization", "Bearer " + adminToken + "x"}, 400: {"Authorization", "Token " + adminToken}} {
				if a := in.ask(t, "GET", room, "", headers...); a.Status != status {
					t.Errorf("%v: %s", headers, a.Text)
				}
			}
		}},
	} {
		t.Run(fmt.Sprintf("%02d %s", i+1, item.says), item.check)
	}
}

// TestWhatComesBackCanBeWritten: clients that read, change and write whole objects change
// nothing else, for every member, with PUT and with PATCH.
func TestWhatComesBackCanBeWritten(t *testing.T) {
	t.Parallel()
	in := open(t)
	room := in.room(t)
	full := `{"name":"full","host":"example.com","path":"/full","description":"d","additional_routes":[{"host":"b.example.com","path":"/b"}],"cookie_suffix":"s",` +
		`"cookie_attributes":{"samesite":"none","secure":"always"},"total_active_users":300,"new_users_per_minute":200,"session_duration":30,` +
		`"disable_session_renewal":true,"queueing_method":"random","queueing_status_code":429,"queue_all":true,"suspended":true,"custom_page_html":"<p>\u2028{{waitTime}}",` +
		`"default_template_language":"de-DE","json_response_enabled":true,"enabled_origin_commands":["revoke"],"turnstile_mode":"off",` +
		`"turnstile_action":"infinite_queue","refresh":"20s","unpaced":true,"first_session":"45s","place_hold":"10m0s","turn_countdown":"2m0s","web_push":true,"pass":"30s","pass_reported":true,"protect":true,"protect_errors":5,"protect_latency":"2s","protect_floor":20,"protect_return":"15m0s","pass_edge":"cdn","bind":"ip-prefix","route_suffixes":"ignore",` +
		`"json_response_exact":true,"resubmit_forms":true,"shadow":true,"account_issuer":"https://login.example.com","account_audience":"shop","account_keys":"https://login.example.com/jwks","account_claim":"email","account_lane_claim":"tier","lanes":[{"name":"vip","priority":50,"share":0,"reserved":10,"expression":"http.cookie contains \"vip\"","claim":"gold"}],"account_cookie":"login","account_header":"X-Login","account_sign_in_url":"/login","lottery_round":"40s","lottery_max_wait":"2m","lottery_follow":true,"page_site_name":"Dawn","page_title":"Spring","page_logo":"R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7","page_color":"#00558c","page_color_dark":"#7cc7ff","session_networks":3,"session_networks_action":"revoke","first_request_list":"schools"}`
	rooms := room[:strings.LastIndex(room, "/")]
	in.list(t, "schools")
	made := rooms + "/" + in.created(t, rooms, full)
	event := in.created(t, made+"/events", `{"name":"e","description":"d","event_start_time":"2026-11-27T16:30:00.5+01:00","event_end_time":"2026-11-27T17:00:00Z",`+
		`"prequeue_start_time":"2026-11-27T15:00:00Z","shuffle_at_event_start":true,"suspended":true,"total_active_users":2,"new_users_per_minute":1,"session_duration":3,`+
		`"disable_session_renewal":false,"queueing_method":"fifo","custom_page_html":"","turnstile_mode":"off","turnstile_action":"log","ramp":[{"after":"5s","new_users_per_minute":1}],"repeat":{"every":"day","times":2}}`)
	for _, path := range []string{room, made, made + "/events/" + event} {
		before := in.ask(t, "GET", path, "")
		text, err := json.Marshal(before.Result)
		if err != nil {
			t.Fatal(err)
		}
		in.advance(time.Minute)
		for _, method := range []string{"PUT", "PATCH"} {
			if a := in.ask(t, method, path, string(text)); a.Status != 200 || !reflect.DeepEqual(a.Result, before.Result) {
				t.Errorf("%s %s: %s became %s", method, path, before.Text, a.Text)
			}
		}
	}
	// Every member that can be set was another than its default above.
	var zero anteroom.Room
	zero = zero.WithDefaults()
	got := in.ask(t, "GET", made, "").Result.(map[string]any)
	for _, f := range roomFields {
		defaults, err := json.Marshal(f.Get(&zero))
		if err != nil {
			t.Fatal(err)
		}
		is, err := json.Marshal(got[f.Name])
		if err != nil {
			t.Fatal(err)
		}
		if f.Set != nil && string(defaults) == string(is) && f.Name != "lottery_percent" && f.Name != "invite_only" { // see TestALotteryComesAlong and TestAccountsComeAlong
			t.Errorf("%s: %s says nothing", f.Name, is)
		}
	}
}

// TestNamesOfMembers: the published members have their published names, each once.
func TestNamesOfMembers(t *testing.T) {
	t.Parallel()
	names := func(m api.Members) (out []string) {
		for _, one := range m {
			out = append(out, one.Name)
		}
		slices.Sort(out)
		return out
	}
	var e anteroom.Event
	var r anteroom.Rule
	for _, c := range []struct {
		of   string
		got  []string
		want string
	}{
		{"room", names(open(t).shownRoom(&anteroom.Room{})), "account_audience account_claim account_cookie account_header account_issuer account_keys account_lane_claim account_sign_in_url additional_routes bind cookie_attributes cookie_suffix created_on custom_page_html default_template_language description disable_session_renewal enabled_origin_commands first_request_list first_session host id invite_only " +
			"json_response_enabled json_response_exact lanes lottery_follow lottery_max_wait lottery_percent lottery_round modified_on name new_users_per_minute next_event_prequeue_start_time next_event_start_time page_color page_color_dark page_logo page_site_name " +
			"page_title pass pass_edge pass_reported path place_hold protect protect_errors protect_floor protect_latency protect_return queue_all queueing_method queueing_status_code refresh " +
			"resubmit_forms route_suffixes session_duration session_networks session_networks_action shadow suspended total_active_users turn_countdown turnstile_action turnstile_mode unpaced web_push"},
		{"event", names(eventFields.Of(&e)), "created_on custom_page_html description disable_session_renewal event_end_time event_start_time id invite_only modified_on name new_users_per_minute " +
			"prequeue_start_time queueing_method ramp repeat session_duration shuffle_at_event_start suspended total_active_users turnstile_action turnstile_mode"},
		{"rule", names(ruleFields.Of(&r)), "action description enabled expression id last_updated version"},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.of, got, c.want)
		}
	}
}

// TestGuessingTokens: ten wrong tokens of an address within a minute are answered, further ones
// are told to wait, and whoever has a valid token does not notice.
func TestGuessingTokens(t *testing.T) {
	t.Parallel()
	in := open(t)
	guess := func() answer {
		return in.ask(t, "GET", "/zones", "", "Authorization", "Bearer "+strings.Repeat("x", 46))
	}
	for range manage.MaxFailedLogins {
		if a := guess(); a.Status != 403 || a.Errors[0]["message"] != "Authentication error" {
			t.Fatal(a.Text)
		}
	}
	if a := guess(); a.Status != 429 || a.Header.Get("Retry-After") == "" {
		t.Error(a.Text)
	}
	if a := in.ask(t, "GET", "/zones", ""); a.Status != 200 {
		t.Error(a.Text)
	}
	in.advance(time.Minute)
	if a := guess(); a.Status != 403 {
		t.Error(a.Text)
	}
}

// TestLargestCustomPageIsTaken: a page of the published size, half of its characters escaped.
func TestLargestCustomPageIsTaken(t *testing.T) {
	t.Parallel()
	in := open(t)
	room := in.room(t)
	half := anteroom.MaxTemplateBytes / 2
	body := func(more string) string {
		return `{"custom_page_html":"` + strings.Repeat(`\"`, half-100) + strings.Repeat("x", half+100) + more + `"}`
	}
	if a := in.ask(t, "PATCH", room, body("")); a.Status != 200 {
		t.Errorf("status %d: %v", a.Status, a.Errors)
	}
	if a := in.ask(t, "PATCH", room, body("x")); a.Status != 400 {
		t.Errorf("a larger one: status %d", a.Status)
	}
}
