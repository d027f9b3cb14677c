package route

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/anteroom/anteroom"
)

// Check returns the faults of rooms that only show when they stand together, with paths
// like "rooms[1].routes[0]"; [anteroom.Room.Check] finds the others. The cookie's name is
// as in [Config].
//
// A host and path belong to one route of one room. Two tickets must not overwrite each
// other, so rooms whose cookies can reach the same page have suffixes that differ. Rooms
// without a suffix, which have one route, may be nested, as "/" and "/checkout" of one
// shop: their cookies differ in path, browsers send both, and a ticket opens in its own
// room only.
func Check(rooms []anteroom.Room, cookie string) anteroom.Faults {
	var faults anteroom.Faults
	owners := make(map[anteroom.Route]string)
	cookies := make(jar)
	for i, room := range rooms {
		at := indexed("rooms", i)
		found := checkRoutes(at, room, owners)
		faults = append(faults, found...)
		if len(found) > 0 {
			continue
		}
		scope, err := Cookie(room, cookie)
		if err != nil {
			faults = append(faults, anteroom.Fault{Path: at + ".routes", Problem: err.Error(),
				Fix: "give the hosts a room each, or use hosts below one domain of yours, and a cookie_name without a prefix"})
			continue
		}
		if room.CookieSuffix == "" {
			continue
		}
		if other, taken := cookies.add(i, scope); taken {
			faults = append(faults, anteroom.Fault{Path: at + ".cookie_suffix",
				Problem: fmt.Sprintf("%q makes the cookie that %s has for the same pages", room.CookieSuffix, named(rooms, other)),
				Fix:     "give the room a suffix of its own"})
		}
	}
	return faults
}

// checkRoutes claims the routes of a room in owners.
func checkRoutes(at string, room anteroom.Room, owners map[anteroom.Route]string) anteroom.Faults {
	var faults anteroom.Faults
	for j, rt := range room.WithDefaults().Routes {
		at := indexed(at+".routes", j)
		if rt.Host != "*" {
			if _, err := Host(rt.Host); err != nil {
				faults = append(faults, hostFault(at+".host", rt.Host, err))
				continue
			}
		}
		host, path := canonical(rt)
		key := anteroom.Route{Host: host, Path: path}
		if owner, taken := owners[key]; taken {
			faults = append(faults, anteroom.Fault{Path: at,
				Problem: fmt.Sprintf("%q already belongs to %s", host+cmp.Or(path, "/"), owner),
				Fix:     "a host and path can be in one route only"})
			continue
		}
		owners[key] = fmt.Sprintf("%s (room %q)", at, room.Name)
	}
	return faults
}

// jar holds the scopes of the rooms seen so far: by cookie name, then by the domain that
// only one owner can have. Cookies without a domain are under "" and may be set by any
// host.
type jar map[string]map[string][]placed

type placed struct {
	scope Scope
	room  int
}

// add puts a scope into the jar and returns a room whose cookie can reach the same page.
func (j jar) add(room int, s Scope) (other int, taken bool) {
	same := j[s.Name]
	if same == nil {
		same = make(map[string][]placed)
		j[s.Name] = same
	}
	own, among := "", [][]placed{same[""]}
	if s.Domain != "" {
		own, _ = publicsuffix.EffectiveTLDPlusOne(s.Domain) // Domain is registrable
		among = append(among, same[own])
	} else {
		among = slices.Collect(maps.Values(same))
	}
	for _, list := range among {
		for _, p := range list {
			if overlap(s, p.scope) && (!taken || p.room < other) {
				other, taken = p.room, true
			}
		}
	}
	same[own] = append(same[own], placed{s, room})
	return other, taken
}

func overlap(a, b Scope) bool {
	domains := a.Domain == "" || b.Domain == "" || isWithinDomain(a.Domain, b.Domain) || isWithinDomain(b.Domain, a.Domain)
	pa, pb := strings.TrimSuffix(a.Path, "/"), strings.TrimSuffix(b.Path, "/")
	return domains && (isWithinPath(pa, pb) || isWithinPath(pb, pa))
}

func named(rooms []anteroom.Room, i int) string {
	return fmt.Sprintf("%s (room %q)", indexed("rooms", i), rooms[i].Name)
}

// canonical returns the canonical host of a route, or "*", and its path without a slash
// at the end: "" for the whole host.
func canonical(rt anteroom.Route) (host, path string) {
	if host = rt.Host; host != "*" {
		host, _ = Host(rt.Host) // Check has seen the error
	}
	return host, strings.TrimRight(rt.Path, "/")
}

func hostFault(path, host string, err error) anteroom.Fault {
	return anteroom.Fault{Path: path, Problem: fmt.Sprintf("%.60q: %v", host, err),
		Fix: "a host name without scheme, port and path, like shop.example.com"}
}

func indexed(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
