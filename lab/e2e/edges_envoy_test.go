package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	routes "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3" // the types of the recipe's filters
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// Envoy does not run in these tests. Its own types read the recipe: every field exists and has a value of its kind. Bounds are
// checked but for those inside filters.
func TestEnvoyReadsItsRecipe(t *testing.T) {
	t.Parallel()
	for _, recipe := range []string{"envoy", "envoy-grpc", "envoy-pass"} {
		if _, err := readByEnvoy(edited(t, "../../examples/edges/"+recipe+"/envoy.yaml")); err != nil {
			t.Errorf("%s: %v", recipe, err)
		}
	}
	for name, bad := range map[string]string{
		"a field that is none":     edited(t, "../../examples/edges/envoy/envoy.yaml", "failure_mode_allow: false", "failure_mode_allowed: false"),
		"a timeout that is none":   edited(t, "../../examples/edges/envoy/envoy.yaml", "timeout: 5s}", "timeout: soon}"),
		"a filter that is unknown": edited(t, "../../examples/edges/envoy/envoy.yaml", "ext_authz.v3.ExtAuthz\n", "ext_authz.v3.ExtAuth\n"),
		"no service of gRPC":       edited(t, "../../examples/edges/envoy-grpc/envoy.yaml", "cluster_name: verdicts}, timeout", "cluster: verdicts}, timeout"),
		"no key of the claims":     edited(t, "../../examples/edges/envoy-pass/envoy.yaml", "payload_in_metadata: pass", "payload_in_meta: pass"),
		"a port out of bounds":     edited(t, "../../examples/edges/envoy/envoy.yaml", "port_value: 80}", "port_value: 80000}"),
	} {
		if _, err := readByEnvoy(bad); err == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
}

// readByEnvoy reads a bootstrap configuration by Envoy's types.
func readByEnvoy(text string) (*bootstrap.Bootstrap, error) {
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return nil, err
	}
	asJSON, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	b := &bootstrap.Bootstrap{}
	if err := protojson.Unmarshal(asJSON, b); err != nil {
		return nil, err
	}
	return b, b.ValidateAll()
}

// startEnvoyPass starts a double of Envoy with the filter jwt_authn: it follows the rules that Envoy documents for the filter and for
// routes by its metadata, with the configuration that "edge init" wrote. Keys are fetched once, for the cache lasts longer than a test.
func startEnvoyPass(t *testing.T, dir string, at addresses, now int64, _, _ string) {
	b, err := readByEnvoy(edited(t, filepath.Join(dir, "envoy.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	var http1 manager.HttpConnectionManager
	var authn jwt.JwtAuthentication
	if err := b.StaticResources.Listeners[0].FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(&http1); err != nil {
		t.Fatal(err)
	}
	if err := http1.HttpFilters[0].GetTypedConfig().UnmarshalTo(&authn); err != nil {
		t.Fatal(err)
	}
	from := authn.Providers["anteroom"]
	clusters := map[string]string{"anteroom": at.anteroom, "application": at.application}
	keys := map[string]*ecdsa.PublicKey{}
	eventually(t, 15*time.Second, func() string {
		uri, err := url.Parse(from.GetRemoteJwks().HttpUri.Uri)
		if err != nil {
			t.Fatal(err)
		}
		host := uri.Host
		uri.Host = clusters[from.GetRemoteJwks().HttpUri.GetCluster()]
		res, body, err := asks(&http.Request{Method: http.MethodGet, URL: uri, Host: host, Header: http.Header{}})
		if err != nil {
			return err.Error()
		}
		var set struct {
			Keys []struct{ Kty, Crv, Kid, Alg, X, Y string }
		}
		if err := json.Unmarshal(body, &set); err != nil {
			return res.Status + " " + err.Error()
		}
		for _, k := range set.Keys {
			if k.Kty == "EC" && k.Crv == "P-256" {
				if keys[k.Kid], err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, decoded(k.X), decoded(k.Y))); err != nil {
					t.Fatal(err)
				}
			}
		}
		return ""
	})
	serveEdge(t, at.listen, func(w http.ResponseWriter, r *http.Request) {
		clock := now
		if clock == 0 {
			clock = time.Now().Unix()
		}
		var claims map[string]any
		for _, name := range from.FromCookies {
			if c, err := r.Cookie(name); err == nil { // the first one of a name
				claims = verifiedByEnvoy(from, keys, c.Value, clock)
			}
		}
		for name := range r.Header {
			if strings.Contains(name, "_") { // headers_with_underscores_action
				delete(r.Header, name)
			}
		}
		delete(r.Header, "X-Forwarded-For") // use_remote_address
		host := http1.GetRouteConfig().VirtualHosts[0]
		for _, route := range host.Routes {
			if !matchedByEnvoy(route.Match, r, from.PayloadInMetadata, claims) {
				continue
			}
			for _, name := range route.RequestHeadersToRemove {
				r.Header.Del(name)
			}
			through(clusters[route.GetRoute().GetCluster()], func(res *http.Response) error {
				for _, name := range host.ResponseHeadersToRemove {
					res.Header.Del(name)
				}
				return nil
			}).ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	})
}

func decoded(text string) []byte {
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	return raw
}

// verifiedByEnvoy returns the claims of a token that is good, or nil.
func verifiedByEnvoy(by *jwt.JwtProvider, keys map[string]*ecdsa.PublicKey, token string, now int64) map[string]any {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	var head struct{ Alg, Kid string }
	var claims map[string]any
	signature, sum := decoded(parts[2]), sha256.Sum256([]byte(parts[0]+"."+parts[1]))
	if json.Unmarshal(decoded(parts[0]), &head) != nil || json.Unmarshal(decoded(parts[1]), &claims) != nil || head.Alg != "ES256" || keys[head.Kid] == nil || len(signature) != 64 ||
		!ecdsa.Verify(keys[head.Kid], sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		return nil
	}
	skew := float64(by.ClockSkewSeconds)
	expires, _ := claims["exp"].(float64)
	begins, _ := claims["nbf"].(float64)
	audience, _ := claims["aud"].(string)
	if claims["iss"] != by.Issuer || !slices.Contains(by.Audiences, audience) || float64(now) >= expires+skew || float64(now)+skew < begins {
		return nil
	}
	return claims
}

// matchedByEnvoy reports whether a route is for a request with these claims, by the matchers that the recipe uses.
func matchedByEnvoy(m *routes.RouteMatch, r *http.Request, payload string, claims map[string]any) bool {
	switch path := m.PathSpecifier.(type) {
	case *routes.RouteMatch_Prefix:
		if !strings.HasPrefix(r.RequestURI, path.Prefix) {
			return false
		}
	case *routes.RouteMatch_PathSeparatedPrefix:
		if at, _, _ := strings.Cut(r.RequestURI, "?"); at != path.PathSeparatedPrefix && !strings.HasPrefix(at, path.PathSeparatedPrefix+"/") {
			return false
		}
	}
	for _, q := range m.QueryParameters {
		if r.URL.Query().Has(q.Name) != q.GetPresentMatch() {
			return false
		}
	}
	for _, h := range m.Headers {
		value := strings.Join(r.Header.Values(h.Name), ",")
		is := value != "" && h.GetPresentMatch()
		if pattern := h.GetStringMatch().GetSafeRegex(); pattern != nil {
			is = regexp.MustCompile("^(?:" + pattern.Regex + ")$").MatchString(value)
		}
		if is == h.InvertMatch {
			return false
		}
	}
	for _, d := range m.DynamicMetadata {
		if d.Filter != "envoy.filters.http.jwt_authn" || len(d.Path) != 2 || d.Path[0].GetKey() != payload || claims == nil || claims[d.Path[1].GetKey()] != d.Value.GetStringMatch().GetExact() {
			return false
		}
	}
	return true
}
