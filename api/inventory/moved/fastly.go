package moved

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// fastlyItem is an item of a dictionary or a config store, as the API and the CLI print them.
type fastlyItem struct {
	ItemKey   string `json:"item_key"`
	ItemValue string `json:"item_value"`
	Key       string
	Value     string
}

// line is a value in the text of a VCL table or of the starter's config.js.
var line = regexp.MustCompile(`(?m)^[ \t]*"?([A-Za-z_]{1,64})"?[ \t]*:[ \t]*"?([^",\n\r{]{0,200}?)"?[ \t]*,?[ \t]*\r?$`)

// Fastly reads the configuration of one of the two published starters: the table of the VCL pattern or the items of its
// dictionary, or config.js of the Compute starter. Items of the latter may hold the keys of its store, queue:cursor and
// queue:length.
func Fastly(data []byte) (*Config, error) {
	values := map[string]string{}
	var names []string
	add := func(name, value string) {
		if _, twice := values[name]; !twice && name != "" {
			values[name] = strings.TrimSpace(value)
			names = append(names, name)
		}
	}
	switch text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n"); {
	case bytes.HasPrefix(text, []byte("[")):
		var items []fastlyItem
		if err := decode(data, &items); err != nil {
			return nil, err
		}
		for _, it := range items {
			add(it.ItemKey+it.Key, it.ItemValue+it.Value)
		}
	case bytes.HasPrefix(text, []byte("{")):
		var doc map[string]json.RawMessage
		if err := decode(data, &doc); err != nil {
			return nil, err
		}
		var items []fastlyItem
		if list, ok := doc["data"]; ok {
			if err := decode(list, &items); err != nil {
				return nil, err
			}
		}
		for _, it := range items {
			add(it.ItemKey+it.Key, it.ItemValue+it.Value)
		}
		for _, name := range slices.Sorted(maps.Keys(doc)) {
			if name != "data" {
				add(name, strings.Trim(string(doc[name]), `"`))
			}
		}
	default:
		for _, m := range line.FindAllSubmatch(data, 10_000) {
			add(string(m[1]), string(m[2]))
		}
	}
	_, vcl := values["allow_percentage"]
	_, compute := values["automaticQuantity"]
	if !vcl && !compute {
		return nil, anteroom.Errorf(anteroom.Invalid, "neither allow_percentage nor automaticQuantity is in it; export the items of the dictionary of the VCL pattern, or take src/config.js of the Compute starter")
	}
	var c Config
	c.origin()
	const room = "rooms.sale"
	pairs := []pair{{"name", "sale", ""}, {"host", shopHost, "choose"}, {"path", "/", "choose"}}
	c.note(Choose, "", room+".host, "+room+".path", "what the service protects")
	var limits []pair
	if rate := perMinute(values["automatic"], values["automaticQuantity"]); rate > 0 {
		limits = []pair{{"total_active_users", max(rate, someLimit), "choose"}, {"new_users_per_minute", rate, ""}}
		c.note(Mapped, fmt.Sprintf("automaticQuantity: %s, automatic: %s", field.Quote(values["automaticQuantity"]), field.Quote(values["automatic"])), fmt.Sprintf("%s.new_users_per_minute: %d", room, rate), "")
		c.note(Choose, "", room+".total_active_users", "the starter has no such limit")
	} else {
		limits = c.limits(room)
	}
	pairs = append(pairs, limits...)
	for _, name := range names {
		v := values[name]
		theirs := named(name, v)
		switch name {
		case "allow_period_duration", "cookieExpiry":
			seconds, ok := product(v)
			d := min(time.Duration(seconds)*time.Second, anteroom.MaxSessionDuration)
			if _, twice := values["allow_period_duration"]; name == "cookieExpiry" && twice {
				c.note(Left, theirs, "", "allow_period_duration is used instead")
				continue
			}
			if !ok || d < time.Second {
				c.note(Choose, theirs, room+".session_duration", "it is not a number of seconds")
				continue
			}
			pairs = append(pairs, pair{"session_duration", field.Short(d), ""})
			c.note(Mapped, theirs, room+".session_duration: "+field.Short(d), "it counts from the last request; a session can end earlier than the cookie did")
		case "enabled":
			if v == "true" {
				c.note(Mapped, theirs, room, "")
				continue
			}
			pairs = append(pairs, pair{"suspended", true, ""})
			c.note(Mapped, theirs, room+".suspended: true", "")
		case "refreshInterval":
			c.note(Left, theirs, "", "the page adapts its refresh interval to the position; refresh sets a fixed one")
		case "allow_percentage":
			c.note(Left, theirs, "", "a percentage bounds neither the active users nor the new users per minute: choose both limits, or set lottery_percent to it")
		case "wait_period_duration":
			c.note(Left, theirs, "", "the wait follows from the queue and the limits")
		case "cookie_lifetime":
			c.note(Left, theirs, "", "the ticket lives as long as its place or session")
		case "demoPadding":
			c.note(Left, theirs, "", "it is for demonstrations only")
		case "active_key", "jwt_secret", "jwtSecret", "password", "upstash_url", "upstash_token", "token", "url":
			c.note(Left, name, "", "Anteroom has keys and a store of its own")
		case "path":
			c.note(Left, theirs, "", "the dashboard is at the admin address")
		case "queue:length":
			length, ok := product(v)
			if !ok || length == 0 || length > anteroom.MaxLine {
				c.note(Choose, theirs, "fastly[0].length", fmt.Sprintf("it is not a number from 1 to %d; without it, every position is accepted", anteroom.MaxLine))
				length = 0
			} else {
				c.note(Mapped, theirs, fmt.Sprintf("fastly[0].length: %d", length), "visitors of the starter come first, in its order")
			}
			c.fastly = append(c.fastly, mapping(pair{"room", "sale", ""}, pair{"starter", "compute", ""}, pair{"secret_file", "secret", "choose"},
				pair{"since", "2000-01-01T00:00:00Z", "choose"}, pair{"length", length, ""}))
			c.note(Choose, "", "fastly[0].secret_file, fastly[0].since", "a file with the secret of the JWTs, and the moment of the cut-over")
		case "queue:cursor":
			c.note(Left, theirs, "", "positions up to it are the lowest, so their visitors come first in any case")
		case "automatic", "automaticQuantity": // above
		default:
			c.note(Left, name, "", "not a key of the starters; it may be a secret, so its value is not shown")
		}
	}
	c.rooms = append(c.rooms, mapping(pairs...))
	return &c, nil
}

// perMinute is how many visitors the Compute starter admits in a minute; 0 if none, or if it does not say so.
func perMinute(seconds, quantity string) int {
	every, ok := product(seconds)
	n, ok2 := product(quantity)
	if !ok || !ok2 || every == 0 {
		return 0
	}
	return int(min(anteroom.MaxUsers, math.Floor(60*float64(n)/float64(every))))
}

// product returns the value of a number, or of a product like 24 * 60 * 60, at most 1e9.
func product(text string) (int, bool) {
	out := 1
	for factor := range strings.SplitSeq(text, "*") {
		n, err := strconv.Atoi(strings.TrimSpace(factor))
		if err != nil || n < 0 || n > 1e9 || out*n > 1e9 {
			return 0, false
		}
		out *= n
	}
	return out, true
}
