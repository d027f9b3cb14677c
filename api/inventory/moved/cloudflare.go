package moved

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/inventory"
)

// cloudflareOwn are members that say when and where, not how.
var cloudflareOwn = []string{"id", "created_on", "modified_on", "next_event_prequeue_start_time", "next_event_start_time"}

// Cloudflare reads waiting rooms from a saved answer of the API: the envelope of a list or of one room, or the result alone.
func Cloudflare(data []byte) (*Config, error) {
	var envelope struct {
		Success *bool
		Result  json.RawMessage
	}
	trimmed := strings.TrimLeft(string(data[:min(len(data), 100)]), "\ufeff \t\r\n")
	result := json.RawMessage(data)
	if !strings.HasPrefix(trimmed, "[") {
		if err := decode(data, &envelope); err != nil {
			return nil, err
		}
		if envelope.Success != nil && !*envelope.Success {
			return nil, anteroom.Errorf(anteroom.Invalid, "success is false: this answer of the API is an error")
		}
		if len(envelope.Result) > 0 {
			result = envelope.Result
		}
	}
	var objects []json.RawMessage
	if text := strings.TrimSpace(string(result)); !strings.HasPrefix(text, "[") {
		objects = []json.RawMessage{result}
	} else if err := decode(result, &objects); err != nil {
		return nil, err
	}
	var c Config
	c.origin()
	for i, raw := range objects {
		r, err := inventory.ParseRoom(raw)
		if err != nil {
			return nil, fmt.Errorf("result[%d]: %w", i, err)
		}
		if r.Name() == "" || r.Object["host"] == "" {
			return nil, anteroom.Errorf(anteroom.Invalid, "result[%d] has no name and host: export the list of waiting rooms, /zones/ID/waiting_rooms", i)
		}
		n, err := r.Document()
		if err != nil {
			return nil, err
		}
		c.rooms = append(c.rooms, n)
		room := "rooms." + r.Name()
		c.note(Mapped, fmt.Sprintf("result[%d]: name, host, limits and all other settings of a room", i), room, "the keys have the same names")
		var members map[string]json.RawMessage
		if err := decode(raw, &members); err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(members)) {
			if _, ours := r.Object[key]; !ours && !slices.Contains(cloudflareOwn, key) && string(members[key]) != "null" {
				c.note(Left, fmt.Sprintf("result[%d].%s", i, key), "", "no setting of a room here")
			}
		}
	}
	if len(objects) == 0 {
		return nil, anteroom.Errorf(anteroom.Invalid, "result is empty: there are no waiting rooms")
	}
	c.note(Left, "events, rules and settings of the zone", "", "they have lists of their own; \"anteroom config import cloudflare\" without a file reads them from the API")
	return &c, nil
}
