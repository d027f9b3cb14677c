package anteroom

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// RoomID names a room: 32 lower-case hexadecimal digits.
type RoomID string

// RoomIDOf derives the stable identifier of a room that is defined in a file from
// its zone and name.
func RoomIDOf(zone, name string) RoomID {
	h := sha256.New()
	h.Write([]byte("anteroom-room\x00" + zone + "\x00" + name))
	return RoomID(hex.EncodeToString(h.Sum(nil)[:16]))
}

// Route is one host and path prefix covered by a room.
type Route struct {
	// Host is a lower-case host name without port, or "*" for every host. The latter
	// is for a room made from flags, which covers all that the gateway serves.
	Host string
	// Path is a prefix at segment boundaries: "/shop" covers "/shop" and "/shop/cart"
	// and not "/shopping". Empty means "/".
	Path string
}

// QueueingMethod says who of those waiting is admitted next.
type QueueingMethod string

const (
	// FIFO admits in the order of arrival. It is the default.
	FIFO QueueingMethod = "fifo"
	// Random draws uniformly among everybody waiting.
	Random QueueingMethod = "random"
	// Passthrough admits everybody and only counts.
	Passthrough QueueingMethod = "passthrough"
	// Reject admits nobody new; the page does not refresh.
	Reject QueueingMethod = "reject"
)

// QueueingMethods lists the methods in their documented order.
var QueueingMethods = []QueueingMethod{FIFO, Random, Passthrough, Reject}

// Settings are the numbers and switches that decide who is admitted. The engine
// takes them as they are; [Room.Check] has bounded them.
type Settings struct {
	// TotalActiveUsers is the number of sessions at once, 0 … 2147483647. Hard.
	TotalActiveUsers int
	// NewUsersPerMinute is the number of new sessions in any 60 s, 0 … 2147483647. Hard.
	NewUsersPerMinute int
	// SessionDuration is how long a session lives after its last request (or, with
	// DisableSessionRenewal, after admission). Zero means 5 minutes.
	SessionDuration time.Duration
	// DisableSessionRenewal makes sessions end SessionDuration after admission.
	DisableSessionRenewal bool
	// RenewalEnded is since when DisableSessionRenewal holds, where it did not always: whoever
	// is inside at that moment has SessionDuration from it. [Room.At] sets it.
	RenewalEnded Time
	// QueueingMethod; empty means FIFO.
	QueueingMethod QueueingMethod
	// QueueAll holds everybody without a session, whatever the method.
	QueueAll bool
	// Prequeueing holds everybody without a session because an event is about to start; QueueAll
	// goes before it. [Room.At] sets it.
	Prequeueing bool
	// Draining turns newcomers away, and leaves those in line and in a session alone. [Room.At]
	// sets it.
	Draining bool
	// ResetAt makes waiting tickets of an earlier arrival void. Zero voids none. [Room.At] sets it.
	ResetAt Time
	// Suspended switches the room off: requests pass uncounted.
	Suspended bool
	// Refresh fixes the interval of the waiting page. Zero means adaptive: 2 s near the
	// front to 120 s far back (20 s for Random).
	Refresh time.Duration
	// Unpaced releases the line as fast as NewUsersPerMinute allows. By default
	// releases are smoothed to twice the even pace after a burst.
	Unpaced bool
	// PlaceHold is how long a place is kept after a missed check-in. Zero means 5 minutes.
	PlaceHold time.Duration
}

// SameSite and secure modes of the room's cookie.
const (
	SameSiteAuto   = "auto"
	SameSiteLax    = "lax"
	SameSiteNone   = "none"
	SameSiteStrict = "strict"

	SecureAuto   = "auto"
	SecureAlways = "always"
	SecureNever  = "never"
)

// CookieAttributes of a room; empty members mean "auto": SameSite=Lax, and Secure when the
// request came over TLS. None is for rooms that are embedded elsewhere.
type CookieAttributes struct {
	SameSite string
	Secure   string
}

// Ways to bind a ticket to the client that got it. See [Room.Bind].
const (
	BindNone     = "none"
	BindIPPrefix = "ip-prefix"
)

// CommandRevoke is the origin command that ends the session of the request.
const CommandRevoke = "revoke"

// Room is a waiting room: routes and settings that protect one application.
type Room struct {
	ID          RoomID
	Zone        string // the domain the room belongs to; empty means the first route's host
	Name        string // [A-Za-z0-9_-]{1,64}, unique in its zone
	Description string

	Routes           []Route
	CookieSuffix     string
	CookieAttributes CookieAttributes

	Settings

	QueueingStatusCode      int      // 200, 202 or 429; zero means 200
	JSONResponse            bool     // JSON for exactly "Accept: application/json"
	DefaultTemplateLanguage string   // one of Languages; empty means en-US
	CustomPageHTML          string   // mustache template; empty means the built-in page
	EnabledOriginCommands   []string // only CommandRevoke exists
	Bind                    string   // BindNone (default) or BindIPPrefix
	TurnstileMode           string   // kept and given back; empty means invisible
	TurnstileAction         string   // kept and given back; empty means log

	Events   []Event // in the order of their creation
	Rules    []Rule  // in their order
	Controls Controls

	// Revision grows with every change of a stored room; zero for a room of the file.
	Revision              uint64
	CreatedOn, ModifiedOn time.Time
}

// Values of TurnstileMode and TurnstileAction, in their published order. No challenge is
// made: they are for clients that manage them.
var (
	TurnstileModes   = []string{"off", "invisible", "visible_non_interactive", "visible_managed"}
	TurnstileActions = []string{"log", "infinite_queue"}
)

// WithDefaults returns the room with every empty setting replaced by its documented
// default.
func (r Room) WithDefaults() Room {
	if len(r.Routes) == 0 {
		r.Routes = []Route{{Host: "*"}}
	}
	routes := make([]Route, len(r.Routes))
	for i, rt := range r.Routes {
		if rt.Path == "" {
			rt.Path = "/"
		}
		routes[i] = rt
	}
	r.Routes = routes
	if r.Zone == "" {
		r.Zone = r.Routes[0].Host
	}
	if r.ID == "" {
		r.ID = RoomIDOf(r.Zone, r.Name)
	}
	if r.CookieAttributes.SameSite == "" {
		r.CookieAttributes.SameSite = SameSiteAuto
	}
	if r.CookieAttributes.Secure == "" {
		r.CookieAttributes.Secure = SecureAuto
	}
	r.Settings = r.Settings.WithDefaults()
	if r.QueueingStatusCode == 0 {
		r.QueueingStatusCode = 200
	}
	if r.DefaultTemplateLanguage == "" {
		r.DefaultTemplateLanguage = "en-US"
	}
	if r.Bind == "" {
		r.Bind = BindNone
	}
	if r.TurnstileMode == "" {
		r.TurnstileMode = "invisible"
	}
	if r.TurnstileAction == "" {
		r.TurnstileAction = "log"
	}
	return r
}

// SessionEnd is when a session ends that is not renewed any more.
func (s Settings) SessionEnd(accepted Time) Time {
	return max(accepted, s.RenewalEnded).Add(s.SessionDuration)
}

// WithDefaults returns the settings with every empty one replaced by its default.
func (s Settings) WithDefaults() Settings {
	if s.SessionDuration == 0 {
		s.SessionDuration = DefaultSessionDuration
	}
	if s.QueueingMethod == "" {
		s.QueueingMethod = FIFO
	}
	if s.PlaceHold == 0 {
		s.PlaceHold = DefaultPlaceHold
	}
	return s
}

// Languages are the values of DefaultTemplateLanguage, in their published order.
var Languages = []string{
	"en-US", "es-ES", "de-DE", "fr-FR", "it-IT", "ja-JP", "ko-KR", "pt-BR", "zh-CN", "zh-TW",
	"nl-NL", "pl-PL", "id-ID", "tr-TR", "ar-EG", "ru-RU", "fa-IR", "bg-BG", "hr-HR", "cs-CZ",
	"da-DK", "fi-FI", "lt-LT", "ms-MY", "nb-NO", "ro-RO", "el-GR", "he-IL", "hi-IN", "hu-HU",
	"sr-BA", "sk-SK", "sl-SI", "sv-SE", "tl-PH", "th-TH", "uk-UA", "vi-VN",
}
