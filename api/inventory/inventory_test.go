package inventory_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anteroom/anteroom/api/client"
	"github.com/anteroom/anteroom/api/inventory"
	"github.com/anteroom/anteroom/config"
)

const (
	zoneID  = "023e105f4ecef8ad9ca31a8372d0c353"
	roomID  = "699d98642c564d2e855e9661899b7252"
	eventID = "25756b2dfe6e378a06b033b670413757"
)

// recorded answers like the published API: lists in pages, the last of them empty.
func recorded(t *testing.T, answers map[string]string) *client.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-of-the-source" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"success":false,"errors":[{"code":10000,"message":"Authentication error"}],"messages":[],"result":null}`)
			return
		}
		result, ok := answers[r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"success":false,"errors":[{"code":7003,"message":"Could not route"}],"messages":[],"result":null}`)
			return
		case r.URL.Query().Get("page") != "" && r.URL.Query().Get("page") != "1":
			result = "[]"
		}
		fmt.Fprintf(w, `{"success":true,"errors":[],"messages":[],"result":%s}`, result)
	}))
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{URL: s.URL, Token: "secret-of-the-source"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// a shop as the published documentation shows one, with an event, a rule, and texts that are
// code elsewhere.
func shop(description, page string) map[string]string {
	rooms := "/zones/" + zoneID + "/waiting_rooms"
	return map[string]string{
		"/zones":            `[{"id":"` + zoneID + `","name":"example.com","status":"active","account":{"id":"x"}}]`,
		rooms + "/settings": `{"search_engine_crawler_bypass":true}`,
		rooms: `[{"id":"` + roomID + `","created_on":"2014-01-01T05:20:00.12345Z","modified_on":"2014-01-01T05:20:00.12345Z","name":"production_webinar",
			"description":` + text(description) + `,"host":"shop.example.com","path":"/shop/checkout","additional_routes":null,"cookie_suffix":"",
			"total_active_users":300,"new_users_per_minute":200,"session_duration":5,"queueing_method":"random","queueing_status_code":202,
			"custom_page_html":` + text(page) + `,"default_template_language":"en-US","enabled_origin_commands":["revoke"],
			"turnstile_mode":"off","turnstile_action":"log","next_event_prequeue_start_time":null,"next_event_start_time":null}]`,
		rooms + "/" + roomID + "/events": `[{"id":"` + eventID + `","name":"drop","description":"","suspended":false,"prequeue_start_time":"2021-09-28T15:00:00.000Z",
			"event_start_time":"2021-09-28T15:30:00.000Z","event_end_time":"2021-09-28T17:00:00.000Z","shuffle_at_event_start":true,
			"new_users_per_minute":null,"total_active_users":null,"session_duration":null,"disable_session_renewal":null,"queueing_method":"fifo","custom_page_html":null}]`,
		rooms + "/" + roomID + "/rules": `[{"id":"25756b2dfe6e378a06b033b670413757","version":"1","action":"bypass_waiting_room","expression":"ip.src in {10.20.30.40}","description":"","last_updated":"2014-01-01T05:20:00.12345Z","enabled":true}]`,
	}
}

func read(t *testing.T, answers map[string]string) *inventory.Inventory {
	t.Helper()
	inv, err := inventory.Read(t.Context(), recorded(t, answers))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func TestTerraform(t *testing.T) {
	var b strings.Builder
	if err := read(t, shop("plain", "<p>{{waitTime}}</p>\n")).Terraform(&b); err != nil {
		t.Fatal(err)
	}
	want := `# Waiting rooms as they stand. The first apply imports them and changes nothing.

import {
  to = cloudflare_waiting_room_settings.example_com
  id = "023e105f4ecef8ad9ca31a8372d0c353"
}

resource "cloudflare_waiting_room_settings" "example_com" {
  zone_id = "023e105f4ecef8ad9ca31a8372d0c353"
  search_engine_crawler_bypass = true
}

import {
  to = cloudflare_waiting_room.example_com_production_webinar
  id = "023e105f4ecef8ad9ca31a8372d0c353/699d98642c564d2e855e9661899b7252"
}

resource "cloudflare_waiting_room" "example_com_production_webinar" {
  zone_id = "023e105f4ecef8ad9ca31a8372d0c353"
  name = "production_webinar"
  description = "plain"
  host = "shop.example.com"
  path = "/shop/checkout"
  total_active_users = 300
  new_users_per_minute = 200
  queueing_method = "random"
  queueing_status_code = 202
  custom_page_html = "<p>{{waitTime}}</p>\n"
  enabled_origin_commands = ["revoke"]
  turnstile_mode = "off"
}

import {
  to = cloudflare_waiting_room_event.example_com_production_webinar_drop
  id = "023e105f4ecef8ad9ca31a8372d0c353/699d98642c564d2e855e9661899b7252/25756b2dfe6e378a06b033b670413757"
}

resource "cloudflare_waiting_room_event" "example_com_production_webinar_drop" {
  zone_id = "023e105f4ecef8ad9ca31a8372d0c353"
  waiting_room_id = cloudflare_waiting_room.example_com_production_webinar.id
  name = "drop"
  event_start_time = "2021-09-28T15:30:00.000Z"
  event_end_time = "2021-09-28T17:00:00.000Z"
  prequeue_start_time = "2021-09-28T15:00:00.000Z"
  shuffle_at_event_start = true
  queueing_method = "fifo"
}

import {
  to = cloudflare_waiting_room_rules.example_com_production_webinar
  id = "023e105f4ecef8ad9ca31a8372d0c353/699d98642c564d2e855e9661899b7252"
}

resource "cloudflare_waiting_room_rules" "example_com_production_webinar" {
  zone_id = "023e105f4ecef8ad9ca31a8372d0c353"
  waiting_room_id = cloudflare_waiting_room.example_com_production_webinar.id
  rules = [
    {
      action = "bypass_waiting_room"
      expression = "ip.src in {10.20.30.40}"
      description = ""
      enabled = true
    },
  ]
}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What an operator has written into a description or a page is text for Terraform, whatever it
// looks like.
func TestTerraformEscapesWhatIsCodeThere(t *testing.T) {
	for in, want := range map[string]string{
		`${file("/etc/passwd")}`:          `"$${file(\"/etc/passwd\")}"`,
		`%{for x in y}`:                   `"%%{for x in y}"`,
		`$${x}`:                           `"$\u0024{x}"`,
		`%%{if true}`:                     `"%\u0025{if true}"`,
		"\"\n}\nresource \"x\" \"y\" {\n": `"\"\n}\nresource \"x\" \"y\" {\n"`,
		`back\slash \${x}`:                `"back\\slash \\$${x}"`,
		"<<EOT\r\n\tEOT":                  `"<<EOT\r\n\tEOT"`,
		"a\u2028b\x7f":                    `"a\u2028b\u007f"`,
		"5 $ and 10 %":                    `"5 $ and 10 %"`,
		"Warteraum für Äpfel 😀":           `"Warteraum für Äpfel 😀"`,
	} {
		var b strings.Builder
		if err := read(t, shop(in, in)).Terraform(&b); err != nil {
			t.Fatal(err)
		}
		for _, member := range []string{"description", "custom_page_html"} {
			if line := "\n  " + member + " = " + want + "\n"; !strings.Contains(b.String(), line) {
				t.Errorf("%q: no line %q in\n%s", in, line, b.String())
			}
		}
	}
}

// An API that is not what it seems may answer with an object where a text should be: its names
// are no code either.
func TestTerraformEscapesNamesOfMembers(t *testing.T) {
	answers := shop("", "")
	rooms := "/zones/" + zoneID + "/waiting_rooms"
	answers[rooms+"/r1/events"], answers[rooms+"/r1/rules"] = "[]", "[]"
	answers[rooms] = `[{"id":"r1","name":"a","host":{"x = 1 }\n}\nresource \"y\" \"z\" {\n#":1,"for":{"${file(\"a\")}":2}},"total_active_users":1,"new_users_per_minute":1}]`
	var b strings.Builder
	if err := read(t, answers).Terraform(&b); err != nil {
		t.Fatal(err)
	}
	want := "\n  host = { for = { \"$${file(\\\"a\\\")}\" = 2 }, \"x = 1 }\\n}\\nresource \\\"y\\\" \\\"z\\\" {\\n#\" = 1 }\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("no line %s in\n%s", want, b.String())
	}
}

func TestResourcesHaveNamesOfTheirOwn(t *testing.T) {
	answers := shop("", "")
	rooms := "/zones/" + zoneID + "/waiting_rooms"
	one := func(id, name string) string {
		answers[rooms+"/"+id+"/events"], answers[rooms+"/"+id+"/rules"] = "[]", "[]"
		return `{"id":"` + id + `","name":` + text(name) + `,"host":"example.com","total_active_users":1,"new_users_per_minute":1}`
	}
	answers[rooms] = "[" + one("a1", "a-b") + "," + one("a2", "a_b") + "," + one("a3", "A.b\"{") + "]"
	var b strings.Builder
	if err := read(t, answers).Terraform(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "  # The provider refuses this: it takes 200 to 2147483647.\n  total_active_users = 1\n"); n != 3 {
		t.Errorf("%d of 3 limits that the provider refuses are marked in\n%s", n, b.String())
	}
	for _, name := range []string{"example_com_a_b", "example_com_a_b_2", "example_com_a_b__"} {
		if n := strings.Count(b.String(), `resource "cloudflare_waiting_room" "`+name+`" {`); n != 1 {
			t.Errorf("%d resources %s in\n%s", n, name, b.String())
		}
	}
}

// The file that is written is one that we read.
func TestYAMLIsOurFile(t *testing.T) {
	page := "<h1>Ä</h1>\n{{#waitTimeKnown}}\n\t{{waitTime}} # no comment: \"x\"\n{{/waitTimeKnown}}\n"
	var b strings.Builder
	if err := read(t, shop("a: b\n- c", page)).YAML(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "# Not in this file, only through the API: search_engine_crawler_bypass of the zone") {
		t.Errorf("what is left out is not named:\n%s", b.String())
	}
	name := t.TempDir() + "/anteroom.yaml"
	write(t, name, "sites: [{hosts: \"*\", origins: \"http://127.0.0.1:9\"}]\n"+b.String())
	cfg, err := config.Load(config.LoadOptions{File: name})
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	r := cfg.Rooms[0]
	if r.Zone != "example.com" || r.Name != "production_webinar" || r.Routes[0].Host != "shop.example.com" || r.Routes[0].Path != "/shop/checkout" ||
		r.TotalActiveUsers != 300 || r.SessionDuration.Minutes() != 5 || r.QueueingMethod != "random" || r.QueueingStatusCode != 202 ||
		r.CustomPageHTML != page || r.TurnstileMode != "off" || r.Description != "a: b\n- c" || len(r.EnabledOriginCommands) != 1 ||
		len(r.Events) != 1 || r.Events[0].Start != "2021-09-28T15:30:00.000Z" || !r.Events[0].ShuffleAtStart || *r.Events[0].QueueingMethod != "fifo" || r.Events[0].SessionDuration != nil ||
		len(r.Rules) != 1 || r.Rules[0].Expression != "ip.src in {10.20.30.40}" || r.Rules[0].Disabled {
		t.Errorf("the room came back as %+v", r)
	}
}

func TestChanges(t *testing.T) {
	from := read(t, shop("new", ""))
	if ch := inventory.Changes(from, read(t, shop("new", ""))); len(ch) != 0 {
		t.Errorf("the same twice: %+v", ch)
	}
	ch := inventory.Changes(from, read(t, shop("old", "")))
	if len(ch) != 1 || ch[0].What != "room" || ch[0].New || ch[0].Where != "example.com/production_webinar" {
		t.Fatalf("one room differs: %+v", ch)
	}
	if diff := cmp.Diff([]inventory.Difference{{Member: "description", Old: "old", New: "new"}}, ch[0].Differences); diff != "" {
		t.Error(diff)
	}
	var what []string
	for _, c := range inventory.Changes(from, &inventory.Inventory{}) {
		if c.What != "settings" && c.What != "rules" && !c.New {
			t.Errorf("%s %s is not new", c.What, c.Where)
		}
		what = append(what, c.What)
	}
	if got, want := strings.Join(what, " "), "zone settings room event rules"; got != want {
		t.Errorf("changes in an empty place: %s, want %s", got, want)
	}
}

// Whoever answers is not trusted with what is asked next.
func TestAnIDIsNoPath(t *testing.T) {
	for _, id := range []string{"../../user/tokens", "a/b", "", "a?b", strings.Repeat("a", 65), "a%2fb"} {
		answers := map[string]string{"/zones": `[{"id":` + text(id) + `,"name":"example.com"}]`}
		if _, err := inventory.Read(t.Context(), recorded(t, answers)); err == nil || !strings.Contains(err.Error(), "id") {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestOnlyTheZonesThatWereNamed(t *testing.T) {
	if _, err := inventory.Read(t.Context(), recorded(t, shop("", "")), "example.org"); err == nil || !strings.Contains(err.Error(), `no zone "example.org"`) {
		t.Errorf("a zone that is not there: %v", err)
	}
	if inv, err := inventory.Read(t.Context(), recorded(t, shop("", "")), "example.com"); err != nil || len(inv.Zones) != 1 {
		t.Errorf("%v %v", inv, err)
	}
}
func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
