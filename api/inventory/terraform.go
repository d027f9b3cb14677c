package inventory

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/internal/field"
)

// Terraform writes the inventory as resources of the cloudflare provider, version 5, each with its import block.
// Members with their default value are left out.
func (inv *Inventory) Terraform(w io.Writer) error {
	out := hcl{Writer: bufio.NewWriter(w), taken: map[string]bool{}}
	out.line(0, "# Waiting rooms as they stand. The first apply imports them and changes nothing.")
	for _, z := range inv.Zones {
		zone := out.name(z.Name)
		out.resource("cloudflare_waiting_room_settings", zone, z.ID)
		out.set(1, "zone_id", z.ID)
		out.members(settingFields, z.Settings, true)
		out.line(0, "}")
		for _, r := range z.Rooms {
			out.room(z, r)
		}
	}
	return out.Flush()
}

// hcl writes blocks. The first error stays with the writer and Flush returns it.
type hcl struct {
	*bufio.Writer
	taken map[string]bool // names of resources
}

func (h *hcl) room(z *Zone, r *Room) {
	room := h.name(z.Name + "_" + r.Name())
	h.resource("cloudflare_waiting_room", room, z.ID+"/"+r.ID)
	h.set(1, "zone_id", z.ID)
	h.members(roomFields, r.Object, false)
	h.line(0, "}")
	owner := func() {
		h.set(1, "zone_id", z.ID)
		h.set(1, "waiting_room_id", reference("cloudflare_waiting_room."+room+".id"))
	}
	for _, e := range r.Events {
		h.resource("cloudflare_waiting_room_event", h.name(z.Name+"_"+r.Name()+"_"+e.Name()), z.ID+"/"+r.ID+"/"+e.ID)
		owner()
		h.members(eventFields, e.Object, false)
		h.line(0, "}")
	}
	if len(r.Rules) > 0 {
		h.resource("cloudflare_waiting_room_rules", room, z.ID+"/"+r.ID)
		owner()
		h.line(1, "rules = [")
		for _, rule := range r.Rules {
			h.line(2, "{")
			for _, f := range ruleFields {
				h.set(3, f.Key, rule[f.Key])
			}
			h.line(2, "},")
		}
		h.line(1, "]")
		h.line(0, "}")
	}
}

func (h *hcl) resource(kind, name, id string) {
	h.line(0, "")
	h.line(0, "import {")
	h.set(1, "to", reference(kind+"."+name))
	h.set(1, "id", id)
	h.line(0, "}")
	h.line(0, "")
	h.line(0, "resource "+quoted(kind)+" "+quoted(name)+" {")
}

func (h *hcl) members(fields []field.Field, o Object, all bool) {
	for _, f := range fields {
		v := o[f.Key]
		if !all && reflect.DeepEqual(v, f.JSONDefault()) || f.Ours && v == nil {
			continue
		}
		if f.Ours {
			h.line(1, "# Not known to the provider, which leaves it as it is: "+f.Key+" = "+expression(v))
			continue
		}
		if b, bounded := providerBounds[f.Key]; bounded {
			if n, ok := v.(int64); ok && (n < b[0] || n > b[1]) {
				h.line(1, fmt.Sprintf("# The provider refuses this: it takes %d to %d.", b[0], b[1]))
			}
		}
		h.set(1, f.Key, v)
	}
}

// providerBounds are what the provider takes; an Anteroom takes more.
var providerBounds = map[string][2]int64{
	"total_active_users": {200, 1<<31 - 1}, "new_users_per_minute": {200, 1<<31 - 1}, "session_duration": {1, 30},
}

func (h *hcl) set(depth int, name string, v any) { h.line(depth, name+" = "+expression(v)) }

func (h *hcl) line(depth int, s string) {
	h.WriteString(strings.Repeat("  ", depth))
	h.WriteString(s)
	h.WriteByte('\n')
}

// name makes an identifier that no other resource has.
func (h *hcl) name(s string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, s)
	if id == "" || id[0] >= '0' && id[0] <= '9' || strings.Trim(id, "_") == "" {
		id = "room_" + id
	}
	for n, base := 2, id; h.taken[id]; n++ {
		id = fmt.Sprintf("%s_%d", base, n)
	}
	h.taken[id] = true
	return id
}

// reference is an expression that names something.
type reference string

// expression writes a value as HCL does.
func expression(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case reference:
		return string(v)
	case string:
		return quoted(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = expression(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			name := k
			if strings.Trim(k, "abcdefghijklmnopqrstuvwxyz_") != "" || k == "" {
				name = quoted(k) // an API may answer with an object where a text should be
			}
			parts = append(parts, name+" = "+expression(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return fmt.Sprint(v) // numbers and truth values
}

// quoted writes a string literal in which nothing is a template: what an operator has written
// into a page or a description never becomes code of Terraform.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			// Doubled is the usual way, and not to be told from what comes before when that is
			// the same sign.
			if i > 0 && rune(s[i-1]) == r {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
				b.WriteRune(r)
			}
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
