package page

import (
	"html"
	"net/url"
	"strconv"
)

// ChallengeKind says how a visitor's browser proves that there is one.
type ChallengeKind uint8

// The kinds.
const (
	NoChallenge   ChallengeKind = iota
	Work                        // a proof of work, without a third party
	Turnstile                   // Cloudflare Turnstile
	Hook                        // a script of the operator's, and a hook that verifies its tokens
	numChallenges = 4
)

// WorkParts is the number of nonces in the answer to [Work]: that of part i is the least n for which the SHA-256 of the
// challenge, i and n, both in four bytes with the highest first, begins with the wanted number of zero bits. Many parts take
// about the same time on every try, one would not.
const WorkParts = 8

const turnstileOrigin = "https://challenges.cloudflare.com"

// hookOrigin stands in policies for the origin of the operator's script.
const hookOrigin = "https://script.invalid"

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

// AppendHook appends the operator's script for [View.Challenge]. It finds the challenge and the room in the attributes of the element
// "challenge", which it may fill, and calls anteroomSolved with a token of at most 2048 characters that a cookie can hold; that puts
// "challenge.token" into the cookie.
func AppendHook(dst []byte, challenge, cookie, scriptURL, room string) []byte {
	return append(dst, `<div id="challenge" data-cdata="`+challenge+`" data-cookie="`+html.EscapeString(cookie)+`" data-room="`+html.EscapeString(room)+
		`"></div><script>`+library().token+`</script><script src="`+html.EscapeString(scriptURL)+`" async defer></script>`...)
}

// originOf is the scheme and host of a URL.
func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return hookOrigin
	}
	return u.Scheme + "://" + u.Host
}
