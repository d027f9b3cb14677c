package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// operatorToken is the first API token of every office. Terraform's provider wants 40
// characters or more of this alphabet.
const operatorToken = "e2e-0123456789abcdefghijklmnopqrstuvwxyz_ABCDEF"

// office is a gateway whose rooms are made through its management API. The operator's zone
// is shop.example; the file has no rooms.
type office struct {
	*gate
	api     string // base address of the API, as clients are given it
	account string
	zone    string
}

// startOffice starts a gateway with an API and a zone. Others are further sections of the file.
func startOffice(t *testing.T, others ...string) *office {
	t.Helper()
	o := &office{gate: newGate(t, "", others...)}
	o.environment = []string{"ANTEROOM_API_TOKEN=" + operatorToken}
	o.start()
	t.Cleanup(o.end)
	o.api = o.operators() + "/client/v4"
	var accounts []struct{ ID, Name string }
	o.good("GET", "/accounts", "", &accounts)
	if len(accounts) != 1 {
		t.Fatalf("accounts: %+v", accounts)
	}
	o.account = accounts[0].ID
	o.zone = o.newZone("shop.example")
	return o
}

func (o *office) newZone(name string) string {
	o.t.Helper()
	var zone struct{ ID string }
	o.good("POST", "/zones", fmt.Sprintf(`{"name":%q,"account":{"id":%q},"type":"full"}`, name, o.account), &zone)
	return zone.ID
}

// envelope is what every answer of the API looks like.
type envelope struct {
	Success bool
	Errors  []struct {
		Code    int
		Message string
	}
	Messages   []json.RawMessage
	Result     json.RawMessage
	ResultInfo *struct {
		Page, Count int
		PerPage     int `json:"per_page"`
		TotalCount  int `json:"total_count"`
	} `json:"result_info"`
}

// call asks the API as the operator: the published one, or ours when the path says so.
func (o *office) call(method, path, body string) (int, envelope) {
	o.t.Helper()
	address := o.api + path
	if strings.HasPrefix(path, "/anteroom/") {
		address = o.operators() + path
	}
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+operatorToken)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	res, err := client.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		o.t.Fatalf("%s %s: %s without an envelope: %v: %s", method, path, res.Status, err, b)
	}
	return res.StatusCode, e
}

// good asks the API, fails when it refuses, and decodes the result.
func (o *office) good(method, path, body string, result any) {
	o.t.Helper()
	status, e := o.call(method, path, body)
	if status != http.StatusOK || !e.Success {
		o.t.Fatalf("%s %s %s: %d %+v", method, path, body, status, e.Errors)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(e.Result, result); err != nil {
		o.t.Fatalf("%s %s: %v: %s", method, path, err, e.Result)
	}
}

// fields are a JSON object's members.
type fields map[string]any

func (f fields) String() string {
	b, err := json.Marshal(map[string]any(f))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// under is the path below the operator's zone.
func (o *office) under(path string) string { return "/zones/" + o.zone + "/waiting_rooms" + path }

// newRoom makes a room for the visitors' listener and returns its id. Fields are added to
// the least that a room needs, or replace it.
func (o *office) newRoom(changes fields) string {
	o.t.Helper()
	room := fields{"name": "shop", "host": "shop.example", "total_active_users": 200, "new_users_per_minute": 200, "first_session": "1h"}
	for k, v := range changes {
		room[k] = v
	}
	var made struct{ ID string }
	o.good("POST", o.under(""), room.String(), &made)
	return made.ID
}

// change patches a room.
func (o *office) change(room string, changes fields) {
	o.t.Helper()
	o.good("PATCH", o.under("/"+room), changes.String(), nil)
}

// ours are the members of a room that the published API does not have.
var ours = []string{"turn_countdown", "web_push", "route_suffixes", "json_response_exact", "resubmit_forms", "lottery_percent", "lottery_round", "lottery_max_wait", "lottery_follow", "account_issuer", "account_audience", "account_keys", "account_claim", "account_lane_claim", "lanes", "account_cookie", "account_header", "account_sign_in_url", "shadow", "page_color", "page_color_dark", "page_logo", "page_site_name", "page_title", "refresh", "unpaced", "first_session", "place_hold", "pass", "pass_reported", "protect", "protect_errors", "protect_latency", "protect_floor", "protect_return", "pass_edge", "bind", "session_networks", "session_networks_action", "first_request_list", "invite_only"}

// published returns a room without our members; each has to be there.
func published(t *testing.T, room string) string {
	t.Helper()
	var v fields
	if err := json.Unmarshal([]byte(room), &v); err != nil {
		t.Fatal(err)
	}
	for _, name := range ours {
		if _, ok := v[name]; !ok {
			t.Errorf("the room has no %s: %s", name, room)
		}
		delete(v, name)
	}
	return v.String()
}

// sameJSON compares two documents; it says where the first difference is.
func sameJSON(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	normal := func(b []byte) []byte {
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatalf("%s: %v: %s", what, err, b)
		}
		out, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	g, w := normal(got), normal([]byte(want))
	if !bytes.Equal(g, w) {
		gl, wl := strings.Split(string(g), "\n"), strings.Split(string(w), "\n")
		for i := range min(len(gl), len(wl)) {
			if gl[i] != wl[i] {
				t.Errorf("%s: line %d has %s, want %s", what, i+1, gl[i], wl[i])
				break
			}
		}
		t.Errorf("%s: got\n%s\nwant\n%s", what, g, w)
	}
}
