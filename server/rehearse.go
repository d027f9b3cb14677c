package server

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/api/own"
	"github.com/anteroom/anteroom/api/rest"
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
	name string // with its token's, so that no other token reaches it
	api  http.Handler
	made time.Time
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
	s.rehearsals.mu.Lock()
	one, err := s.rehearsals.of(s, r, string(by.Token)+" "+name)
	s.rehearsals.mu.Unlock()
	if err != nil {
		api.SendError(w, err)
		return
	}
	there := r.Clone(r.Context())
	there.URL.Path = path
	one.ServeHTTP(w, there)
}

// of returns the rehearsal with a name, a new one if there is none. The caller holds the lock.
func (x *rehearsals) of(s *Server, r *http.Request, name string) (http.Handler, error) {
	x.all = slices.DeleteFunc(x.all, func(one rehearsal) bool { return time.Since(one.made) > rehearsalLife })
	if i := slices.IndexFunc(x.all, func(one rehearsal) bool { return one.name == name }); i >= 0 {
		return x.all[i].api, nil
	}
	m, err := s.manage.Rehearsal(r.Context())
	if err != nil {
		return nil, err
	}
	if len(x.all) == maxRehearsals {
		x.all = slices.Delete(x.all, 0, 1)
	}
	one := rest.New(rest.Config{Manager: m, Log: s.log})
	x.all = append(x.all, rehearsal{name, one, time.Now()})
	return one, nil
}
