package account

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/anteroom/anteroom"
)

const (
	// maxToken bounds a token, in bytes.
	maxToken = 8 << 10
	// leeway is how far the clocks of issuer and node may differ.
	leeway = 30 * time.Second

	maxName = 512 // bytes of an account's name
	// remembered bounds the verified tokens that a room keeps in mind: so many, and as many again that were before them.
	remembered = 16 << 10
)

// algorithms are those in which nobody who can verify a token can make one.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA}

// Result says what a token is worth.
type Result uint8

const (
	None      Result = iota // there is none, or it is not good
	Unchecked               // the issuer's keys are not known yet
	Expired                 // it was good: it says who comes, but not that the visitor is signed in still
	Valid

	Results = iota
)

// ResultWords name the results in metrics.
var ResultWords = [Results]string{"none", "unchecked", "expired", "valid"}

// Rules say which tokens are good, and what they say. Issuer, Audience and Claim are required.
type Rules struct {
	Issuer, Audience string // iss, and one of aud
	Claim            string // whose text names the account
	LaneClaim        string // whose text, or one of whose list of texts, names a lane; empty: none does
	Lanes            []anteroom.Lane
}

// lane is the highest priority of a lane that a claim names: a text, or a list of texts.
func (r *Rules) lane(claim any) (priority uint8) {
	named, list := claim.([]any)
	if !list {
		named = []any{claim}
	}
	for _, l := range r.Lanes {
		if l.Claim != "" && slices.Contains(named, any(l.Claim)) {
			priority = max(priority, uint8(l.Priority))
		}
	}
	return priority
}

// Verifier verifies the tokens of a room. It remembers those that were good, so that a visitor who waits costs a hash each time. Safe for
// concurrent use.
type Verifier struct {
	rules Rules
	mark  Mark
	keys  *Keys

	mu         sync.Mutex
	by         *keySet // whose tokens are remembered
	young, old map[[sha256.Size]byte]verified
}

type verified struct {
	account ID
	expires int64
	lane    uint8
}

// NewVerifier returns a verifier of tokens that are signed with one of the keys.
func NewVerifier(rules Rules, mark Mark, keys *Keys) *Verifier {
	return &Verifier{rules: rules, mark: mark, keys: keys}
}

// Verify returns the account that a token names, and the priority of the lane that a valid one names: 0 for none.
func (v *Verifier) Verify(token string, now time.Time) (who ID, lane uint8, worth Result) {
	if token == "" || len(token) > maxToken {
		return ID{}, 0, None
	}
	keys := v.keys.current(now)
	if keys == nil {
		return ID{}, 0, Unchecked
	}
	sum := sha256.Sum256([]byte(token))
	found, ok := v.recall(keys, sum)
	if !ok {
		if found, ok = v.verify(keys, token, now); !ok {
			return ID{}, 0, None
		}
		v.remember(keys, sum, found)
	}
	if now.Unix() >= found.expires+int64(leeway/time.Second) {
		return found.account, 0, Expired
	}
	return found.account, found.lane, Valid
}

func (v *Verifier) verify(keys *keySet, token string, now time.Time) (found verified, ok bool) {
	// The list is what keeps "none" and a switch to a symmetric algorithm out. Keys that the token itself names or brings are not looked at.
	jws, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil || len(jws.Signatures) != 1 {
		return found, false
	}
	head := jws.Signatures[0].Protected
	key := keys.find(head.KeyID, head.Algorithm)
	if key == nil {
		v.keys.missed(now)
		return found, false
	}
	payload, err := jws.Verify(key)
	if err != nil {
		return found, false
	}
	var c struct {
		Issuer    string   `json:"iss"`
		Audience  audience `json:"aud"`
		Expires   *float64 `json:"exp"`
		NotBefore float64  `json:"nbf"`
	}
	var all map[string]any
	if json.Unmarshal(payload, &c) != nil || json.Unmarshal(payload, &all) != nil {
		return found, false
	}
	name, _ := all[v.rules.Claim].(string)
	if c.Issuer != v.rules.Issuer || !slices.Contains(c.Audience, v.rules.Audience) || c.Expires == nil || *c.Expires < 0 || *c.Expires > 1<<40 ||
		c.NotBefore > float64(now.Add(leeway).Unix()) || name == "" || len(name) > maxName {
		return found, false
	}
	if v.rules.LaneClaim != "" {
		found.lane = v.rules.lane(all[v.rules.LaneClaim])
	}
	found.account, found.expires = v.mark.Of(name), int64(*c.Expires)
	return found, true
}

func (v *Verifier) recall(keys *keySet, sum [sha256.Size]byte) (verified, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by != keys { // a key may have been withdrawn
		v.by, v.young, v.old = keys, nil, nil
	}
	found, ok := v.young[sum]
	if !ok {
		found, ok = v.old[sum]
	}
	return found, ok
}

func (v *Verifier) remember(keys *keySet, sum [sha256.Size]byte, found verified) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by != keys {
		return
	}
	if len(v.young) >= remembered {
		v.old, v.young = v.young, nil
	}
	if v.young == nil {
		v.young = make(map[[sha256.Size]byte]verified)
	}
	v.young[sum] = found
}

// audience is a text or a list of texts (RFC 7519, section 4.1.3).
type audience []string

func (a *audience) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(a))
	}
	*a = make(audience, 1)
	return json.Unmarshal(b, &(*a)[0])
}
