package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// arrive asks the visitors' listener as somebody new, for the room's host. Headers come in pairs.
func (o *office) arrive(path string, headers ...string) answer {
	o.t.Helper()
	return o.arriveAt("shop.example", path, headers...)
}

// arriveAt is arrive for another host.
func (o *office) arriveAt(host, path string, headers ...string) answer {
	o.t.Helper()
	req, err := http.NewRequest(http.MethodGet, o.url(path), nil)
	if err != nil {
		o.t.Fatal(err)
	}
	req.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return answer{res, b}
}

// ticketOf returns the ticket that an answer sets.
func ticketOf(t *testing.T, a answer) *http.Cookie {
	t.Helper()
	for _, c := range a.Cookies() {
		if strings.HasPrefix(c.Name, ticketCookie) {
			return c
		}
	}
	t.Fatalf("no ticket: %s %v", a.Status, a.Header)
	return nil
}

// soon is how long a change may take from its acknowledgement to the doors.
const soon = time.Second

func TestChangesThroughTheAPIAreInForceAtTheGateway(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	if a := o.arrive("/"); !a.admitted() || a.ticket() != "" {
		t.Fatalf("without a room: %s %v", a.Status, a.Header)
	}
	room := o.newRoom(fields{"queue_all": true})
	const page, asJSON = "text/html", "application/json"
	for _, c := range []struct {
		name    string
		change  fields
		accept  string
		problem func(a answer) string // what is not as the change wants it; "" is nothing
	}{
		{"a new room holds everybody", nil, page, func(a answer) string {
			if a.admitted() || a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), `lang="en-US"`) {
				return a.Status
			}
			return ""
		}},
		{"queueing_status_code 429", fields{"queueing_status_code": 429}, page, func(a answer) string {
			if a.StatusCode != http.StatusTooManyRequests {
				return a.Status
			}
			return ""
		}},
		{"queueing_status_code 202", fields{"queueing_status_code": 202}, page, func(a answer) string {
			if a.StatusCode != http.StatusAccepted {
				return a.Status
			}
			return ""
		}},
		{"no JSON unless switched on", nil, asJSON, func(a answer) string {
			if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
				return a.Header.Get("Content-Type")
			}
			return ""
		}},
		{"json_response_enabled", fields{"json_response_enabled": true}, asJSON, func(a answer) string {
			var v struct {
				Room *struct{ InWaitingRoom, QueueAll bool } `json:"cfWaitingRoom"`
			}
			if json.Unmarshal(a.body, &v) != nil || v.Room == nil || !v.Room.InWaitingRoom || !v.Room.QueueAll {
				return string(a.body)
			}
			return ""
		}},
		{"json only where it is preferred", nil, "application/json, text/html", func(a answer) string {
			if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
				return a.Header.Get("Content-Type")
			}
			return ""
		}},
		{"json for libraries that accept everything", nil, "application/json, text/plain, */*", func(a answer) string {
			if a.Header.Get("Content-Type") != asJSON {
				return a.Header.Get("Content-Type")
			}
			return ""
		}},
		{"json_response_exact", fields{"json_response_exact": true}, "application/json, text/plain, */*", func(a answer) string {
			if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") {
				return a.Header.Get("Content-Type")
			}
			return ""
		}},
		{"default_template_language", fields{"default_template_language": "he-IL"}, page, func(a answer) string {
			if !strings.Contains(string(a.body), `<html lang="he-IL" dir="rtl">`) {
				return tail(string(a.body), 500)
			}
			return ""
		}},
		{"custom_page_html", fields{"custom_page_html": "<title>Ours</title>{{#queueAll}}held{{/queueAll}}"}, page, func(a answer) string {
			if string(a.body) != "<title>Ours</title>held" {
				return string(a.body)
			}
			return ""
		}},
		{"cookie_suffix", fields{"cookie_suffix": "spring"}, page, func(a answer) string {
			if c := ticketOf(t, a); c.Name != ticketCookie+"_spring" {
				return c.String()
			}
			return ""
		}},
		{"samesite none, secure always", fields{"cookie_attributes": fields{"samesite": "none", "secure": "always"}}, page, func(a answer) string {
			if c := ticketOf(t, a); c.SameSite != http.SameSiteNoneMode || !c.Secure || !c.Partitioned {
				return c.Raw
			}
			return ""
		}},
		{"samesite strict, secure never", fields{"cookie_attributes": fields{"samesite": "strict", "secure": "never"}}, page, func(a answer) string {
			if c := ticketOf(t, a); c.SameSite != http.SameSiteStrictMode || c.Secure {
				return c.Raw
			}
			return ""
		}},
		{"another path", fields{"path": "/shop"}, page, func(a answer) string {
			if !a.admitted() || a.ticket() != "" {
				return fmt.Sprint(a.Status, a.Header)
			}
			return ""
		}},
		{"the path by null", fields{"path": nil, "additional_routes": []fields{{"host": "www.shop.example", "path": "/buy"}}}, page, func(a answer) string {
			if other := o.arriveAt("www.shop.example", "/buy/now"); a.admitted() || other.admitted() || ticketOf(t, other).Name != ticketCookie+"_spring" {
				return fmt.Sprint(a.Status, other.Status, other.Header)
			}
			return ""
		}},
		{"reject", fields{"queue_all": false, "queueing_method": "reject", "custom_page_html": ""}, page, func(a answer) string {
			if a.admitted() || a.Header.Get("Refresh") != "" {
				return fmt.Sprint(a.Status, a.Header)
			}
			return ""
		}},
		{"passthrough", fields{"queueing_method": "passthrough"}, page, func(a answer) string {
			if !a.admitted() || a.ticket() == "" {
				return fmt.Sprint(a.Status, a.Header)
			}
			return ""
		}},
		{"suspended", fields{"suspended": true}, page, func(a answer) string {
			if !a.admitted() || a.ticket() != "" {
				return fmt.Sprint(a.Status, a.Header)
			}
			return ""
		}},
		{"on again, by null", fields{"suspended": nil, "queueing_method": nil, "total_active_users": 0, "new_users_per_minute": 0}, page, func(a answer) string {
			if a.admitted() {
				return a.Status
			}
			return ""
		}},
	} {
		if c.change != nil {
			o.change(room, c.change)
		}
		eventually(t, soon, func() string {
			if word := c.problem(o.arrive("/", "Accept", c.accept)); word != "" {
				return c.name + ": " + word
			}
			return ""
		})
	}
	rules := o.under("/" + room + "/rules")
	o.good("PUT", rules, `[{"action":"bypass_waiting_room","expression":"http.request.uri.path eq \"/health\" or http.user_agent contains \"monitor\""}]`, nil)
	through := func(want bool, path string, headers ...string) {
		t.Helper()
		eventually(t, soon, func() string {
			if a := o.arrive(path, headers...); a.admitted() != want || want && a.ticket() != "" {
				return fmt.Sprintf("%s %v: %s %v", path, headers, a.Status, a.Header)
			}
			return ""
		})
	}
	through(true, "/health")
	through(true, "/", "User-Agent", "our monitor/1.0")
	through(false, "/healthy")
	o.good("PUT", rules, `[{"action":"bypass_waiting_room","expression":"http.request.uri.path eq \"/health\"","enabled":false}]`, nil)
	through(false, "/health")

	// An event that has begun is in force, until it is deleted.
	var event struct{ ID string }
	o.good("POST", o.under("/"+room+"/events"), fields{"name": "closing", "queueing_method": "reject", "custom_page_html": "<title>Sold out</title>",
		"event_start_time": time.Now().Add(-time.Minute).Format(time.RFC3339), "event_end_time": time.Now().Add(time.Hour).Format(time.RFC3339)}.String(), &event)
	eventually(t, soon, func() string {
		if a := o.arrive("/"); string(a.body) != "<title>Sold out</title>" {
			return "the event has not begun: " + tail(string(a.body), 300)
		}
		return ""
	})
	var status struct {
		Status  string
		EventID string `json:"event_id"`
		Queued  int    `json:"estimated_queued_users"`
	}
	o.good("GET", o.under("/"+room+"/status"), "", &status)
	if status.EventID != event.ID {
		t.Errorf("status: %+v, want event %s", status, event.ID)
	}
	o.good("DELETE", o.under("/"+room+"/events/"+event.ID), "", nil)
	eventually(t, soon, func() string {
		if a := o.arrive("/"); strings.Contains(string(a.body), "Sold out") {
			return "the event goes on"
		}
		return ""
	})
	eventually(t, 5*soon, func() string {
		o.good("GET", o.under("/"+room+"/status"), "", &status)
		if status.Status != "queueing" || status.EventID != "" || status.Queued == 0 {
			return fmt.Sprintf("status: %+v", status)
		}
		return ""
	})
	o.good("DELETE", o.under("/"+room), "", nil)
	eventually(t, soon, func() string {
		if a := o.arrive("/"); !a.admitted() || a.ticket() != "" {
			return fmt.Sprintf("the room is still there: %s %v", a.Status, a.Header)
		}
		return ""
	})
}

func TestOriginCommandsAreSwitchedByTheAPI(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	room := o.newRoom(fields{"total_active_users": 1, "new_users_per_minute": 1})
	first := o.arrive("/")
	if !first.admitted() {
		t.Fatalf("no seat was free: %s", first.Status)
	}
	c := ticketOf(t, first)
	leave := func() answer {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, o.url("/leave"), strings.NewReader("x=1"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "shop.example"
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return answer{Response: res}
	}
	if a := leave(); !a.admitted() || a.Header.Get("Cf-Waiting-Room-Command") != "" {
		t.Errorf("leaving: %s %v", a.Status, a.Header)
	}
	if a := o.arrive("/"); a.admitted() {
		t.Error("the origin's command ended a session, though the room does not take commands")
	}
	o.change(room, fields{"enabled_origin_commands": []string{"revoke"}})
	leave()
	var status struct {
		Active int `json:"estimated_total_active_users"`
	}
	eventually(t, 5*time.Second, func() string {
		o.good("GET", o.under("/"+room+"/status"), "", &status)
		if status.Active != 0 {
			return fmt.Sprintf("%d active users", status.Active)
		}
		return ""
	})
}

// What was acknowledged is there after kill -9, to the letter.
func TestRoomsOfTheAPISurviveAKill(t *testing.T) {
	t.Parallel()
	o := startOffice(t)
	room := o.newRoom(fields{"queue_all": true, "description": "kept"})
	o.good("POST", o.under("/"+room+"/events"), `{"name":"sale","event_start_time":"2036-05-01T10:00:00.50+02:00","event_end_time":"2036-05-01T11:00:00Z"}`, nil)
	o.good("POST", o.under("/"+room+"/rules"), `{"action":"bypass_waiting_room","expression":"ssl"}`, nil)
	o.good("PUT", o.under("/settings"), `{"search_engine_crawler_bypass":true}`, nil)
	paths := []string{"/accounts", "/zones", o.under(""), o.under("/" + room), o.under("/" + room + "/events"), o.under("/" + room + "/rules"), o.under("/settings")}
	before := map[string]string{}
	for _, path := range paths {
		_, e := o.call("GET", path, "")
		before[path] = string(e.Result)
	}
	o.kill()
	o.start()
	for _, path := range paths {
		if _, e := o.call("GET", path, ""); string(e.Result) != before[path] {
			t.Errorf("%s was\n%s\nand is\n%s", path, before[path], e.Result)
		}
	}
	if a := o.arrive("/"); a.admitted() {
		t.Errorf("the room does not hold after the restart: %s", a.Status)
	}
}
