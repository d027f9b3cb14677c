package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/route"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/rules/geo"
)

func rulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Test bypass rules",
		Args:  commandBelow,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(rulesTestCommand())
	return cmd
}

// described is a request as the flags say it.
type described struct {
	method, version, url, ip, country, continent, zone, moment string
	headers, lists, geoip                                      []string
	asn                                                        uint32
	bot                                                        bool
}

// answer is what -o json prints.
type answer struct {
	Valid      bool        `json:"valid"`
	Match      bool        `json:"match"`
	Expression string      `json:"expression"`
	Readings   []reading   `json:"readings"`
	Faults     []jsonFault `json:"faults"`
}

type reading struct {
	Path  string `json:"path"`
	Match bool   `json:"match"`
}

func rulesTestCommand() *cobra.Command {
	var d described
	cmd := &cobra.Command{
		Use:   "test EXPRESSION",
		Short: "Test whether an expression matches a request",
		Long: `Test whether an expression matches a request, exactly as the gateway does. docs/rules.md describes
the language. If EXPRESSION is -, it is read from standard input.

A path that origins may interpret in several ways, like /a/..%2fb, matches only if every
interpretation matches. Exit codes: 0 match, 1 no match, 2 invalid expression or flag.`,
		Example: `  anteroom rules test 'ip.src in $office' --ip 192.0.2.7 --list office=192.0.2.0/24
  anteroom rules test 'starts_with(http.request.uri.path, "/api/")' --url https://example.com/api/v1
  anteroom rules test 'any(http.request.headers["x-monitor"][*] eq "yes")' --header 'X-Monitor: yes'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s takes one expression in quotes, not %d; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.url, "url", "https://example.com/", "`URL` of the request")
	f.StringVar(&d.method, "method", "GET", "`method`")
	f.StringVar(&d.version, "http-version", "HTTP/1.1", "HTTP `version`")
	f.StringArrayVar(&d.headers, "header", nil, "header `\"Name: value\"`; repeatable")
	f.StringVar(&d.ip, "ip", "192.0.2.1", "`address` of the visitor")
	f.StringVar(&d.country, "country", "", "`code` of the visitor's country, like DE")
	f.StringVar(&d.continent, "continent", "", "`code` of the visitor's continent, like EU")
	f.Uint32Var(&d.asn, "asn", 0, "`number` of the visitor's autonomous system")
	f.StringArrayVar(&d.geoip, "geoip", nil, "MaxMind DB `file` to locate --ip with; repeatable")
	f.StringArrayVar(&d.lists, "list", nil, "a list that the expression names: `name=value,value,…`; repeatable")
	f.StringVar(&d.moment, "time", "", "`time` of the request, like 2026-11-27T08:00:00Z (default now)")
	f.StringVar(&d.zone, "zone", "", "`name` of the zone (default the host of the URL)")
	f.BoolVar(&d.bot, "bot", false, "the visitor is a verified crawler")
	form := outputFlags(f)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		expression := args[0]
		if expression == "-" {
			b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), anteroom.MaxExpressionLength+2))
			if err != nil {
				return err
			}
			expression = strings.TrimSuffix(string(b), "\n")
		}
		lists, err := readLists(d.lists)
		if err != nil {
			return usageError{err}
		}
		r, readings, err := d.request()
		if err != nil {
			return usageError{err}
		}
		a := answer{Expression: expression, Readings: []reading{}, Faults: []jsonFault{}}
		e, err := rules.Compile(expression, lists)
		faults, invalid := errors.AsType[anteroom.Faults](err)
		if err == nil {
			a.Valid, a.Match = true, true
			for _, path := range readings {
				r.Path = path
				one := reading{path, e.Match(r)}
				a.Match = a.Match && one.Match
				a.Readings = append(a.Readings, one)
			}
		} else if !invalid {
			return err
		}
		for _, f := range faults {
			a.Faults = append(a.Faults, jsonFault{f.Path, f.Problem, f.Fix, f.Line, f.Column})
		}
		return a.show(cmd.OutOrStdout(), form)
	}
	return cmd
}

// show prints the answer and returns what becomes the exit code.
func (a answer) show(out io.Writer, form *output) error {
	silent := errors.New("")
	if !form.people() {
		if err := form.data(out, a); err != nil {
			return err
		}
	}
	switch {
	case !a.Valid && !form.people():
		return exitError{exitUsage, silent}
	case !a.Valid:
		var b strings.Builder
		b.WriteString("the expression is not valid")
		for _, f := range a.Faults {
			b.WriteString("\n" + pointAt(a.Expression, f.Column) + " " + f.Problem)
			if f.Fix != "" {
				b.WriteString("\n  " + f.Fix)
			}
		}
		return exitError{exitUsage, errors.New(b.String())}
	case form.people() && a.Match:
		fmt.Fprintln(out, "match")
	case form.people():
		fmt.Fprintln(out, "no match")
		for _, one := range a.Readings {
			if len(a.Readings) > 1 && !one.Match {
				fmt.Fprintf(out, "  does not match if the path is read as %s\n", one.Path)
			}
		}
	}
	if !a.Match {
		return exitError{exitFailed, silent}
	}
	return nil
}

// pointAt shows the line of an expression that holds a column, with a caret below it. Of a
// long line it shows the part around.
func pointAt(expression string, column int) string {
	const around = 60
	at := min(max(column-1, 0), len(expression))
	start := strings.LastIndexByte(expression[:at], '\n') + 1
	end := len(expression)
	if i := strings.IndexByte(expression[at:], '\n'); i >= 0 {
		end = at + i
	}
	before, after := expression[start:at], expression[at:end]
	if len(before) > around {
		before = "…" + strings.ToValidUTF8(before[len(before)-around:], "")
	}
	if len(after) > around {
		after = strings.ToValidUTF8(after[:around], "") + "…"
	}
	plain := func(s string) string {
		return strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return ' '
			}
			return c
		}, s)
	}
	return "  " + plain(before+after) + "\n  " + strings.Repeat(" ", utf8.RuneCountInString(before)) + "^"
}

// readLists reads name=value,value,…; what the values are says the kind of the list.
func readLists(texts []string) (*rules.Lists, error) {
	var lists []anteroom.List
	for _, text := range texts {
		name, values, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--list %q has no =; write --list office=192.0.2.0/24,198.51.100.7", text)
		}
		l := anteroom.List{Name: name, Kind: anteroom.ListOfHostnames}
		for v := range strings.SplitSeq(values, ",") {
			l.Items = append(l.Items, anteroom.ListItem{Value: strings.TrimSpace(v)})
		}
		first := l.Items[0].Value
		_, notAddress := netip.ParseAddr(first)
		_, notNetwork := netip.ParsePrefix(first)
		_, notNumber := strconv.ParseUint(strings.TrimPrefix(strings.ToUpper(first), "AS"), 10, 32)
		switch {
		case notAddress == nil || notNetwork == nil:
			l.Kind = anteroom.ListOfIPs
		case notNumber == nil:
			l.Kind = anteroom.ListOfASNs
		}
		lists = append(lists, l)
	}
	all, err := rules.NewLists(lists)
	if err != nil {
		return nil, fmt.Errorf("--list: %w", err)
	}
	return all, nil
}

// place is the visitor's place as the flags say it, over what the databases know.
type place struct {
	files *geo.Databases
	known described
}

func (p place) Place(a netip.Addr) rules.Place {
	var found rules.Place
	if p.files != nil {
		found = p.files.Place(a)
	}
	return rules.Place{Country: p.known.country, Continent: p.known.continent, ASN: p.known.asn}.Over(found)
}

// request makes the request and the ways in which its path may be read.
func (d described) request() (*rules.Request, []string, error) {
	u, err := url.Parse(d.url)
	if err != nil {
		return nil, nil, fmt.Errorf("--url: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, nil, fmt.Errorf("--url %q is not a whole URL; write https://example.com/path?query", d.url)
	}
	// The path as it is written, which is what a visitor sends.
	raw := u.EscapedPath()
	if raw == "" {
		raw = "/"
	}
	readings, err := route.Interpretations(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("--url: %w", err)
	}
	r := &rules.Request{Method: d.method, Version: d.version, Scheme: u.Scheme, RawPath: raw, Query: u.RawQuery,
		Header: map[string][]string{}, SSL: u.Scheme == "https", Time: time.Now(), Zone: d.zone, VerifiedBot: d.bot}
	r.Port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	if p, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		r.Port = int(p)
	}
	if r.Zone == "" {
		r.Zone = u.Hostname()
	}
	host := u.Host
	for _, h := range d.headers {
		name, v, ok := strings.Cut(h, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, nil, fmt.Errorf(`--header %q is not a header; write --header "Name: value"`, h)
		}
		if v = strings.TrimSpace(v); strings.EqualFold(name, "host") {
			host = v
			continue
		}
		name = http.CanonicalHeaderKey(name)
		r.Header[name] = append(r.Header[name], v)
	}
	if r.Host, err = route.Host(host); err != nil {
		return nil, nil, fmt.Errorf("host %.60q: %w", host, err)
	}
	if r.Client, err = netip.ParseAddr(d.ip); err != nil {
		return nil, nil, fmt.Errorf("--ip %q is not an address; write 192.0.2.1 or 2001:db8::1", d.ip)
	}
	if d.moment != "" {
		if r.Time, err = time.Parse(time.RFC3339Nano, d.moment); err != nil {
			return nil, nil, fmt.Errorf("--time %q is not a time; write 2026-11-27T08:00:00Z", d.moment)
		}
	}
	p := place{known: d}
	if len(d.geoip) > 0 {
		if p.files, err = geo.Open(d.geoip, nil); err != nil {
			return nil, nil, err
		}
	}
	r.Geo = p
	return r, readings, nil
}
