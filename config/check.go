package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// hostPrefix is [route.HostPrefix].
const hostPrefix = "__Host-"

// check adds the faults that need more than one value's own text, rooms aside.
func (l *loader) check() {
	c := &l.doc.Config
	if len(c.Listen) == 0 {
		l.At("listen", "has no address", "like \":8080\"")
	}
	for i, a := range c.Listen {
		l.checkAddress(fmt.Sprintf("listen[%d]", i), a)
		if a == c.Admin {
			l.At("admin", fmt.Sprintf("%s is also an address for visitors", field.Quote(a)), "give operators an address of their own")
		}
	}
	l.checkAddress("admin", c.Admin)
	l.checkForwardAuth(c)
	if c.Data == "" {
		l.At("data", "is empty", "name a directory")
	}
	l.checkTLS(c.TLS)
	switch a := c.AdminTLS; {
	case a.Cert != "" && a.Key != "":
		l.checkPair("admin_tls", a.Cert, a.Key)
	case a.Cert != "":
		l.At("admin_tls.key", "is missing", "PEM file with the private key of admin_tls.cert")
	case a.Key != "":
		l.At("admin_tls.cert", "is missing", "PEM file with the certificate of admin_tls.key")
	case a.On() || c.AdminPlain || isLoopback(c.Admin):
	default:
		l.At("admin", field.Quote(c.Admin)+" is not loopback, and without TLS anyone on the way can read tokens", "set admin_tls, or admin_plain: true (--admin-plain) if you trust the network")
	}
	if name := c.CookieName; len(name) > anteroom.MaxNameLength || !isWord(name) {
		l.At("cookie_name", field.Quote(name)+" cannot be a cookie's name here", "use up to 64 letters, digits, _ and -")
	} else if lower := strings.ToLower(name); strings.HasPrefix(lower, "__secure-") || strings.HasPrefix(lower, "__host-") && !strings.HasPrefix(name, hostPrefix) {
		l.At("cookie_name", field.Quote(name)+" has a prefix that browsers tie to conditions", "write __Host-, or leave it out")
	} else if strings.HasPrefix(name, hostPrefix) && !c.TLS.On() && len(c.TrustedProxies) == 0 {
		l.At("cookie_name", field.Quote(name)+" is for HTTPS only", "configure tls, or trusted_proxies if a proxy in front serves HTTPS")
	}
	if h := c.Proof.Header; len(h) > anteroom.MaxNameLength || !isWord(h) || !strings.Contains(h, "-") {
		l.At("proof.header", field.Quote(h)+" is not a valid name for the header", "letters, digits and at least one -, like X-Anteroom-Assertion")
	}
	if c.Proof.Enabled && c.Proof.Issuer == "" {
		l.At("proof.issuer", "is empty", "name this gateway, or set proof.enabled to false")
	}
	l.checkChallenge(&c.Challenge)
	for i, name := range c.GeoIP {
		if path := fmt.Sprintf("geoip[%d]", i); name == "" {
			l.At(path, "is empty", "name a file, like GeoLite2-Country.mmdb")
		} else {
			l.Readable(path, name)
		}
	}
	if e := c.Traces.Endpoint; e != "" {
		if u, err := url.Parse(e); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			l.At("traces.endpoint", field.Quote(e)+" is not an http or https URL", "like http://127.0.0.1:4318, without user and query")
		}
	}
	l.checkSignIn(&c.SignIn)
	l.checkAWS(c.AWS)
	l.checkQueueIt(c)
	l.checkFastly(c)
	l.checkCluster(&c.Cluster)
	l.checkSites(c.Sites)
}

func (l *loader) checkForwardAuth(c *Config) {
	address := c.ForwardAuth.Listen
	switch {
	case address == "" && len(c.ForwardAuth.Peers) > 0:
		l.At("forward_auth.peers", "has nothing to answer them", "set forward_auth.listen too")
	case address == "":
	case slices.Contains(c.Listen, address), address == c.Admin:
		l.At("forward_auth.listen", field.Quote(address)+" is also an address for others", "give proxies an address of their own")
	default:
		l.checkAddress("forward_auth.listen", address)
		if !isLoopback(address) && len(c.ForwardAuth.Peers) == 0 {
			l.At("forward_auth.peers", "is empty, so only proxies on this machine may ask at "+field.Quote(address), "name the proxies, or listen on 127.0.0.1")
		}
	}
}

func (l *loader) checkSignIn(c *SignIn) {
	if !c.On() {
		if c.ClientID != "" || c.URL != "" || len(c.Roles) > 0 {
			l.At("sign_in.issuer", "is missing", "the URL of the provider, like https://login.example.com")
		}
		return
	}
	if !isWebURL(c.Issuer) || strings.ContainsAny(c.Issuer, "?#") {
		l.At("sign_in.issuer", field.Quote(c.Issuer)+" is not an http or https URL", "like https://login.example.com")
	}
	if c.ClientID == "" {
		l.At("sign_in.client_id", "is missing", "the id of Anteroom at the provider")
	}
	if u, err := url.Parse(c.URL); !isWebURL(c.URL) || err != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		l.At("sign_in.url", field.Quote(c.URL)+" is not the URL of the dashboard", "like https://anteroom.example.com, without a path")
	}
	if c.ClientSecretFile != "" {
		if text, ok := l.readSecret("sign_in.client_secret_file", c.ClientSecretFile, 1<<12); ok && strings.TrimSpace(string(text)) == "" {
			l.At("sign_in.client_secret_file", "is empty", "put the secret into it, or leave the key out for a public client")
		}
	}
	if c.CAFile != "" {
		if text, ok := l.Read("sign_in.ca_file", c.CAFile, 1<<20); ok && !x509.NewCertPool().AppendCertsFromPEM(text) {
			l.At("sign_in.ca_file", "holds no certificate", "PEM, beginning with -----BEGIN CERTIFICATE-----")
		}
	}
	if len(c.Roles) == 0 {
		l.At("sign_in.roles", "is empty, so nobody could sign in", "for instance: [{value: operators, permission: edit}]")
	}
	if len(c.Roles) > maxRoles {
		l.At("sign_in.roles", fmt.Sprintf("has %d members", len(c.Roles)), fmt.Sprintf("at most %d", maxRoles))
	}
	for i, r := range c.Roles {
		if r.Permission == "admin" && r.Zone != "" {
			l.At(fmt.Sprintf("sign_in.roles[%d].zone", i), "limits the permission admin", "admin is for everything; use read or edit for a zone")
		}
	}
}

// maxRoles is how many roles there may be: a token has no more grants.
const maxRoles = 100

func (l *loader) checkAWS(all []AWS) {
	owner := map[string]string{}
	for i, c := range all {
		path := fmt.Sprintf("aws[%d]", i)
		unique := func(key, value string) {
			if other, taken := owner[key+value]; taken && value != "" {
				l.At(path+"."+key, fmt.Sprintf("%s is also that of %s", field.Quote(value), other), "each bridge has its own")
			}
			owner[key+value] = path
		}
		unique("event_id", c.EventID)
		unique("room", c.Room)
		unique("url", c.URL)
		if c.URL != "" && (!isWebURL(c.URL) || strings.HasSuffix(c.URL, "/") || strings.ContainsAny(c.URL, "%?# ")) {
			l.At(path+".url", field.Quote(c.URL)+" is not an http or https URL", "like https://wait.example.com/aws/sample, without a slash at the end")
		}
		for j, u := range c.RedirectURIs {
			if !isWebURL(u) || strings.Contains(u, "#") {
				l.At(fmt.Sprintf("%s.redirect_uris[%d]", path, j), field.Quote(u)+" is not an http or https URL", "like https://shop.example.com/callback")
			}
		}
		if c.ClientSecretFile == "" {
			if len(c.RedirectURIs) > 0 {
				l.At(path+".client_secret_file", "is missing", "a file with the secret of the relying party")
			}
		} else if text, ok := l.readSecret(path+".client_secret_file", c.ClientSecretFile, 1<<12); ok && len(strings.TrimSpace(string(text))) < 16 {
			l.At(path+".client_secret_file", "holds fewer than 16 characters", "make one with: openssl rand -hex 32")
		} else if len(c.RedirectURIs) == 0 {
			l.At(path+".redirect_uris", "is missing", "the URLs to which the adapter may send visitors back")
		}
	}
}

// isConnected reports whether a room is for connectors, which stand before its hosts instead of Anteroom.
func (l *loader) isConnected(r *anteroom.Room) bool {
	return slices.ContainsFunc(l.doc.QueueIt, func(q QueueIt) bool { return q.Room == r.Name || q.Room == r.Zone+"/"+r.Name })
}

// reservedEvents are what connectors ask the queue's host for.
var reservedEvents = []string{"error", "cancel", "status"}

func (l *loader) checkQueueIt(c *Config) {
	events, rooms := map[string]string{}, map[string]string{}
	for i, b := range c.AWS {
		rooms[b.Room] = fmt.Sprintf("aws[%d]", i)
	}
	for i, q := range c.QueueIt {
		path := fmt.Sprintf("queue_it[%d]", i)
		u, err := url.Parse(q.URL)
		if q.URL != "" && (err != nil || !isWebURL(q.URL) || u.Path != "" || strings.ContainsAny(q.URL, "?#")) {
			l.At(path+".url", field.Quote(q.URL)+" is not an http or https URL of a host", "like https://wait.example.com, without a slash at the end")
			continue
		}
		if id := q.EventID; strings.ToLower(id) != id || strings.Contains(id, "_") || slices.Contains(reservedEvents, id) {
			l.At(path+".event_id", field.Quote(id)+" cannot stand in an address or a token", "use lower-case letters, digits and -, and none of "+strings.Join(reservedEvents, ", "))
		}
		if other, taken := events[u.Hostname()+"/"+q.EventID]; taken && q.EventID != "" {
			l.At(path+".event_id", field.Quote(q.EventID)+" is also that of "+other, "each event of a host has its own")
		}
		events[u.Hostname()+"/"+q.EventID] = path
		if other, taken := rooms[q.Room]; taken && q.Room != "" {
			l.At(path+".room", field.Quote(q.Room)+" is also that of "+other, "each bridge has its own")
		}
		rooms[q.Room] = path
		if q.SecretFile == "" {
			continue
		}
		if text, ok := l.readSecret(path+".secret_file", q.SecretFile, 1<<12); ok && len(strings.TrimSpace(string(text))) < 16 {
			l.At(path+".secret_file", "holds fewer than 16 characters", "use the secret key of your connectors, or make one with: openssl rand -hex 36")
		}
	}
}

// checkFastly checks the rooms that take over from Fastly, and that those of the other bridges have a queue.
func (l *loader) checkFastly(c *Config) {
	rooms := map[string]string{}
	byLottery := func(path, name string) {
		if slices.ContainsFunc(l.doc.Rooms, func(r room) bool { return r.LotteryPercent > 0 && (name == r.Name || name == r.Zone+"/"+r.Name) }) {
			l.At(path+".room", field.Quote(name)+" has lottery_percent, and holds no seat for what a bridge gives out", "name a room with a queue")
		}
	}
	for i, b := range c.AWS {
		byLottery(fmt.Sprintf("aws[%d]", i), b.Room)
	}
	for i, q := range c.QueueIt {
		byLottery(fmt.Sprintf("queue_it[%d]", i), q.Room)
	}
	for i, f := range c.Fastly {
		path := fmt.Sprintf("fastly[%d]", i)
		if other, taken := rooms[f.Room]; taken && f.Room != "" {
			l.At(path+".room", field.Quote(f.Room)+" is also that of "+other, "a room takes over from one starter")
		}
		rooms[f.Room] = path
		if _, err := time.Parse(time.RFC3339, f.Since); err != nil && f.Since != "" {
			l.At(path+".since", field.Quote(f.Since)+" is not a time", "write it like 2026-11-27T10:00:00Z")
		}
		if f.SecretFile != "" {
			l.readSecret(path+".secret_file", f.SecretFile, 1<<16)
		}
	}
}

// isWebURL reports whether s is an absolute http or https URL without user information.
func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

func (l *loader) checkChallenge(c *Challenge) {
	web := func(key, value, fix string) {
		if !isWebURL(value) {
			l.At("challenge."+key, field.Quote(value)+" is not an http or https URL", fix)
		}
	}
	switch c.Provider {
	default:
		return
	case ChallengeExt:
		web("verify_url", c.VerifyURL, "the URL of your hook")
		web("script_url", c.ScriptURL, "the URL of your script, which the waiting page loads")
	case ChallengeTurnstile:
		if c.SiteKey == "" {
			l.At("challenge.site_key", "is missing", "the site key of the Turnstile widget")
		}
		if c.SecretFile == "" {
			l.At("challenge.secret_file", "is missing", "a file with the secret key of the Turnstile widget")
		}
		if c.VerifyURL != "" {
			web("verify_url", c.VerifyURL, "leave it out for Cloudflare's")
		}
	}
	if c.SecretFile == "" {
		return
	}
	if text, ok := l.readSecret("challenge.secret_file", c.SecretFile, 1<<12); ok && strings.TrimSpace(string(text)) == "" {
		l.At("challenge.secret_file", "is empty", "put the secret into it")
	}
}

func (l *loader) checkAddress(path, address string) {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		l.At(path, field.Quote(address)+" is not an address to listen on", "host:port, like :8080, 127.0.0.1:8081 or [::1]:8081")
	}
}

// isLoopback reports whether only this machine can connect to an address to listen on, or the
// address is none, which [loader.checkAddress] has said.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func (l *loader) checkTLS(t TLS) {
	for i, c := range t.Certificates {
		if c.Cert == "" || c.Key == "" {
			continue // said already: required
		}
		l.checkPair(fmt.Sprintf("tls.certificates[%d]", i), c.Cert, c.Key)
	}
	for i, h := range t.ACME.Hosts {
		path := fmt.Sprintf("tls.acme.hosts[%d]", i)
		if h == "*" {
			l.At(path, "\"*\" is not a name that a certificate can be for", "list the names")
			continue
		}
		l.checkHost(path, h)
	}
	if u, err := url.Parse(t.ACME.CA); err != nil || u.Scheme != "https" || u.Host == "" {
		l.At("tls.acme.ca", field.Quote(t.ACME.CA)+" is not an https URL", "the authority's directory URL")
	}
	if t.ACME.Email != "" && !strings.Contains(t.ACME.Email, "@") {
		l.At("tls.acme.email", field.Quote(t.ACME.Email)+" is not an address", "like ops@example.com")
	}
	if t.RedirectHTTP != "" {
		l.checkAddress("tls.redirect_http", t.RedirectHTTP)
		if !t.On() {
			l.At("tls.redirect_http", "redirects to HTTPS, but there is no certificate", "set tls.certificates or tls.acme.hosts, or remove it")
		}
		if slices.Contains(l.doc.Listen, t.RedirectHTTP) {
			l.At("tls.redirect_http", field.Quote(t.RedirectHTTP)+" is also in listen", "then listen is for HTTPS, like :443")
		}
	}
}

// checkPair reads a certificate and its key.
func (l *loader) checkPair(path, certFile, keyFile string) {
	cert, okCert := l.Read(path+".cert", certFile, 1<<20)
	key, okKey := l.readSecret(path+".key", keyFile, 1<<20)
	if !okCert || !okKey {
		return
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		l.At(path, "is not a certificate with its key: "+strings.TrimPrefix(err.Error(), "tls: "), "PEM: the certificate first, then its chain; the key unencrypted")
	}
}

// checkHost takes the rule for hosts from the room's routes, where it is written down.
func (l *loader) checkHost(path, host string) {
	probe := anteroom.Room{Name: "probe", Routes: []anteroom.Route{{Host: host}}}
	for _, f := range probe.Check() {
		l.At(path, f.Problem, f.Fix)
	}
}

func (l *loader) checkSites(sites []Site) {
	if len(sites) == 0 && !l.doc.Cluster.On() && len(l.doc.QueueIt) == 0 { // a queue's host needs no origin
		l.At("sites", "no origin configured", "use --origin http://127.0.0.1:3000, or sites in the file")
	}
	owner := make(map[string]string)
	for i, s := range sites {
		path := fmt.Sprintf("sites[%d]", i)
		if _, given := l.Where[path+".hosts"]; given && len(s.Hosts) == 0 {
			l.At(path+".hosts", "is empty", "list host names, or \"*\" for every host")
		}
		for j, h := range s.Hosts {
			at := fmt.Sprintf("%s.hosts[%d]", path, j)
			l.checkHost(at, h)
			if other, taken := owner[strings.ToLower(h)]; taken {
				l.At(at, fmt.Sprintf("%s is also %s", field.Quote(h), other), "a host belongs to one proxied site")
				continue
			}
			owner[strings.ToLower(h)] = at
		}
		if _, given := l.Where[path+".origins"]; given && len(s.Origins) == 0 {
			l.At(path+".origins", "is empty", "list URLs like http://127.0.0.1:3000")
		}
		for j, o := range s.Origins {
			l.checkOrigin(fmt.Sprintf("%s.origins[%d]", path, j), o)
		}
		if p := s.Health.Path; p != "" && (p[0] != '/' || strings.ContainsAny(p, " #\r\n")) {
			l.At(path+".health.path", field.Quote(p)+" is not a path", "like /healthz")
		}
	}
}

// checkOrigin does not repeat the text when it could hold a password.
func (l *loader) checkOrigin(path, origin string) {
	const fix = "scheme, host and port only: http://127.0.0.1:3000"
	u, err := url.Parse(origin)
	switch {
	case strings.Contains(origin, "@"):
		l.At(path, "has user information", fix+"; visitors' credentials pass through as they are")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		l.At(path, field.Quote(origin)+" is not an http or https URL", fix)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		l.At(path, field.Quote(origin)+" has more than an address", fix+"; the visitor's path is passed on unchanged")
	case u.Port() != "":
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
			l.At(path, field.Quote(origin)+" has no valid port", fix)
		}
	}
}

// rooms converts and checks the rooms, and returns them with their defaults.
func (l *loader) rooms() []anteroom.Room {
	if len(l.doc.Rooms) > anteroom.MaxRooms {
		l.At("rooms", fmt.Sprintf("has %d rooms", len(l.doc.Rooms)), fmt.Sprintf("at most %d", anteroom.MaxRooms))
		return nil
	}
	sites := make(map[string]bool)
	for _, s := range l.doc.Sites {
		for _, h := range s.Hosts {
			sites[strings.ToLower(h)] = true
		}
	}
	owner := make(map[anteroom.RoomID]int)
	rooms := make([]anteroom.Room, len(l.doc.Rooms))
	for i := range l.doc.Rooms {
		path := fmt.Sprintf("rooms[%d]", i)
		one := l.room(path, &l.doc.Rooms[i])
		for _, f := range one.Check() {
			l.At(l.translate(path+"."+f.Path), f.Problem, f.Fix)
		}
		for _, f := range one.CheckLimits() {
			l.Warn(path+"."+f.Path, f.Problem, f.Fix)
		}
		rooms[i] = one.WithDefaults()
		if other, taken := owner[rooms[i].ID]; taken && one.Name != "" {
			l.At(path+".name", fmt.Sprintf("%s is also the name of rooms[%d] in zone %s", field.Quote(one.Name), other, field.Quote(rooms[i].Zone)), "names are unique in a zone")
		} else {
			owner[rooms[i].ID] = i
		}
		for j, rt := range one.Routes {
			if rt.Host == "*" && l.isConnected(&rooms[i]) {
				l.At(l.translate(fmt.Sprintf("%s.routes[%d].host", path, j)), "is every host, and visitors could not go back to one", "name the host that the connectors protect")
			}
			if rt.Host != "*" && len(sites) > 0 && !l.isConnected(&rooms[i]) && !sites["*"] && !sites[strings.ToLower(rt.Host)] {
				l.At(l.translate(fmt.Sprintf("%s.routes[%d].host", path, j)), field.Quote(rt.Host)+" belongs to no proxied site", "add it to the hosts of a proxied site")
			}
		}
	}
	l.warnOfHosts(rooms)
	if l.o.Check != nil {
		for _, f := range l.o.Check(l.doc.CookieName, rooms) {
			l.At(l.translate(f.Path), f.Problem, f.Fix)
		}
	}
	return rooms
}

// warnOfHosts says what "*" of a site means as soon as rooms name hosts.
func (l *loader) warnOfHosts(rooms []anteroom.Room) {
	named := slices.ContainsFunc(rooms, func(r anteroom.Room) bool {
		return slices.ContainsFunc(r.Routes, func(rt anteroom.Route) bool { return rt.Host != "*" })
	})
	for i, s := range l.doc.Sites {
		switch path := fmt.Sprintf("sites[%d]", i); {
		case s.OpenHosts && !slices.Contains(s.Hosts, "*"):
			l.At(path+".open_hosts", "has no effect without \"*\" in hosts", "remove it")
		case !named || !slices.Contains(s.Hosts, "*"):
		case s.OpenHosts:
			l.Warn(path+".open_hosts", "serves hosts that no room names, so visitors can bypass rooms by another host name", "list the hosts unless the origin tells its hosts apart")
		default:
			l.Warn(path+".hosts", "\"*\" serves no other hosts than those of rooms and sites: the others get 421", "list the hosts, or set open_hosts: true to serve every host")
		}
	}
}

// room converts one room, with only what the file says about routes.
func (l *loader) room(path string, r *room) anteroom.Room {
	out := r.Room
	routes := r.Routes
	if r.Routes == nil {
		if r.Host == "" {
			l.At(path+".host", "is missing", "a host name, \"*\" for every host, or a list of routes")
		}
		routes = r.AsRoutes()
	} else {
		for _, key := range []string{"host", "path", "additional_routes"} {
			if _, given := l.Where[path+"."+key]; given {
				l.At(path+"."+key, "is set together with routes", "write it as one of the routes")
			}
		}
	}
	out.Routes = routes
	for _, one := range r.Rules {
		one.Disabled = !one.Enabled
		out.Rules = append(out.Rules, one.Rule)
	}
	if r.CustomPageFile != "" {
		at := path + ".custom_page_file"
		if r.CustomPageHTML != "" {
			l.At(at, "is set together with custom_page_html", "remove one")
		} else if data, ok := l.Read(at, r.CustomPageFile, anteroom.MaxTemplateBytes); ok {
			out.CustomPageHTML = string(data)
		}
	}
	return out
}

// translate turns a path of a room as the code has it into the path that the file has.
func (l *loader) translate(path string) string {
	var i, j int
	if n, _ := fmt.Sscanf(path, "rooms[%d]", &i); n != 1 || i < 0 || i >= len(l.doc.Rooms) || l.doc.Rooms[i].Routes != nil {
		return path
	}
	room := fmt.Sprintf("rooms[%d]", i)
	rest := strings.TrimPrefix(path, room+".routes")
	if rest == path {
		return path
	}
	if n, _ := fmt.Sscanf(rest, "[%d]", &j); n != 1 {
		return room + ".host"
	}
	rest = strings.TrimPrefix(rest, fmt.Sprintf("[%d]", j))
	if j > 0 {
		return fmt.Sprintf("%s.additional_routes[%d]%s", room, j-1, rest)
	}
	rest = cmp.Or(rest, ".host")
	return room + rest
}

// isWord reports whether s can be a name: letters, digits, _ and -.
func isWord(s string) bool {
	return s != "" && strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}
