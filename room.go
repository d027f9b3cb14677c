package anteroom

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/field"
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
	Host string `key:"host" required:"true" doc:"Host name, or \"*\"."`
	// Path is a prefix at segment boundaries: "/shop" covers "/shop" and "/shop/cart"
	// and not "/shopping". Empty means "/".
	Path string `key:"path" default:"/" doc:"Path, including everything below it."`
}

// QueueingMethod says which visitor is admitted next.
type QueueingMethod string

const (
	// FIFO admits in the order of arrival. It is the default.
	FIFO QueueingMethod = "fifo"
	// Random draws uniformly among everybody waiting.
	Random QueueingMethod = "random"
	// Passthrough admits everybody and only counts.
	Passthrough QueueingMethod = "passthrough"
	// Reject admits nobody; the page refreshes for visitors with a place only.
	Reject QueueingMethod = "reject"
)

// QueueingMethods lists the methods in their documented order.
var QueueingMethods = []QueueingMethod{FIFO, Random, Passthrough, Reject}

// Values are the queueing methods' names.
func (QueueingMethod) Values() []string {
	out := make([]string, len(QueueingMethods))
	for i, m := range QueueingMethods {
		out[i] = string(m)
	}
	return out
}

// Language is the name of a language that the built-in waiting page has, one of [Languages].
type Language string

// Values are the languages' names.
func (Language) Values() []string { return Languages }

// Settings are the numbers and switches that decide who is admitted. The engine
// takes them as they are; [Room.Check] has bounded them.
//
// The tags are the table of settings (package field): what the file, the API, the command line,
// the dashboard's forms, exports, plans of the simulator and the documentation say about a field
// is made from them. See [RoomFields].
type Settings struct {
	TotalActiveUsers  int `key:"total_active_users" label:"Active users" unit:"users" group:"Limits" required:"true" event:"true" min:"0" max:"2147483647" doc:"Maximum number of active users. Never exceeded."`
	NewUsersPerMinute int `key:"new_users_per_minute" label:"New users per minute" unit:"users" group:"Limits" required:"true" event:"true" min:"0" max:"2147483647" doc:"Maximum number of new sessions in any 60 seconds, at most total_active_users where sessions last a minute or more. Never exceeded."`
	// SessionDuration counts from the last request, or, with DisableSessionRenewal, from the
	// admission. Zero means the default.
	SessionDuration       time.Duration  `key:"session_duration" label:"Session duration" group:"Limits" default:"5m" event:"true" min:"1s" max:"24h" minutes:"true" doc:"How long a session lasts after its last request. A number without a unit is minutes."`
	DisableSessionRenewal bool           `key:"disable_session_renewal" label:"Sessions end after their duration" group:"Limits" default:"false" event:"true" doc:"Whether sessions end session_duration after admission, even while they are in use."`
	QueueingMethod        QueueingMethod `key:"queueing_method" label:"Queueing method" group:"Queue" default:"fifo" event:"true" doc:"Which visitor is admitted next. fifo: the first in the queue. random: a random one. passthrough: everyone, at once. reject: no one."`
	QueueAll              bool           `key:"queue_all" label:"Queue all" group:"Queue" default:"false" doc:"Stop admitting new visitors; they wait in the queue."`
	Suspended             bool           `key:"suspended" label:"Suspended" group:"Queue" default:"false" doc:"Turn the room off: requests bypass it and are not counted, and its events do not run."`
	InviteOnly            bool           `key:"invite_only" label:"Invited visitors only" group:"Queue" default:"false" event:"true" ours:"true" doc:"Only visitors with an invite code may join the queue and be admitted; all others see a page that asks for a code. Sessions continue. No effect while queueing_method is passthrough or reject."`
	// Refresh zero is adaptive: 2 s near the front to 120 s far back (20 s for Random).
	Refresh time.Duration `key:"refresh" label:"Refresh interval" group:"Queue" default:"0s" min:"1s" max:"10m" ours:"true" doc:"Refresh interval of the waiting page. 0s adapts it to the position."`
	// Unpaced false smooths releases to twice the even pace after a burst.
	Unpaced bool `key:"unpaced" label:"Unpaced" group:"Queue" default:"false" ours:"true" doc:"Admit visitors as fast as new_users_per_minute allows instead of evenly over the minute."`
	// FirstSession zero means the default. It has no effect from SessionDuration on, and with DisableSessionRenewal.
	FirstSession time.Duration `key:"first_session" label:"First session" group:"Limits" default:"30s" min:"1s" max:"24h" ours:"true" doc:"How long a session lasts if its visitor was admitted at the first request and has not sent a second one. A visitor who returns later, but within session_duration, goes to the front of the queue."`
	// PlaceHold zero means the default.
	PlaceHold time.Duration `key:"place_hold" label:"Place is kept for" group:"Queue" default:"5m" min:"30s" max:"1h" ours:"true" doc:"How long a visitor's place is kept after a missed check-in."`
	// Pass zero issues none. See [Settings.PassLife] and [Settings.SeatDuration].
	Pass time.Duration `key:"pass" label:"Pass" group:"Other" default:"0s" min:"10s" max:"5m" ours:"true" doc:"How long a pass is valid. With a pass, an edge sends an active user's requests straight to the origin. At most half of session_duration; a seat is held for that much longer. 0s issues none."`
	// PassReported has no effect without Pass.
	PassReported bool `key:"pass_reported" label:"Edges report" group:"Other" default:"false" ours:"true" doc:"With pass, whether every edge reports the visitors whom it admits. Seats are then not held longer for the pass. If an edge does not report, sessions can end too early, by about pass at most; no limit depends on it."`

	// Protect lets admission follow the origin (engine/origin.go).
	Protect        bool          `key:"protect" label:"Protect the origin" group:"Origin" default:"false" ours:"true" doc:"Follow the health of the origin: admit no one new while no origin of the room's hosts is healthy, and fewer per minute, down to protect_floor, while it exceeds protect_errors or protect_latency."`
	ProtectErrors  int           `key:"protect_errors" label:"Errors at most" unit:"%" group:"Origin" default:"10" min:"1" max:"100" ours:"true" doc:"With protect, the percentage of failed requests above which fewer visitors are admitted: no connection, no answer, or a status of 500 or above. 100 sets no bound."`
	ProtectLatency time.Duration `key:"protect_latency" label:"Response time at most" group:"Origin" default:"0s" min:"10ms" max:"10m" ours:"true" doc:"With protect, the response time above which fewer visitors are admitted, when more than 5% of the requests take longer. 0s sets no bound."`

	// ProtectFloor zero is a tenth of NewUsersPerMinute. See [Settings.SlowestPace].
	ProtectFloor int `key:"protect_floor" label:"Slowest pace" unit:"users" group:"Origin" default:"0" min:"0" max:"2147483647" ours:"true" doc:"With protect, how many new users per minute are admitted at least while the origin answers, however slowly or with how many errors; at most new_users_per_minute. 0 is a tenth of that."`
	// ProtectReturn zero gives no credit (engine/site_outages.go).
	ProtectReturn time.Duration `key:"protect_return" label:"Come back first for" group:"Origin" default:"0s" min:"10s" max:"1h" ours:"true" doc:"With protect, how long after an outage of the origin the visitors whose session it interrupted come back first: ahead of everyone else in the queue, once. An outage is the time in which no origin is healthy, or more requests fail than protect_errors allows. 0s: they queue like new visitors."`

	// RenewalEnded is since when DisableSessionRenewal holds, where it did not always: whoever
	// is inside at that moment has SessionDuration from it. [Room.At] sets it.
	RenewalEnded Time
	// Prequeueing holds everybody without a session because an event is about to start; QueueAll
	// goes before it. [Room.At] sets it.
	Prequeueing bool
	// OriginDown holds everybody without a session because no origin is healthy; QueueAll and
	// Prequeueing go before it. The site sets it, from what its doors report.
	OriginDown bool
	// InfiniteQueue admits nobody who was asked to solve a challenge and has not. [Room.At] sets it.
	InfiniteQueue bool
	// Draining turns newcomers away, and leaves those in line and in a session alone. [Room.At]
	// sets it.
	Draining bool
	// ResetAt makes waiting tickets of an earlier arrival void. Zero voids none. [Room.At] sets it.
	ResetAt Time
	// Ahead is how the limits are going to change, as far as that is planned: waits are estimated with it, nobody is admitted by it. Nil
	// means that nothing is known. [Room.AtWithAhead] sets it.
	Ahead *Ahead `json:",omitempty"`
	// Lanes are those of the room; nil for none. [Room.WithDefaults] sets it.
	Lanes *Lanes `json:",omitempty"`
	// Redeem is how long a visitor may take to redeem a token of a bridge, with which an application lets the visitor in for
	// TokenLife without asking again. Zero: there are no such tokens. The server sets it.
	Redeem time.Duration
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

// CookieAttributes of a room; empty members mean "auto".
type CookieAttributes struct {
	SameSite string `key:"samesite" label:"SameSite" group:"Cookie" default:"auto" enum:"auto,lax,none,strict" doc:"SameSite attribute. auto: Lax. none is for rooms embedded in other websites; without HTTPS it falls back to Lax."`
	Secure   string `key:"secure" label:"Secure" group:"Cookie" default:"auto" enum:"auto,always,never" doc:"Secure attribute. auto: set for requests over HTTPS."`
}

// Ways to bind a ticket to the client that got it. See [Room.Bind].
const (
	BindNone     = "none"
	BindIPPrefix = "ip-prefix"
)

// ChallengeOff and InfiniteQueue are the values of [Room.TurnstileMode] and [Room.TurnstileAction] that change something.
const (
	ChallengeOff       = "off"
	ChallengeInvisible = "invisible"
	InfiniteQueue      = "infinite_queue"
)

// Values of [Room.SessionNetworksAction].
const (
	SharedOff       = "off"
	SharedLog       = "log"
	SharedChallenge = "challenge"
	SharedRevoke    = "revoke"
)

// Values of [Room.RouteSuffixes].
const (
	SuffixesCover  = "cover"
	SuffixesIgnore = "ignore"
)

// ByLottery is the method of decisions of a room with [Lottery].LotteryPercent. No room has it as a setting, and the engine does
// not know it.
const ByLottery QueueingMethod = "lottery"

// Lottery is for rooms without a queue, which the gateway decides about without the engine (package ticket/lottery). The zero
// value is none.
type Lottery struct {
	LotteryPercent int           `key:"lottery_percent" label:"Chance" unit:"%" group:"Lottery" default:"0" min:"0" max:"100" ours:"true" doc:"Admit by lottery, without a queue: the chance of each visitor in each round, as a percentage. It needs no state, but then neither total_active_users nor new_users_per_minute is a limit. 100 admits everyone; queueing_method reject admits no one new. 0 is a queue."`
	LotteryRound   time.Duration `key:"lottery_round" label:"Round" group:"Lottery" default:"30s" min:"5s" max:"4m" ours:"true" doc:"Length of a round of the lottery. A visitor waits one to two rounds for each try."`
	LotteryMaxWait time.Duration `key:"lottery_max_wait" label:"Longest wait" group:"Lottery" default:"0s" min:"10s" max:"24h" ours:"true" doc:"Longest wait in a lottery: the chance rises with the time that a visitor has waited, to 100% in the last round before this time is over. At least two rounds. 0s: the chance does not rise, and a wait can take any time."`
	LotteryFollow  bool          `key:"lottery_follow" label:"Follow the limits" group:"Lottery" default:"false" ours:"true" doc:"Lower the chance between rounds, so that total_active_users and new_users_per_minute roughly hold. Each process counts only its own visitors. No hard limit."`
}

// Accounts makes an account of the operator's identity provider the identity of a visitor: one place and one session for each, on all
// its devices. The zero value asks nobody for one. The gateway sees to it (package account).
type Accounts struct {
	AccountIssuer   string `key:"account_issuer" label:"Issuer" group:"Accounts" max:"512" ours:"true" doc:"Let visitors join the queue only with a signed token (JWT) of this issuer, exactly as its claim iss says, and give each account one place and one session on all its devices. Needs account_audience and account_keys. Empty: no accounts."`
	AccountAudience string `key:"account_audience" label:"Audience" group:"Accounts" max:"512" ours:"true" doc:"Value that the claim aud of such a token has to contain: the name of your application at the issuer."`
	AccountKeys     string `key:"account_keys" label:"Keys" group:"Accounts" max:"65536" ours:"true" doc:"The issuer's public keys: the URL of its JWK set (jwks_uri), with https, or the set itself in JSON. Addresses that are not public need webhooks.allow_networks in the server's configuration. A URL is fetched every 10 minutes; while it does not answer, the last valid keys count."`
	AccountClaim    string `key:"account_claim" label:"Claim" group:"Accounts" default:"sub" max:"64" ours:"true" doc:"Claim that identifies the account. Choose one that people cannot set or change themselves."`
	// AccountLaneClaim is about [Lane.Claim].
	AccountLaneClaim string `key:"account_lane_claim" label:"Claim that names a lane" group:"Accounts" max:"64" ours:"true" doc:"Claim that selects the visitor's lane: a text, or a list of texts, compared with the claim of each lane. Empty: tokens select no lane."`
	AccountCookie    string `key:"account_cookie" label:"Cookie with the token" group:"Accounts" max:"64" ours:"true" doc:"Cookie with the token. Without it, Anteroom reads the token from account_header."`
	AccountHeader    string `key:"account_header" label:"Header with the token" group:"Accounts" default:"Authorization" max:"64" ours:"true" doc:"Request header with the token, with or without the word Bearer before it."`
	AccountSignIn    string `key:"account_sign_in_url" label:"Sign-in page" group:"Accounts" max:"2048" ours:"true" doc:"Page to which visitors without a token are linked: a URL, or a path of the same site outside the room. Empty: the page asks them to sign in, without a link."`
}

// InviteQuery is the pair of a query by which a visitor enters an invite code. With a dot and a code behind it, it is a link to the page
// with that code in its field.
const InviteQuery = "__anteroom=invite"

// CommandRevoke is the origin command that ends the session of the request.
const CommandRevoke = "revoke"

// Room is a waiting room: routes and settings that protect one application.
type Room struct {
	ID          RoomID
	Name        string  `key:"name" label:"Name" group:"Room" required:"true" word:"true" max:"64" doc:"1 to 64 letters, digits, _ and -; unique in the zone."`
	Zone        string  `key:"zone" doc:"Domain that the room belongs to. Defaults to the host of the first route."`
	Description string  `key:"description" label:"Description" group:"Room" max:"1024" doc:"Free text, at most 1024 bytes."`
	Routes      []Route `key:"routes" doc:"All hosts and paths in one list. Use it instead of host, path and additional_routes."`

	RouteSuffixes string `key:"route_suffixes" label:"Routes with an extension" group:"Room" default:"cover" enum:"cover,ignore" ours:"true" doc:"Whether a route /tickets covers /tickets.json and every other extension, by which Rails, Spring and IIS serve the same page. ignore: for an origin that has other pages there. /tickets., /tickets%20 and /tickets::$DATA are covered either way."`

	CookieSuffix     string           `key:"cookie_suffix" label:"Cookie suffix" group:"Cookie" word:"true" max:"64" doc:"Suffix of the cookie's name; required with several routes, unique among rooms that share a domain."`
	CookieAttributes CookieAttributes `key:"cookie_attributes" doc:"Attributes of the ticket cookie."`

	Settings

	Lottery
	Accounts
	// Lanes become those of the settings, in [Room.WithDefaults].
	Lanes []Lane `key:"lanes" label:"Lanes" group:"Lanes" ours:"true" doc:"Lanes of the queue: classes of visitors, each with a priority, a share of the turns, or a part of the limits. At most 8. No effect while queueing_method is passthrough or reject."`

	Shadow             bool `key:"shadow" label:"Shadow mode" group:"Queue" default:"false" ours:"true" doc:"Decide and record as usual, but let every visitor pass: nobody sees the waiting page. Use it to choose limits before they apply. Requests that would have got the waiting page are counted separately."`
	QueueingStatusCode int  `key:"queueing_status_code" label:"Status code" group:"Waiting page" default:"200" enum:"200,202,429" doc:"HTTP status of the waiting page."`
	JSONResponse       bool `key:"json_response_enabled" label:"JSON" group:"Waiting page" default:"false" doc:"Answer JSON to scripts and apps in the queue: requests with \"Sec-Fetch-Dest: empty\", and those that prefer JSON to HTML by their Accept header."`
	JSONExact          bool `key:"json_response_exact" label:"JSON only if nothing else is accepted" group:"Waiting page" default:"false" ours:"true" doc:"With json_response_enabled, answer JSON only to exactly \"Accept: application/json\", and HTML to every other request."`
	ResubmitForms      bool `key:"resubmit_forms" label:"Send forms after the wait" group:"Waiting page" default:"false" ours:"true" doc:"Send a form that a visitor submitted in the queue, once the visitor is admitted. The built-in page keeps its fields in the browser. Needs JavaScript, and a form of the same site without files, of at most 16 KiB."`
	// TurnCountdown zero means the default. See [Room.CountdownFor].
	TurnCountdown time.Duration `key:"turn_countdown" label:"Countdown in the background" group:"Waiting page" default:"1m" min:"1s" max:"10m" ours:"true" doc:"How long a waiting page in the background counts down when it is the visitor's turn, before it enters. It enters at once when the visitor looks at it, and only then does the session begin. Anteroom keeps the turn but no seat, so the visitor may wait a little longer. At most half of place_hold."`
	WebPush       bool          `key:"web_push" label:"Notify with the page closed" group:"Waiting page" default:"false" ours:"true" doc:"Let visitors close the waiting page and get a notification when it is their turn (web push): Anteroom keeps their place, and then their turn for place_hold. Needs HTTPS and JavaScript, and connections from Anteroom to the browsers' push services."`
	Branding
	DefaultTemplateLanguage Language `key:"default_template_language" label:"Language" group:"Waiting page" default:"en-US" doc:"Language of the built-in waiting page for visitors whose browsers ask for none of its 38."`
	CustomPageHTML          string   `key:"custom_page_html" label:"Custom page" group:"Waiting page" event:"true" max:"1048576" doc:"Mustache template of the waiting page, at most 1 MiB. Defaults to the built-in page."`
	EnabledOriginCommands   []string `key:"enabled_origin_commands" label:"Origin commands" group:"Other" enum:"revoke" doc:"Commands that the origin can send in the response header Cf-Waiting-Room-Command."`
	PassEdge                string   `key:"pass_edge" label:"Pass for edge" group:"Other" word:"true" max:"64" ours:"true" doc:"Name of the edge that verifies passes with a secret of its own (HS256), shown by \"anteroom key pass --edge NAME\". Empty: any edge verifies them with the public key (ES256)."`
	Bind                    string   `key:"bind" label:"Bind tickets" group:"Cookie" default:"none" enum:"none,ip-prefix" ours:"true" doc:"What a ticket is bound to: none, or the network of the visitor's address."`
	SessionNetworks         int      `key:"session_networks" label:"Networks per session" unit:"networks" group:"Limits" default:"8" min:"1" max:"8" ours:"true" doc:"Number of networks (an IPv4 /24, an IPv6 /48) that may use one session before session_networks_action applies. Each node counts separately."`
	SessionNetworksAction   string   `key:"session_networks_action" label:"Sessions used from more networks" group:"Limits" default:"log" enum:"off,log,challenge,revoke" ours:"true" doc:"What happens to a session that more than session_networks networks use. log: report it once, in the log and in a metric. challenge: requests from further networks get the waiting page until the challenge is solved there; same as log if there is no challenge. revoke: the session ends, and everyone who used it is a new visitor. off: do not count networks."`
	FirstRequestList        string   `key:"first_request_list" label:"First requests without bound" group:"Limits" word:"true" max:"50" ours:"true" doc:"Name of a list of addresses, networks or ASNs (kind ip or asn) whose visitors may all be admitted at their first request, however many come at once: an office, a school, the proxy of a company. ASNs need a file in geoip."`
	TurnstileMode           string   `key:"turnstile_mode" label:"Turnstile mode" group:"Other" default:"invisible" event:"true" enum:"off,invisible,visible_non_interactive,visible_managed" doc:"Whether the waiting page has a challenge, if the configuration names a provider (key challenge). The visible modes show Turnstile's widget; a proof of work is always invisible."`
	TurnstileAction         string   `key:"turnstile_action" label:"Turnstile action" group:"Other" default:"log" event:"true" enum:"log,infinite_queue" doc:"What happens to visitors who have not solved the challenge. log: they are counted. infinite_queue: every visitor sees the waiting page, and is not admitted, until the browser has solved the challenge."`

	Events   []Event `key:"events" doc:"Scheduled times at which the room has other settings."` // in the order of their creation
	Rules    []Rule  // in their order
	Controls Controls

	// Revision grows with every change of a stored room; zero for a room of the file.
	Revision              uint64
	CreatedOn, ModifiedOn time.Time
}

// WithDefaults returns the room with every empty setting replaced by its documented
// default.
func (r Room) WithDefaults() Room {
	if len(r.Routes) == 0 {
		r.Routes = []Route{{Host: "*"}}
	}
	routes := make([]Route, len(r.Routes))
	for i, rt := range r.Routes {
		rt.Path = cmp.Or(rt.Path, "/")
		routes[i] = rt
	}
	r.Routes = routes
	if r.Zone == "" {
		r.Zone = r.Routes[0].Host
	}
	if r.ID == "" {
		r.ID = RoomIDOf(r.Zone, r.Name)
	}
	field.FillFields(ofRoom, reflect.ValueOf(&r).Elem())
	r.Settings = r.Settings.withLanes(r.Lanes)
	return r
}

// WithDefaults returns the settings with every empty one replaced by its default.
func (s Settings) WithDefaults() Settings {
	field.FillFields(ofSettings, reflect.ValueOf(&s).Elem())
	return s
}

// CountdownFor is how long a page in the background counts down, in whole seconds: never so long that the place could expire.
func (r *Room) CountdownFor() time.Duration {
	return min(r.TurnCountdown, r.PlaceHold/2).Truncate(time.Second)
}

// AccountKeysURL is where the keys are, unless they are there already.
func (a Accounts) AccountKeysURL() string {
	if strings.HasPrefix(strings.TrimSpace(a.AccountKeys), "{") {
		return ""
	}
	return a.AccountKeys
}

// SessionEnd is when a session ends that is not renewed any more.
func (s Settings) SessionEnd(accepted Time) Time {
	return max(accepted, s.RenewalEnded).Add(s.SessionDuration)
}

// SlowestPace is how many new users per minute a room that protects its origin admits at least while the origin answers: at
// least 1, and never more than the limit in force, which may be an event's.
func (s Settings) SlowestPace() float64 {
	limit, floor := float64(s.NewUsersPerMinute), float64(s.ProtectFloor)
	floor = cmp.Or(floor, limit/10)
	return min(limit, max(1, floor))
}

// TokenLife is how long an application lets a visitor in who has redeemed a token of a bridge: SessionDuration, rounded up to
// whole minutes, the unit of such tokens.
func (s Settings) TokenLife() time.Duration {
	return (s.SessionDuration + time.Minute - 1).Truncate(time.Minute)
}

// PassLife is how long a pass is valid, in whole seconds: Pass, but at most half of the session duration in force, which may be
// an event's. Zero: the room issues none. A token of a bridge is a pass for all of the session.
func (s Settings) PassLife() time.Duration {
	if s.Redeem > 0 {
		return s.Redeem + s.TokenLife()
	}
	return min(s.Pass, s.SessionDuration/2).Truncate(time.Second)
}

// SeatDuration is how long a session holds its seat after the last request that Anteroom knows of. Where the room issues
// passes, the visitor may have sent another one later, until the pass was over at the edge, of which Anteroom does not know;
// the session lasts SessionDuration from that. Where edges report such requests, the session lasts SessionDuration from the last
// report, and in any case until the pass is over and the last report of it is here. Sessions that are not renewed end with the last of
// their passes, and so do those whose passes are tokens of a bridge.
func (s Settings) SeatDuration() time.Duration {
	if s.Redeem > 0 {
		return s.PassLife() + PassSkew
	}
	life := s.PassLife()
	switch {
	case life == 0 || s.DisableSessionRenewal:
		return s.SessionDuration
	case s.PassReported:
		return max(s.SessionDuration, life+PassSkew+MaxTouchAge)
	}
	return s.SessionDuration + life + PassSkew
}

// Languages are the values of [Language], in their published order.
var Languages = []string{
	"en-US", "es-ES", "de-DE", "fr-FR", "it-IT", "ja-JP", "ko-KR", "pt-BR", "zh-CN", "zh-TW",
	"nl-NL", "pl-PL", "id-ID", "tr-TR", "ar-EG", "ru-RU", "fa-IR", "bg-BG", "hr-HR", "cs-CZ",
	"da-DK", "fi-FI", "lt-LT", "ms-MY", "nb-NO", "ro-RO", "el-GR", "he-IL", "hi-IN", "hu-HU",
	"sr-BA", "sk-SK", "sl-SI", "sv-SE", "tl-PH", "th-TH", "uk-UA", "vi-VN",
}
