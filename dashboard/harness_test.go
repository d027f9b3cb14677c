package dashboard

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own"
	"github.com/anteroom/anteroom/api/rest"
	"github.com/anteroom/anteroom/cluster/memlink"
	"github.com/anteroom/anteroom/manage"
)

const adminToken = "an-admin-token-of-the-environment-0123456789"

// world is a dashboard over real APIs and a manager in memory, on a clock that tests set.
type world struct {
	*testing.T
	dash   *Dashboard
	manage *manage.Manager
	apis   http.Handler
	now    time.Time
	log    strings.Builder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, now: time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	log := slog.New(slog.NewTextHandler(&w.log, nil))
	m, err := manage.Open(t.Context(), manage.Config{Link: memlink.New(), FirstToken: adminToken, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	w.manage = m
	published, ours := rest.New(rest.Config{Manager: m, Log: log}), own.New(own.Config{Manager: m, Log: log})
	w.apis = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, rest.Prefix+"/") {
			published.ServeHTTP(rw, r)
			return
		}
		ours.ServeHTTP(rw, r)
	})
	w.dash = New(Config{
		API: w.apis, APIs: []string{rest.Prefix, own.Prefix}, Authenticate: m.Authenticate, Version: "test", Now: clock, Log: log,
		Live: func(by manage.Caller) ([]Room, error) {
			rooms, err := m.Rooms(by, "")
			out := make([]Room, len(rooms))
			for i, r := range rooms {
				out[i] = Room{ID: r.ID, Value: map[string]any{"id": r.ID, "name": r.Name, "queue_all": r.QueueAll}}
			}
			return out, err
		},
	})
	return w
}

// request makes a request as the page does; headers are pairs, and an empty value takes one away.
func request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:8081"+path, strings.NewReader(body))
	if body == "" {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method != http.MethodGet {
		r.Header.Set(Header, HeaderValue)
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// answer is what came back.
type answer struct {
	*http.Response
	body    string
	Success bool
	Errors  []struct{ Message string }
	Result  json.RawMessage
}

func (w *world) do(r *http.Request) answer {
	w.Helper()
	rec := httptest.NewRecorder()
	w.dash.ServeHTTP(rec, r)
	a := answer{Response: rec.Result()}
	b, err := io.ReadAll(a.Body)
	if err != nil {
		w.Fatal(err)
	}
	a.body = string(b)
	if strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(b, &a); err != nil {
			w.Fatal(err)
		}
	}
	return a
}

func (w *world) ask(method, path, body string, headers ...string) answer {
	w.Helper()
	return w.do(request(method, path, body, headers...))
}

// login returns the cookie of a new session, as a header's value.
func (w *world) login(token string) string {
	w.Helper()
	a := w.ask("POST", "/dash/login", `{"token":"`+token+`"}`)
	if a.StatusCode != 200 || len(a.Cookies()) != 1 {
		w.Fatalf("login: %d %s", a.StatusCode, a.body)
	}
	return a.Cookies()[0].Name + "=" + a.Cookies()[0].Value
}

// admin is who makes what tests need.
func (w *world) admin() manage.Caller {
	w.Helper()
	by, err := w.manage.Authenticate(adminToken, api.AddressOf(request("GET", "/", "")), "test")
	if err != nil {
		w.Fatal(err)
	}
	return by
}

func (w *world) room(zone, name string) anteroom.Room {
	w.Helper()
	z, ok := w.manage.State().ZoneNamed(zone)
	if !ok {
		var err error
		if z, err = w.manage.CreateZone(w.Context(), w.admin(), zone); err != nil {
			w.Fatal(err)
		}
	}
	r, err := w.manage.CreateRoom(w.Context(), w.admin(), z.ID, anteroom.Room{Name: name, Routes: []anteroom.Route{{Host: zone, Path: "/" + name}},
		Settings: anteroom.Settings{TotalActiveUsers: 10, NewUsersPerMinute: 10}})
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// token makes a token; zone may be empty.
func (w *world) token(p manage.Permission, zone string) (manage.Token, string) {
	w.Helper()
	var grant = manage.Grant{Permission: p}
	if zone != "" {
		z, _ := w.manage.State().ZoneNamed(zone)
		grant.Zone = z.ID
	}
	made, text, err := w.manage.CreateToken(w.Context(), w.admin(), manage.TokenSpec{Name: string(p), Grants: []manage.Grant{grant}})
	if err != nil {
		w.Fatal(err)
	}
	return made, text
}
