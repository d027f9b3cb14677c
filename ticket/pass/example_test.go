package pass_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"time"

	"github.com/anteroom/anteroom/ticket/pass"
)

// An application in Go that verifies passes itself: visitors come to the handler, and Anteroom's origin is a listener without it.
func ExampleHandler() {
	// Anteroom, with its public keys and what it does with all other requests.
	keys, err := pass.NewKeys(pass.Key{ID: "2026-11", Seed: pass.Seed{1}})
	if err != nil {
		log.Fatal(err)
	}
	waitingRoom := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/anteroom/jwks.json" {
			w.Write(keys.JWKS())
			return
		}
		fmt.Fprint(w, "the waiting room")
	}))
	defer waitingRoom.Close()
	address, err := url.Parse(waitingRoom.URL)
	if err != nil {
		log.Fatal(err)
	}

	shop := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "the shop") })
	edge := &pass.Handler{Origin: shop, Anteroom: address, Want: pass.Want{Audience: "shop.example", Room: "room-1"}}

	issuer, err := keys.Issuer("", "shop.example", "room-1", "")
	if err != nil {
		log.Fatal(err)
	}
	good, err := issuer.Issue("session", time.Now(), 30*time.Second)
	if err != nil {
		log.Fatal(err)
	}
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
