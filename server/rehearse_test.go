package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/manage"
)

// TestRehearsals: requests below the path of a rehearsal change a copy, which is that of one token and goes when there are others.
func TestRehearsals(t *testing.T) {
	r := startServer(t, "rooms: []\n")
	_, other, err := r.s.manage.CreateToken(context.Background(), manage.Caller{Name: "test", Grants: []manage.Grant{{Permission: manage.Admin}}},
		manage.TokenSpec{Name: "other", Grants: []manage.Grant{{Permission: manage.Admin}}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(token, method, path, body string) (int, envelope) {
		t.Helper()
		return exchange(t, r.s.Addresses().Admin, fmt.Sprintf("%s %s HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", method, path, token, len(body), body))
	}
	zones := func(token, at string) int {
		t.Helper()
		status, e := send(token, "GET", at+"/zones", "")
		list, ok := e.Result.([]any)
		if status != 200 || !ok {
			t.Fatalf("%s: %d %+v", at, status, e)
		}
		return len(list)
	}
	mine := r.s.FirstToken()
	at := func(name string) string { return rehearsalPath + "/" + name + "/client/v4" }
	status, e := send(mine, "POST", at("a")+"/zones", `{"name": "example.com"}`)
	if status != 200 {
		t.Fatalf("%d %+v", status, e)
	}
	if status, e := send(mine, "POST", at("a")+"/zones", `{"name": "example.com"}`); status != 400 {
		t.Errorf("the zone is made twice: %d %+v", status, e)
	}
	made, _ := e.Result.(map[string]any)
	if status, e := send(mine, "GET", fmt.Sprintf("%s/zones/%v", at("a"), made["id"]), ""); status != 200 {
		t.Errorf("the zone is not there: %d %+v", status, e)
	}
	if a, b, real, theirs := zones(mine, at("a")), zones(mine, at("b")), zones(mine, "/client/v4"), zones(other, at("a")); a != 1 || b+real+theirs != 0 {
		t.Errorf("there are %d zones, and elsewhere %d, %d, %d", a, b, real, theirs)
	}
	for i := range maxRehearsals {
		zones(mine, at(fmt.Sprint(i)))
	}
	if n := zones(mine, at("a")); n != 0 {
		t.Errorf("the oldest still has %d zones", n)
	}
	for path, want := range map[string]int{
		rehearsalPath: 404, rehearsalPath + "/": 404, rehearsalPath + "/a": 404, rehearsalPath + "/a/anteroom/v1/zones": 404, rehearsalPath + "//client/v4/zones": 404,
		rehearsalPath + "/a%2fb/client/v4/zones": 404, rehearsalPath + "/" + strings.Repeat("a", 65) + "/client/v4/zones": 404, at("a") + "/nothing": 404,
	} {
		if status, _ := send(mine, "GET", path, ""); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	if status, _ := send(mine+"x", "GET", at("a")+"/zones", ""); status != 403 {
		t.Errorf("another token: %d", status)
	}
	_, reads, err := r.s.manage.CreateToken(context.Background(), manage.Caller{Name: "test", Grants: []manage.Grant{{Permission: manage.Admin}}},
		manage.TokenSpec{Name: "reads", Grants: []manage.Grant{{Permission: manage.Read}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := send(reads, "GET", at("a")+"/zones", ""); status != 403 {
		t.Errorf("a token that can change nothing: %d", status)
	}
}
