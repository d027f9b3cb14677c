package gateway

import (
	"net/http"

	"github.com/anteroom/anteroom"
)

// jwksPath is the path of the keys that verify the proof and passes, on every host.
const jwksPath = wellKnown + "jwks.json"

// valueKeys: verifiers read keys again within minutes, and go on with what they have while nobody answers.
var valueKeys = []string{"public, max-age=300, stale-if-error=86400"}

// setProof puts the proof of admission on the request for the origin. A client's own copy, in
// any spelling, is gone since checkHeaders; without an admission the header stays away. Its
// audience is the room's zone.
func (x *exchange) setProof(h http.Header) {
	if x.s.Proof == nil || x.room == nil || x.decision.Verdict != anteroom.Admit {
		return
	}
	token, err := x.s.Proof.Assertion(x.room.ID, x.room.Zone, x.decision.Ticket.ID, x.start)
	if err != nil {
		// Only a decision without a ticket brings this about. The origin sees no proof and
		// decides itself what that is worth.
		x.logProof(err)
		return
	}
	h[x.s.proofHeader] = []string{token}
}

// serveKeys answers the reserved path of the key set.
func (x *exchange) serveKeys() {
	h := x.w.Header()
	h["Content-Type"] = []string{"application/jwk-set+json"}
	h["Cache-Control"] = valueKeys
	x.write(http.StatusOK, x.s.passes.jwks)
}
