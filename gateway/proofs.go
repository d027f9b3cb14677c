package gateway

import (
	"net/http"

	"github.com/anteroom/anteroom"
)

// jwksPath is the path of the keys that verify the proof and passes, on every host.
const jwksPath = wellKnown + "jwks.json"

// valueKeys: verifiers read keys again within minutes, and go on with what they have while nobody answers.
var valueKeys = []string{"public, max-age=300, stale-if-error=86400"}

// proof returns the proof of admission for the origin's request; "" without an admission. A client's own copy, in
// any spelling, is gone since checkHeaders. Its audience is the room's zone.
func (x *exchange) proof() string {
	if x.s.Proof == nil || x.room == nil || x.decision.Verdict != anteroom.Admit {
		return ""
	}
	token, err := x.s.Proof.Assertion(x.room.ID, x.room.Zone, x.decision.Ticket.ID, x.start)
	if err != nil {
		// Only a decision without a ticket brings this about. The origin sees no proof and
		// decides itself what that is worth.
		x.logProof(err)
		return ""
	}
	return token
}

// serveKeys answers the reserved path of the key set.
func (x *exchange) serveKeys() {
	h := x.w.Header()
	h["Content-Type"] = []string{"application/jwk-set+json"}
	h["Cache-Control"] = valueKeys
	x.write(http.StatusOK, x.s.passes.jwks)
}
