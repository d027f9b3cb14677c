package anteroom

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Check returns every fault of the room, with paths relative to the room, in the order
// of its fields. It expects the room as written: defaults need not be filled in.
func (r Room) Check() Faults {
	var f Faults
	add := func(path, problem, fix string) {
		f = append(f, Fault{Path: path, Problem: problem, Fix: fix})
	}
	checkName(add, "name", r.Name, "room")
	if len(r.Description) > MaxDescriptionLength {
		add("description", fmt.Sprintf("has %d bytes", len(r.Description)), fmt.Sprintf("at most %d", MaxDescriptionLength))
	}
	if len(r.Routes) > MaxRoutesPerRoom {
		add("routes", fmt.Sprintf("has %d routes", len(r.Routes)), fmt.Sprintf("at most %d", MaxRoutesPerRoom))
	}
	for i, rt := range r.Routes {
		f = append(f, rt.check(fmt.Sprintf("routes[%d]", i))...)
	}
	if len(r.CookieSuffix) > MaxSuffixLength || (r.CookieSuffix != "" && !isWord(r.CookieSuffix)) {
		add("cookie_suffix", fmt.Sprintf("%s cannot be part of a cookie's name", quote(r.CookieSuffix)), fmt.Sprintf("use up to %d letters, digits, _ and -", MaxSuffixLength))
	}
	if len(r.Routes) > 1 && r.CookieSuffix == "" {
		add("cookie_suffix", "is missing", "a room with several routes needs one, unique among rooms that share a host")
	}
	oneOf := func(path, v string, allowed ...string) {
		if v != "" && !slices.Contains(allowed, v) {
			add(path, fmt.Sprintf("%s is not known", quote(v)), "one of "+strings.Join(allowed, ", "))
		}
	}
	oneOf("cookie_attributes.samesite", r.CookieAttributes.SameSite, SameSiteAuto, SameSiteLax, SameSiteNone, SameSiteStrict)
	oneOf("cookie_attributes.secure", r.CookieAttributes.Secure, SecureAuto, SecureAlways, SecureNever)
	if r.CookieAttributes.SameSite == SameSiteNone && r.CookieAttributes.Secure == SecureNever {
		add("cookie_attributes.secure", "\"never\" cannot go with samesite \"none\"", "browsers drop such a cookie: use auto or always")
	}
	f = append(f, r.Settings.Check()...)
	if c := r.QueueingStatusCode; c != 0 && c != 200 && c != 202 && c != 429 {
		add("queueing_status_code", fmt.Sprintf("%d is not allowed", c), "200, 202 or 429")
	}
	if r.DefaultTemplateLanguage != "" && !slices.Contains(Languages, r.DefaultTemplateLanguage) {
		add("default_template_language", fmt.Sprintf("%s is not known", quote(r.DefaultTemplateLanguage)), "one of "+strings.Join(Languages, ", "))
	}
	if len(r.CustomPageHTML) > MaxTemplateBytes {
		add("custom_page_html", fmt.Sprintf("has %d bytes", len(r.CustomPageHTML)), fmt.Sprintf("at most %d", MaxTemplateBytes))
	}
	for i, c := range r.EnabledOriginCommands {
		oneOf(fmt.Sprintf("enabled_origin_commands[%d]", i), c, CommandRevoke)
	}
	oneOf("bind", r.Bind, BindNone, BindIPPrefix)
	f = append(f, checkTurnstile(r.TurnstileMode, r.TurnstileAction)...)
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

// Check returns the faults of the rule, its expression's left aside: those are found by
// compiling it.
func (r Rule) Check() Faults {
	var f Faults
	add := func(path, problem, fix string) {
		f = append(f, Fault{Path: path, Problem: problem, Fix: fix})
	}
	if r.Action != ActionBypass {
		add("action", fmt.Sprintf("%s is not known", quote(r.Action)), ActionBypass)
	}
	switch {
	case r.Expression == "":
		add("expression", "is missing", `write a condition like ip.src eq 192.0.2.1`)
	case len(r.Expression) > MaxExpressionLength:
		add("expression", fmt.Sprintf("has %d bytes", len(r.Expression)), fmt.Sprintf("at most %d; long sets belong into a list", MaxExpressionLength))
	}
	if len(r.Description) > MaxDescriptionLength {
		add("description", fmt.Sprintf("has %d bytes", len(r.Description)), fmt.Sprintf("at most %d", MaxDescriptionLength))
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

func checkName(add func(path, problem, fix string), path, name, of string) {
	switch {
	case name == "":
		add(path, "is missing", "give the "+of+" a name of letters, digits, _ and -")
	case len(name) > MaxNameLength || !isWord(name):
		add(path, fmt.Sprintf("%s is not a name", quote(name)), fmt.Sprintf("use 1 to %d letters, digits, _ and -", MaxNameLength))
	}
}

func checkTurnstile(mode, action string) Faults {
	var f Faults
	oneOf := func(path, v string, allowed []string) {
		if v != "" && !slices.Contains(allowed, v) {
			f = append(f, Fault{Path: path, Problem: quote(v) + " is not known", Fix: "one of " + strings.Join(allowed, ", ")})
		}
	}
	oneOf("turnstile_mode", mode, TurnstileModes)
	oneOf("turnstile_action", action, TurnstileActions)
	return f
}

// Check returns every fault of the settings.
func (s Settings) Check() Faults {
	var f Faults
	add := func(path, problem, fix string) {
		f = append(f, Fault{Path: path, Problem: problem, Fix: fix})
	}
	count := func(path string, n int) {
		if n < 0 || n > MaxUsers {
			add(path, fmt.Sprintf("%d is out of range", n), fmt.Sprintf("0 to %d", MaxUsers))
		}
	}
	count("total_active_users", s.TotalActiveUsers)
	count("new_users_per_minute", s.NewUsersPerMinute)
	span := func(path string, d, low, high time.Duration) {
		if d != 0 && (d < low || d > high) {
			add(path, fmt.Sprintf("%v is out of range", d), fmt.Sprintf("%v to %v", low, high))
		}
	}
	span("session_duration", s.SessionDuration, MinSessionDuration, MaxSessionDuration)
	span("refresh", s.Refresh, MinRefresh, MaxRefresh)
	span("place_hold", s.PlaceHold, MinPlaceHold, MaxPlaceHold)
	if s.QueueingMethod != "" && !slices.Contains(QueueingMethods, s.QueueingMethod) {
		add("queueing_method", fmt.Sprintf("%s is not known", quote(string(s.QueueingMethod))), "fifo, random, passthrough or reject")
	}
	return f
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
		add("host", fmt.Sprintf("%s is not a host name", quote(rt.Host)), "no scheme, port, path or wildcard: shop.example.com")
	}
	switch {
	case rt.Path == "":
	case len(rt.Path) > MaxPathLength:
		add("path", fmt.Sprintf("has %d bytes", len(rt.Path)), fmt.Sprintf("at most %d", MaxPathLength))
	case rt.Path[0] != '/':
		add("path", fmt.Sprintf("%s does not begin with /", quote(rt.Path)), "write /"+strings.TrimLeft(rt.Path, "/"))
	case strings.ContainsAny(rt.Path, "*?#;\\% \t\"'<>") || strings.Contains(rt.Path, "//") || slices.ContainsFunc(strings.Split(rt.Path, "/"), func(s string) bool { return s == "." || s == ".." }):
		add("path", fmt.Sprintf("%s is not a plain path", quote(rt.Path)), "no wildcard, query, encoding or dot segments: everything below the path is covered anyway")
	}
	return f
}

func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}

// quote shows a value in an error without letting it fill the screen.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%.*q…", most, s)
	}
	return fmt.Sprintf("%q", s)
}
