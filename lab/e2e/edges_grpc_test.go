package e2e

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// startEnvoyGRPC starts a double of Envoy whose filter ext_authz asks by gRPC. The client and its types are the published ones, and what
// they say of an answer is checked.
func startEnvoyGRPC(t *testing.T, dir string, at addresses) {
	serveEnvoy(t, dir, at, func(file map[string]any, clusters map[string]string) envoysAnswer {
		service := in(file, "grpc_service").(map[string]any)
		patience, err := time.ParseDuration(service["timeout"].(string))
		if err != nil || in(file, "encode_raw_headers") != true {
			t.Error("the recipe has no timeout, or joins headers: ", err)
		}
		envoy := checker(t, clusters[in(service, "cluster_name").(string)])
		return func(w http.ResponseWriter, r *http.Request) (func(*http.Response) error, bool) {
			ctx, cancel := context.WithTimeout(r.Context(), patience)
			defer cancel()
			res, err := envoy.Check(ctx, checkOf(r))
			if err == nil {
				err = res.ValidateAll()
			}
			if err != nil {
				w.WriteHeader(http.StatusForbidden)
				return nil, false
			}
			if res.GetStatus().GetCode() != int32(codes.OK) {
				denied := res.GetDeniedResponse()
				setByEnvoy(w.Header(), denied.GetHeaders())
				w.WriteHeader(int(denied.GetStatus().GetCode()))
				w.Write([]byte(denied.GetBody()))
				return nil, false
			}
			ok := res.GetOkResponse()
			setByEnvoy(r.Header, ok.GetHeaders())
			for _, name := range ok.GetHeadersToRemove() {
				delete(r.Header, http.CanonicalHeaderKey(name))
			}
			return func(app *http.Response) error {
				setByEnvoy(app.Header, ok.GetResponseHeadersToAdd())
				return nil
			}, true
		}
	})
}

// checker is a client of the service at an address.
func checker(t *testing.T, address string) auth.AuthorizationClient {
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return auth.NewAuthorizationClient(c)
}

// checkOf is Envoy's question about a request, with raw headers.
func checkOf(r *http.Request) *auth.CheckRequest {
	headers := &core.HeaderMap{}
	add := func(name, value string) {
		headers.Headers = append(headers.Headers, &core.HeaderValue{Key: strings.ToLower(name), RawValue: []byte(value)})
	}
	add(":authority", r.Host)
	add(":path", r.RequestURI)
	add(":method", r.Method)
	add(":scheme", "http")
	for name, values := range r.Header {
		if name == "Connection" || name == "Upgrade" {
			continue
		}
		for _, value := range values {
			add(name, value)
		}
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return &auth.CheckRequest{Attributes: &auth.AttributeContext{
		Source: &auth.AttributeContext_Peer{Address: &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: 5000}}}}},
		Request: &auth.AttributeContext_Request{Http: &auth.AttributeContext_HttpRequest{
			Id: "1", Method: r.Method, Host: r.Host, Path: r.RequestURI, Scheme: "http", Protocol: r.Proto, Size: -1, HeaderMap: headers,
		}},
	}}
}

// setByEnvoy changes headers as an answer says.
func setByEnvoy(h http.Header, options []*core.HeaderValueOption) {
	for _, o := range options {
		//lint:ignore SA1019 older releases of Envoy read this field
		if !o.GetAppend().GetValue() {
			h.Del(o.GetHeader().GetKey())
		}
		h.Add(o.GetHeader().GetKey(), o.GetHeader().GetValue())
	}
}

// What Envoy may say wrongly is refused as an error of the call, which never admits anybody; what a visitor may bring about is a denial.
func TestBadQuestionsByGRPC(t *testing.T) {
	t.Parallel()
	app := newGuarded(t)
	verdicts := freeAddress(t)
	g := newGate(t, strings.Replace(twoSeats, "total_active_users: 2", "total_active_users: 100", 1), "forward_auth: {listen: \""+verdicts+"\", peers: [127.0.0.1]}")
	g.origin.url = app.URL
	g.configure(g.rooms)
	g.start()
	t.Cleanup(g.end)
	envoy := checker(t, verdicts)
	asked := func(change func(*auth.CheckRequest)) (*auth.CheckResponse, error) {
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.Host, r.RemoteAddr = "127.0.0.1", "192.0.2.7:1"
		q := checkOf(r)
		change(q)
		return envoy.Check(t.Context(), q)
	}
	of := func(q *auth.CheckRequest) *auth.AttributeContext_HttpRequest { return q.Attributes.Request.Http }
	raw := func(q *auth.CheckRequest, name, value string) {
		of(q).HeaderMap.Headers = append(of(q).HeaderMap.Headers, &core.HeaderValue{Key: name, RawValue: []byte(value)})
	}
	for name, c := range map[string]struct {
		change func(*auth.CheckRequest)
		code   codes.Code // of the call
		denied int        // status for the visitor; 0: admitted
	}{
		"nothing wrong": {func(*auth.CheckRequest) {}, codes.OK, 0},
		"headers of another kind": {func(q *auth.CheckRequest) {
			of(q).HeaderMap, of(q).Headers = nil, map[string]string{":path": "/x", "x-forwarded-proto": "http"}
		}, codes.OK, 0},
		"the room of the route":         {func(q *auth.CheckRequest) { q.Attributes.ContextExtensions = map[string]string{"room": "shop"} }, codes.OK, 0},
		"another room of the route":     {func(q *auth.CheckRequest) { q.Attributes.ContextExtensions = map[string]string{"room": "free"} }, codes.OK, 400},
		"no attributes":                 {func(q *auth.CheckRequest) { q.Attributes = nil }, codes.InvalidArgument, 0},
		"no method":                     {func(q *auth.CheckRequest) { of(q).Method = "" }, codes.InvalidArgument, 0},
		"no host":                       {func(q *auth.CheckRequest) { of(q).Host = "" }, codes.InvalidArgument, 0},
		"no path":                       {func(q *auth.CheckRequest) { of(q).Path = "" }, codes.InvalidArgument, 0},
		"another path":                  {func(q *auth.CheckRequest) { of(q).Path = "/free" }, codes.InvalidArgument, 0},
		"another host":                  {func(q *auth.CheckRequest) { of(q).Host = "free.example.com" }, codes.InvalidArgument, 0},
		"another method":                {func(q *auth.CheckRequest) { of(q).Method = "OPTIONS" }, codes.InvalidArgument, 0},
		"two paths":                     {func(q *auth.CheckRequest) { raw(q, ":path", "/x") }, codes.InvalidArgument, 0},
		"a scheme that is none":         {func(q *auth.CheckRequest) { of(q).Scheme = "ftp" }, codes.InvalidArgument, 0},
		"two schemes":                   {func(q *auth.CheckRequest) { raw(q, "x-forwarded-proto", "http"); raw(q, "X-Forwarded-Proto", "https") }, codes.InvalidArgument, 0},
		"a body":                        {func(q *auth.CheckRequest) { of(q).Body = strings.Repeat("x", 200<<10) }, codes.ResourceExhausted, 0},
		"a path with a fragment":        {func(q *auth.CheckRequest) { of(q).Path = "/x#y"; of(q).HeaderMap = nil }, codes.OK, 400},
		"the waiting page's own":        {func(q *auth.CheckRequest) { of(q).Path = "/?__anteroom=1"; of(q).HeaderMap = nil }, codes.OK, 401},
		"what only Anteroom can answer": {func(q *auth.CheckRequest) { of(q).Path = "/.well-known/anteroom/pass"; of(q).HeaderMap = nil }, codes.OK, 401},
	} {
		res, err := asked(c.change)
		if status.Code(err) != c.code {
			t.Errorf("%s: %v, want %v", name, err, c.code)
			continue
		}
		if err != nil {
			continue
		}
		if err := res.ValidateAll(); err != nil {
			t.Errorf("%s: an answer that Envoy refuses: %v", name, err)
		}
		if got := int(res.GetDeniedResponse().GetStatus().GetCode()); got != c.denied || (res.GetStatus().GetCode() == 0) != (c.denied == 0) {
			t.Errorf("%s: %v, want %d", name, res, c.denied)
		}
	}
}
