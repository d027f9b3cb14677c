package proof_test

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/ticket/proof"
)

// An application that serves only what has passed the waiting room. It fetches the key set once from
// https://shop.example/.well-known/anteroom/jwks.json and again when [proof.ErrUnknownKey] says that keys were rotated.
func ExampleVerifier() {
	// What Anteroom does, with keys made from its own.
	signer, err := proof.New(proof.Config{
		Keys:       []proof.Key{{ID: "2026-11", Seed: proof.Seed{1}}},
		SubjectKey: proof.Seed{2},
	})
	if err != nil {
		log.Fatal(err)
	}
	good, err := signer.Assertion("room-1", "shop.example", anteroom.ID{3}, time.Now())
	if err != nil {
		log.Fatal(err)
	}

	verifier, err := proof.NewVerifier(signer.JWKS(), "", "shop.example")
	if err != nil {
		log.Fatal(err)
	}
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims, err := verifier.Verify(r.Header.Get("X-Anteroom-Assertion"), time.Now())
		if err != nil {
			http.Error(w, "Please come through the waiting room.", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, "Welcome from %s.\n", claims.Room)
	})

	for _, assertion := range []string{good, ""} {
		r := httptest.NewRequest("GET", "https://shop.example/", nil)
		r.Header.Set("X-Anteroom-Assertion", assertion)
		answer := httptest.NewRecorder()
		shop.ServeHTTP(answer, r)
		fmt.Print(answer.Code, " ", answer.Body)
	}

	_, err = verifier.Verify(good, time.Now().Add(time.Hour))
	fmt.Println(errors.Is(err, proof.ErrExpired))
	// Output:
	// 200 Welcome from room-1.
	// 403 Please come through the waiting room.
	// true
}
