package published

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/anteroom/anteroom"
)

// lotteryEligible is when a token of the stateless lottery is decided: at the end of the
// next full window, so that all tokens that one person gets in a window decide alike. The
// lottery is another vendor's and no part of [Room]; it knows no limit on active users.
func lotteryEligible(at anteroom.Time, window time.Duration) anteroom.Time {
	w := anteroom.Time(window / time.Microsecond)
	return (at/w + 2) * w
}

// lotteryWins is the outcome of a token: a pseudo-random function of it, true with the
// chance (0 … 1). A loser gets a new token.
func lotteryWins(key []byte, token anteroom.ID, chance float64) bool {
	h := hmac.New(sha256.New, key)
	h.Write(token[:])
	drawn := binary.BigEndian.Uint64(h.Sum(nil))
	return float64(drawn>>11)/math.Exp2(53) < chance
}
