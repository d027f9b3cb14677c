package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/gateway/route"
	"github.com/anteroom/anteroom/rules"
	"github.com/anteroom/anteroom/rules/geo"
)

// described is a request as the flags say it.
type described struct {
	rules.Described
	moment                string
	headers, lists, geoip []string
}

// answer is what -o json prints.
type answer struct {
	Valid      bool            `json:"valid"`
	Match      bool            `json:"match"`
	Expression string          `json:"expression"`
	Readings   []reading       `json:"readings"`
	Faults     anteroom.Faults `json:"faults"`
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
	f.StringVar(&d.URL, "url", "https://example.com/", "`URL` of the request")
	f.StringVar(&d.Method, "method", "GET", "`method`")
	f.StringVar(&d.Version, "http-version", "HTTP/1.1", "HTTP `version`")
	f.StringArrayVar(&d.headers, "header", nil, "header `\"Name: value\"`; repeatable")
	f.StringVar(&d.Address, "ip", "192.0.2.1", "`address` of the visitor")
	f.StringVar(&d.Place.Country, "country", "", "`code` of the visitor's country, like DE")
	f.StringVar(&d.Place.Continent, "continent", "", "`code` of the visitor's continent, like EU")
	f.Uint32Var(&d.Place.ASN, "asn", 0, "`number` of the visitor's autonomous system")
	f.StringArrayVar(&d.geoip, "geoip", nil, "MaxMind DB `file` to locate --ip with; repeatable")
	f.StringArrayVar(&d.lists, "list", nil, "a list that the expression names: `name=value,value,…`; repeatable")
	f.StringVar(&d.moment, "time", "", "`time` of the request, like 2026-11-27T08:00:00Z (default now)")
	f.StringVar(&d.Zone, "zone", "", "`name` of the zone (default the host of the URL)")
	f.BoolVar(&d.Bot, "bot", false, "the visitor is a verified crawler")
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
		a := answer{Expression: expression, Readings: []reading{}, Faults: anteroom.Faults{}}
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
		a.Faults = append(a.Faults, faults...)
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

// request makes the request and the ways in which its path may be read.
func (d described) request() (*rules.Request, []string, error) {
	d.Time, d.Header = time.Now(), map[string][]string{}
	for _, h := range d.headers {
		name, v, ok := strings.Cut(h, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") {
			return nil, nil, fmt.Errorf(`--header %q is not a header; write --header "Name: value"`, h)
		}
		name = http.CanonicalHeaderKey(name) // values of one header stay in their order
		d.Header[name] = append(d.Header[name], strings.TrimSpace(v))
	}
	if d.moment != "" {
		var err error
		if d.Time, err = time.Parse(time.RFC3339Nano, d.moment); err != nil {
			return nil, nil, fmt.Errorf("--time %q is not a time; write 2026-11-27T08:00:00Z", d.moment)
		}
	}
	var located rules.Geo
	if len(d.geoip) > 0 {
		files, err := geo.Open(d.geoip, nil)
		if err != nil {
			return nil, nil, err
		}
		located = files
	}
	r, err := d.Request(located)
	if faults, ok := errors.AsType[anteroom.Faults](err); ok {
		return nil, nil, fmt.Errorf("--%s %s; write one %s", faults[0].Path, faults[0].Problem, faults[0].Fix)
	}
	host := r.Host
	if r.Host, err = route.Host(host); err != nil {
		return nil, nil, fmt.Errorf("host %.60q: %w", host, err)
	}
	readings, err := route.Interpretations(r.RawPath)
	if err != nil {
		return nil, nil, fmt.Errorf("--url: %w", err)
	}
	return r, readings, nil
}
