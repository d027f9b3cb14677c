package queueit

import (
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// integrationConfig is what connectors fetch, or are given as a file. Members that would be empty or false are left out, which
// means the same to them.
type integrationConfig struct {
	Description  string
	Version      uint32
	Integrations []integration
}

type integration struct {
	Name, ActionType     string
	EventID              string `json:"EventId"`
	CookieValidityMinute int
	ExtendCookieValidity bool
	IsCookieHTTPOnly     bool `json:"IsCookieHttpOnly"`
	IsCookieSecure       bool
	QueueDomain          string
	RedirectLogic        string
	Triggers             []trigger
}

type trigger struct {
	LogicalOperator string
	TriggerParts    []triggerPart
}

type triggerPart struct {
	ValidatorType, Operator, ValueToCompare string
	URLPart                                 string `json:"UrlPart"`
	IsNegative, IsIgnoreCase                bool
}

// integrations answers with the configuration of all events of a customer at this host.
func (b *Bridge) integrations(w http.ResponseWriter, r *http.Request) {
	customer, ok := strings.CutPrefix(r.URL.Path, "/status/integrationconfig/")
	customer = strings.TrimPrefix(customer, "secure/")
	out := integrationConfig{Description: "Anteroom"}
	b.find(r, func(e *Event) bool {
		if room, _ := e.Room(); room != nil && strings.EqualFold(e.Customer, customer) {
			out.Integrations = append(out.Integrations, e.integration(room))
		}
		return false
	})
	if !ok || len(out.Integrations) == 0 {
		say(w, http.StatusNotFound, "There is no such customer here", "")
		return
	}
	text, err := json.Marshal(out.Integrations)
	if err == nil {
		out.Version = max(1, crc32.ChecksumIEEE(text)>>1) // connectors refuse 0, and some read a signed number
		text, err = json.Marshal(out)
	}
	if err != nil {
		panic(err) // texts, numbers and truth values only
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Write(text)
}

// integration is the action of a connector that protects the routes of a room. It knows no prefixes of a path, so
// "contains" covers more pages than the room, never fewer.
func (e *Event) integration(room *anteroom.Room) integration {
	out := integration{Name: room.Name, ActionType: "Queue", EventID: e.ID, CookieValidityMinute: int(room.Settings.WithDefaults().TokenLife() / time.Minute),
		IsCookieHTTPOnly: true, IsCookieSecure: e.URL.Scheme == "https", QueueDomain: e.URL.Host, RedirectLogic: "AllowTParameter"}
	for _, rt := range room.WithDefaults().Routes {
		if rt.Host == "*" { // nothing goes back to a host that has no name
			continue
		}
		parts := []triggerPart{{ValidatorType: "UrlValidator", Operator: "Equals", URLPart: "HostName", ValueToCompare: rt.Host, IsIgnoreCase: true}}
		if path := strings.TrimSuffix(rt.Path, "/"); path != "" {
			parts = append(parts, triggerPart{ValidatorType: "UrlValidator", Operator: "Contains", URLPart: "PagePath", ValueToCompare: path, IsIgnoreCase: true})
		}
		out.Triggers = append(out.Triggers, trigger{"And", parts})
	}
	return out
}
