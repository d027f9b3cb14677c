// Package config reads the configuration of an Anteroom process: one YAML file, overridden by the environment, and both
// overridden by flags.
//
// The structs in this file are the manual. Their tags give each key its name, default, bounds and description; the
// decoder, the environment names, the flags, schema.json and docs/config.md are made from them and nothing else. `go
// test ./config -update` rewrites the latter two.
//
// [Load] does everything that a start does, except starting: it reads the file and the files that it names, applies the
// overrides, and checks each value and their combinations. It reports all faults at once, each with its line and
// column, and returns either a configuration that never changes afterwards or none.
//
// A key a.b_c of the file is ANTEROOM_A_B_C in the environment and --a-b-c as a flag; lists are separated by commas
// there. ANTEROOM_A_B_C_FILE names a file that holds the value. The lists of proxied sites, rooms and certificates have
// neither: see quick for a room without a file.
package config

import (
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// Config is a whole configuration, checked, with defaults filled in. It must not be
// changed.
type Config struct {
	Listen         []string       `key:"listen" default:":8080" doc:"Addresses on which Anteroom serves visitors: host:port, with an empty host for all interfaces."`
	Admin          string         `key:"admin" default:"127.0.0.1:8081" doc:"Admin address: API, metrics, health checks and dashboard. Keep it off the public network."`
	Data           string         `key:"data" default:"./anteroom-data" file:"true" doc:"Directory for keys and state. Created if it does not exist."`
	AdminTLS       AdminTLS       `key:"admin_tls" doc:"Certificate for the admin address. Without one, it serves plain HTTP."`
	AdminPlain     bool           `key:"admin_plain" default:"false" doc:"Whether the admin address may serve plain HTTP to other machines. Set it only on a trusted network, such as inside a Kubernetes cluster. Otherwise an address that is not loopback needs admin_tls."`
	API            API            `key:"api" doc:"The API."`
	SignIn         SignIn         `key:"sign_in" doc:"An OpenID Connect provider at which people sign in to the dashboard, besides API tokens. None by default."`
	Log            Log            `key:"log" doc:"The process's own log, on standard error."`
	Traces         Traces         `key:"traces" doc:"Request traces, sent to an OTLP receiver over HTTP. Off by default."`
	TrustedProxies []netip.Prefix `key:"trusted_proxies" doc:"Proxies, as addresses or CIDR, whose X-Forwarded-* headers Anteroom trusts. None by default."`
	ForwardAuth    ForwardAuth    `key:"forward_auth" doc:"Verdicts for proxies that keep the traffic and ask about each request (nginx auth_request, Traefik forwardAuth and the like). Off by default."`
	TLS            TLS            `key:"tls" doc:"Certificates for visitors. Without any, Anteroom serves plain HTTP."`
	Timeouts       Timeouts       `key:"timeouts" doc:"Timeouts."`
	Analytics      Analytics      `key:"analytics" doc:"How much history Anteroom keeps."`
	Limits         Limits         `key:"limits" doc:"Limits of this process."`
	OnFailure      string         `key:"on_failure" default:"queue_new" enum:"queue_new,admit_new" doc:"What happens to new visitors while admissions cannot be recorded, because the disk is full or broken. queue_new: they wait. admit_new: they are admitted, but a crash in that time forgets them, so that there may be more active users than the limit afterwards. Sessions continue either way, and passthrough still admits everyone."`
	CookieName     string         `key:"cookie_name" default:"__cfwaitingroom" doc:"Name of the ticket cookie; a room's suffix follows after an underscore. If you change it, every visitor starts over. With the prefix __Host-, browsers accept it only over HTTPS from the host itself; every room then needs a single host and the path /."`
	FastPath       bool           `key:"fast_path" default:"true" doc:"Whether Anteroom's own HTTP/1.1 code carries plain requests, which takes less CPU time. false uses Go's HTTP library for all of them, to find out whether a fault is in that code. Both behave the same, except that our own code refuses answers of an origin that can be read in two ways."`
	Proof          Proof          `key:"proof" doc:"The signed header by which the origin can verify that a request came through a room."`
	Challenge      Challenge      `key:"challenge" doc:"Challenge that waiting visitors are asked to solve, in rooms whose turnstile_mode is not off. None by default; turnstile_mode and turnstile_action then have no effect."`
	GeoIP          []string       `key:"geoip" file:"true" doc:"MaxMind DB files that tell rules the country, city and network of an address: country, city or ASN databases, like GeoLite2-Country.mmdb. Each file adds what the files before it lack. Anteroom reads a changed file again on reload; replace files atomically."`
	Sites          []Site         `key:"sites" doc:"Proxied sites: hosts and their origins. A node of a cluster can omit it; it then takes sites, rooms and cookie_name from the nodes that have them."`
	Webhooks       Webhooks       `key:"webhooks" doc:"Settings for webhooks. You create the webhooks themselves with the API."`
	AWS            []AWS          `key:"aws" doc:"Bridges for clients of AWS Virtual Waiting Room, each for one event id. Off by default."`
	QueueIt        []QueueIt      `key:"queue_it" doc:"Bridges for connectors of Queue-it, each for one event. Off by default."`
	Fastly         []Fastly       `key:"fastly" doc:"Rooms that take over from a waiting room of Fastly, whose visitors keep their place. Read at the start. Off by default."`
	Cluster        Cluster        `key:"cluster" doc:"Nodes that serve the same rooms, in one data center or in many. Without any address the process is standalone."`

	// Rooms are the waiting rooms, defaults filled in, in the order of the file.
	Rooms []anteroom.Room
	// File is the configuration file as it was named; empty without one.
	File string
	// Files are all files that were read, the configuration file first: what to watch.
	Files []string
	// Warnings are lines about values that are accepted but look like mistakes.
	Warnings []string

	// shown reads the configuration again, from the same texts: kept, it would take twice the memory of the rooms.
	shown func() shown
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

// SignIn is the key "sign_in". It is read at the start.
type SignIn struct {
	Issuer           string       `key:"issuer" doc:"URL of the provider, exactly as it calls itself (the iss claim), like https://login.example.com. Without one, nobody can sign in there."`
	ClientID         string       `key:"client_id" doc:"Id of Anteroom at the provider."`
	ClientSecretFile string       `key:"client_secret_file" file:"true" doc:"File with Anteroom's secret at the provider. None for a public client; PKCE is used either way."`
	URL              string       `key:"url" doc:"URL at which browsers reach the dashboard, like https://anteroom.example.com. Register it at the provider as a redirect URI, with the path /dash/sign-in/return."`
	Label            string       `key:"label" default:"your organization" max:"64" doc:"What the login page calls the provider, after the words Sign in with."`
	Scopes           []string     `key:"scopes" doc:"Scopes to ask for, besides openid, profile and email."`
	Claim            string       `key:"claim" default:"groups" doc:"Claim of the ID token that lists a person's roles: a list of texts, or one text."`
	CAFile           string       `key:"ca_file" file:"true" doc:"PEM file with the certificates that vouch for the provider. Those of the system by default."`
	Roles            []SignInRole `key:"roles" doc:"What people may do. People with none of the roles cannot sign in; with several roles, they may do what any of them allows."`
}

// On reports whether there is a provider.
func (s SignIn) On() bool { return s.Issuer != "" }

// SignInRole is a member of "sign_in.roles".
type SignInRole struct {
	Value      string `key:"value" required:"true" doc:"Value of the claim that gives the role."`
	Permission string `key:"permission" required:"true" enum:"read,edit,admin" doc:"What the role allows, as for a token."`
	Zone       string `key:"zone" doc:"Zone to which the role is restricted. All zones by default; admin cannot be restricted."`
}

// Log is the key "log".
type Log struct {
	Level  string `key:"level" default:"info" enum:"debug,info,warn,error" doc:"Least severe level to log."`
	Format string `key:"format" default:"json" enum:"json,text" doc:"One JSON object per line, or text for a terminal."`
}

// Traces is the key "traces".
type Traces struct {
	Endpoint string  `key:"endpoint" doc:"URL of a receiver of OTLP over HTTP, like http://127.0.0.1:4318; the default path is /v1/traces. Set credentials in the variable OTEL_EXPORTER_OTLP_HEADERS. None by default, which turns tracing off."`
	Sample   float64 `key:"sample" default:"1%" min:"0" max:"1" share:"true" doc:"Share of requests to trace. A decision by one of trusted_proxies (header traceparent) takes precedence."`
}

// ForwardAuth is the key "forward_auth".
type ForwardAuth struct {
	Listen string         `key:"listen" doc:"Address on which Anteroom answers proxies, like 127.0.0.1:8082, over plain HTTP. Let nobody else reach it. None by default, which turns forward-auth off."`
	Peers  []netip.Prefix `key:"peers" doc:"Proxies, as addresses or CIDR, that may ask. Anteroom believes what they say about the visitor's request; all others get 403. By default only those on this machine."`
}

// TLS is the key "tls".
type TLS struct {
	Certificates []Certificate `key:"certificates" doc:"Certificates from files, chosen by server name. Anteroom reads them again on reload."`
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
	WritePage      time.Duration `key:"write_page" default:"10s" min:"1s" max:"5m" doc:"Time for the client to receive the waiting page or another answer of Anteroom itself."`
	Write          time.Duration `key:"write" default:"10s" min:"1s" max:"1h" doc:"Time for a visitor to receive each 32 KiB of an answer of the origin; slower readers are disconnected. Streams may be silent for any time."`
	Body           time.Duration `key:"body" default:"4h" min:"0s" max:"168h" doc:"Time for a whole request body to arrive. 0s means no limit."`
	OriginDial     time.Duration `key:"origin_dial" default:"5s" min:"100ms" max:"5m" doc:"Time to connect to an origin, including TLS."`
	OriginResponse time.Duration `key:"origin_response" default:"60s" min:"0s" max:"1h" doc:"Time for the origin to send its response headers after the request. 0s waits forever."`
	DrainDelay     time.Duration `key:"drain_delay" default:"0s" min:"0s" max:"10m" doc:"At shutdown, how long /-/ready fails before the listeners close, so that load balancers notice."`
	Drain          time.Duration `key:"drain" default:"30s" min:"0s" max:"1h" doc:"At shutdown, time for requests in flight to finish."`
}

// Limits is the key "limits".
type Limits struct {
	ConnectionsPerAddress int `key:"connections_per_address" default:"200" min:"0" max:"1000000" doc:"Connections from one address, or one IPv6 /64; 0 means no limit. Trusted proxies are not counted."`
	RequestsInFlight      int `key:"requests_in_flight" default:"10000" min:"1" max:"1000000" doc:"Requests in flight, including open streams and WebSockets. Further requests get 503 with Retry-After."`
	RequestsPerAddress    int `key:"requests_per_address" default:"1000" min:"0" max:"1000000" doc:"Requests of one address, or one IPv6 /64, under way to the origin at a time; 0 means no limit. Further requests wait up to 5 s, then get 429. Requests of trusted proxies that name no visitor are not counted."`
	RequestsPerSession    int `key:"requests_per_session" default:"200" min:"0" max:"1000000" doc:"Requests of one session under way to the origin at a time, including WebSockets; 0 means no limit. Further requests wait up to 5 s, then get 429."`
	BodyRate              int `key:"body_rate" default:"500" min:"0" max:"1000000000" doc:"Lowest average rate, in bytes per second, at which a request body may arrive, counted after 20 s of waiting for it; 0 means no limit."`
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

// Challenge is the key "challenge".
type Challenge struct {
	Provider      string        `key:"provider" default:"none" enum:"none,work,turnstile,ext" doc:"work: the visitor's browser computes for a moment, without interaction and without a third party. turnstile: Cloudflare Turnstile; the page loads its script. ext: the page loads your script (script_url), and your hook (verify_url) verifies the tokens that it makes."`
	Difficulty    int           `key:"difficulty" default:"10" min:"1" max:"20" doc:"With work, how much browsers compute while the queue is shorter than a minute; each step doubles it."`
	MaxDifficulty int           `key:"max_difficulty" default:"13" min:"1" max:"20" doc:"With work, how much browsers compute at most. The work doubles when the queue is a minute long, and each time that its length doubles after that. A value below difficulty keeps it at difficulty."`
	Patience      time.Duration `key:"patience" default:"10m" min:"0s" max:"24h" doc:"How long visitors without JavaScript wait before they no longer have to solve the challenge. 0s: never, so where turnstile_action is infinite_queue they are not admitted."`
	SiteKey       string        `key:"site_key" doc:"With turnstile, the widget's site key."`
	SecretFile    string        `key:"secret_file" file:"true" doc:"With turnstile, file with the widget's secret key. With ext, file with a token that the hook gets in its Authorization header; none by default."`
	VerifyURL     string        `key:"verify_url" doc:"URL that verifies tokens: with turnstile, https://challenges.cloudflare.com/turnstile/v0/siteverify by default; with ext, the hook's. If a token cannot be verified within 3 s, the visitor keeps waiting, and the next request tries again."`
	ScriptURL     string        `key:"script_url" doc:"With ext, URL of the script that the waiting page loads. It calls anteroomSolved with a token."`
	FailOpen      bool          `key:"fail_open" default:"false" doc:"With ext, whether a visitor with a token counts as having solved the challenge while the hook does not answer."`
}

// The values of Challenge.Provider.
const (
	ChallengeNone      = "none"
	ChallengeWork      = "work"
	ChallengeTurnstile = "turnstile"
	ChallengeExt       = "ext"
)

// Secret returns what SecretFile holds.
func (c Challenge) Secret() (string, error) {
	text, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return "", anteroom.Errorf(anteroom.Invalid, "challenge.secret_file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Webhooks is the key "webhooks".
type Webhooks struct {
	AllowNetworks []netip.Prefix `key:"allow_networks" doc:"Networks, as addresses or CIDR, that webhooks may reach although they are not public, even over plain http. None by default: Anteroom refuses to connect to loopback, link-local, private and other special addresses and to those of this machine, whatever a name resolves to. Web push reaches public addresses only, because any visitor chooses them."`
}

// Site is a member of "sites".
type Site struct {
	Hosts          []string `key:"hosts" required:"true" doc:"Host names of the proxied site; \"*\" is every host that no other site names."`
	OpenHosts      bool     `key:"open_hosts" default:"false" doc:"Whether \"*\" serves every host even if rooms name hosts. By default, a host that neither a site nor a room names then gets 421 unless a room for \"*\" covers the request, so that no other host name bypasses a room."`
	Origins        []string `key:"origins" required:"true" doc:"URLs of the servers, http or https, host and port only. Several share the load."`
	Health         Health   `key:"health" doc:"Health check; Anteroom sends no requests to an origin that fails it. Off without a path."`
	MaxConnections int      `key:"max_connections" default:"0" min:"0" max:"1000000" doc:"Requests under way to each origin at a time, including WebSockets; each takes a connection. 0 means no limit. Further requests wait up to 5 s, then get 503."`
	PreserveHost   bool     `key:"preserve_host" default:"true" doc:"Whether the origin sees the visitor's Host header, or its own name."`
}

// AWS is a member of "aws".
type AWS struct {
	EventID          string   `key:"event_id" required:"true" word:"true" max:"64" doc:"Event id that clients send: letters, digits, _ and -."`
	Room             string   `key:"room" required:"true" doc:"Name of the room, or ZONE/NAME. Visitors enter it only through the bridge: a request that it covers needs an access token."`
	URL              string   `key:"url" required:"true" doc:"URL of the public API as visitors reach it, like https://wait.example.com/aws/sample. The private API is at the admin address, below /aws/ and the event id."`
	Issuer           string   `key:"issuer" doc:"The iss claim of tokens, which authorizers compare. Defaults to url."`
	Inlet            string   `key:"inlet" default:"auto" enum:"auto,custom" doc:"What moves the serving counter. auto: as many positions as total_active_users and new_users_per_minute admit. custom: only increment_serving_counter; the limits still apply."`
	RedirectURIs     []string `key:"redirect_uris" doc:"URLs to which the OpenID adapter may send visitors back, compared exactly."`
	ClientSecretFile string   `key:"client_secret_file" file:"true" doc:"File with the secret of the OpenID adapter's one client, whose id is event_id. Without it, the adapter is off."`
}

// InletCustom is the value of AWS.Inlet that leaves the counter to operators.
const InletCustom = "custom"

// QueueIt is a member of "queue_it".
type QueueIt struct {
	CustomerID string        `key:"customer_id" required:"true" word:"true" max:"64" doc:"Customer id that connectors send."`
	EventID    string        `key:"event_id" required:"true" word:"true" max:"64" doc:"Event id that connectors send: lower-case letters, digits and -."`
	Room       string        `key:"room" required:"true" doc:"Name of the room, or ZONE/NAME. Its routes are what connectors protect, and must name their hosts; its visitors wait below url."`
	URL        string        `key:"url" required:"true" doc:"URL of the queue's host, like https://wait.example.com. Connectors have its name as their queue domain. Several events may share it; it serves nothing else."`
	SecretFile string        `key:"secret_file" required:"true" file:"true" doc:"File with the secret key of the connectors, which signs tokens."`
	Redeem     time.Duration `key:"redeem" default:"1m" min:"10s" max:"10m" doc:"How long a visitor may take from the queue's host to the application. The clocks of both must agree within this time. A seat is held for that much longer."`
	Cancel     string        `key:"cancel" default:"keep" enum:"keep,free" doc:"What a cancellation by a connector does. keep: the seat is held until the token expires. free: the session ends, and its seat is free at once; a visitor who cancels by hand and keeps the connector's cookie is then admitted above the limit."`
	InviteOnly bool          `key:"invite_only" default:"false" doc:"Admit only visitors with an enqueue token (QT1), each once."`
}

// Fastly is a member of "fastly".
type Fastly struct {
	Room       string `key:"room" required:"true" doc:"Name of the room, or ZONE/NAME."`
	Starter    string `key:"starter" required:"true" enum:"vcl,compute" doc:"Which of the published starters was there. vcl: the VCL pattern, with the cookie waiting_room. compute: the Compute starter, with the cookie queue."`
	SecretFile string `key:"secret_file" required:"true" file:"true" doc:"File with its secret. vcl: one line per key of the table, with its name and its base64 text. compute: the secret of the JWTs."`
	Since      string `key:"since" required:"true" moment:"true" doc:"The moment of the cut-over, like 2026-11-27T10:00:00Z. Visitors with a cookie of the starter are ahead of everyone who came later, for an hour from then."`
	Length     int    `key:"length" default:"0" min:"0" max:"5000000" doc:"With compute, the last position that the starter gave (queue:length); later ones are refused. 0 accepts all."`
}

// CancelFree is the value of QueueIt.Cancel that frees the seats of canceled sessions.
const CancelFree = "free"

// Health is the key "health" of a site.
type Health struct {
	Path     string        `key:"path" doc:"Path that returns 2xx or 3xx while the origin is healthy, like /healthz."`
	Interval time.Duration `key:"interval" default:"5s" min:"100ms" max:"1h" doc:"Time between two checks of an origin."`
	Timeout  time.Duration `key:"timeout" default:"2s" min:"100ms" max:"1m" doc:"Timeout of one check."`
}

// quick is a room without a file, from flags and environment only. Origin makes the one
// site, for every host, when the file has no sites. The rest makes the one room, "default",
// for every host and path, when the file has no rooms; without a file, Origin alone
// makes it too. Both limits are quickLimit unless given.
type quick struct {
	Origin []string `key:"origin" doc:"URL of the web application, for all hosts. Separate several with commas."`
	anteroom.Settings
}

const quickLimit = 500

// quickFields are those of quick; nothing of it has to be given.
func quickFields() []field.Field {
	out := field.Of(reflect.TypeFor[quick]())
	for i := range out {
		if f := &out[i]; f.Required {
			f.Required, f.HasDefault, f.Default = false, true, strconv.Itoa(quickLimit)
		}
	}
	return out
}

// document is the file.
type document struct {
	Config
	Rooms []room `key:"rooms" doc:"The waiting rooms. Keys that the published API also has are spelled the same."`
}

// room is a member of "rooms": what a room is, and how the file spells some of it.
type room struct {
	anteroom.Room
	anteroom.Coverage `after:"description" optional:"true"`
	CustomPageFile    string `key:"custom_page_file" after:"custom_page_html" file:"true" doc:"File with the template, instead of custom_page_html."`
	Rules             []rule `key:"rules" doc:"Conditions under which requests bypass the room; they are forwarded unchanged and not counted."`
}

// rule is a member of "rules" of a room.
type rule struct {
	anteroom.Rule
	Enabled bool `key:"enabled" default:"true" doc:"Whether the rule is active."`
}
