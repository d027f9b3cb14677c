package api

import (
	"encoding/json/v2"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/manage"
)

func marshal(tb testing.TB, v any) []byte {
	tb.Helper()
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

const secret = "a-secret-of-some-length-0123456789-abcdef"

// face is a handler with a few routes whose operations answer what they were asked.
func face() http.Handler {
	echo := func(r *Request) (Answer, error) {
		return Answer{Result: Members{{"a", r.PathValue("a")}, {"b", r.PathValue("b")}, {"by", r.By.Name}}, ETag: `"1"`}, nil
	}
	fail := func(err error) func(*Request) (Answer, error) {
		return func(*Request) (Answer, error) { return Answer{}, err }
	}
	return New(Config{
		Log: slog.New(slog.DiscardHandler),
		Authenticate: func(text string, from netip.Addr, requestID string) (manage.Caller, error) {
			switch text {
			case secret:
				return manage.Caller{Name: "ann", Address: from, RequestID: requestID}, nil
			case "too-often":
				return manage.Caller{}, anteroom.Errorf(anteroom.Unavailable, "%w", manage.ErrTooManyFailures)
			}
			return manage.Caller{}, anteroom.Errorf(anteroom.Denied, "no valid token")
		},
	}, []Route{
		{Method: "GET", Path: "/v/{a}", Do: echo},
		{Method: "PUT", Path: "/v/{a}", Do: echo},
		{Method: "GET", Path: "/v/{a}/x/{b}", Do: echo},
		{Method: "POST", Path: "/v/{a}/x/literal", Do: echo},
		{Method: "POST", Path: "/body", Do: func(r *Request) (Answer, error) { _, err := r.Object(); return Answer{}, err }},
		{Method: "PUT", Path: "/match", Do: func(r *Request) (Answer, error) { return Answer{}, r.Match(`"1"`) }},
		{Method: "GET", Path: "/invalid", Do: fail(Invalid("a[0].b/c~", "is wrong", "right"))},
		{Method: "GET", Path: "/plain", Do: fail(anteroom.Errorf(anteroom.Invalid, "it is wrong"))},
		{Method: "GET", Path: "/conflict", Do: fail(anteroom.Errorf(anteroom.Conflict, "it is there"))},
		{Method: "GET", Path: "/missing", Do: fail(anteroom.Errorf(anteroom.NotFound, "no"))},
		{Method: "GET", Path: "/elsewhere", Do: fail(anteroom.Errorf(anteroom.Elsewhere, "send it to a core"))},
		{Method: "GET", Path: "/denied", Do: fail(anteroom.Errorf(anteroom.Denied, "not you"))},
		{Method: "GET", Path: "/later", Do: fail(anteroom.Errorf(anteroom.Unavailable, "later"))},
		{Method: "GET", Path: "/bug", Do: fail(errors.New("secret detail"))},
		{Method: "GET", Path: "/unsayable", Do: func(*Request) (Answer, error) { return Answer{Result: func() {}}, nil }},
		{Method: "GET", Path: "/large", Do: func(*Request) (Answer, error) {
			return Answer{Result: slices.Repeat([]string{strings.Repeat("<", 100<<10)}, 100)}, nil
		}},
		{Method: "GET", Path: "/stream", Write: func(w http.ResponseWriter, _ *Request) error {
			_, err := io.WriteString(w, "raw")
			return err
		}},
	})
}

type said struct {
	Success    *bool     `json:"success"`
	Errors     []Message `json:"errors"`
	Messages   []Message `json:"messages"`
	Result     any       `json:"result"`
	ResultInfo any       `json:"result_info"`
}

func ask(t *testing.T, r *http.Request) (*httptest.ResponseRecorder, said) {
	t.Helper()
	w := httptest.NewRecorder()
	face().ServeHTTP(w, r)
	var e said
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		t.Fatalf("%s %s: not JSON: %v\n%s", r.Method, r.URL, err, w.Body)
	}
	if e.Success == nil || e.Errors == nil || e.Messages == nil || *e.Success != (w.Code == 200) || *e.Success != (len(e.Errors) == 0) {
		t.Errorf("%s %s: not the envelope: %d %s", r.Method, r.URL, w.Code, w.Body)
	}
	h := w.Header()
	if h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" || len(h.Get("X-Request-Id")) != 32 {
		t.Errorf("%s %s: headers %v", r.Method, r.URL, h)
	}
	return w, e
}

func with(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	u, err := url.ParseRequestURI(target)
	if err != nil {
		u = &url.URL{Path: target}
	}
	r.URL = u
	r.Header.Set("Authorization", "Bearer "+secret)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del("Authorization")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// TestEveryPathIsReadAsSent: one spelling of a path reaches an operation, every other is no
// route; a literal goes before a parameter.
func TestEveryPathIsReadAsSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, target string
		status, code   int
		a, b           string
	}{
		{"GET", "/v/1", 200, 0, "1", ""},
		{"HEAD", "/v/1", 200, 0, "1", ""},
		{"PUT", "/v/1", 200, 0, "1", ""},
		{"GET", "/v/1/x/2", 200, 0, "1", "2"},
		{"GET", "/v/1/x/2?page=1", 200, 0, "1", "2"},
		{"POST", "/v/1/x/literal", 200, 0, "1", ""},
		{"GET", "/v/1/x/literal", 405, CodeMethod, "", ""},
		{"DELETE", "/v/1", 405, CodeMethod, "", ""},
		{"OPTIONS", "/v/1", 405, CodeMethod, "", ""},
		{"GET", "/", 404, CodeNoRoute, "", ""},
		{"GET", "/v", 404, CodeNoRoute, "", ""},
		{"GET", "/v/", 404, CodeNoRoute, "", ""},
		{"GET", "/v/1/", 404, CodeNoRoute, "", ""},
		{"GET", "/v//x/2", 404, CodeNoRoute, "", ""},
		{"GET", "//v/1", 404, CodeNoRoute, "", ""},
		{"GET", "/v/1/../2", 404, CodeNoRoute, "", ""},
		{"GET", "/v/1/x/..", 404, CodeNoRoute, "", ""},
		{"GET", "/v/./x/2", 404, CodeNoRoute, "", ""},
		{"GET", "/v/1%2fx/2", 404, CodeNoRoute, "", ""},
		{"GET", "/v/1%2fx%2f2", 404, CodeNoRoute, "", ""},
		{"GET", "/v/%31", 404, CodeNoRoute, "", ""},
		{"GET", "/V/1", 404, CodeNoRoute, "", ""},
		{"POST", "/v/1/x/liter%61l", 404, CodeNoRoute, "", ""},
		{"GET", "/v/1;x", 200, 0, "1;x", ""},
		{"GET", "/v/1?a=%zz", 400, CodeInvalid, "", ""},
	} {
		w, e := ask(t, with(c.method, c.target, ""))
		if w.Code != c.status || (c.code != 0 && e.Errors[0].Code != c.code) {
			t.Errorf("%s %s: %d %v", c.method, c.target, w.Code, e.Errors)
			continue
		}
		if got, _ := e.Result.(map[string]any); c.status == 200 && (got["a"] != c.a || got["b"] != c.b || got["by"] != "ann") {
			t.Errorf("%s %s: %v", c.method, c.target, got)
		}
		if c.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.target)
		}
	}
}

// TestBothStylesOfAuthentication, and what is said to a secret that is nobody's: the same,
// whatever is wrong with it.
func TestBothStylesOfAuthentication(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		headers      []string
		status, code int
	}{
		{"bearer", []string{"Authorization", "Bearer " + secret}, 200, 0},
		{"any case of the scheme", []string{"Authorization", "bearer " + secret}, 200, 0},
		{"e-mail and key", []string{"X-Auth-Email", "a@example.com", "X-Auth-Key", secret}, 200, 0},
		{"user service key", []string{"X-Auth-User-Service-Key", secret}, 200, 0},
		{"bearer goes first", []string{"Authorization", "Bearer " + secret, "X-Auth-Email", "a", "X-Auth-Key", "b"}, 200, 0},
		{"none", []string{"Accept", "*/*"}, 401, CodeDenied},
		{"wrong", []string{"Authorization", "Bearer nobody"}, 403, CodeDenied},
		{"wrong key", []string{"X-Auth-Email", "a@example.com", "X-Auth-Key", "nobody"}, 403, CodeDenied},
		{"too often", []string{"Authorization", "Bearer too-often"}, 429, CodeThrottled},
		{"another scheme", []string{"Authorization", "Basic YTpi"}, 400, CodeHeaders},
		{"no scheme", []string{"Authorization", secret}, 400, CodeHeaders},
		{"no token", []string{"Authorization", "Bearer "}, 400, CodeHeaders},
		{"a space in it", []string{"Authorization", "Bearer a b"}, 400, CodeHeaders},
		{"not ASCII", []string{"Authorization", "Bearer tökèn"}, 400, CodeHeaders},
		{"endless", []string{"Authorization", "Bearer " + strings.Repeat("a", 300)}, 400, CodeHeaders},
		{"twice", []string{"Authorization", "Bearer " + secret, "Authorization", "Bearer nobody"}, 400, CodeHeaders},
		{"key without e-mail", []string{"X-Auth-Key", secret}, 400, CodeHeaders},
		{"e-mail without key", []string{"X-Auth-Email", "a@example.com"}, 400, CodeHeaders},
		{"in a cookie", []string{"Cookie", "token=" + secret}, 401, CodeDenied},
	} {
		w, e := ask(t, with("GET", "/v/1", "", c.headers...))
		if w.Code != c.status || (c.code != 0 && e.Errors[0].Code != c.code) {
			t.Errorf("%s: %d %v", c.name, w.Code, e.Errors)
		}
		if c.status == 403 && e.Errors[0].Message != "Authentication error" {
			t.Errorf("%s: says %q", c.name, e.Errors[0].Message)
		}
		if c.status == 429 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", c.name)
		}
	}
	if w, _ := ask(t, with("GET", "/v/1?token="+secret, "", "Accept", "*/*")); w.Code != 401 {
		t.Errorf("a token in the query: %d", w.Code)
	}
}

// TestErrorsInTheEnvelope: each kind has its status and code; what is ours to mend says
// nothing of it.
func TestErrorsInTheEnvelope(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, message string
		status, code  int
		pointer       string
	}{
		{"/invalid", "a[0].b/c~: is wrong (right): invalid data", 400, CodeInvalid, "/a/0/b~1c~0"},
		{"/plain", "it is wrong: invalid data", 400, CodeInvalid, ""},
		{"/conflict", "it is there: invalid data", 400, CodeInvalid, ""},
		{"/missing", "Object not found.", 404, CodeNotFound, ""},
		{"/denied", "Authentication error: not you", 403, CodeDenied, ""},
		{"/elsewhere", "send it to a core", 403, CodeElsewhere, ""}, // it is not about the token
		{"/later", "later", 503, CodeUnavailable, ""},
		{"/bug", "Internal error", 500, CodeInternal, ""},
		{"/unsayable", "Internal error", 500, CodeInternal, ""},
	} {
		w, e := ask(t, with("GET", c.path, ""))
		if w.Code != c.status || len(e.Errors) != 1 || e.Errors[0].Code != c.code || e.Errors[0].Message != c.message {
			t.Errorf("%s: %d %+v", c.path, w.Code, e.Errors)
		}
		if s := e.Errors[0].Source; (s == nil) != (c.pointer == "") || s != nil && s.Pointer != c.pointer {
			t.Errorf("%s: source %v", c.path, s)
		}
	}
}

// TestBodiesAreBounded: in bytes, and by the patience of the server that reads them.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	fill := func(n int) string { return `{"a":"` + strings.Repeat("x", n-8) + `"}` }
	if w, _ := ask(t, with("POST", "/body", fill(maxBodyBytes))); w.Code != 200 {
		t.Errorf("as large as may be: %d", w.Code)
	}
	if w, e := ask(t, with("POST", "/body", fill(maxBodyBytes+1))); w.Code != 413 || e.Errors[0].Code != CodeInvalid {
		t.Errorf("larger: %d %v", w.Code, e.Errors)
	}
	r := with("POST", "/body", "")
	r.Body = io.NopCloser(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(`{"a":1}`))))
	if w, e := ask(t, r); w.Code != 400 || e.Errors[0].Code != CodeInvalid {
		t.Errorf("slow: %d %v", w.Code, e.Errors)
	}
}

// TestIfMatch: whoever names another state than there is does not change it.
func TestIfMatch(t *testing.T) {
	t.Parallel()
	for match, status := range map[string]int{`"1"`: 200, `*`: 200, `"0", "1"`: 200, `"2"`: 412, `W/"1"`: 412, `1`: 412, ``: 412} {
		r := with("PUT", "/match", "")
		r.Header.Set("If-Match", match)
		if w, _ := ask(t, r); w.Code != status {
			t.Errorf("%s: %d", match, w.Code)
		}
	}
	if w, _ := ask(t, with("PUT", "/match", "")); w.Code != 200 {
		t.Errorf("without: %d", w.Code)
	}
	if w, _ := ask(t, with("GET", "/v/1", "")); w.Header().Get("ETag") != `"1"` {
		t.Errorf("tag: %q", w.Header().Get("ETag"))
	}
}

// parts counts the writes of an answer and remembers the largest.
type parts struct {
	*httptest.ResponseRecorder
	largest int
}

func (p *parts) Write(b []byte) (int, error) {
	p.largest = max(p.largest, len(b))
	return p.ResponseRecorder.Write(b)
}

// TestLargeAnswersAreNotKept: ten megabytes leave in parts, and arrive whole.
func TestLargeAnswersAreNotKept(t *testing.T) {
	t.Parallel()
	w := &parts{ResponseRecorder: httptest.NewRecorder()}
	face().ServeHTTP(w, with("GET", "/large", ""))
	var e struct {
		Success bool     `json:"success"`
		Result  []string `json:"result"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || !e.Success || len(e.Result) != 100 {
		t.Errorf("%d of 100, %v", len(e.Result), err)
	}
	if w.Body.Len() < 10_000_000 || w.largest > 2<<20 {
		t.Errorf("%d bytes, up to %d at once", w.Body.Len(), w.largest)
	}
}

// TestStreamsWriteThemselves: an operation may answer something else than the envelope.
func TestStreamsWriteThemselves(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	face().ServeHTTP(w, with("GET", "/stream", ""))
	if w.Code != 200 || w.Body.String() != "raw" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestPages: what part of a list a query asks for, with an empty one past the end.
func TestPages(t *testing.T) {
	t.Parallel()
	all := make([]int, 12)
	for i := range all {
		all[i] = i
	}
	for _, c := range []struct {
		query, part, info string
	}{
		{"", "[0,1,2,3,4,5,6,7,8,9,10,11]", `{"page":1,"per_page":25,"count":12,"total_count":12,"total_pages":1}`},
		{"per_page=5", "[0,1,2,3,4]", `{"page":1,"per_page":5,"count":5,"total_count":12,"total_pages":3}`},
		{"per_page=5&page=3", "[10,11]", `{"page":3,"per_page":5,"count":2,"total_count":12,"total_pages":3}`},
		{"per_page=5&page=4", "[]", `{"page":4,"per_page":5,"count":0,"total_count":12,"total_pages":3}`},
		{"per_page=1000&page=2147483647", "[]", `{"page":2147483647,"per_page":1000,"count":0,"total_count":12,"total_pages":1}`},
		{"page=&per_page=", "[0,1,2,3,4,5,6,7,8,9,10,11]", `{"page":1,"per_page":25,"count":12,"total_count":12,"total_pages":1}`},
		{"page=0", "", "page: is not the number of a page (1, 2, 3 …): invalid data"},
		{"page=-1", "", "page: is not the number of a page (1, 2, 3 …): invalid data"},
		{"page=x", "", "page: is not the number of a page (1, 2, 3 …): invalid data"},
		{"page=99999999999", "", "page: is not the number of a page (1, 2, 3 …): invalid data"},
		{"per_page=4", "", "per_page: is out of range (a multiple of 5, 5 to 1000): invalid data"},
		{"per_page=7", "", "per_page: is out of range (a multiple of 5, 5 to 1000): invalid data"},
		{"per_page=1005", "", "per_page: is out of range (a multiple of 5, 5 to 1000): invalid data"},
	} {
		q, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		p, err := PageOf(q)
		if err != nil {
			if err.Error() != c.info {
				t.Errorf("%s: %v", c.query, err)
			}
			continue
		}
		part, info := Part(all, p)
		if got := string(marshal(t, part)); got != c.part {
			t.Errorf("%s: %s", c.query, got)
		}
		if got := string(marshal(t, info)); got != c.info {
			t.Errorf("%s: %s", c.query, got)
		}
	}
}
