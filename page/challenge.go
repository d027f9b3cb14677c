package page

import (
	"html"
	"strconv"
)

// ChallengeKind says how a visitor's browser proves that there is one.
type ChallengeKind uint8

// The kinds.
const (
	NoChallenge   ChallengeKind = iota
	Work                        // a proof of work, without a third party
	Turnstile                   // Cloudflare Turnstile
	numChallenges = 3
)

// WorkParts is the number of nonces in the answer to [Work]: that of part i is the least n for which the SHA-256 of the
// challenge, i and n, both in four bytes with the highest first, begins with the wanted number of zero bits. Many parts take
// about the same time on every try, one would not.
const WorkParts = 8

const turnstileOrigin = "https://challenges.cloudflare.com"

// AppendWork appends a script for [View.Challenge] that solves challenge, 32 ASCII characters. It puts "challenge.n.n…" into the
// cookie.
func AppendWork(dst []byte, challenge, cookie string, bits int) []byte {
	dst = append(dst, `<script data-work="`+challenge+`" data-cookie="`+html.EscapeString(cookie)+`" data-bits="`...)
	dst = strconv.AppendInt(dst, int64(bits), 10)
	return append(dst, `" data-parts="`+strconv.Itoa(WorkParts)+`">`+library().work+`</script>`...)
}

// AppendTurnstile appends Turnstile's widget for [View.Challenge], which is seen only when the visitor has to act unless visible is
// set. Its script puts "challenge.token" into the cookie.
func AppendTurnstile(dst []byte, challenge, cookie, siteKey string, visible bool) []byte {
	appearance := "interaction-only"
	if visible {
		appearance = "always"
	}
	return append(dst, `<div id="challenge" class="cf-turnstile" data-sitekey="`+html.EscapeString(siteKey)+`" data-cdata="`+challenge+
		`" data-cookie="`+html.EscapeString(cookie)+`" data-callback="anteroomSolved" data-appearance="`+appearance+`"></div><script>`+
		library().token+`</script><script src="`+turnstileOrigin+`/turnstile/v0/api.js" async defer></script>`...)
}
