package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/analytics"
	"github.com/anteroom/anteroom/page"
	"github.com/anteroom/anteroom/ticket"
)

// Challenge says what visitors who wait are asked to solve, in rooms whose turnstile_mode is not off. Nothing is kept of it: the
// question follows from the ticket, the answer comes in a cookie, and the ticket says that it was right.
type Challenge struct {
	// Kind says what is asked; page.NoChallenge: nothing.
	Kind page.ChallengeKind
	// Difficulty of page.Work in bits, 1 to 24; each step doubles the work. It grows with the queue up to MaxDifficulty; less than
	// Difficulty means that it does not.
	Difficulty, MaxDifficulty int
	// Patience is how long visitors wait until they need not solve it any more; zero: they always need to.
	Patience time.Duration
	// SiteKey and Secret are those of a Turnstile widget. A hook gets Secret as bearer token; empty: none.
	SiteKey, Secret string
	// VerifyURL verifies tokens. With page.Turnstile, empty means Cloudflare's.
	VerifyURL string
	// ScriptURL is the script that makes tokens for a hook.
	ScriptURL string
	// FailOpen lets a visitor through whose token a hook could not verify.
	FailOpen bool
	// Transport asks it; nil means one of its own.
	Transport http.RoundTripper
}

// challenger asks visitors and checks what they answer.
type challenger struct {
	Challenge
	cookie   string
	key      ticket.Secret
	policy   []string // Content-Security-Policy of the built-in page with the challenge
	verifier *verifier
}

// result is what came of a challenge.
type result uint8

const (
	unanswered result = iota
	solved
	failed
	unverified // nobody could say
	waived     // likewise, and the operator lets such visitors through
)

// newChallenger returns nil when nothing is asked.
func newChallenger(s *setup) *challenger {
	if s.Challenge.Kind == page.NoChallenge {
		return nil
	}
	c := &challenger{
		Challenge: s.Challenge,
		// Cut from what the origin gets, as tickets are; a room's suffix has no dot.
		cookie: s.cookieName + "_.answer",
		key:    s.Keys.Fixed(ticket.PurposeChallenge),
		policy: []string{page.ContentSecurityPolicy(page.View{Kind: s.Challenge.Kind, ScriptURL: s.Challenge.ScriptURL})},
	}
	if c.Kind != page.Work {
		c.verifier = newVerifier(c.Challenge)
	}
	return c
}

// question is what a visitor is asked: 32 characters that only we can make, of room, ticket and difficulty, and for active users of
// the network. The first two are the difficulty: a visitor may have been asked when the queue was shorter or longer.
func (x *exchange) question(id anteroom.ID, bits int) string {
	mac := hmac.New(sha256.New, x.s.challenge.key[:])
	mac.Write(id[:])
	mac.Write([]byte(x.room.ID))
	mac.Write([]byte{byte(bits)})
	if x.decision.Ticket.Accepted() { // an active user, who is asked in each network
		mac.Write(binary.BigEndian.AppendUint32(nil, x.s.Keys.Network(x.client)))
	}
	return hex.EncodeToString(append([]byte{byte(bits)}, mac.Sum(nil)[:15]...))
}

// bits is the difficulty for a decision: one more for a queue of a minute, two for two minutes, three for four, and so on.
func (c *challenger) bits(d *anteroom.Decision) int {
	if c.Kind != page.Work {
		return 0
	}
	minutes := d.Waiting / max(1, d.InForce.NewUsersPerMinute)
	return min(c.Difficulty+bits.Len(uint(minutes)), max(c.Difficulty, c.MaxDifficulty))
}

// askedOf looks whether the visitor has solved the challenge, and says so in the ticket.
func (x *exchange) askedOf(v *anteroom.Visit) {
	c, t := x.s.challenge, &v.Ticket
	if c == nil || t.Solved || x.room.Shadow { // without a page, nobody can be asked
		return
	}
	v.Unsolved = true
	if v.Fresh || t.Accepted() {
		return
	}
	switch came := x.answered(t.ID); {
	case came == solved:
		x.challenged(analytics.ChallengesSolved)
	case came == waived, c.Patience > 0 && t.LastCheckIn.Sub(t.Arrival) >= c.Patience:
		x.challenged(analytics.ChallengesWaived)
	case came == failed:
		x.challenged(analytics.ChallengesFailed)
		return
	default:
		x.challenged(analytics.ChallengesUnsolved)
		return
	}
	v.Unsolved, t.Solved, x.solved = false, true, true
}

// answersRead bounds the answers of a request that are looked at: one is the visitor's, others are of older tickets and other rooms.
const answersRead = 8

// answered checks what a visitor answers. An answer to another question is none: it belongs to an older ticket, or to another room.
func (x *exchange) answered(id anteroom.ID) (came result) {
	c, left := x.s.challenge, answersRead
	eachCookie(x.cookies, c.cookie, func(value string) {
		asked, answer, _ := strings.Cut(value, ".")
		if left--; left < 0 || came != unanswered || len(asked) != 32 {
			return
		}
		difficulty, err := strconv.ParseUint(asked[:2], 16, 8)
		if err != nil || asked != x.question(id, int(difficulty)) {
			return
		}
		if c.Kind != page.Work {
			var why string
			if came, why = c.verifier.verify(x.r.Context(), token{asked, answer, x.client, x.clientIsMany(), x.room}); why != "" {
				x.logToken(came, why)
			}
		} else if came = failed; int(difficulty) >= c.Difficulty && worked(asked, answer, int(difficulty)) {
			came = solved
		}
	})
	return came
}

// worked checks a proof of work (see [page.WorkParts]).
func worked(question, answer string, difficulty int) bool {
	if strings.Count(answer, ".") != page.WorkParts-1 {
		return false
	}
	part := uint32(0)
	var block [40]byte
	for one := range strings.SplitSeq(answer, ".") {
		nonce, err := strconv.ParseUint(one, 10, 32)
		if err != nil {
			return false
		}
		msg := append(block[:0], question...)
		msg = binary.BigEndian.AppendUint32(msg, part)
		sum := sha256.Sum256(binary.BigEndian.AppendUint32(msg, uint32(nonce)))
		if bits.LeadingZeros32(binary.BigEndian.Uint32(sum[:])) < difficulty {
			return false
		}
		part++
	}
	return true
}

// kept counts a visitor who comes back and is not admitted until the challenge is solved.
func (x *exchange) kept(v *anteroom.Visit) {
	if d := &x.decision; v.Unsolved && !v.Fresh && d.Verdict == anteroom.Wait && d.InForce != nil && d.InForce.InfiniteQueue {
		x.challenged(analytics.ChallengesHeld)
	}
}

// challenge puts the question into the page of a visitor who has yet to solve it.
func (x *exchange) challenge(view *page.View) {
	c, d := x.s.challenge, &x.decision
	if c == nil || d.Verdict != anteroom.Wait || d.Ticket.ID.IsZero() || d.Ticket.Solved || d.InForce == nil || !d.InForce.Challenge {
		return
	}
	x.challenged(analytics.ChallengesIssued)
	bits := c.bits(d)
	question := x.question(d.Ticket.ID, bits)
	view.Kind, view.Infinite = c.Kind, d.InForce.InfiniteQueue
	switch c.Kind {
	case page.Turnstile:
		view.Challenge = page.AppendTurnstile(nil, question, c.cookie, c.SiteKey, x.room.seesChallenge(d.InForce.Event))
	case page.Hook:
		view.ScriptURL = c.ScriptURL
		view.Challenge = page.AppendHook(nil, question, c.cookie, c.ScriptURL, x.room.Name)
	default:
		view.Challenge = page.AppendWork(nil, question, c.cookie, bits)
	}
}

// seesChallenge says that the mode in force shows the challenge.
func (r *room) seesChallenge(e *anteroom.Event) bool {
	mode := r.TurnstileMode
	if e != nil && e.TurnstileMode != nil {
		mode = *e.TurnstileMode
	}
	return mode != anteroom.ChallengeInvisible
}

// policyOf is the Content-Security-Policy of the built-in page.
func (s *setup) policyOf(view *page.View) []string {
	if view.Unsent || view.Brand != nil {
		return []string{page.ContentSecurityPolicy(*view)}
	}
	if view.Kind != page.NoChallenge {
		return s.challenge.policy
	}
	return s.policy
}

func (x *exchange) challenged(what analytics.Metric) {
	x.room.door.Recorder().Count(x.s.now(), what, 1)
}
