package server

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDashboardOverTheWire: a person logs in, follows the figures, holds a room of the
// configuration file, and is told the end when the server stops.
func TestDashboardOverTheWire(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	r := startServer(t, oneRoom)
	base := "http://" + r.s.Addresses().Admin
	send := func(method, path, body string, cookies ...*http.Cookie) answer {
		t.Helper()
		req, err := http.NewRequest(method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Anteroom", "dashboard")
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		for _, c := range cookies {
			req.AddCookie(c)
		}
		return r.do(req, nil)
	}
	in := send("POST", "/dash/login", `{"token":"`+r.s.FirstToken()+`"}`)
	if in.StatusCode != 200 || len(in.Cookies()) != 1 {
		t.Fatalf("login: %d %s", in.StatusCode, in.body)
	}
	cookie := in.Cookies()[0]
	if a := r.admin("GET", "/anteroom/v1/rooms", "Cookie", cookie.Name+"="+cookie.Value); a.StatusCode != 401 {
		t.Errorf("the API reads cookies: %d %s", a.StatusCode, a.body)
	}

	req, err := http.NewRequestWithContext(t.Context(), "GET", base+"/dash/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(cookie)
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	type figures struct {
		Rooms []struct {
			ID, Name string
			Zone     struct{ ID string }
			Controls struct{ Paused bool }
			Status   *struct {
				TotalActiveUsers int `json:"total_active_users"`
			}
		}
	}
	next := func() (f figures) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &f); err != nil {
					t.Fatal(err)
				}
				return f
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return f
	}
	f := next()
	if len(f.Rooms) != 1 || f.Rooms[0].Name != "shop" || f.Rooms[0].Status == nil || f.Rooms[0].Status.TotalActiveUsers != 1 {
		t.Fatalf("the first figures: %+v", f)
	}
	room := "/dash/api/anteroom/v1/zones/" + f.Rooms[0].Zone.ID + "/rooms/" + f.Rooms[0].ID
	if a := send("POST", room+"/pause", "", cookie); a.StatusCode != 200 {
		t.Fatalf("pause: %d %s", a.StatusCode, a.body)
	}
	for f = next(); len(f.Rooms) == 0; {
		f = next()
	}
	if !f.Rooms[0].Controls.Paused {
		t.Errorf("the stream does not tell the pause: %+v", f)
	}

	began := time.Now()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil || time.Since(began) > patience/2 {
		t.Errorf("the stream ended after %v with %v", time.Since(began), err)
	}
}
