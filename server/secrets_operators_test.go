package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/dashboard"
	"github.com/anteroom/anteroom/manage"
)

// operate asks the operators' listener with a body of JSON and headers, in pairs.
func (r *running) operate(method, path, body string, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, "http://"+r.s.Addresses().Admin+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(dashboard.Header, dashboard.HeaderValue)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return r.do(req, nil)
}

// TestSecretsOfOperatorsStayOutOfLogsAndStore uses tokens, sessions and webhooks at the most
// talkative log level, well and badly, and looks for them in everything that was logged or stored.
func TestSecretsOfOperatorsStayOutOfLogsAndStore(t *testing.T) {
	l := newHookReceiver(t)
	r := startServer(t, "log: {level: debug}\n"+loopbackAllowed+oneRoom)
	first := r.s.FirstToken()
	good := func(a answer, into any) {
		t.Helper()
		var e struct{ Result json.RawMessage }
		if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s", a.Request.Method, a.Request.URL.Path, a.body)
		}
		if into != nil {
			if err := json.Unmarshal(e.Result, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	login := r.operate("POST", "/dash/login", fmt.Sprintf(`{"token":%q}`, first))
	good(login, nil)
	session := login.Cookies()[0]
	cookie := session.Name + "=" + session.Value
	var token, rolled, hook, rotated struct{ ID, Secret string }
	good(r.operate("POST", "/dash/api/anteroom/v1/tokens", `{"name":"deputy","grants":[{"permission":"admin"}]}`, "Cookie", cookie), &token)
	good(r.operate("POST", "/anteroom/v1/tokens/"+token.ID+"/rotate", `{"overlap_seconds":60}`, "Authorization", "Bearer "+token.Secret), &rolled)
	address := l.URL + "/path-that-is-secret?key=word-that-is-secret"
	good(r.operate("POST", "/dash/api/anteroom/v1/webhooks", fmt.Sprintf(`{"name":"hook","url":%q}`, address), "Cookie", cookie), &hook)
	hooks := "/dash/api/anteroom/v1/webhooks/" + hook.ID
	good(r.operate("POST", hooks+"/test", "", "Cookie", cookie), nil)
	good(r.operate("POST", hooks+"/rotate", `{"overlap_seconds":60}`, "Cookie", cookie), &rotated)
	l.Close() // so that sending fails
	good(r.operate("POST", hooks+"/test", "", "Cookie", cookie), nil)
	// What is none, and what stands where it does not belong.
	wrong := first[:len(first)-1] + "~"
	for _, a := range []answer{
		r.operate("POST", "/dash/login", fmt.Sprintf(`{"token":%q}`, wrong)),
		r.operate("POST", "/dash/login", fmt.Sprintf(`{"token":%q`, first)),
		r.operate("GET", "/anteroom/v1/rooms?token="+first, "", "Authorization", "Bearer "+wrong),
		r.operate("GET", "/anteroom/v1/rooms", "", "Authorization", "Basic "+first),
		r.operate("GET", "/dash/session", "", "Cookie", session.Name+"="+session.Value+"x"),
		r.operate("GET", "/client/v4/"+token.Secret, "", "X-Auth-Key", wrong, "X-Auth-Email", "a@example.com"),
		r.operate("POST", "/client/v4/graphql", fmt.Sprintf(`{"query":"{%s}"}`, first), "Authorization", "Bearer "+first+"\t"),
		r.operate("POST", "/client/v4/graphql", fmt.Sprintf(`{"query":"{x(a:\"%s\")}"}`, wrong), "Authorization", "Bearer "+wrong),
	} {
		if a.StatusCode < 400 && !strings.Contains(a.body, `"errors":[{`) {
			t.Errorf("%s %s: %d %s", a.Request.Method, a.Request.URL.Path, a.StatusCode, a.body)
		}
	}
	good(r.operate("POST", "/dash/logout", "{}", "Cookie", cookie), nil)
	told := r.operate("GET", "/-/status", "").body + r.operate("GET", "/metrics", "").body + r.operate("GET", "/anteroom/v1/audit", "", "Authorization", "Bearer "+first).body
	if err := r.end(); err != nil {
		t.Error(err)
	}

	secrets := []string{first, wrong, session.Value, token.Secret, rolled.Secret, manage.AuthKey(first), manage.AuthKey(token.Secret), hook.Secret, rotated.Secret}
	places := map[string][]byte{"the log": []byte(r.log.String()), "status, metrics and audit log": []byte(told)}
	for name, content := range places {
		for _, s := range []string{"path-that-is-secret", "word-that-is-secret"} {
			if bytes.Contains(content, []byte(s)) {
				t.Errorf("%s: the address of the webhook", name)
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(r.dir, "data"), func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			places[name], err = os.ReadFile(name)
		}
		return err
	})
	if err != nil || len(places) < 5 || strings.Count(r.log.String(), "\n") < 10 {
		t.Fatalf("%d places, %v\n%s", len(places), err, r.log.String())
	}
	for name, content := range places {
		for i, s := range secrets {
			if len(s) < 20 || bytes.Contains(content, []byte(s)) {
				t.Errorf("%s holds secret %d, %.12q…", name, i, s)
			}
		}
	}
}

// TestGuessingIsCountedOverEveryDoor: the APIs, GraphQL and the login of the dashboard count the
// failures of an address together, and say the same of each. Nothing of theirs may be stored.
func TestGuessingIsCountedOverEveryDoor(t *testing.T) {
	r := startServer(t, oneRoom)
	const guess = "a-token-that-is-nobody-s-0123456789-0123456789"
	doors := []func() answer{
		func() answer { return r.operate("POST", "/dash/login", `{"token":"`+guess+`"}`) },
		func() answer { return r.operate("GET", "/anteroom/v1/rooms", "", "Authorization", "Bearer "+guess) },
		func() answer { return r.operate("GET", "/client/v4/zones", "", "Authorization", "Bearer "+guess) },
		func() answer {
			return r.operate("POST", "/client/v4/graphql", `{"query":"{cost}"}`, "Authorization", "Bearer "+guess)
		},
	}
	// A minute may end amid the guesses, and the count begins anew with it: the second round is whole.
	throttled := func() bool {
		for i := range manage.MaxFailedLogins + 1 {
			a := doors[i%len(doors)]()
			if a.Header.Get("Cache-Control") != "no-store" || len(a.Cookies()) != 0 || strings.Contains(a.body, guess) {
				t.Errorf("door %d: %v %s", i%len(doors), a.Header, a.body)
			}
			if a.StatusCode == http.StatusTooManyRequests {
				return true
			}
		}
		return false
	}
	if first := throttled(); !first && !throttled() { // the second time, should a minute have ended
		t.Fatal("guesses are not counted together")
	}
	for i, door := range doors {
		a := door()
		if a.StatusCode != http.StatusTooManyRequests { // a minute has just ended
			throttled()
			a = door()
		}
		if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
			t.Errorf("door %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	if a := r.operate("POST", "/dash/login", `{"token":"`+r.s.FirstToken()+`"}`); a.StatusCode != http.StatusOK {
		t.Errorf("a good token: %d %s", a.StatusCode, a.body)
	}
}
