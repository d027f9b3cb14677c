// Package edges holds the recipes of docs/edges.md for proxies and CDNs that keep the traffic. The files are complete, for one
// made-up installation, and tests run them; [Recipe.Files] returns them for another.
package edges

import (
	_ "embed"
	"fmt"
	"maps"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/internal/packed"
)

// recipes.gz holds the files of all recipes. go test ./examples/edges -update packs them.
//
//go:embed recipes.gz
var member []byte

var files = sync.OnceValue(func() map[string]string { return packed.UnpackFiles(member) })

// Recipe is a way to put Anteroom beside an edge.
type Recipe struct {
	Name string
	// Passes reports whether the edge verifies passes; otherwise it asks Anteroom about each request.
	Passes bool
	// Keys reports whether the public keys have to be in the folder, as pass.pem.
	Keys bool
	// Secret reports whether the edge verifies passes with the secret of the room's pass_edge, which is in its files.
	Secret bool
	// Folder is where the files are in the example, without a slash at the end; empty if they do not name it.
	Folder string
	// Check is what an operator has to do and to look at, one sentence each.
	Check []string

	files []string
}

const (
	checkVerdicts = `The configuration of Anteroom needs forward_auth, with this edge in its peers and in trusted_proxies.`
	checkPasses   = `The edge belongs in trusted_proxies of Anteroom, and needs the right time (NTP).`
	checkEnds     = `Replace /checkout/done by the paths at which your application ends sessions, or remove it.`
	checkOrigin   = `Your application must accept requests from the edge and from Anteroom only.`
	checkOutside  = `From outside, run: anteroom doctor --url https://YOUR-HOST`
)

// Recipes are all there are, by name.
var Recipes = []Recipe{
	{Name: "caddy", files: []string{"caddy/Caddyfile"}, Check: []string{`Run: caddy validate --config Caddyfile`, checkVerdicts, checkOrigin, checkOutside}},
	{Name: "caddy-pass", Passes: true, files: []string{"caddy-pass/Caddyfile"}, Check: []string{
		`Build Caddy with Anteroom's module, xcaddy build --with github.com/anteroom/anteroom/caddy, and run: caddy validate --config Caddyfile`, checkPasses, checkEnds, checkOrigin, checkOutside}},
	{Name: "cloudfront", Passes: true, Secret: true, files: []string{"cloudfront/function.js"}, Check: []string{
		`The behavior has the application as its origin, caches nothing (CachingDisabled), and passes on everything of the visitor (AllViewer).`,
		`A response headers policy removes Cf-Waiting-Room-Command.`, `The DNS record that function.js names leads to Anteroom.`,
		`function.js holds secrets: nobody else may read it. After each anteroom key rotate, write and publish it again; until then Anteroom gets all requests.`,
		`The addresses of CloudFront belong in trusted_proxies of Anteroom.`, checkEnds, checkOrigin, checkOutside}},
	{Name: "envoy", files: []string{"envoy/envoy.yaml"}, Check: []string{`Run: envoy --mode validate -c envoy.yaml`, checkVerdicts, `The timeout of the question is 5s: Envoy's default of 200ms is too short.`, checkOrigin, checkOutside}},
	{Name: "envoy-grpc", files: []string{"envoy-grpc/envoy.yaml"}, Check: []string{`Run: envoy --mode validate -c envoy.yaml`, checkVerdicts, `The timeout of the question is 5s: Envoy's default of 200ms is too short.`, checkOrigin, checkOutside}},
	{Name: "envoy-pass", Passes: true, files: []string{"envoy-pass/envoy.yaml"}, Check: []string{`Run: envoy --mode validate -c envoy.yaml`, checkPasses, checkEnds,
		`Your application sees passes and tickets in Cookie, and must not log them.`, checkOrigin, checkOutside}},
	{Name: "haproxy", Folder: "/etc/haproxy", files: []string{"haproxy/haproxy.cfg", "haproxy/anteroom.lua"}, Check: []string{`Run: haproxy -c -f haproxy.cfg`, checkVerdicts, checkOrigin, checkOutside}},
	{Name: "haproxy-pass", Folder: "/etc/haproxy", Passes: true, Keys: true, files: []string{"haproxy-pass/haproxy.cfg"}, Check: []string{`Run: haproxy -c -f haproxy.cfg`, checkPasses, checkEnds,
		`After each anteroom key rotate, write the files again and reload HAProxy; until then Anteroom gets all requests.`, checkOrigin, checkOutside}},
	{Name: "nginx", files: []string{"nginx/anteroom.conf"}, Check: []string{`Include the file in the http block, and run: nginx -t`, checkVerdicts, checkOrigin, checkOutside}},
	{Name: "nginx-pass", Folder: "/etc/nginx", Passes: true, Secret: true, files: []string{"nginx-pass/anteroom.conf", "nginx-pass/pass.js"}, Check: []string{
		`Load njs (load_module modules/ngx_http_js_module.so), include anteroom.conf in the http block, and run: nginx -t`, `pass.js holds secrets: only nginx may read it.`, checkPasses, checkEnds,
		`After each anteroom key rotate, write the files again and reload nginx; until then Anteroom gets all requests.`, checkOrigin, checkOutside}},
	{Name: "nginx-pass-es256", Folder: "/etc/nginx", Passes: true, Keys: true, files: []string{"nginx-pass-es256/anteroom.conf", "nginx-pass-es256/pass.js"}, Check: []string{
		`Load njs (load_module modules/ngx_http_js_module.so), include anteroom.conf in the http block, and run: nginx -t`, checkPasses, checkEnds,
		`Write pass.pem again after each anteroom key rotate: it has the key that comes next, so nothing changes until the rotation after that.`, checkOrigin, checkOutside}},
	{Name: "traefik", files: []string{"traefik/dynamic.yaml"}, Check: []string{`Put the middleware before any that changes the path, like stripPrefix.`, checkVerdicts,
		`List the cookie of each room with a cookie_suffix in addAuthCookiesToResponse.`, checkOrigin, checkOutside}},
	{Name: "traefik-pass", Folder: "/etc/traefik", Passes: true, files: []string{"traefik-pass/traefik.yaml", "traefik-pass/dynamic.yaml", "traefik-pass/anteroompass/anteroompass.go", "traefik-pass/anteroompass/.traefik.yml"}, Check: []string{
		`anteroompass.go and .traefik.yml belong in plugins-local/src/anteroompass below Traefik's working directory.`, `Name the entry point and the file provider as in your static configuration.`, checkPasses, checkEnds, checkOrigin, checkOutside}},
	{Name: "worker", Passes: true, files: []string{"javascript/worker.js", "javascript/pass.js"}, Check: []string{
		`The DNS record that worker.js names as resolveOverride leads to Anteroom, in the same zone of the CDN.`, `The addresses of the CDN belong in trusted_proxies of Anteroom.`, checkEnds, checkOrigin, checkOutside}},
}

// Named returns the recipe with a name.
func Named(name string) (Recipe, bool) {
	i := slices.IndexFunc(Recipes, func(r Recipe) bool { return r.Name == name })
	if i < 0 {
		return Recipe{}, false
	}
	return Recipes[i], true
}

// Installation is what recipes name.
type Installation struct {
	Host        string // that visitors ask for
	Anteroom    string // host:port where the edge reaches Anteroom
	Verdicts    string // host:port of forward_auth
	Application string // host:port of the application
	Folder      string // where the files are, without a slash at the end

	// Of the room: its zone, ID and cookie suffix, and how long a pass is valid, at least two seconds.
	Zone, Room, Suffix string
	Pass               time.Duration
	// The issuer of passes, and the name of the key that signs them.
	Issuer, Kid string
	// The secrets of the room's pass_edge, by their kid.
	Secrets map[string]string
}

// Example is the installation for which the files of this folder are written.
var Example = Installation{
	Host: "shop.example.com", Anteroom: "127.0.0.1:8080", Verdicts: "127.0.0.1:8082", Application: "127.0.0.1:3000",
	Zone: "shop.example.com", Room: "0123456789abcdef0123456789abcdef", Pass: 30 * time.Second, Issuer: "anteroom", Kid: "pass-1a2b3c4d",
	Secrets: map[string]string{"nginx-1a2b3c4d": "the-secret-of-43-characters"},
}

// plain is a value that means itself in every one of the files.
var plain = regexp.MustCompile(`^[A-Za-z0-9._:/@+\[\]-]{1,300}$`)

// words are the places of the files that tell one installation from another, the longest first where two begin alike.
func (i Installation) words() ([]string, error) {
	suffix := ""
	if i.Suffix != "" {
		suffix = "_" + i.Suffix
	}
	out := []string{
		"$.aud') -m str " + i.Zone, "$.iss') -m str " + i.Issuer, i.Room, i.Kid, "-m int ge " + strconv.Itoa(int(i.Pass/time.Second)/2) + "\n",
		"zone: '" + i.Zone + "'", "zone = '" + i.Zone + "'", "issuer: '" + i.Issuer + "'", "suffix: '" + i.Suffix + "'", "(__anteroom_pass" + suffix + ")", "[__cfwaitingroom" + suffix + "]",
		"[__anteroom_pass" + suffix + "]", `'.*__anteroom_pass` + suffix + `=(".*|.*__anteroom_pass` + suffix + `=.*)'`, "audiences: ['" + i.Zone + "']",
		"zone `" + i.Zone + "`", "issuer `" + i.Issuer + "`", "suffix `" + i.Suffix + "`",
	}
	for _, address := range []string{i.Anteroom, i.Verdicts, i.Application} {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("%q is not HOST:PORT", address)
		}
		out = append(out, "address: "+host+", port_value: "+port+"}", address)
	}
	values := []string{i.Host, i.Anteroom, i.Verdicts, i.Application, i.Zone, i.Room, "x" + i.Suffix, i.Issuer, i.Kid}
	var secrets []string
	for _, kid := range slices.Sorted(maps.Keys(i.Secrets)) {
		secrets = append(secrets, "'"+kid+"': '"+i.Secrets[kid]+"'")
		values = append(values, kid, i.Secrets[kid])
	}
	out = append(out, "{"+strings.Join(secrets, ", ")+"}", i.Host)
	for _, value := range values {
		if !plain.MatchString(value) {
			return nil, fmt.Errorf("%q cannot stand in the configuration of a proxy: use letters, digits and . _ : / @ + -", value)
		}
	}
	return out, nil
}

// Files returns the texts of a recipe's files by their base names. The error names a value that cannot stand in them.
func (r Recipe) Files(i Installation) (map[string]string, error) {
	from, err := Example.words()
	if err != nil {
		return nil, err
	}
	to, err := i.words()
	if err != nil {
		return nil, err
	}
	var pairs []string
	for n := range from {
		pairs = append(pairs, from[n], to[n])
	}
	if r.Folder != "" {
		if !plain.MatchString(i.Folder) {
			return nil, fmt.Errorf("%q cannot stand in the configuration of a proxy: use another folder", i.Folder)
		}
		pairs = append(pairs, r.Folder+"/", i.Folder+"/")
	}
	swap := strings.NewReplacer(pairs...)
	out := map[string]string{}
	for _, name := range r.files {
		out[path.Base(name)] = swap.Replace(files()[name])
	}
	return out, nil
}
