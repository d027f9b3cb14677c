package gateway

import (
	"cmp"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/ticket/pass"
)

// eachCookie calls fn with every value of the cookie name in the order of the header. It
// reads pairs as browsers write them (RFC 6265 §4.2.1) and skips what is no pair.
// http.Request.Cookies is not used: it stops at a bound and allocates per cookie.
func eachCookie(lines []string, name string, fn func(value string)) {
	for _, line := range lines {
		for line != "" {
			pair := line
			if i := strings.IndexByte(line, ';'); i >= 0 {
				pair, line = line[:i], line[i+1:]
			} else {
				line = ""
			}
			pair = textproto.TrimString(pair)
			if len(pair) > len(name) && pair[len(name)] == '=' && pair[:len(name)] == name {
				fn(pair[len(name)+1:])
			}
		}
	}
}

// isOurs reports whether a cookie name belongs to us: that of tickets or passes, alone or with a
// room's suffix.
func (s *setup) isOurs(name string) bool {
	return isNamed(name, s.cookieName) || isNamed(name, pass.Cookie)
}

func isNamed(name, base string) bool {
	return strings.HasPrefix(name, base) && (len(name) == len(base) || name[len(base)] == '_')
}

// stripTickets removes every ticket and pass from the Cookie header and leaves the other cookies byte
// for byte as they came. An origin has no use for a ticket (it cannot read one) and its
// logs would hold places and sessions; the signed proof is what it gets instead.
func (s *setup) stripTickets(h http.Header) {
	lines, ok := h["Cookie"]
	if !ok {
		return
	}
	kept := make([]string, 0, len(lines)) // the old lines may be somebody's
	for _, line := range lines {
		if line = without(without(line, s.cookieName), pass.Cookie); line != "" {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		delete(h, "Cookie")
		return
	}
	h["Cookie"] = kept
}

// without returns a Cookie line without the pairs of a base name; the line itself when it has none.
func without(line, base string) string {
	for from := 0; ; {
		i := strings.Index(line[from:], base)
		if i < 0 {
			return line
		}
		i += from
		begin := strings.LastIndexByte(line[:i], ';') + 1
		end := len(line)
		if n := strings.IndexByte(line[i:], ';'); n >= 0 {
			end = i + n + 1
		}
		name, _, _ := strings.Cut(strings.TrimRight(line[begin:end], ";"), "=")
		if !isNamed(textproto.TrimString(name), base) {
			from = end
			continue
		}
		switch {
		case begin == 0:
			line = strings.TrimLeft(line[end:], " \t")
			from = 0
		case end == len(line):
			return line[:begin-1]
		default:
			line = line[:begin] + line[end:]
			from = begin
		}
	}
}

// stripSetCookies removes our names from what an origin sets.
func (s *setup) stripSetCookies(h http.Header) {
	lines, ok := h["Set-Cookie"]
	if !ok {
		return
	}
	kept := lines[:0]
	for _, line := range lines {
		name, _, _ := strings.Cut(line, "=")
		if !s.isOurs(textproto.TrimString(name)) {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		delete(h, "Set-Cookie")
	} else {
		h["Set-Cookie"] = kept
	}
}

// cookieTail is what stands behind value and Max-Age in a room's Set-Cookie, for HTTP and
// for HTTPS.
type cookieTail struct{ plain, tls string }

// tailOf follows the published attributes, with "always use HTTPS" read per request: when
// the request came by TLS, auto is Secure. SameSite auto is Lax in both: None is for rooms
// that are embedded elsewhere, and they say so. Partitioned accompanies None. Two things differ
// from what is published: a room with one host sets no Domain, so that the hosts below it do not
// get the ticket, and a name with a prefix is always Secure, or browsers would drop the cookie.
func tailOf(a anteroom.CookieAttributes, scope route.Scope, path string) cookieTail {
	make := func(tls bool) string {
		var b strings.Builder
		if path == "" {
			path = "/"
		}
		b.WriteString("; Path=" + path)
		if scope.Domain != "" && !scope.HostOnly {
			b.WriteString("; Domain=" + scope.Domain)
		}
		b.WriteString("; HttpOnly")
		secure := strings.HasPrefix(scope.Name, route.HostPrefix) || a.Secure == anteroom.SecureAlways || a.Secure != anteroom.SecureNever && tls
		switch a.SameSite {
		case anteroom.SameSiteNone:
			// Browsers drop None without Secure. On plain HTTP the default keeps the visitor
			// in line, which matters more than being embeddable.
			if secure {
				b.WriteString("; Secure; SameSite=None; Partitioned")
			} else {
				b.WriteString("; SameSite=Lax")
			}
			return b.String()
		case anteroom.SameSiteStrict:
			b.WriteString("; SameSite=Strict")
		default:
			b.WriteString("; SameSite=Lax")
		}
		if secure {
			b.WriteString("; Secure")
		}
		return b.String()
	}
	return cookieTail{plain: make(false), tls: make(true)}
}

func (t cookieTail) of(tls bool) string {
	if tls {
		return t.tls
	}
	return t.plain
}

// cookieSlack is how much longer than the place the cookie of a waiting visitor lives.
const cookieSlack = time.Hour

// setCookie returns the value of the Set-Cookie header for a ticket.
//
// While waiting the cookie lives an hour longer than the place, which is kept until the next check-in is due plus the place hold: whoever
// comes late is told so, and one of our pages that stays open for long loses nothing. After admission it lives for two session durations, with the time
// of a pass: the server decides when a session ends, the cookie only has to be there until then, and it is renewed
// from half a session on. For the time in which visitors come back first after the origin has failed it is there as well.
func (x *exchange) setCookie(t anteroom.Ticket) string {
	rm := x.room
	age := 2 * x.seatDuration()
	if rm.Protect {
		age += rm.ProtectReturn
	}
	if !t.Accepted() {
		age = t.Refresh + rm.PlaceHold + cookieSlack
	}
	var buf [512]byte
	b := append(buf[:0], rm.scope.Name...)
	b = append(b, '=')
	b = rm.sealer.Seal(b, t)
	b = append(b, "; Max-Age="...)
	b = strconv.AppendInt(b, int64((age+time.Second-1)/time.Second), 10)
	b = append(b, x.cookieTail()...)
	return string(b)
}

// seatDuration is how long a session lasts after a request, by the settings in force: an event may have its own. If edges report, a
// session may go on for as long as without reports, and the cookie is renewed no sooner.
func (x *exchange) seatDuration() time.Duration {
	own, in := x.room.Settings, anteroom.Settings{}
	if f := x.decision.InForce; f != nil {
		in = f.Settings
	} else {
		in = x.room.door.Settings()
	}
	in.PassReported, own.PassReported = false, false
	return cmp.Or(in.SeatDuration(), own.SeatDuration())
}

// dropCookie returns the Set-Cookie value that makes the client forget the ticket.
func (x *exchange) dropCookie() string {
	return x.room.scope.Name + "=; Max-Age=0" + x.cookieTail()
}

// cookieTail chooses the cookie's path. A room covers every spelling of its path that some
// origin serves, like /TICKETS and /%74ickets; a browser compares the path as it is spelled
// (RFC 6265 §5.1.4) and would not send a cookie of /tickets there. Who comes by such a
// spelling gets a wider cookie, or every request would be a new visitor.
func (x *exchange) cookieTail() string {
	rm := x.room
	if rm.scope.Path != "/" {
		if path, _, _ := strings.Cut(x.r.RequestURI, "?"); path != "" && !rm.scope.Covers(path) {
			return rm.wide.of(x.https)
		}
	}
	return rm.tail.of(x.https)
}
