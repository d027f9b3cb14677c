package anteroom

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/internal/field"
)

// Check returns every fault of the room, with paths relative to the room, in the order
// of its fields. It expects the room as written: defaults need not be filled in.
func (r Room) Check() Faults {
	f := checkFields(ofRoom, reflect.ValueOf(r))
	add := func(path, problem, fix string) {
		f = append(f, Fault{Path: path, Problem: problem, Fix: fix})
	}
	if len(r.Routes) > MaxRoutesPerRoom {
		add("routes", fmt.Sprintf("has %d routes", len(r.Routes)), fmt.Sprintf("at most %d", MaxRoutesPerRoom))
	}
	for i, rt := range r.Routes {
		f = append(f, rt.check(fmt.Sprintf("routes[%d]", i))...)
	}
	if len(r.Routes) > 1 && r.CookieSuffix == "" {
		add("cookie_suffix", "is missing", "a room with several routes needs one, unique among rooms that share a host")
	}
	if r.CookieAttributes.SameSite == SameSiteNone && r.CookieAttributes.Secure == SecureNever {
		add("cookie_attributes.secure", "\"never\" cannot go with samesite \"none\"", "browsers drop such a cookie: use auto or always")
	}
	if d := cmp.Or(r.SessionDuration, DefaultSessionDuration); r.Pass > d/2 {
		add("pass", fmt.Sprintf("%v is more than half of session_duration, %v", r.Pass, d), "at most "+(d/2).String()+", or longer sessions")
	}
	if r.ProtectFloor > r.NewUsersPerMinute && r.NewUsersPerMinute > 0 {
		add("protect_floor", fmt.Sprintf("%d is more than new_users_per_minute, %d", r.ProtectFloor, r.NewUsersPerMinute), fmt.Sprintf("at most %d, or a higher limit", r.NewUsersPerMinute))
	}
	f = append(f, r.CheckLottery()...)
	f = append(f, r.CheckAccounts()...)
	f = append(f, r.CheckLanes()...)
	f = append(f, r.Branding.check()...)
	for i, e := range r.Events {
		f = append(f, e.Check().under(fmt.Sprintf("events[%d]", i))...)
	}
	f = append(f, CheckEvents(r.Events)...)
	if len(r.Rules) > MaxRulesPerRoom {
		add("rules", fmt.Sprintf("has %d rules", len(r.Rules)), fmt.Sprintf("at most %d", MaxRulesPerRoom))
	}
	for i, rule := range r.Rules {
		f = append(f, rule.Check().under(fmt.Sprintf("rules[%d]", i))...)
	}
	return f
}

// CheckLottery returns the faults of a room by lottery: what it cannot have, because nothing is known there about visitors but what their tickets
// say.
func (r Room) CheckLottery() (f Faults) {
	if r.LotteryPercent == 0 {
		return nil
	}
	refuse := func(is bool, path, why string) {
		if is {
			f = append(f, Fault{Path: path, Problem: "cannot go with lottery_percent: " + why, Fix: "leave it out, or set lottery_percent to 0"})
		}
	}
	refuse(r.QueueingMethod != "" && r.QueueingMethod != FIFO && r.QueueingMethod != Reject, "queueing_method", fmt.Sprintf("%s is an order of a queue", field.Quote(string(r.QueueingMethod))))
	refuse(len(r.Events) > 0, "events", "an event changes a queue")
	refuse(r.Protect, "protect", "it holds a queue while the origin is ill")
	refuse(r.Pass > 0, "pass", "a pass makes sessions longer that nobody counts")
	refuse(r.InviteOnly, "invite_only", "there is no queue to join")
	refuse(r.TurnstileAction == InfiniteQueue, "turnstile_action", "there is no queue to keep visitors in")
	refuse(r.SessionNetworksAction == SharedChallenge || r.SessionNetworksAction == SharedRevoke, "session_networks_action", "a session cannot be ended: every copy of its ticket is as good")
	refuse(slices.Contains(r.EnabledOriginCommands, CommandRevoke), "enabled_origin_commands", "a session cannot be ended: every copy of its ticket is as good")
	if round := cmp.Or(r.LotteryRound, DefaultLotteryRound); r.LotteryMaxWait > 0 && r.LotteryMaxWait < 2*round {
		f = append(f, Fault{Path: "lottery_max_wait", Problem: fmt.Sprintf("%v is less than two rounds of %v", r.LotteryMaxWait, round), Fix: "at least " + (2 * round).String() + ", or a shorter lottery_round"})
	}
	return f
}

// CheckAccounts returns the faults of what a room says about accounts, its keys left aside: those are found by reading them.
func (r Room) CheckAccounts() (f Faults) {
	add := func(is bool, path, problem, fix string) {
		if is {
			f = append(f, Fault{Path: path, Problem: problem, Fix: fix})
		}
	}
	a := r.Accounts
	if a.AccountIssuer == "" {
		add(a.AccountAudience+a.AccountKeys+a.AccountCookie+a.AccountSignIn+a.AccountLaneClaim != "", "account_issuer", "is missing", "what the claim iss of the tokens says; or leave out all about accounts")
		return f
	}
	add(a.AccountAudience == "", "account_audience", "is missing", "without it, a token for any other application of the issuer would do")
	u, err := url.Parse(a.AccountKeys)
	add(a.AccountKeysURL() != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil), "account_keys", "is neither a URL nor a JWK set", "write it like https://login.example.com/jwks.json")
	add(a.AccountKeys == "", "account_keys", "is missing", "where the issuer publishes its keys, like https://login.example.com/jwks.json")
	if u, err := url.Parse(a.AccountSignIn); a.AccountSignIn != "" {
		path := strings.HasPrefix(a.AccountSignIn, "/") && !strings.HasPrefix(a.AccountSignIn, "//") && !strings.HasPrefix(a.AccountSignIn, "/\\")
		add(err != nil || !path && (u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil), "account_sign_in_url", "is not a page that visitors can be linked to", "a URL with https, or a path like /login")
	}
	add(strings.ContainsFunc(a.AccountCookie+a.AccountHeader, isNoToken), "account_cookie", "or account_header has characters that no such name can have", "letters, digits, _ and -")
	add(r.LotteryPercent > 0, "account_issuer", "cannot go with lottery_percent: there are no places", "leave it out, or set lottery_percent to 0")
	both := "cannot go with account_issuer: a ticket is for an account or for an invitation"
	add(r.InviteOnly, "invite_only", both, "use one of both")
	add(slices.ContainsFunc(r.Events, func(e Event) bool { return e.InviteOnly != nil && *e.InviteOnly }), "events", "one has invite_only, which "+both, "use one of both")
	return f
}

// isNoToken reports whether the name of a cookie or header cannot have a character (RFC 9110, section 5.6.2).
func isNoToken(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", c)
}

// Check returns the faults of the rule, its expression's left aside: those are found by
// compiling it.
func (r Rule) Check() Faults {
	f := checkFields(ofRule, reflect.ValueOf(r))
	if r.Action == "" {
		f = append(f, Fault{Path: "action", Problem: "is missing", Fix: ActionBypass})
	}
	return f
}

// under returns the faults with their paths below another.
func (f Faults) under(path string) Faults {
	for i := range f {
		f[i].Path = path + "." + f[i].Path
	}
	return f
}

// checkFields returns the faults of each field of a struct by itself, sections included.
func checkFields(fields []field.Field, v reflect.Value) Faults {
	var f Faults
	for _, one := range fields {
		if one.IsSection() {
			section, _ := one.In(v)
			f = append(f, checkFields(field.Of(one.Type), section).under(one.Key)...)
		} else if at, w := one.Check(v); w != nil && !one.IsSections() {
			f = append(f, Fault{Path: one.Key + at, Problem: w.Problem, Fix: w.Fix})
		} else if text, _ := one.In(v); one.Key == "description" && text.Kind() == reflect.String {
			f = append(f, CheckDescription(text.String())...)
		}
	}
	return f
}

// CheckDescription returns the fault of a description of a room, an event, a rule or a list, with the path "description". It may have
// several lines, and no characters that hide or reorder what operators read.
func CheckDescription(text string) Faults {
	fault := func(problem, fix string) Faults { return Faults{{Path: "description", Problem: problem, Fix: fix}} }
	if len(text) > MaxDescriptionLength {
		return fault(fmt.Sprintf("has %d bytes", len(text)), fmt.Sprintf("at most %d", MaxDescriptionLength))
	}
	for _, r := range text {
		if steers(r) && r != '\n' && r != '\r' && r != '\t' {
			return fault(fmt.Sprintf("has the character %U, which is none to read", r), "plain text, without controls")
		}
	}
	return nil
}

// CheckLimits returns the faults of limits that do not go together, in the room and in its events.
// Sessions of a minute or more never admit more in a minute than there may be at once: a higher
// limit is a slip. It is the published rule, whose sessions have at least that. What the room
// admits is right either way.
func (r Room) CheckLimits() Faults {
	f := r.Settings.checkLimits()
	for i, e := range r.Events {
		if e.TotalActiveUsers != nil || e.NewUsersPerMinute != nil || e.SessionDuration != nil {
			f = append(f, e.Over(r).Settings.checkLimits().under(fmt.Sprintf("events[%d]", i))...)
		}
		for j, step := range e.Ramp {
			f = append(f, step.check(e.Over(r).Settings).under(fmt.Sprintf("events[%d].ramp[%d]", i, j))...)
		}
	}
	return f
}

// check returns the faults of a step in an event with those settings: a limit that is a promise is not raised by a step.
func (p Step) check(s Settings) (f Faults) {
	for _, one := range []struct {
		name       string
		step, most int
	}{{"total_active_users", p.TotalActiveUsers, s.TotalActiveUsers}, {"new_users_per_minute", p.NewUsersPerMinute, s.NewUsersPerMinute}} {
		if one.step > one.most {
			f = append(f, Fault{Path: one.name, Problem: fmt.Sprintf("%d is above the event's limit", one.step), Fix: fmt.Sprintf("at most %d, or raise the limit of the event", one.most)})
		}
	}
	if len(f) > 0 {
		return f
	}
	return p.set(s).checkLimits()
}

func (s Settings) checkLimits() Faults {
	if s.NewUsersPerMinute > s.TotalActiveUsers && s.TotalActiveUsers >= 0 && (s.SessionDuration == 0 || s.SessionDuration >= time.Minute) {
		return Faults{{Path: "new_users_per_minute", Problem: "must be in range [0, total_active_users]", Fix: fmt.Sprintf("at most %d", s.TotalActiveUsers)}}
	}
	return nil
}

func (rt Route) check(path string) Faults {
	var f Faults
	add := func(field, problem, fix string) {
		f = append(f, Fault{Path: path + "." + field, Problem: problem, Fix: fix})
	}
	switch {
	case rt.Host == "":
		add("host", "is missing", "a host name, or \"*\" for every host")
	case rt.Host == "*":
	case len(rt.Host) > 253 || strings.ContainsAny(rt.Host, "/:*?#@ \t\"'<>") || strings.HasPrefix(rt.Host, ".") || strings.HasSuffix(rt.Host, "."):
		add("host", fmt.Sprintf("%s is not a host name", field.Quote(rt.Host)), "no scheme, port, path or wildcard: shop.example.com")
	}
	switch {
	case rt.Path == "":
	case len(rt.Path) > MaxPathLength:
		add("path", fmt.Sprintf("has %d bytes", len(rt.Path)), fmt.Sprintf("at most %d", MaxPathLength))
	case rt.Path[0] != '/':
		add("path", fmt.Sprintf("%s does not begin with /", field.Quote(rt.Path)), "write /"+strings.TrimLeft(rt.Path, "/"))
	case strings.ContainsAny(rt.Path, "*?#;\\% \t\"'<>") || strings.Contains(rt.Path, "//") || slices.ContainsFunc(strings.Split(rt.Path, "/"), func(s string) bool { return s == "." || s == ".." }):
		add("path", fmt.Sprintf("%s is not a plain path", field.Quote(rt.Path)), "no wildcard, query, encoding or dot segments: everything below the path is covered anyway")
	}
	return f
}
