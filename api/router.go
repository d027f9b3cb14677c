package api

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/anteroom/anteroom/manage"
)

// Route is an operation: a method, a path whose segments in braces are parameters, and what
// it does. A literal segment goes before a parameter.
type Route struct {
	Method string
	Path   string // like /client/v4/zones/{zone}
	Do     func(*Request) (Answer, error)
	// Write, where Do is nil, writes a good answer itself; an error that it returns before
	// it has written anything is answered.
	Write func(http.ResponseWriter, *Request) error
}

// Request is a request whose route was found and whose caller is known. PathValue returns the
// path's segment in the place of {name}.
type Request struct {
	*http.Request
	By    manage.Caller
	Query url.Values
}

// Config is what a face needs.
type Config struct {
	// Authenticate returns the caller for a secret: [manage.Manager.Authenticate].
	Authenticate func(secret string, from netip.Addr, requestID string) (manage.Caller, error)
	Log          *slog.Logger
}

// New returns the handler of a list of routes. Everything that it answers is the envelope,
// also what no route is for; its paths are compared as they were sent, so that no
// other spelling of a path reaches an operation.
func New(c Config, routes []Route) http.Handler {
	h := &handler{Config: c, root: &node{}}
	for _, r := range routes {
		n := h.root
		for _, segment := range strings.Split(r.Path, "/")[1:] {
			n = n.child(segment)
		}
		if n.routes == nil {
			n.routes = map[string]Route{}
		}
		n.routes[r.Method] = r
	}
	return h
}

type handler struct {
	Config
	root *node
}

// node is the routes that share the beginning of their path. [http.ServeMux] refuses two paths that are published,
// lists/{list}/items and lists/bulk_operations/{operation}: neither is more specific than the other.
type node struct {
	literals map[string]*node
	any      *node  // a parameter's
	name     string // of the parameter, in the node that any points to
	routes   map[string]Route
}

func (n *node) child(segment string) *node {
	if name, ok := strings.CutPrefix(segment, "{"); ok {
		if n.any == nil {
			n.any = &node{name: strings.TrimSuffix(name, "}")}
		}
		return n.any
	}
	if n.literals[segment] == nil {
		if n.literals == nil {
			n.literals = map[string]*node{}
		}
		n.literals[segment] = &node{}
	}
	return n.literals[segment]
}

// find returns the routes of a request's path, by method, and sets the parameters. A path with an escape that it
// does not need has none.
func (h *handler) find(r *http.Request) map[string]Route {
	if r.URL.RawPath != "" || !strings.HasPrefix(r.URL.Path, "/") {
		return nil
	}
	n := h.root
	for segment := range strings.SplitSeq(r.URL.Path[1:], "/") {
		next := n.literals[segment]
		if next == nil {
			if next = n.any; next == nil || segment == "" || segment == "." || segment == ".." {
				return nil
			}
			r.SetPathValue(next.name, segment)
		}
		n = next
	}
	return n.routes
}

// ServeHTTP finds the route, authenticates the caller, and then lets the operation read the body.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var random [16]byte
	rand.Read(random[:])
	id := hex.EncodeToString(random[:])
	w.Header().Set("X-Request-Id", id)
	if err := h.serve(w, r, id); err != nil {
		if p := problemOf(err); p.Status >= 500 {
			h.Log.Error("an operation of the API failed", "method", r.Method, "path", r.URL.Path, "request", id, "error", err)
		}
		SendError(w, err)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request, id string) error {
	routes := h.find(r)
	if routes == nil {
		return Refuse(http.StatusNotFound, CodeNoRoute, "No route for that URI")
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	route, ok := routes[method]
	if !ok {
		allowed := strings.Join(slices.Sorted(maps.Keys(routes)), ", ")
		p := Refuse(http.StatusMethodNotAllowed, CodeMethod, "Method not allowed: this path has "+allowed)
		p.Header = [2]string{"Allow", allowed}
		return p
	}
	by, err := Authenticate(h.Authenticate, r, id)
	if err != nil {
		return err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Query("query", "cannot be read", "write it like ?page=1&per_page=25")
	}
	req := &Request{Request: r, By: by, Query: query}
	if route.Do == nil {
		return route.Write(w, req)
	}
	a, err := route.Do(req)
	if err != nil {
		return err
	}
	SendAnswer(w, a)
	return nil
}

// JSON reads the body as a JSON document, whatever its Content-Type says. The error holds
// [anteroom.Faults].
func (r *Request) JSON() (Value, error) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxBodyBytes+1))
	if err != nil {
		return Value{}, Invalid("", "the body ended early", "send all of it, faster")
	}
	if len(text) > maxBodyBytes {
		return Value{}, Refuse(http.StatusRequestEntityTooLarge, CodeInvalid, fmt.Sprintf("body has more than %d bytes: invalid data", maxBodyBytes))
	}
	return Parse(text)
}

// Object reads the body as a JSON object.
func (r *Request) Object() (Object, error) {
	v, err := r.JSON()
	if err != nil {
		return Object{}, err
	}
	return v.Object()
}

// Match refuses with 412 when the request has an If-Match header that does not name the
// tag of what it is about to change. It is called with the state under the change's lock.
func (r *Request) Match(tag string) error {
	lines := r.Header.Values("If-Match")
	if len(lines) == 0 {
		return nil
	}
	for one := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		if one = strings.TrimSpace(one); one == "*" || one == tag {
			return nil
		}
	}
	return Refuse(http.StatusPreconditionFailed, CodePrecondition, "The object has changed since it was read: read it again, then change it")
}
