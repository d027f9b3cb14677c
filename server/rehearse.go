package server

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own"
	"github.com/anteroom/anteroom/api/rest"
	"github.com/anteroom/anteroom/manage"
)

// Bounds of rehearsals. When one is reached, those made first go first.
const (
	maxRehearsals = 4
	rehearsalLife = 10 * time.Minute
	rehearsalPath = own.Prefix + "/rehearsals"
)

// rehearsals are copies of what is managed. Requests of the published API below a rehearsal's path change the copy, so that a client can try
// what would be refused, each request after those before it.
type rehearsals struct {
	mu  sync.Mutex
	all []rehearsal
}

type rehearsal struct {
	by, name string // who made it, so that nobody else reaches it
	api      http.Handler
	made     time.Time
}

func (s *Server) rehearse(w http.ResponseWriter, r *http.Request) {
	// Before anything is copied. Wrong tokens count where they always do.
	by, err := api.Authenticate(s.manage.Authenticate, r, "")
	if err != nil {
		api.SendError(w, err)
		return
	}
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, rehearsalPath+"/"), "/")
	if path = "/" + path; name == "" || len(name) > 64 || r.URL.RawPath != "" || !strings.HasPrefix(path, rest.Prefix+"/") {
		api.SendError(w, api.Refuse(http.StatusNotFound, api.CodeNoRoute, "No route for that URI"))
		return
	}
	if !by.MaySomewhere(manage.Edit) {
		api.SendError(w, anteroom.Errorf(anteroom.Denied, "this token can change nothing, so there is nothing to rehearse"))
		return
	}
	one, err := s.rehearsals.of(s, r, string(by.Token)+" "+by.Name, name)
	if err != nil {
		api.SendError(w, err)
		return
	}
	there := r.Clone(r.Context())
	there.URL.Path = path
	one.ServeHTTP(w, there)
}

// of returns somebody's rehearsal with a name, a new one if there is none.
func (x *rehearsals) of(s *Server, r *http.Request, by, name string) (http.Handler, error) {
	x.mu.Lock()
	one := x.find(by, name)
	x.mu.Unlock()
	if one != nil {
		return one, nil
	}
	m, err := s.manage.Rehearsal(r.Context()) // may wait for a change in progress
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if one := x.find(by, name); one != nil { // made meanwhile
		return one, nil
	}
	if len(x.all) >= maxRehearsals { // one's own goes first
		i := max(0, slices.IndexFunc(x.all, func(one rehearsal) bool { return one.by == by }))
		x.all = slices.Delete(x.all, i, i+1)
	}
	one = rest.New(rest.Config{Manager: m, Log: s.log})
	x.all = append(x.all, rehearsal{by, name, one, time.Now()})
	return one, nil
}

// find returns a rehearsal that is there, or nil. The caller holds the lock.
func (x *rehearsals) find(by, name string) http.Handler {
	x.all = slices.DeleteFunc(x.all, func(one rehearsal) bool { return time.Since(one.made) > rehearsalLife })
	for _, one := range x.all {
		if one.by == by && one.name == name {
			return one.api
		}
	}
	return nil
}
