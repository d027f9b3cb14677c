package manage

import (
	"net/netip"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/rules"
)

// TriedRule is what an expression would do with a request.
type TriedRule struct {
	Matches  bool
	Readings []Reading
	// Exhausted: the expression needs more steps than it may take, and so it does not match.
	Exhausted bool
	// Wide: the rule would also match a visitor with an ordinary browser.
	Wide   bool
	Fields map[string]any // as of [rules.Request.Values]
}

// Reading is a way in which an origin may read the path of a request. An expression has to
// match all of them.
type Reading struct {
	Path    string
	Matches bool
}

// TryRule evaluates an expression as the gateway would, before any rule has it. Host and RawPath are as the
// request was sent. The lists are those of the installation: the caller must be allowed to see them, or to edit a room
// somewhere whose rules could name them. Room may be empty; otherwise Wide is about what that room covers. Faults have
// the path "expression", or "request.url" if the gateway would refuse host or path.
func (m *Manager) TryRule(by Caller, room anteroom.RoomID, expression string, r *rules.Request) (tried TriedRule, err error) {
	s := m.State()
	if !by.May(Read, "", "") && !by.MaySomewhere(Edit) {
		return tried, denied(Edit)
	}
	if r.Host, err = route.Host(r.Host); err != nil {
		return tried, anteroom.Faults{{Path: "request.url", Problem: err.Error(), Fix: "a host like shop.example.com"}}.Err()
	}
	places := []anteroom.Route{{Host: r.Host, Path: "/"}}
	if room != "" {
		z := s.zoneOf(room)
		served, err := s.room(by, Read, z, room)
		if err != nil {
			return tried, err
		}
		places, r.Zone = served.Routes, served.Zone
	}
	if f := (anteroom.Rule{Action: anteroom.ActionBypass, Expression: expression}).Check(); len(f) > 0 {
		return tried, f.Err()
	}
	e, err := rules.Compile(expression, s.named)
	if err != nil {
		return tried, err
	}
	readings, err := route.Interpretations(r.RawPath)
	if err != nil {
		return tried, anteroom.Faults{{Path: "request.url", Problem: err.Error()}}.Err()
	}
	tried.Matches = true
	for _, r.Path = range readings {
		one := Reading{r.Path, e.Match(r)}
		tried.Matches = tried.Matches && one.Matches
		tried.Readings = append(tried.Readings, one)
	}
	tried.Exhausted = r.Exhausted()
	r.Path = readings[0]
	tried.Fields = r.Values()
	tried.Wide = wide(e, places, r)
	return tried, nil
}

// MaySomewhere reports whether the caller has a permission anywhere.
func (by Caller) MaySomewhere(p Permission) bool {
	for _, g := range by.Grants {
		if by.May(p, g.Zone, g.Room) {
			return true
		}
	}
	return false
}

// nowhere is the place of addresses that belong to no country that there is.
type nowhere struct{}

func (nowhere) Place(netip.Addr) rules.Place {
	return rules.Place{Country: "ZZ", Continent: "ZZ", ASN: 64496}
}

// wide reports whether somebody with an ordinary browser and nothing else passes everywhere on
// one of the routes: from an address for documentation, at the path and at one below it.
func wide(e *rules.Expression, places []anteroom.Route, like *rules.Request) bool {
	for _, rt := range places {
		host := rt.Host
		if host == "*" {
			host = like.Host
		}
		base := strings.TrimSuffix(rt.Path, "/")
		for _, from := range []string{"203.0.113.77", "2001:db8:77::77"} {
			for _, geo := range []rules.Geo{nil, nowhere{}} {
				all := true
				for _, path := range []string{base + "/", base + "/c0ffee/77"} {
					r := &rules.Request{Method: "GET", Version: "HTTP/2.0", Scheme: like.Scheme, Host: host, Path: path, Zone: like.Zone, SSL: like.SSL, Port: like.Port,
						Client: netip.MustParseAddr(from), Geo: geo, Time: like.Time.Truncate(time.Second),
						Header: map[string][]string{"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"},
							"Accept": {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, "Accept-Language": {"en-US,en;q=0.5"}}}
					all = all && e.Match(r)
				}
				if all {
					return true
				}
			}
		}
	}
	return false
}
