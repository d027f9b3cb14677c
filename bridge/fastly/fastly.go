// Package fastly reads the cookies of the two starters for waiting rooms that Fastly publishes, so that their visitors keep their
// place when Anteroom takes over: the VCL pattern, whose cookie is signed text, and the Compute starter, whose cookie is a JWT
// with a position.
//
// It decides nothing about admission. A cookie becomes a waiting ticket with an arrival before the cut-over, and the room does with
// it what it does with every ticket: both limits hold, and the order of the Compute starter is kept.
package fastly

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// The starters, as the configuration names them.
const (
	VCL     = "vcl"
	Compute = "compute"
)

// validFor is how long after the cut-over cookies count: as long as Anteroom keeps a place at most ([anteroom.MaxPlaceHold]). The
// starters' own cookies are good for hours, and a visitor whose session here is over could go to the front of the queue with one
// again and again.
const validFor = time.Hour

// maxCookie is the longest value that is read, in bytes. The longest of a starter has about 300, apart from the user's name.
const maxCookie = 1024

// maxKeys is the most keys of a VCL table that are read.
const maxKeys = 64

// before is how much earlier than the cut-over the first of the starters' visitors arrived, as far as their order says: positions
// are microseconds apart, and there are at most [anteroom.MaxLine] of them.
const before = 2 * anteroom.MaxLine * time.Microsecond

// Reader reads the cookies of one service. Safe for concurrent use.
type Reader struct {
	// Cookie is the name of the starter's cookie.
	Cookie string

	keys   map[string][]byte // VCL: by name
	secret []byte            // Compute
	since  time.Time
	length int
	ids    [32]byte
}

// New returns a reader for a starter, [VCL] or [Compute]. Secret is what its file holds: for VCL one key a line, its name and its
// base64 text as in the table of keys; for Compute the JWT secret. Since is the moment of the cut-over. Length is the last
// position that the Compute starter has given, its queue:length; 0 is any. IDs is secret, the same in all processes, and
// gives a visitor the same ticket however often the cookie is read.
func New(starter string, secret []byte, since time.Time, length int, ids [32]byte) (*Reader, error) {
	r := &Reader{Cookie: "waiting_room", since: since, length: length, ids: ids}
	if starter == Compute {
		r.Cookie, r.secret = "queue", []byte(strings.TrimSpace(string(secret)))
		if len(r.secret) == 0 {
			return nil, anteroom.Errorf(anteroom.Invalid, "is empty: put the secret of the starter's JWTs there")
		}
		return r, nil
	}
	r.keys = map[string][]byte{}
	n := 0
	for line := range strings.Lines(string(secret)) {
		n++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, text, ok := strings.Cut(line, " ")
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if !ok || err != nil || len(key) == 0 || len(r.keys) == maxKeys {
			return nil, anteroom.Errorf(anteroom.Invalid, "line %d is not a name and a key in base64, of %d at most: like key1 c2VjcmV0LWtleS1ieXRlcw==", n, maxKeys)
		}
		r.keys[name] = key
	}
	if len(r.keys) == 0 {
		return nil, anteroom.Errorf(anteroom.Invalid, "holds no key: write a name and a key in base64 on each line")
	}
	return r, nil
}

// Read returns the place of a cookie's visitor: a waiting ticket that was never given by us, and whether the starter had admitted
// the visitor. The value is the cookie's, user the
// header auth-user-id of the request, empty without one, which VCL binds its cookie to in the place of the address. It returns false
// for whatever a starter would not have given, what has expired, and everything after validFor.
func (r *Reader) Read(value string, client netip.Addr, user string, now time.Time) (t anteroom.Ticket, admitted, ok bool) {
	if len(value) > maxCookie || now.Before(r.since) || now.Sub(r.since) > validFor {
		return t, false, false
	}
	if r.keys != nil {
		return r.readVCL(value, client, user, now)
	}
	t, ok = r.readCompute(value, now)
	return t, false, ok
}

// readVCL reads dec={wait|allow}&exp={unix}&uid={id}&kid={key}&sig=0x{hex of HMAC-SHA512}, in this order. The pattern has no
// order among visitors: those it had admitted come before those who waited.
func (r *Reader) readVCL(value string, client netip.Addr, user string, now time.Time) (none anteroom.Ticket, admitted, ok bool) {
	signed, sig, found := strings.Cut(value, "&sig=0x")
	if !found {
		return none, false, false
	}
	rest, kid, found := cutLast(signed, "&kid=")
	key := r.keys[kid]
	mac, err := hex.DecodeString(sig)
	if !found || key == nil || err != nil {
		return none, false, false
	}
	h := hmac.New(sha512.New, key)
	h.Write([]byte(signed))
	if !hmac.Equal(mac, h.Sum(nil)) {
		return none, false, false
	}
	rest, uid, found := cutLast(rest, "&uid=") // a user's name may hold whatever the key has signed
	dec, expires, alsoFound := strings.Cut(rest, "&exp=")
	exp, err := strconv.ParseInt(expires, 10, 64)
	if !found || !alsoFound || err != nil || exp < 0 || !isVisitor(uid, client, user) {
		return none, false, false
	}
	late := now.Unix() - exp
	switch {
	case dec == "dec=allow" && late <= 0: // the pattern never looked
		return r.ticket(now, "vcl", uid, 0), true, true
	case dec == "dec=wait" && late <= int64(validFor/time.Second):
		return r.ticket(now, "vcl", uid, anteroom.MaxLine), false, true
	}
	return none, false, false
}

// isVisitor reports whether a cookie's uid is the user, or the client where there is none. Addresses have several spellings.
func isVisitor(uid string, client netip.Addr, user string) bool {
	if user != "" {
		return uid == user
	}
	addr, err := netip.ParseAddr(uid)
	return err == nil && client.IsValid() && addr.Unmap() == client.Unmap()
}

// readCompute reads a JWT of the Compute starter: HS256, with a position from 1 and an expiry as text.
func (r *Reader) readCompute(value string, now time.Time) (none anteroom.Ticket, ok bool) {
	signed, sig, found := cutLast(value, ".")
	head, body, alsoFound := strings.Cut(signed, ".")
	if !found || !alsoFound {
		return none, false
	}
	mac, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil {
		return none, false
	}
	h := hmac.New(sha256.New, r.secret)
	h.Write([]byte(signed))
	if !hmac.Equal(mac, h.Sum(nil)) {
		return none, false
	}
	var header struct{ Alg string }
	var claims struct {
		Position int
		Expiry   time.Time
	}
	if !decode(head, &header) || header.Alg != "HS256" || !decode(body, &claims) {
		return none, false
	}
	if p := claims.Position; p < 1 || p > anteroom.MaxLine || r.length > 0 && p > r.length || !now.Before(claims.Expiry) {
		return none, false
	}
	return r.ticket(now, "compute", strconv.Itoa(claims.Position), claims.Position), true
}

func decode(part string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(text, into) == nil
}

// ticket is the waiting ticket of a visitor at a place in the starter's order: as if the visitor had been told to come back now.
func (r *Reader) ticket(now time.Time, starter, visitor string, place int) anteroom.Ticket {
	h := hmac.New(sha256.New, r.ids[:])
	h.Write([]byte("fastly/" + starter + "/" + visitor))
	at := anteroom.TimeOf(now)
	t := anteroom.Ticket{Arrival: anteroom.TimeOf(r.since.Add(-before)).Add(time.Duration(place) * time.Microsecond), LastCheckIn: at, Next: at}
	copy(t.ID[:], h.Sum(nil))
	return t
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
