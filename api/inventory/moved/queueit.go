package moved

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// queueItExport is the integration configuration of connectors, as far as it concerns us.
type queueItExport struct {
	Integrations []struct {
		Name, ActionType, EventID  string
		Culture, LayoutName        string
		QueueDomain, RedirectLogic string
		CookieValidityMinute       int
		ExtendCookieValidity       bool
		Triggers                   []queueItTrigger
	}
}

type queueItTrigger struct {
	LogicalOperator string
	TriggerParts    []queueItPart
}

type queueItPart struct {
	ValidatorType, Operator, ValueToCompare, URLPart string
	ValuesToCompare                                  []string
	IsNegative                                       bool
}

// values are the texts that the part compares with.
func (p queueItPart) values() []string {
	if strings.HasSuffix(p.Operator, "Any") {
		return p.ValuesToCompare
	}
	return []string{p.ValueToCompare}
}

// QueueIt reads the integration configuration of Queue-it's connectors.
func QueueIt(data []byte) (*Config, error) {
	var in queueItExport
	if err := decode(data, &in); err != nil {
		return nil, err
	}
	var c Config
	var order []string
	routes := map[string][]anteroom.Route{}
	for i, one := range in.Integrations {
		at := fmt.Sprintf("Integrations[%d]", i)
		switch one.ActionType {
		case "Queue":
		case "Cancel":
			c.note(Left, named(at+".ActionType", one.ActionType), "", "keep it in the connectors' configuration; it frees a seat only with cancel: free")
			continue
		default:
			c.note(Left, named(at+".ActionType", one.ActionType), "", "keep it in the connectors' configuration")
			continue
		}
		id := strings.ReplaceAll(word(strings.ToLower(one.EventID)), "_", "-")
		if id == "" {
			c.note(Left, named(at+".EventId", one.EventID), "", "an action without an event")
			continue
		}
		known := routes[id]
		for j, t := range one.Triggers {
			known = c.routes(known, fmt.Sprintf("%s.Triggers[%d]", at, j), t)
		}
		if _, again := routes[id]; again {
			routes[id] = known
			c.note(Mapped, named(at+".EventId", one.EventID), "rooms."+id+".routes", "the routes of several actions are in one room")
			continue
		}
		routes[id] = known
		order = append(order, id)
		if id == one.EventID {
			c.note(Mapped, named(at+".EventId", one.EventID), "queue_it.event_id: "+id, "")
		} else {
			c.note(Choose, named(at+".EventId", one.EventID), "queue_it.event_id: "+id, "lower-case letters, digits and - only; connectors must send the same")
		}
		room := "rooms." + id
		duration, remark := 20*time.Minute, "choose"
		if m := one.CookieValidityMinute; m >= 1 && m <= int(anteroom.MaxSessionDuration/time.Minute) {
			duration, remark = time.Duration(m)*time.Minute, ""
			c.note(Mapped, fmt.Sprintf("%s.CookieValidityMinute: %d", at, m), room+".session_duration: "+field.Short(duration), "")
		} else {
			c.note(Choose, fmt.Sprintf("%s.CookieValidityMinute: %d", at, m), room+".session_duration: "+field.Short(duration), "not in the export, or not 1 minute to 24 h")
		}
		if one.ExtendCookieValidity {
			c.note(Left, at+".ExtendCookieValidity: true", "", "connectors never renew sessions here; visitors pass the queue's host again after session_duration")
		}
		if one.RedirectLogic != "" && one.RedirectLogic != "AllowTParameter" {
			c.note(Left, named(at+".RedirectLogic", one.RedirectLogic), "", "visitors return to the page that they came from")
		}
		for _, v := range [][2]string{{"Culture", one.Culture}, {"LayoutName", one.LayoutName}} {
			if v[1] != "" {
				c.note(Left, named(at+"."+v[0], v[1]), "", "the page follows the browser's language; a custom page has its own layout (docs/templates.md)")
			}
		}
		c.rooms = append(c.rooms, mapping(append([]pair{{"name", id, ""}}, append(c.limits(room), pair{"session_duration", field.Short(duration), remark})...)...))
		customer, domain := "", strings.ToLower(one.QueueDomain)
		address := pair{"url", queueURL, "choose"}
		if name, vendor := strings.CutSuffix(domain, ".queue-it.net"); vendor {
			customer = word(name)
			c.note(Mapped, named(at+".QueueDomain", domain), "queue_it.customer_id: "+customer, "connectors get another queue domain")
			c.note(Choose, "", "queue_it.url", "the queue's host that visitors are sent to")
		} else if domain != "" {
			address = pair{"url", "https://" + domain, ""}
			c.note(Mapped, named(at+".QueueDomain", domain), "queue_it.url", "its DNS record must lead here")
		} else {
			c.note(Choose, "", "queue_it.url", "the queue's host that visitors are sent to")
		}
		who := pair{"customer_id", customer, ""}
		if customer == "" {
			who = pair{"customer_id", "customer", "choose"}
			c.note(Choose, "", "queue_it.customer_id", "the export does not say it")
		}
		c.queueIt = append(c.queueIt, mapping(who, pair{"event_id", id, ""}, pair{"room", id, ""}, address, pair{"secret_file", "secret", ""}))
	}
	if len(order) == 0 {
		return nil, anteroom.Errorf(anteroom.Invalid, `no member of Integrations has the ActionType "Queue"; export the integration configuration of the connectors`)
	}
	c.note(Choose, "", "queue_it.secret_file: secret", "put the connectors' secret key into this file")
	for i, id := range order {
		c.setRoutes(i, id, routes[id])
	}
	return &c, nil
}

// setRoutes puts the routes of a room behind its name.
func (c *Config) setRoutes(i int, id string, routes []anteroom.Route) {
	if len(routes) == 0 {
		routes = []anteroom.Route{{Host: shopHost, Path: "/"}}
		c.note(Choose, "", "rooms."+id+".routes", "the triggers name no host and no path")
	}
	var list []any
	for _, r := range routes {
		list = append(list, map[string]string{"host": r.Host, "path": r.Path})
	}
	pairs := []pair{{"routes", list, ""}}
	if len(routes) > 1 {
		pairs = append(pairs, pair{"cookie_suffix", strings.ReplaceAll(id, "-", "_"), ""})
	}
	more := mapping(pairs...).Content
	n := c.rooms[i]
	n.Content = slices.Insert(n.Content, 2, more...)
}

// routes adds the routes that a trigger covers. Where the room cannot have the trigger's conditions, it covers more pages,
// never fewer, and the report says so.
func (c *Config) routes(known []anteroom.Route, at string, t queueItTrigger) []anteroom.Route {
	var hosts, paths []string
	either := strings.EqualFold(t.LogicalOperator, "Or")
	for k, p := range t.TriggerParts {
		where := fmt.Sprintf("%s.TriggerParts[%d]", at, k)
		theirs := fmt.Sprintf("%s: %s %s %s", where, p.URLPart, p.Operator, field.Quote(strings.Join(p.values(), ", ")))
		if p.ValidatorType != "UrlValidator" || p.IsNegative {
			c.note(Left, named(where+".ValidatorType", p.ValidatorType), "", "rooms cover hosts and paths; for other conditions and for \"not\", use rules (docs/rules.md)")
			continue
		}
		var addedHosts, addedPaths []string
		for _, v := range p.values() {
			host, path := "", ""
			switch u, err := url.Parse(v); {
			case strings.EqualFold(p.URLPart, "HostName"):
				host, _, _ = strings.Cut(v, ":")
			case err != nil || v == "*" || v == "":
			case u.Host != "":
				host, path = u.Hostname(), u.Path
			default:
				path = "/" + strings.TrimLeft(u.Path, "/")
			}
			if host = strings.ToLower(host); host != "*" {
				addedHosts = distinct(addedHosts, host)
			}
			if path != "/" {
				addedPaths = distinct(addedPaths, path)
			}
		}
		if len(addedHosts)+len(addedPaths) == 0 {
			c.note(Left, theirs, "", "every value passes it")
			continue
		}
		c.note(Mapped, theirs, "routes", "a route covers its path and everything below it, and nothing else that contains it")
		if either {
			known = c.cross(known, at, addedHosts, addedPaths)
			continue
		}
		hosts, paths = distinct(hosts, addedHosts...), distinct(paths, addedPaths...)
	}
	if either || len(hosts)+len(paths) == 0 {
		return known
	}
	return c.cross(known, at, hosts, paths)
}

// distinct adds texts that are new, as many as a room could have routes of and one more.
func distinct(known []string, more ...string) []string {
	for _, s := range more {
		if s != "" && len(known) <= anteroom.MaxRoutesPerRoom && !slices.Contains(known, s) {
			known = append(known, s)
		}
	}
	return known
}

// cross adds a route for each host and path.
func (c *Config) cross(known []anteroom.Route, at string, hosts, paths []string) []anteroom.Route {
	if len(hosts) == 0 {
		hosts = []string{shopHost}
		c.note(Choose, at, "routes", "the trigger names no host")
	}
	if len(paths) == 0 {
		paths = []string{"/"}
	}
	for _, h := range hosts {
		for _, p := range paths {
			r := anteroom.Route{Host: h, Path: p}
			if slices.Contains(known, r) {
				continue
			}
			if len(known) == anteroom.MaxRoutesPerRoom {
				c.note(Left, at, "", fmt.Sprintf("a room has at most %d routes", len(known)))
				return known
			}
			known = append(known, r)
		}
	}
	return known
}
