package pass_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/anteroom/anteroom/ticket/pass"
)

// An edge in Go: with a good pass a request goes to the origin, in every other case to Anteroom, which decides about it. The
// keys come from https://shop.example/.well-known/anteroom/jwks.json; fetch them again every few minutes.
func ExampleVerifier() {
	// What Anteroom does, with keys made from its own.
	keys, err := pass.NewKeys(pass.Key{ID: "2026-11", Seed: pass.Seed{1}})
	if err != nil {
		log.Fatal(err)
	}
	issuer, err := keys.Issuer("", "shop.example", "room-1", "")
	if err != nil {
		log.Fatal(err)
	}
	good, err := issuer.Issue("session", time.Now(), 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}

	verifier, err := pass.NewVerifier(keys.JWKS(), pass.Want{Audience: "shop.example", Room: "room-1"})
	if err != nil {
		log.Fatal(err)
	}
	edge := func(origin, anteroom http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to := anteroom
			// Anteroom counts WebSockets: they pass through it.
			if _, err := verifier.Cookies(r.Header["Cookie"], pass.Cookie, time.Now()); err == nil && r.Header.Get("Upgrade") == "" {
				to = origin
			}
			to.ServeHTTP(w, r)
		})
	}(says("the shop"), says("the waiting room"))

	for _, token := range []string{good, good[:len(good)-1], ""} {
		r := httptest.NewRequest("GET", "https://shop.example/", nil)
		r.Header.Set("Cookie", pass.Cookie+"="+token)
		answer := httptest.NewRecorder()
		edge.ServeHTTP(answer, r)
		fmt.Println(answer.Body)
	}
	// Output:
	// the shop
	// the waiting room
	// the waiting room
}

func says(what string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, what) })
}
