package queueit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Why a visitor comes back with a token, as connectors show it to their application.
const (
	byQueue      = "queue"      // after waiting
	bySafetyNet  = "safetynet"  // without waiting
	byIdle       = "idle"       // without waiting, before an event of the room
	byAfterEvent = "afterevent" // without waiting, after its last event
	byDisabled   = "disabled"   // the room is suspended
	byBypass     = "bypass"     // a rule, or a verified crawler
)

// leastRedeem is the least time that a visitor has to redeem a token; the setting redeem has the same minimum.
const leastRedeem = 10 * time.Second

// token lets a visitor in for some minutes once a connector has verified it. Connectors renew a cookie by themselves if ce is
// true, of which nobody here would hear; so it never is.
type token struct {
	event, queueID string
	until          int64 // seconds since 1970
	minutes        int   // from 1
	why            string
	client         string // the address that the token is bound to; empty: to none
}

// sign returns the token as it stands in an address. The order of its fields, lower case and h at the end please every
// connector.
func (t token) sign(secret string) string {
	s := "e_" + t.event + "~q_" + t.queueID + "~ts_" + strconv.FormatInt(t.until, 10) + "~ce_false~cv_" + strconv.Itoa(t.minutes) + "~rt_" + t.why
	if t.client != "" {
		s += "~hip_" + mac(secret, t.client)
	}
	return s + "~h_" + mac(secret, s)
}

func mac(secret, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil))
}

// lives returns how long a token may be redeemed, and for how many minutes it then lets its visitor in, so that both are over
// when the seat comes free. The seat of a session that is not renewed is held to its end; then the last token is a short one, or
// there is none, with 0 minutes.
func lives(set anteroom.Settings, d anteroom.Decision) (redeem time.Duration, minutes int) {
	left := set.SeatDuration()
	if set.DisableSessionRenewal {
		left = max(d.Ticket.AcceptedAt, set.RenewalEnded).Add(left).Sub(d.At)
	}
	left -= anteroom.PassSkew
	life := min(set.TokenLife(), (left - leastRedeem).Truncate(time.Minute))
	if life < time.Minute {
		return 0, 0
	}
	return min(set.Redeem, left-life), int(life / time.Minute)
}

// withToken adds a token to an address, in place of any other.
func withToken(address, signed string) string {
	address, fragment, hasFragment := strings.Cut(address, "#")
	path, query, _ := strings.Cut(address, "?")
	kept := make([]string, 0, 8)
	for pair := range strings.SplitSeq(query, "&") {
		if pair != "" && !strings.HasPrefix(pair, tokenParameter+"=") {
			kept = append(kept, pair)
		}
	}
	address = path + "?" + strings.Join(append(kept, tokenParameter+"="+signed), "&")
	if hasFragment {
		address += "#" + fragment
	}
	return address
}

// tokenParameter is where connectors look for a token.
const tokenParameter = "queueittoken"
