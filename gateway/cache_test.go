package gateway

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anteroom/anteroom"
)

// greedy is a shared cache that keeps everything it is not forbidden to keep (RFC 9111 §3), for
// ever and for everybody: cookies and Vary mean nothing to it, and what says nothing is kept.
type greedy struct {
	next http.Handler
	kept map[string]*httptest.ResponseRecorder
	hits int
}

func (g *greedy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := g.kept[r.URL.String()]
	if rec == nil {
		rec = httptest.NewRecorder()
		g.next.ServeHTTP(rec, r)
		cc := rec.Header().Get("Cache-Control")
		if !strings.Contains(cc, "no-store") && !strings.Contains(cc, "private") && r.Method == http.MethodGet {
			g.kept[r.URL.String()] = rec
		}
	} else {
		g.hits++
		w.Header().Set("X-Cache", "hit")
	}
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

// TestSharedCacheMixesNobodyUp: with the greediest cache in front, in whatever order requests
// come, nobody is handed another's ticket, and nobody inside is shown the waiting page.
func TestSharedCacheMixesNobodyUp(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { mixUp(t, rand.New(rand.NewPCG(1, seed))) })
	}
}

func mixUp(t *testing.T, random *rand.Rand) {
	rm := anteroom.Room{Name: "shop", Routes: []anteroom.Route{{Host: "*"}}, JSONResponse: true,
		Settings: anteroom.Settings{TotalActiveUsers: 3, NewUsersPerMinute: 600}}.WithDefaults()
	_, h := bubbleGateway(t, rm, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/public"):
			w.Header().Set("Cache-Control", "public, max-age=600")
		case strings.HasPrefix(r.URL.Path, "/shared"):
			w.Header().Set("Cache-Control", "s-maxage=600")
		case strings.HasPrefix(r.URL.Path, "/own"):
			w.Header().Set("Cache-Control", "private")
		}
		io.WriteString(w, "inside")
	}))
	cache := &greedy{next: h, kept: map[string]*httptest.ResponseRecorder{}}
	const visitors = 8
	var cookie [visitors]string
	var inside [visitors]bool
	owner := map[string]int{}
	for range 200 {
		i := random.IntN(visitors)
		target := fmt.Sprintf("/%s/%d.css", []string{"public", "shared", "own", "silent"}[random.IntN(4)], random.IntN(40))
		if random.IntN(10) == 0 {
			target += "?__anteroom=status"
		}
		r := httptest.NewRequest("GET", target, nil)
		if cookie[i] != "" {
			r.Header.Set("Cookie", cookie[i])
		}
		if random.IntN(5) == 0 {
			r.Header.Set("If-None-Match", "*")
			r.Header.Set("Accept", "application/json")
		}
		rec := httptest.NewRecorder()
		cache.ServeHTTP(rec, r)
		hit := rec.Header().Get("X-Cache") != ""
		for _, line := range rec.Header()["Set-Cookie"] {
			pair, _, _ := strings.Cut(line, ";")
			if other, known := owner[pair]; known && other != i || hit {
				t.Fatalf("visitor %d was handed a ticket by the cache, that of %d", i, other)
			}
			owner[pair], cookie[i] = i, pair
		}
		served := rec.Body.String() == "inside"
		switch {
		case rec.Code == http.StatusNotModified:
			t.Fatal("304")
		case inside[i] && !served && !strings.Contains(target, "status"):
			t.Fatalf("visitor %d is inside and was shown %.80q", i, rec.Body)
		case hit && !served:
			t.Fatalf("the cache keeps a waiting page: %q", rec.Header())
		}
		inside[i] = inside[i] || served && !hit
	}
	n := 0
	for _, in := range inside {
		if in {
			n++
		}
	}
	if n != 3 || cache.hits == 0 {
		t.Errorf("%d inside, %d hits: the test tells nothing", n, cache.hits)
	}
}
