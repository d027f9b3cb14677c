package page

import (
	"html"

	"github.com/anteroom/anteroom"
)

// InviteField is the field of [AppendInvite]'s form with the code.
const InviteField = "code"

// Invitation says what the page that asks for an invite code has to say.
type Invitation uint8

const (
	Uninvited       Invitation = iota // nothing was entered
	InviteRefused                     // the code is none, or spent
	InviteUnchecked                   // nobody could say
	InviteLimited                     // too many wrong codes came from the visitor's address
	InviteForgetful                   // the browser keeps no cookies, so the code was not spent
	UninvitedAgain                    // nothing was entered, and the visitor's session has ended
)

// inviteStyle is what page.css has no room for, which is counted.
const inviteStyle = `label{display:block;margin:0 0 .75rem}input{display:block;width:100%;margin:.25rem 0 0;font:inherit;font-family:ui-monospace,monospace;letter-spacing:.05em;text-align:center;text-transform:uppercase;color:var(--ink);background:var(--bg);border:2px solid var(--soft);border-radius:.75rem;min-height:2.75rem;padding:.4rem 1rem}`

// AppendInvite appends the page that asks for an invite code, without compression. query is that of the address that the visitor wants,
// and code what stands in the field, both not escaped yet. Placed visitors are in line, and enter a code for a lane. It works without
// script, with which the fragment of the address stays, and has the policy [LeavePolicy].
func AppendInvite(dst []byte, v View, query, code string, is Invitation, placed bool) []byte {
	w := wordsOf(known(v.Language))
	e := html.EscapeString
	note, described := "", ""
	if text := [...]string{Uninvited: "", InviteRefused: w.Refused, InviteUnchecked: w.TryLater, InviteLimited: w.TryLater, InviteForgetful: w.Cookies, UninvitedAgain: ""}[is]; text != "" {
		note, described = `<p class="note" id="why" role="alert">`+e(text)+`</p>`, ` aria-invalid="true" aria-describedby="why"`
	} else if is == UninvitedAgain {
		note = `<p class="note">` + e(w.Over[0]) + `</p>`
	}
	said, enter, back, script := w.Invitation, w.Enter, "", ""
	if placed {
		said, enter, back = saying{w.Code, ""}, w.Arriving[0], `<p><a href="?`+e(query)+`">`+e(w.Stay)+`</a></p>`
		script = stay(v, query, "", 0) // a code that stands there is not to be lost
	}
	return appendNotice(dst, v, said, `<style>`+inviteStyle+`</style>`+note+`<form method="post" action="?`+withQuery(query, anteroom.InviteQuery)+`"><label>`+e(w.Code)+
		`<input name="`+InviteField+`" value="`+e(code)+`" required maxlength="64" autocomplete="off" autocapitalize="characters" spellcheck="false" dir="ltr"`+described+
		`></label><button>`+e(enter)+`</button></form>`+back, script)
}

// AppendSignIn appends the page that asks to sign in, without compression: with a link to where that is, if it is known. Unchecked says
// that the visitor may be signed in, and nobody can tell now. It has the policy [LeavePolicy].
func AppendSignIn(dst []byte, v View, link string, unchecked bool) []byte {
	w := wordsOf(known(v.Language))
	said, body := w.SignIn, ""
	switch {
	case unchecked:
		said = saying{w.Held[0], w.Offline}
	case link != "":
		body = `<p><a href="` + html.EscapeString(link) + `" rel="nofollow">` + html.EscapeString(w.SignIn[0]) + `</a></p>`
	}
	return appendNotice(dst, v, said, body, "")
}
