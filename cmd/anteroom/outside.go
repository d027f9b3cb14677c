package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/ticket/pass"
)

// What came of a check from outside.
const (
	checkOK      = "ok"
	checkUnknown = "unknown"
	checkWarning = "warning"
	checkError   = "error"
)

// outsideCheck is one thing that doctor has looked at from outside.
type outsideCheck struct {
	Result string `json:"result"`
	What   string `json:"what"`
	Fix    string `json:"fix,omitempty"`
}

// outside looks at a room from outside, as a visitor and as an attacker would. It sends at most maxAsked requests, without
// following redirects and each on a connection of its own, of which up to nine come from a new visitor.
type outside struct {
	url, origin *url.URL // origin nil: not to be asked
	cookie      string   // how the ticket's name begins
	wait        bool     // until a pass has ended
	transport   http.RoundTripper
	now         func() time.Time
	sleep       func(context.Context, time.Duration) bool

	asked  int
	checks []outsideCheck
}

const maxAsked = 16

// errAsked ends a look that would become an attack.
var errAsked = errors.New("too many requests")

func (o *outside) say(result, what, fix string) {
	o.checks = append(o.checks, outsideCheck{result, what, fix})
}

// outsideAnswer is the head of an answer.
type outsideAnswer struct {
	status       int
	ticket, pass *http.Cookie // nil: not set
	header       http.Header
	body         []byte
}

// ask sends a GET, and reads as much of the answer's body as is asked for.
func (o *outside) ask(ctx context.Context, at *url.URL, cookie string, body int64, fields ...string) (a outsideAnswer, err error) {
	if o.asked++; o.asked > maxAsked {
		return a, errAsked
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return a, err
	}
	req.Host, req.Close = o.url.Host, true
	req.Header.Set("Accept", "text/html")
	req.Header.Set("User-Agent", "anteroom-doctor/"+versionString())
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	res, err := o.transport.RoundTrip(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	for _, c := range res.Cookies() {
		switch {
		case strings.HasPrefix(c.Name, o.cookie) && c.MaxAge >= 0:
			a.ticket = c
		case strings.HasPrefix(c.Name, pass.Cookie) && c.MaxAge >= 0:
			a.pass = c
		}
	}
	a.body, err = io.ReadAll(io.LimitReader(res.Body, body))
	return a, err
}

// below is a reserved path of the host.
func (o *outside) below(name string) *url.URL {
	return &url.URL{Scheme: o.url.Scheme, Host: o.url.Host, Path: "/.well-known/anteroom/" + name}
}

// look makes all checks. The error says why it could not go on.
func (o *outside) look(ctx context.Context) error {
	first, err := o.ask(ctx, o.url, "", 0)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", o.url, err)
	}
	if err := o.askOrigin(ctx); err != nil {
		return err
	}
	if first.ticket == nil {
		o.say(checkError, fmt.Sprintf("no room is in front: %s answers %d to a new visitor and sets no ticket", o.url, first.status),
			"send this host to Anteroom, and check that a room covers the path, that no rule bypasses it and that it is not suspended; with another cookie_name, use --cookie")
		return nil
	}
	o.say(checkOK, fmt.Sprintf("a room is in front: a new visitor gets a ticket (%s) with status %d", shown(first.ticket.Name), first.status), "")
	for _, check := range []func(context.Context, outsideAnswer) error{o.askCaches, o.askHeaders, o.askPaths, o.askPasses} {
		if err := check(ctx, first); err != nil {
			return err
		}
	}
	return nil
}

// askOrigin looks whether the application answers those who go around the room.
func (o *outside) askOrigin(ctx context.Context) error {
	if o.origin == nil {
		return nil
	}
	a, err := o.ask(ctx, o.origin, "", 0, "X-Anteroom-Assertion", "forged")
	switch {
	case errors.Is(err, errAsked) || ctx.Err() != nil:
		return err
	case err != nil:
		o.say(checkOK, fmt.Sprintf("visitors cannot bypass the room: %s does not answer from here", o.origin), "")
	case a.ticket != nil || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden || a.status == http.StatusMisdirectedRequest:
		o.say(checkOK, fmt.Sprintf("the application refuses visitors who bypass the room: %s answers %d", o.origin, a.status), "")
	default:
		o.say(checkError, fmt.Sprintf("visitors can bypass the room: %s answers %d, even with a forged proof of admission", o.origin, a.status),
			"let only the edge and Anteroom connect to it, or have it verify the proof of admission (docs/config.md#proof)")
	}
	return nil
}

// askCaches looks whether something between stores answers that are for one visitor.
func (o *outside) askCaches(ctx context.Context, first outsideAnswer) error {
	again, err := o.ask(ctx, o.url, "", 0)
	if err != nil {
		return err
	}
	control := strings.ToLower(strings.Join(first.header.Values("Cache-Control"), ","))
	switch {
	case again.ticket == nil || again.ticket.Value == first.ticket.Value:
		o.say(checkError, "a cache answers for the room: the second new visitor gets no ticket of its own", "make the cache in front respect Cache-Control, and never store an answer with Set-Cookie")
	case !strings.Contains(control, "no-store") && !strings.Contains(control, "private"):
		o.say(checkWarning, fmt.Sprintf("an answer with a ticket may be cached: Cache-Control is %q", control), "keep the Cache-Control that Anteroom sends, and set private in the application if the edge drops it")
	default:
		o.say(checkOK, "answers with tickets are not cached", "")
	}
	return nil
}

// askHeaders sends what only Anteroom and proxies may say.
func (o *outside) askHeaders(ctx context.Context, _ outsideAnswer) error {
	a, err := o.ask(ctx, o.url, "", 0, "X-Anteroom-Assertion", "forged", "X-Anteroom-Verdict", "admit", "X_Anteroom_Verdict", "admit",
		"X-Original-Uri", "/.well-known/anteroom/health", "X-Original-Method", "OPTIONS", "X-Forwarded-Uri", "/.well-known/anteroom/health", "X-Forwarded-Method", "OPTIONS", "X-Accel-Redirect", "@origin")
	if err != nil {
		return err
	}
	if a.ticket == nil {
		o.say(checkError, fmt.Sprintf("a visitor with forged headers bypasses the room (status %d, no ticket)", a.status), "have the edge remove or replace X-Anteroom-*, X-Original-* and X-Forwarded-* that visitors send, as the recipes do")
	} else {
		o.say(checkOK, "forged headers (X-Anteroom-*, X-Original-*, X-Forwarded-*) do not bypass the room", "")
	}
	return nil
}

// askPaths looks whether Anteroom sees its own paths.
func (o *outside) askPaths(ctx context.Context, _ outsideAnswer) error {
	a, err := o.ask(ctx, o.below("jwks.json"), "", maxKeys)
	if err != nil {
		return err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(a.body, &set) != nil || len(set.Keys) == 0 {
		o.say(checkWarning, fmt.Sprintf("%s answers %d and no key set", o.below("jwks.json").Path, a.status), "send paths below /.well-known/anteroom/ to Anteroom; this is right only if proof is disabled and no room issues passes")
		return nil
	}
	o.say(checkOK, "the paths below /.well-known/anteroom/ lead to Anteroom", "")
	return nil
}

// askPasses gets a pass as any visitor does, and shows what it is not.
func (o *outside) askPasses(ctx context.Context, first outsideAnswer) error {
	second, err := o.ask(ctx, o.url, first.ticket.Name+"="+first.ticket.Value, 0)
	if err != nil {
		return err
	}
	if second.pass == nil {
		o.say(checkUnknown, "whether the edge verifies passes: this visitor got none, because the room issues none, or because the visitor has to wait", "if the room issues passes, try again while visitors are admitted at once")
		return nil
	}
	pem, err := o.ask(ctx, o.below("pass.pem"), "", maxKeys)
	if err != nil {
		return err
	}
	good := second.pass.Value
	forged, claims, ok := forgeries(second.pass.Name, good, pem.body)
	if !ok {
		o.say(checkError, "the room's pass cannot be read", "check whether something on the way changes cookies")
		return nil
	}
	if off := o.now().Unix() - claims.IssuedAt; off > int64(pass.Early/time.Second) || off < -int64(pass.Early/time.Second) {
		o.say(checkWarning, fmt.Sprintf("the clock of Anteroom differs from that of this machine by %d s", off), "keep the clocks of Anteroom and of all edges right by NTP")
	}
	straight, err := o.ask(ctx, o.url, second.pass.Name+"="+good, 0)
	if err != nil {
		return err
	}
	if straight.ticket != nil {
		o.say(checkWarning, "the edge does not verify passes: with a valid one, the request still went to Anteroom", "nothing is lost; remove the room's pass, or use a recipe that verifies passes (docs/edges.md)")
		return nil
	}
	if o.wait {
		if !o.sleep(ctx, time.Unix(claims.Expiry, 0).Sub(o.now())+time.Second) {
			return ctx.Err()
		}
		forged = append(forged, forgery{"an expired one", second.pass.Name + "=" + good})
	}
	for _, f := range forged {
		a, err := o.ask(ctx, o.url, f.cookie, 0)
		switch {
		case err != nil:
			return err
		case a.ticket == nil:
			o.say(checkError, fmt.Sprintf("the edge accepts bad passes: %s led to the application (status %d)", f.what, a.status), "compare the edge with the rules of docs/edges.md: pin the algorithm, verify signature and claims")
		default:
			o.say(checkOK, "the edge refuses bad passes: "+f.what, "")
		}
	}
	return nil
}

// examine looks from outside and prints what it saw.
func (o *outside) examine(cmd *cobra.Command, r *remote, at, origin string) (err error) {
	if o.url, err = parseOutside("url", at); err != nil {
		return err
	}
	if origin != "" {
		if o.origin, err = parseOutside("origin", origin); err != nil {
			return err
		}
	}
	o.checks = []outsideCheck{}
	stopped := o.look(cmd.Context())
	if err := put(r.output, cmd.OutOrStdout(), o.checks, showOutside); err != nil {
		return err
	}
	if stopped == nil && slices.ContainsFunc(o.checks, func(c outsideCheck) bool { return c.Result == checkError }) {
		return errFindings
	}
	return stopped
}

// forgery is a pass that nobody may accept.
type forgery struct{ what, cookie string }

// forgeries makes bad passes of a good one.
func forgeries(name, good string, pem []byte) (out []forgery, claims pass.Claims, ok bool) {
	parts := strings.Split(good, ".")
	if len(parts) != 3 || parts[2] == "" {
		return nil, claims, false
	}
	b64 := base64.RawURLEncoding
	payload, err := b64.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return nil, claims, false
	}
	var head struct {
		Kid string `json:"kid"`
	}
	text, err := b64.DecodeString(parts[0])
	if err != nil || json.Unmarshal(text, &head) != nil {
		return nil, claims, false
	}
	headOf := func(alg string) string {
		text, _ := json.Marshal(map[string]string{"alg": alg, "typ": "JWT", "kid": head.Kid})
		return b64.EncodeToString(text)
	}
	mac := hmac.New(sha256.New, pem)
	signed := headOf("HS256") + "." + parts[1]
	mac.Write([]byte(signed))
	later := claims
	later.Expiry += 3600
	longer, _ := json.Marshal(later)
	first := "A"
	if parts[2][0] == 'A' {
		first = "B"
	}
	for _, f := range []forgery{
		{"another signature", parts[0] + "." + parts[1] + "." + first + parts[2][1:]},
		{"an hour added to its end", parts[0] + "." + b64.EncodeToString(longer) + "." + parts[2]},
		{"alg none", headOf("none") + "." + parts[1] + "."},
		{"HS256 signed with the public key's text", signed + "." + b64.EncodeToString(mac.Sum(nil))},
	} {
		out = append(out, forgery{f.what, name + "=" + f.cookie})
	}
	return append(out, forgery{"two cookies of the name", name + "=" + good + "; " + name + "=x"}), claims, true
}

// showOutside prints the checks, each with what to do.
func showOutside(w io.Writer, checks []outsideCheck) (err error) {
	for _, c := range checks {
		if _, err = fmt.Fprintf(w, "%-8s %s\n", c.Result, shown(c.What)); err == nil && c.Fix != "" {
			_, err = fmt.Fprintf(w, "  fix: %s\n", shown(c.Fix))
		}
	}
	return err
}

// parseOutside reads an address of a flag.
func parseOutside(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, usageError{fmt.Errorf("invalid address %q for --%s: use http:// or https:// with a host, like https://shop.example.com", text, flag)}
	}
	u.Path = cmp.Or(u.Path, "/")
	return u, nil
}
