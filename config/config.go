// Package config reads what an Anteroom process is told: one YAML file, the environment
// over it, and flags over both.
//
// The structs in this file are the manual. Their tags give each key its name, default,
// bounds and description; the decoder, the environment names, the flags, schema.json and
// docs/config.md are made from them and nothing else. `go test ./config -update`
// rewrites the latter two.
//
// [Load] does everything that a start does, short of starting: it reads the file and the
// files that it names, resolves the precedence, checks each value and what the values mean
// together. It reports every fault at once, each with its line and column, and returns
// either a configuration that nothing changes afterwards or none.
//
// A key a.b_c of the file is ANTEROOM_A_B_C in the environment and --a-b-c as a flag;
// lists are separated by commas there. ANTEROOM_A_B_C_FILE names a file that holds the
// value. The lists of sites, rooms and certificates have neither: see [Quick] for a room
// without a file.
package config

import (
	"net/netip"
	"time"

	"github.com/anteroom/anteroom"
)

// Config is a whole configuration, checked, with defaults filled in. It must not be
// changed.
type Config struct {
	Listen         []string       `key:"listen" default:":8080" doc:"Addresses on which Anteroom serves visitors: host:port, with an empty host for all interfaces."`
	Admin          string         `key:"admin" default:"127.0.0.1:8081" doc:"Admin address: API, metrics, health checks and dashboard. Keep it off the public network."`
	Data           string         `key:"data" default:"./anteroom-data" file:"true" doc:"Directory for keys and state. Created if it does not exist."`
	AdminTLS       AdminTLS       `key:"admin_tls" doc:"Certificate for the admin address. Without one, it serves plain HTTP."`
	API            API            `key:"api" doc:"The API."`
	Log            Log            `key:"log" doc:"The process's own log, on standard error."`
	Traces         Traces         `key:"traces" doc:"Request traces, sent to an OTLP receiver over HTTP. Off by default."`
	TrustedProxies []netip.Prefix `key:"trusted_proxies" doc:"Proxies, as addresses or CIDR, whose X-Forwarded-* headers Anteroom trusts. None by default."`
	TLS            TLS            `key:"tls" doc:"Certificates for visitors. Without any, Anteroom serves plain HTTP."`
	Timeouts       Timeouts       `key:"timeouts" doc:"Timeouts."`
	Analytics      Analytics      `key:"analytics" doc:"How much history Anteroom keeps."`
	Limits         Limits         `key:"limits" doc:"Limits of this process."`
	OnFailure      string         `key:"on_failure" default:"queue_new" enum:"queue_new,admit_new" doc:"What happens to new visitors while admissions cannot be recorded, because the disk is full or broken: the line is held, or they are let in all the same and a crash in that time forgets them, so that more than the limits may be inside afterwards. Sessions go on either way; nobody is held where passthrough admits everybody."`
	CookieName     string         `key:"cookie_name" default:"__cfwaitingroom" doc:"Name of the ticket cookie; a room's suffix follows after an underscore. If you change it, every visitor starts over."`
	Proof          Proof          `key:"proof" doc:"The signed header by which the origin can verify that a request came through a room."`
	GeoIP          []string       `key:"geoip" file:"true" doc:"MaxMind DB files from which rules know the country, city and network of an address: country, city or ASN databases, like GeoLite2-Country.mmdb. A file fills in what those before it leave out. Read again on reload when it has changed; put a finished file in its place."`
	Sites          []Site         `key:"sites" doc:"Proxied sites: hosts and their origins. A node of a cluster can omit it; it then takes sites, rooms and cookie_name from the nodes that have them."`
	Webhooks       Webhooks       `key:"webhooks" doc:"Settings for webhooks. You create the webhooks themselves with the API."`
	Cluster        Cluster        `key:"cluster" doc:"Nodes that serve the same rooms, in one data center or in many. Without any address the process is standalone."`

	// Rooms are the waiting rooms, defaults filled in, in the order of the file.
	Rooms []anteroom.Room
	// File is the configuration file as it was named; empty without one.
	File string
	// Files are all files that were read, the configuration file first: what to watch.
	Files []string

	shown shown
}

// AdminTLS is the key "admin_tls".
type AdminTLS struct {
	Cert string `key:"cert" file:"true" doc:"PEM file with the certificate and its chain."`
	Key  string `key:"key" file:"true" doc:"PEM file with the private key."`
}

// On reports whether operators are served over TLS.
func (a AdminTLS) On() bool { return a.Cert != "" }

// API is the key "api".
type API struct {
	Strict bool `key:"strict" default:"false" doc:"Enforce the published minimums for rooms of the API: limits of at least 200, sessions of 1 to 30 minutes, at most five events."`
}

// Log is the key "log".
type Log struct {
	Level  string `key:"level" default:"info" enum:"debug,info,warn,error" doc:"Least severe level to log."`
	Format string `key:"format" default:"json" enum:"json,text" doc:"One JSON object per line, or text for a terminal."`
}

// Traces is the key "traces".
type Traces struct {
	Endpoint string  `key:"endpoint" doc:"URL of a receiver of OTLP over HTTP, like http://127.0.0.1:4318; without a path it is asked at /v1/traces. What it needs to know us by belongs into the variable OTEL_EXPORTER_OTLP_HEADERS. None by default: nothing is traced."`
	Sample   float64 `key:"sample" default:"1%" min:"0" max:"1" share:"true" doc:"Share of requests that are traced. Where one of trusted_proxies has decided already (header traceparent), that counts."`
}

// TLS is the key "tls".
type TLS struct {
	Certificates []Certificate `key:"certificates" doc:"Certificates from files, chosen by server name. Read again on reload."`
	ACME         ACME          `key:"acme" doc:"Certificates obtained and renewed automatically (RFC 8555)."`
	RedirectHTTP string        `key:"redirect_http" doc:"Address of a plain HTTP listener that redirects to HTTPS and answers ACME challenges, like :80. None by default."`
}

// On reports whether visitors are served over TLS.
func (t TLS) On() bool { return len(t.Certificates) > 0 || len(t.ACME.Hosts) > 0 }

// Certificate is a member of "tls.certificates".
type Certificate struct {
	Cert string `key:"cert" required:"true" file:"true" doc:"PEM file with the certificate and its chain."`
	Key  string `key:"key" required:"true" file:"true" doc:"PEM file with the private key."`
}

// ACME is the key "tls.acme".
type ACME struct {
	Hosts []string `key:"hosts" doc:"Host names to obtain certificates for. None by default, which turns ACME off."`
	Email string   `key:"email" doc:"Email address at which the authority can reach you."`
	CA    string   `key:"ca" default:"https://acme-v02.api.letsencrypt.org/directory" doc:"Directory URL of the authority."`
}

// Timeouts is the key "timeouts". Zero means no timeout where a field says so.
type Timeouts struct {
	ReadHeader     time.Duration `key:"read_header" default:"5s" min:"100ms" max:"5m" doc:"Time for a request's line and headers to arrive."`
	Idle           time.Duration `key:"idle" default:"60s" min:"1s" max:"1h" doc:"Time until the next request on a connection of an active user."`
	IdleWaiting    time.Duration `key:"idle_waiting" default:"15s" min:"1s" max:"1h" doc:"Time until the next request on a connection that got the waiting page."`
	WritePage      time.Duration `key:"write_page" default:"10s" min:"1s" max:"5m" doc:"Time for the client to receive the waiting page."`
	OriginDial     time.Duration `key:"origin_dial" default:"5s" min:"100ms" max:"5m" doc:"Time to connect to an origin, including TLS."`
	OriginResponse time.Duration `key:"origin_response" default:"60s" min:"0s" max:"1h" doc:"Time for the origin to send its response headers after the request. 0s waits forever."`
	DrainDelay     time.Duration `key:"drain_delay" default:"0s" min:"0s" max:"10m" doc:"At shutdown, how long /-/ready fails before the listeners close, so that load balancers notice."`
	Drain          time.Duration `key:"drain" default:"30s" min:"0s" max:"1h" doc:"At shutdown, time for requests in flight to finish."`
}

// Limits is the key "limits".
type Limits struct {
	ConnectionsPerAddress int `key:"connections_per_address" default:"200" min:"0" max:"1000000" doc:"Connections from one address, or one IPv6 /64; 0 means no limit. Trusted proxies are not counted."`
	RequestsInFlight      int `key:"requests_in_flight" default:"10000" min:"1" max:"1000000" doc:"Requests in flight, including open streams and WebSockets. Further requests get 503 with Retry-After."`
}

// Analytics is the key "analytics". How long something is kept and how large the file may be are
// read at the start.
type Analytics struct {
	Store         bool `key:"store" default:"true" doc:"Whether this process stores analytics, in analytics.db in the data directory. Edges of a cluster never do; they query a core."`
	RetentionDays int  `key:"retention_days" default:"400" min:"1" max:"3660" doc:"How long to keep figures by hour and by day."`
	MinuteDays    int  `key:"minute_days" default:"32" min:"1" max:"400" doc:"How long to keep figures by minute; those by quarter of an hour are kept three times as long. At most retention_days."`
	MaxSizeMiB    int  `key:"max_size_mib" default:"2048" min:"16" max:"1048576" doc:"Maximum size of the file, in MiB. Close to it, Anteroom deletes the oldest minutes, then the oldest quarters of an hour, hours and days."`
}

// Proof is the key "proof".
type Proof struct {
	Enabled bool   `key:"enabled" default:"true" doc:"Whether admitted requests carry the proof. Anteroom always removes copies that clients send."`
	Header  string `key:"header" default:"X-Anteroom-Assertion" doc:"Name of the header."`
	Issuer  string `key:"issuer" default:"anteroom" doc:"The iss claim of the proof."`
}

// Webhooks is the key "webhooks".
type Webhooks struct {
	AllowNetworks []netip.Prefix `key:"allow_networks" doc:"Networks, as addresses or CIDR, that webhooks may reach though they are not public, and over plain http. None by default: loopback, link-local, private and other special addresses and those of this machine are refused when they are dialed, whatever a name resolves to."`
}

// Site is a member of "sites".
type Site struct {
	Hosts        []string `key:"hosts" required:"true" doc:"Host names of the site; \"*\" is every host that no other site names."`
	Origins      []string `key:"origins" required:"true" doc:"URLs of the servers that answer, http or https, host and port only. Several share the load."`
	Health       Health   `key:"health" doc:"Health check; Anteroom sends no requests to an origin that fails it. Off without a path."`
	PreserveHost bool     `key:"preserve_host" default:"true" doc:"Whether the origin sees the visitor's Host header, or its own name."`
}

// Health is the key "health" of a site.
type Health struct {
	Path     string        `key:"path" doc:"Path that returns 2xx or 3xx while the origin is healthy, like /healthz."`
	Interval time.Duration `key:"interval" default:"5s" min:"100ms" max:"1h" doc:"Time between two checks of an origin."`
	Timeout  time.Duration `key:"timeout" default:"2s" min:"100ms" max:"1m" doc:"Timeout of one check."`
}

// Quick is a room without a file, from flags and environment only. Origin makes the one
// site, for every host, when the file has no sites. The rest makes the one room, "default",
// for every host and path, when the file has no rooms; without a file, Origin alone
// makes it too.
type Quick struct {
	Origin            []string      `key:"origin" doc:"URL of the web application, for all hosts. Separate several with commas."`
	TotalActiveUsers  int           `key:"total_active_users" default:"500" min:"0" max:"2147483647" doc:"Maximum number of active users."`
	NewUsersPerMinute int           `key:"new_users_per_minute" default:"500" min:"0" max:"2147483647" doc:"New sessions in any 60 seconds."`
	SessionDuration   time.Duration `key:"session_duration" default:"5m" min:"1s" max:"24h" minutes:"true" doc:"How long a session lasts after its last request."`
	QueueingMethod    string        `key:"queueing_method" default:"fifo" enum:"fifo,random,passthrough,reject" doc:"Which visitor is admitted next."`
	QueueAll          bool          `key:"queue_all" default:"false" doc:"Stop admitting new visitors; they wait in the queue."`
}

// document is the file.
type document struct {
	Config
	Rooms []room `key:"rooms" doc:"The waiting rooms. Keys that the published API also has are spelled the same."`
}

// room is a member of "rooms".
type room struct {
	Name             string           `key:"name" required:"true" doc:"1 to 64 letters, digits, _ and -; unique in the zone. A room with a changed name is a new room."`
	Zone             string           `key:"zone" doc:"Domain that the room belongs to. Defaults to the host of the first route."`
	Description      string           `key:"description" doc:"Free text, at most 1024 bytes."`
	Host             string           `key:"host" doc:"Host name that the room covers, without port and wildcard; \"*\" for every host."`
	Path             string           `key:"path" doc:"Path that the room covers with everything below it. By default the whole host."`
	AdditionalRoutes []route          `key:"additional_routes" doc:"More hosts and paths of the same room. They require a cookie_suffix."`
	Routes           []route          `key:"routes" doc:"All hosts and paths in one list. Use it instead of host, path and additional_routes."`
	CookieSuffix     string           `key:"cookie_suffix" doc:"Suffix of the cookie's name; required with several routes, unique among rooms that share a domain."`
	CookieAttributes cookieAttributes `key:"cookie_attributes" doc:"Attributes of the ticket cookie."`

	TotalActiveUsers      int           `key:"total_active_users" required:"true" min:"0" max:"2147483647" doc:"Maximum number of active users. Never exceeded."`
	NewUsersPerMinute     int           `key:"new_users_per_minute" required:"true" min:"0" max:"2147483647" doc:"New sessions in any 60 seconds. Never exceeded."`
	SessionDuration       time.Duration `key:"session_duration" default:"5m" min:"1s" max:"24h" minutes:"true" doc:"How long a session lasts after its last request. A number without a unit is minutes."`
	DisableSessionRenewal bool          `key:"disable_session_renewal" default:"false" doc:"Whether sessions end session_duration after admission, even while they are in use."`
	QueueingMethod        string        `key:"queueing_method" default:"fifo" enum:"fifo,random,passthrough,reject" doc:"Which visitor is admitted next: the first in the queue, a random one, everyone, no one."`
	QueueAll              bool          `key:"queue_all" default:"false" doc:"Stop admitting new visitors; they wait in the queue."`
	Suspended             bool          `key:"suspended" default:"false" doc:"Turn the room off: requests bypass it and are not counted."`
	Refresh               time.Duration `key:"refresh" default:"0s" min:"0s" max:"10m" doc:"Refresh interval of the waiting page, 1s to 10m; 0s adapts it to the position."`
	Unpaced               bool          `key:"unpaced" default:"false" doc:"Admit visitors as fast as new_users_per_minute allows instead of evenly over the minute."`
	PlaceHold             time.Duration `key:"place_hold" default:"5m" min:"30s" max:"1h" doc:"How long a visitor's place is kept after a missed check-in."`

	QueueingStatusCode      int      `key:"queueing_status_code" default:"200" enum:"200,202,429" doc:"HTTP status of the waiting page."`
	JSONResponse            bool     `key:"json_response_enabled" default:"false" doc:"Answer JSON to exactly \"Accept: application/json\"."`
	DefaultTemplateLanguage string   `key:"default_template_language" default:"en-US" enum:"languages" doc:"Language of the built-in waiting page."`
	CustomPageHTML          string   `key:"custom_page_html" doc:"Mustache template of the waiting page, at most 512 KiB. Defaults to the built-in page."`
	CustomPageFile          string   `key:"custom_page_file" file:"true" doc:"File with the template, instead of custom_page_html."`
	EnabledOriginCommands   []string `key:"enabled_origin_commands" enum:"revoke" doc:"Commands that the origin can send in the response header Cf-Waiting-Room-Command."`
	Bind                    string   `key:"bind" default:"none" enum:"none,ip-prefix" doc:"What a ticket is bound to: none, or the network of the visitor's address."`

	Events []event `key:"events" doc:"Scheduled times at which the room has other settings."`
	Rules  []rule  `key:"rules" doc:"Conditions under which requests bypass the room; they are forwarded unchanged and not counted."`
}

// event is a member of "events" of a room. What it does not set is as the room has it.
type event struct {
	Name           string `key:"name" required:"true" doc:"1 to 64 letters, digits, _ and -; unique in the room. An event with a changed name is a new event."`
	Description    string `key:"description" doc:"Free text, at most 1024 bytes."`
	Start          string `key:"event_start_time" required:"true" moment:"true" doc:"Start, like 2026-11-27T10:00:00Z."`
	End            string `key:"event_end_time" required:"true" moment:"true" doc:"End; at least a minute after the start."`
	Prequeue       string `key:"prequeue_start_time" moment:"true" doc:"Start of the prequeue, in which new visitors wait; at least 5 minutes before the event starts. No prequeue by default."`
	ShuffleAtStart bool   `key:"shuffle_at_event_start" default:"false" doc:"Put the visitors who wait at the start in random order. Requires prequeue_start_time."`
	Suspended      bool   `key:"suspended" default:"false" doc:"Turn the event off."`

	TotalActiveUsers      int           `key:"total_active_users" min:"0" max:"2147483647" doc:"Maximum number of active users. Set together with new_users_per_minute."`
	NewUsersPerMinute     int           `key:"new_users_per_minute" min:"0" max:"2147483647" doc:"New sessions in any 60 seconds. Set together with total_active_users."`
	SessionDuration       time.Duration `key:"session_duration" min:"1s" max:"24h" minutes:"true" doc:"How long a session lasts after its last request. A number without a unit is minutes."`
	DisableSessionRenewal bool          `key:"disable_session_renewal" doc:"Whether sessions end session_duration after admission."`
	QueueingMethod        string        `key:"queueing_method" enum:"fifo,random,passthrough,reject" doc:"Which visitor is admitted next."`
	CustomPageHTML        string        `key:"custom_page_html" doc:"Mustache template of the waiting page, at most 512 KiB."`

	Repeat repeat `key:"repeat" doc:"When the event repeats. It happens once by default."`
}

type repeat struct {
	Every    string `key:"every" enum:"day,week" doc:"Unit of interval."`
	Interval int    `key:"interval" min:"1" max:"366" doc:"Number of days or weeks between two occurrences; 1 by default."`
	Times    int    `key:"times" min:"1" max:"1000" doc:"Number of occurrences, including the first. Unlimited by default."`
	Until    string `key:"until" moment:"true" doc:"No occurrence starts after this time."`
	TimeZone string `key:"time_zone" doc:"Time zone in which the time of day stays the same, like Europe/Berlin. UTC by default."`
}

// rule is a member of "rules" of a room.
type rule struct {
	Action      string `key:"action" default:"bypass_waiting_room" enum:"bypass_waiting_room" doc:"What happens if the expression matches."`
	Expression  string `key:"expression" required:"true" doc:"The condition, in the Rules language."`
	Description string `key:"description" doc:"Free text, at most 1024 bytes."`
	Enabled     bool   `key:"enabled" default:"true" doc:"Whether the rule is active."`
}

type route struct {
	Host string `key:"host" required:"true" doc:"Host name, or \"*\"."`
	Path string `key:"path" default:"/" doc:"Path, including everything below it."`
}

type cookieAttributes struct {
	SameSite string `key:"samesite" default:"auto" enum:"auto,lax,none,strict" doc:"SameSite attribute. auto: Lax. none is for rooms embedded in other sites; it needs HTTPS and is Lax without."`
	Secure   string `key:"secure" default:"auto" enum:"auto,always,never" doc:"Secure attribute. auto: when the request came by HTTPS."`
}
