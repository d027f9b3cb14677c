package e2e

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Traefik and Envoy cannot run in these tests: no package of the system and no module has them. Doubles follow the rules that
// their documents and sources state, with the configurations of examples/edges: what they ask, what of the answer they pass
// on, and to whom. They show that Anteroom and the configurations fit these rules, and nothing about the programs.

// serveEdge serves visitors of a double.
func serveEdge(t *testing.T, listen string, h http.HandlerFunc) {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
}

// through sends a request on as it came, like any proxy.
func through(to string, modify func(*http.Response) error) http.Handler {
	return &httputil.ReverseProxy{FlushInterval: -1, ModifyResponse: modify, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", to
		r.Out.URL.Opaque, r.Out.URL.RawQuery = r.In.URL.EscapedPath(), r.In.URL.RawQuery
		if strings.HasPrefix(r.Out.URL.Opaque, "//") {
			r.Out.URL.Opaque = ""
		}
		r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		r.SetXForwarded()
	}}
}

// asks sends an edge's question, following no redirect. The body is read whole.
func asks(q *http.Request) (*http.Response, []byte, error) {
	res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(q)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

// answers gives an answer to the visitor.
func answers(w http.ResponseWriter, res *http.Response, body []byte) {
	for name, values := range res.Header {
		if !slices.Contains([]string{"Connection", "Keep-Alive", "Te", "Trailers", "Transfer-Encoding", "Upgrade"}, name) {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(res.StatusCode)
	w.Write(body)
}

var matcher = regexp.MustCompile("(Host|Query|PathPrefix)\\(`([^`]*)`\\)")

// startTraefik starts a double of Traefik 3: routers by priority, and the middleware forwardAuth
// (pkg/middlewares/auth/forward.go of v3.7.13).
func startTraefik(t *testing.T, dir string, at addresses) {
	var file struct {
		HTTP struct {
			Routers map[string]struct {
				Rule, Service string
				Middlewares   []string
				Priority      int
			}
			Middlewares map[string]struct {
				ForwardAuth struct {
					Address                  string
					TrustForwardHeader       *bool    `yaml:"trustForwardHeader"`
					AuthResponseHeaders      []string `yaml:"authResponseHeaders"`
					AddAuthCookiesToResponse []string `yaml:"addAuthCookiesToResponse"`
					MaxResponseBodySize      int      `yaml:"maxResponseBodySize"`
				} `yaml:"forwardAuth"`
			}
			Services map[string]struct {
				LoadBalancer struct{ Servers []struct{ URL string } } `yaml:"loadBalancer"`
			}
		}
	}
	in := yaml.NewDecoder(strings.NewReader(edited(t, filepath.Join(dir, "dynamic.yaml"))))
	in.KnownFields(true)
	if err := in.Decode(&file); err != nil {
		t.Fatal(err)
	}
	matches := func(rule string, r *http.Request) bool {
		truth := matcher.ReplaceAllStringFunc(rule, func(one string) string {
			is, parts := false, matcher.FindStringSubmatch(one)
			switch parts[1] {
			case "Host":
				is = r.Host == parts[2]
			case "Query":
				is = r.URL.Query().Has(parts[2])
			case "PathPrefix":
				is = strings.HasPrefix(r.URL.Path, parts[2])
			}
			return map[bool]string{true: "true", false: "false"}[is]
		})
		v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, truth)
		return err == nil && v.Value != nil && constant.BoolVal(v.Value)
	}
	serveEdge(t, at.listen, func(w http.ResponseWriter, r *http.Request) {
		service, middlewares, best := "", []string(nil), -1
		for _, one := range file.HTTP.Routers {
			if p := max(one.Priority, len(one.Rule)); matches(one.Rule, r) && p > best {
				service, middlewares, best = one.Service, one.Middlewares, p
			}
		}
		if service == "" {
			http.NotFound(w, r)
			return
		}
		next := through(strings.TrimPrefix(file.HTTP.Services[service].LoadBalancer.Servers[0].URL, "http://"), nil)
		if len(middlewares) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		auth := file.HTTP.Middlewares[middlewares[0]].ForwardAuth
		q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, auth.Address, nil)
		if err != nil || auth.TrustForwardHeader == nil || *auth.TrustForwardHeader {
			t.Error(err, auth)
			return
		}
		q.Header = r.Header.Clone()
		for name := range q.Header {
			if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains([]string{"Connection", "Keep-Alive", "Te", "Trailers", "Transfer-Encoding", "Upgrade"}, name) {
				delete(q.Header, name)
			}
		}
		q.Header.Set("X-Forwarded-For", "127.0.0.1")
		q.Header.Set("X-Forwarded-Method", r.Method)
		q.Header.Set("X-Forwarded-Proto", "http")
		q.Header.Set("X-Forwarded-Host", r.Host)
		q.Header.Set("X-Forwarded-Uri", r.URL.RequestURI())
		res, body, err := asks(q)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusInternalServerError)
			return
		case len(body) > auth.MaxResponseBodySize:
			w.WriteHeader(http.StatusUnauthorized)
			return
		case res.StatusCode < 200 || res.StatusCode >= 300:
			answers(w, res, body)
			return
		}
		for _, name := range auth.AuthResponseHeaders {
			r.Header.Del(name)
			if v := res.Header.Values(name); len(v) > 0 {
				r.Header[name] = v
			}
		}
		through(at.application, func(app *http.Response) error {
			if len(res.Cookies()) == 0 {
				return nil
			}
			own := app.Cookies()
			app.Header.Del("Set-Cookie")
			for _, c := range own {
				if !slices.Contains(auth.AddAuthCookiesToResponse, c.Name) {
					app.Header.Add("Set-Cookie", c.String())
				}
			}
			for _, c := range res.Cookies() {
				if slices.Contains(auth.AddAuthCookiesToResponse, c.Name) {
					app.Header.Add("Set-Cookie", c.String())
				}
			}
			return nil
		}).ServeHTTP(w, r)
	})
}

// in returns what stands under the key, wherever in the document that is.
func in(node any, key string) any {
	switch node := node.(type) {
	case map[string]any:
		if v, ok := node[key]; ok {
			return v
		}
		for _, v := range node {
			if found := in(v, key); found != nil {
				return found
			}
		}
	case []any:
		for _, v := range node {
			if found := in(v, key); found != nil {
				return found
			}
		}
	}
	return nil
}

// envoysAnswer is what a double of ext_authz makes of the answer to its question: either it answers the visitor, or the request has been
// changed and goes on, and the origin's answer is changed by modify.
type envoysAnswer func(w http.ResponseWriter, r *http.Request) (modify func(*http.Response) error, through bool)

// startEnvoy starts a double of Envoy: the routes in their order, and the filter ext_authz with an HTTP service
// (extensions/filters/http/ext_authz/v3/ext_authz.proto).
func startEnvoy(t *testing.T, dir string, at addresses) {
	serveEnvoy(t, dir, at, func(file map[string]any, _ map[string]string) envoysAnswer { return asksByHTTP(t, file) })
}

func serveEnvoy(t *testing.T, dir string, at addresses, asking func(file map[string]any, clusters map[string]string) envoysAnswer) {
	var file map[string]any
	if err := yaml.NewDecoder(strings.NewReader(edited(t, filepath.Join(dir, "envoy.yaml")))).Decode(&file); err != nil {
		t.Fatal(err)
	}
	clusters := map[string]string{}
	for _, one := range in(file, "clusters").([]any) {
		address := in(one, "socket_address").(map[string]any)
		clusters[in(one, "name").(string)] = fmt.Sprint(address["address"], ":", address["port_value"])
	}
	if in(file, "failure_mode_allow") != false {
		t.Error("the recipe admits everyone while Anteroom does not answer")
	}
	ask := asking(file, clusters)
	serveEdge(t, at.listen, func(w http.ResponseWriter, r *http.Request) {
		cluster, asked := "", true
		for _, one := range in(file, "routes").([]any) {
			match := one.(map[string]any)["match"].(map[string]any)
			if !strings.HasPrefix(r.URL.Path, match["prefix"].(string)) {
				continue
			}
			if p, ok := match["query_parameters"].([]any); ok && !r.URL.Query().Has(p[0].(map[string]any)["name"].(string)) {
				continue
			}
			cluster, asked = in(one, "cluster").(string), in(one, "disabled") != true
			break
		}
		if !asked {
			through(clusters[cluster], nil).ServeHTTP(w, r)
			return
		}
		// use_remote_address: what visitors claim of the scheme goes, and their address is added.
		r.Header.Set("X-Forwarded-Proto", "http")
		r.Header.Set("X-Forwarded-For", strings.TrimPrefix(r.Header.Get("X-Forwarded-For")+", 127.0.0.1", ", "))
		if modify, ok := ask(w, r); ok {
			through(clusters[cluster], modify).ServeHTTP(w, r)
		}
	})
}

// asksByHTTP is the question to an HTTP service.
func asksByHTTP(t *testing.T, file map[string]any) envoysAnswer {
	service := in(file, "http_service").(map[string]any)
	listed := func(list, name string) bool {
		for _, p := range in(in(service, list), "patterns").([]any) {
			exact, _ := p.(map[string]any)["exact"].(string)
			prefix, _ := p.(map[string]any)["prefix"].(string)
			if strings.EqualFold(exact, name) || prefix != "" && strings.HasPrefix(strings.ToLower(name), prefix) {
				return true
			}
		}
		return false
	}
	return func(w http.ResponseWriter, r *http.Request) (func(*http.Response) error, bool) {
		base, err := url.Parse(service["server_uri"].(map[string]any)["uri"].(string))
		if err != nil {
			t.Error(err)
			return nil, false
		}
		base.Opaque, base.RawQuery = service["path_prefix"].(string)+r.URL.EscapedPath(), r.URL.RawQuery
		q := (&http.Request{Method: r.Method, URL: base, Host: r.Host, Header: http.Header{"Content-Length": {"0"}}}).WithContext(r.Context())
		for name, values := range r.Header {
			if listed("allowed_headers", name) {
				q.Header[name] = values
			}
		}
		res, body, err := asks(q)
		switch {
		case err != nil || res.StatusCode >= 500:
			w.WriteHeader(http.StatusForbidden)
			return nil, false
		case res.StatusCode != http.StatusOK:
			answers(w, res, body)
			return nil, false
		}
		for name := range strings.SplitSeq(res.Header.Get("X-Envoy-Auth-Headers-To-Remove"), ",") {
			r.Header.Del(name)
		}
		for name, values := range res.Header {
			if listed("allowed_upstream_headers", name) {
				r.Header[name] = values
			}
		}
		return func(app *http.Response) error {
			for name, values := range res.Header {
				if listed("allowed_client_headers_on_success", name) {
					app.Header[name] = append(app.Header[name], values...)
				}
			}
			return nil
		}, true
	}
}
