// Package page says a decision to the visitor: as the built-in waiting page in one of 38
// languages, as an operator's own mustache page, as the published JSON object, or as the
// small status that the page's script asks for.
//
// It knows no HTTP: it appends bytes and tells the values that headers need
// ([ContentSecurityPolicy], [RefreshSeconds]); package gateway sends them. Nothing of a
// request enters a page but the fields of a form that is kept for its visitor (form.go): its
// words come from the language table, its numbers from the decision.
//
// The built-in page is one document without any further request. It is compressed once for
// every language and state, in pieces; what differs between visitors goes between the
// pieces in stored deflate blocks (see [AppendPage]). It works without script by the
// Refresh header. Where there is script, it asks the same URL with statusQuery when the
// header's interval is over, listens to streamQuery when the server offers a stream, and
// calls window.stop, which cancels the pending Refresh (seen in Chromium). In a browser
// where it does not, the page reloads as it would without script: nothing is lost by that.
//
// Where to read on: state.go for what a visitor can be told, builtin.go for the document,
// happening.go for events, asset/ for its style and scripts, lang/ for its words, template.go
// for operators' pages, preview.go for looking at any of them, verify.go for the page by which
// a shuffle is checked.
package page

import (
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Content types of the answers.
const (
	HTMLType   = "text/html; charset=UTF-8"
	JSONType   = "application/json"
	StreamType = "text/event-stream"
)

// The query pairs that the page's script, or its "pause" link, adds to the URL at which
// the visitor waits. The gateway answers them and never forwards them.
const (
	statusQuery = "__anteroom=status" // AppendStatus; the script adds the place on the screen: "status.12"
	streamQuery = "__anteroom=stream" // server-sent events "place" and "go" (data: AppendStatus), and "beat"
	holdQuery   = "__anteroom=hold"   // the page with Paused set, without a Refresh header
)

// The query pairs of the switch of languages: of the link to their page, and what stands before the name of one in its links.
const (
	languagesQuery = "__anteroom=languages"
	LanguageQuery  = "__anteroom=language."
)

// VerifyPath is where the page stands by which anybody can recompute a shuffle, on every host.
const VerifyPath = "/.well-known/anteroom/verify"

// View is all that a page depends on.
type View struct {
	Decision anteroom.Decision
	// Language is one of [anteroom.Languages]; anything else means en-US.
	Language string
	// Template is the operator's page; nil means the built-in one.
	Template *Template
	// Brand is that of the room, on the built-in page; nil means none.
	Brand *Brand
	// Now is the wall clock at Decision.At. Moments are shown by it, so that a stepped
	// clock shows right. Zero means that room time is shown as it is.
	Now time.Time
	// Returning says that the request carried a ticket that opened. Then cookies work,
	// and the page leaves out the hint about them.
	Returning bool
	// Paused says that the visitor asked for no more automatic updates (holdQuery).
	Paused bool
	// Preview says that nobody waits at this page: its script asks nothing.
	Preview bool
	// Challenge is what the visitor's browser is to solve, as [AppendWork], [AppendTurnstile] and [AppendHook] write it; empty: nothing.
	Challenge []byte
	// Kind says which of them wrote it.
	Kind ChallengeKind
	// ScriptURL is that of [Hook].
	ScriptURL string
	// Unsent says that the page answers a form, which was not sent on.
	Unsent bool
	// Form holds its fields, which the page sends again, once, when the visitor is admitted. Only the
	// built-in page does.
	Form []Field
	// Countdown is how long a page in the background waits before it takes the turn that the decision tells of; zero: it takes it
	// at once. It belongs to a turn without a session only.
	Countdown time.Duration
	// Lane is the name of the visitor's lane; empty: none, or one without a name.
	Lane string
	// Codes says that the room has invite codes by which visitors who wait rise to a lane. The built-in page leads to where they enter one.
	Codes bool
	// Push says that the page may offer web push.
	Push bool
	// Infinite says that the visitor is admitted only after solving it.
	Infinite bool
}

// AppendPage appends the HTML page, gzip-compressed when gzip is set (then the answer's
// Content-Encoding is gzip, whatever the page).
//
// The built-in page costs copying and a checksum. One that answers a form, and an operator's page, is rendered for every
// visit and compressed at the fastest level: about 25 µs for 7 kB, 2 ms at the size limit.
func AppendPage(dst []byte, v *View, gzip bool) []byte {
	if v.Template != nil {
		return v.Template.appendPage(dst, *v, gzip)
	}
	b := printed(v.Language)
	if gzip && v.Unsent {
		return appendZipped(dst, b.append(nil, v, false))
	}
	return b.append(dst, v, gzip)
}

// ContentSecurityPolicy returns the policy of the page of v: hashes of its style and
// script for the built-in page, empty for an operator's, who may use what they like.
func ContentSecurityPolicy(v View) string {
	if v.Template != nil {
		return ""
	}
	policies, formPolicies := &library().policies, &library().formPolicies
	if v.Brand != nil {
		policies, formPolicies = &v.Brand.policies, &v.Brand.formPolicies
	}
	policy := policies[v.Kind]
	if v.Unsent {
		policy = formPolicies[v.Kind]
	}
	if v.Kind == Hook {
		policy = strings.ReplaceAll(policy, hookOrigin, originOf(v.ScriptURL))
	}
	return policy
}

// RefreshSeconds returns the value of the Refresh header for the page of v, in whole
// seconds rounded up: refreshIntervalSeconds in the JSON, less what a visitor comes early; 0 means no header. A preview
// has none, though it says the interval; nor has a custom page of a room that rejects, as published.
func RefreshSeconds(v *View) int {
	if v.Paused || v.Preview || v.Template != nil && v.Decision.Verdict == anteroom.Refuse {
		return 0
	}
	return refreshSeconds(&v.Decision)
}
