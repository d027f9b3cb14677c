package queueit

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/anteroom/anteroom"
)

// Connectors fetch what to protect: the routes of the room, with a cookie for as long as the session.
func TestIntegrationConfig(t *testing.T) {
	room := sale
	room.CookieSuffix = "sale"
	room.Routes = append(room.Routes, anteroom.Route{Host: "tickets.example.com"}, anteroom.Route{Host: "*", Path: "/any"})
	inWorld(t, room, nil, func(w *world) {
		fetch := func(path string) (version float64, text string) {
			res := w.browser().get(path)
			body, _ := io.ReadAll(res.Body)
			var all map[string]any
			if err := json.Unmarshal(body, &all); err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%d %s", res.StatusCode, body)
			}
			version = all["Version"].(float64)
			rest, _ := json.Marshal(all["Integrations"])
			return version, string(rest)
		}
		first, text := fetch("/status/integrationconfig/acme")
		want := `[{"ActionType":"Queue","CookieValidityMinute":3,"EventId":"launch1","ExtendCookieValidity":false,"IsCookieHttpOnly":true,"IsCookieSecure":true,"Name":"sale","QueueDomain":"wait.example.com","RedirectLogic":"AllowTParameter",` +
			`"Triggers":[{"LogicalOperator":"And","TriggerParts":[{"IsIgnoreCase":true,"IsNegative":false,"Operator":"Equals","UrlPart":"HostName","ValidatorType":"UrlValidator","ValueToCompare":"shop.example.com"},` +
			`{"IsIgnoreCase":true,"IsNegative":false,"Operator":"Contains","UrlPart":"PagePath","ValidatorType":"UrlValidator","ValueToCompare":"/checkout"}]},` +
			`{"LogicalOperator":"And","TriggerParts":[{"IsIgnoreCase":true,"IsNegative":false,"Operator":"Equals","UrlPart":"HostName","ValidatorType":"UrlValidator","ValueToCompare":"tickets.example.com"}]}]}]`
		if text != want || first < 1 || first > 1<<31-1 {
			t.Errorf("version %v\n got %s\nwant %s", first, text, want)
		}
		if again, _ := fetch("/status/integrationconfig/secure/acme"); again != first {
			t.Errorf("version %v, then %v", first, again)
		}
		room.SessionDuration *= 2
		w.apply(room)
		if changed, _ := fetch("/status/integrationconfig/acme"); changed == first {
			t.Error("another configuration has the same version")
		}
	})
}
