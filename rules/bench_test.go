package rules

import (
	"strings"
	"testing"
)

type nastyCase struct {
	name, expression string
	make             func(*Request)
}

// nasty are expressions and requests made to take long: all within the limits of both.
var nasty = []nastyCase{
	{"every regexp walks a long header", anyOfThem(16, `http.user_agent matches "(a?b?c?d?e?f?g?h?){1,50}z"`), longAgent("abcdefgh")},
	{"threads pile up", `http.user_agent matches "(x+x+)+y"`, longAgent("x")},
	{"wide classes", `http.user_agent matches "(?i)([\\pL\\pN]?[\\pL\\pN]?[\\pL\\pN]?){1,50}!"`, longAgent("ä")},
	{"word ends", `http.user_agent matches "(\\b|\\B|a|^|$){1,90}!"`, longAgent("a b")},
	asMuchAsFits("optional letters", `(a?b?c?d?e?f?g?h?){1,4}z`, "abcdefgh"),
	asMuchAsFits("a large program", `(a?b?c?d?e?f?g?h?){1,50}z`, "abcdefgh"),
	asMuchAsFits("a few bytes for a program", `(?:a?){400}!`, "a"),
	asMuchAsFits("threads", `([xy]+[xy]+[xy]+[xy]+[xy]+[xy]+[xy]+[xy]+)+!`, "x"),
	asMuchAsFits("wide classes", `[\pL\pN]{200}!`, "qAzWsXeDcRfVtGbYhNuJmIkOlP"),
	asMuchAsFits("small classes", `[aceg]{200}!`, "aceg"),
	asMuchAsFits("word ends", `(\b|\B|a|^|$){1,20}!`, "a b"),
	{"globs that nearly fit", anyOfThem(30, `http.user_agent wildcard "*`+strings.Repeat("a", 60)+`b*"`), longAgent("a")},
	{"contains over and over", anyOfThem(60, `http.user_agent contains "`+strings.Repeat("a", 30)+`b"`), longAgent("a")},
	{"copies of copies", anyOfThem(10, `lower(concat(http.user_agent, http.user_agent, http.user_agent)) contains "ab"`), longAgent("A")},
	{"copies for each argument", `any(concat(http.request.uri.args.names[*], http.user_agent)[*] contains "ab")`, longQuery("A&")},
	{"one name for all arguments", anyOfThem(20, `any(http.request.uri.args["a"][*] contains "b")`), longQuery("a&")},
	{"many names", anyOfThem(30, `any(http.request.uri.args["c"][*] eq "b") or len(http.request.uri.args["a"]) eq 1`), longQuery("b=&")},
	{"decoding again and again", anyOfThem(30, `url_decode(http.request.uri.query, "r") contains "ab"`), longQuery("%2525252525252525")},
	{"deep JSON", anyOfThem(20, `lookup_json_string(http.user_agent, "a", "a") eq "b"`), longAgent("[")},
	{"wide JSON", anyOfThem(20, `lookup_json_string(http.user_agent, 9999, 1) eq "b"`), func(r *Request) {
		r.Header["User-Agent"] = []string{"[" + strings.Repeat("1,", 14<<10) + "1]"}
	}},
	{"signatures", anyOfThem(12, `is_timed_hmac_valid_v0("k", http.user_agent, 10, http.request.timestamp.sec)`), func(r *Request) {
		r.Header["User-Agent"] = []string{strings.Repeat("a", 28<<10) + "1484063800-" + strings.Repeat("A", 43) + "="}
	}},
	{"signatures of dashes", anyOfThem(12, `is_timed_hmac_valid_v0("k", http.user_agent, 10, http.request.timestamp.sec)`), longAgent("-1234567890")},
	{"sorting headers", `all(len(http.request.headers.names[*])[*] gt 0) and ssl and not ssl`, func(r *Request) {
		for i := range 100 {
			r.Header["X-"+strings.Repeat("a", i)] = []string{"v"}
		}
	}},
	{"many addresses", `ip.src in {` + strings.Repeat("10.0.0.1 ", 440) + `}`, longAgent("")},
}

func anyOfThem(n int, condition string) string {
	return strings.TrimSuffix(strings.Repeat(condition+" or ", n), " or ")
}

func longAgent(unit string) func(*Request) {
	return func(r *Request) {
		if unit != "" {
			r.Header["User-Agent"] = []string{strings.Repeat(unit, (28<<10)/len(unit))}
		}
	}
}

// asMuchAsFits searches the longest text that may be searched for a regular expression.
func asMuchAsFits(name, expr, unit string) nastyCase {
	p, _, problem, _ := newPattern(expr)
	if problem != "" {
		panic(problem)
	}
	return nastyCase{"as much text as fits " + name, `http.user_agent matches r"` + expr + `"`, func(r *Request) {
		r.Header["User-Agent"] = []string{strings.Repeat(unit, (maxWork/p.perByte-2)/len(unit))}
	}}
}

func longQuery(unit string) func(*Request) {
	return func(r *Request) { r.Query = strings.Repeat(unit, (8<<10)/len(unit)) }
}

func BenchmarkNasty(b *testing.B) {
	for _, c := range nasty {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			e, err := Compile(c.expression, nil)
			if err != nil {
				b.Fatal(err)
			}
			r := sample()
			c.make(r)
			r.where()
			steps := 0
			for b.Loop() {
				r.args.made, r.headers.made, r.headers.list = false, false, r.headers.list[:0]
				e.Match(r)
				steps = maxWork - r.work
			}
			b.ReportMetric(float64(steps), "steps/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(steps), "ns/step")
		})
	}
}

// typical are rules as people write them.
var typical = []struct{ name, expression string }{
	{"path equality", `http.request.uri.path eq "/health"`},
	{"path prefix", `starts_with(http.request.uri.path, "/static/")`},
	{"address in networks", `ip.src in {10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 2001:db8::/32 192.0.2.0/24}`},
	{"address in list", `ip.src in $office`},
	{"header contains", `any(http.request.headers["accept"][*] contains "json")`},
	{"agent contains", `http.user_agent contains "Monitor"`},
	{"country in set", `ip.src.country in {"AT" "CH" "DE"}`},
	{"cookie is there", `len(http.request.cookies["sso"]) >= 0`},
	{"cookie is", `any(http.request.cookies["sso"][*] eq "2")`},
	{"argument is", `any(http.request.uri.args["size"][*] eq "43")`},
	{"extension in set", `http.request.uri.path.extension in {"css" "js" "png" "jpg" "svg" "woff2" "ico" "webp" "gif"}`},
	{"glob", `http.host wildcard "*.example.com"`},
	{"regexp", `http.request.uri.path matches "^/(api|static)/v[0-9]+/"`},
	{"typical", `(ip.src in $office and not starts_with(http.request.uri.path, "/sale")) or (http.host eq "shop.example.com" and http.request.method in {"GET" "HEAD"} and http.request.uri.path matches "^/sale/[a-z]+\.html$") or any(http.request.headers["x-monitor"][*] eq "yes")`},
}

func BenchmarkTypical(b *testing.B) {
	lists := sampleLists(b)
	for _, c := range typical {
		b.Run(strings.ReplaceAll(c.name, " ", "_"), func(b *testing.B) {
			e, err := Compile(c.expression, lists)
			if err != nil {
				b.Fatal(err)
			}
			r := sample()
			b.ReportAllocs()
			for b.Loop() {
				e.Match(r)
			}
		})
	}
}

// BenchmarkFresh evaluates a typical rule for one request after the other, with what is
// derived from each made anew.
func BenchmarkFresh(b *testing.B) {
	e, err := Compile(typical[len(typical)-1].expression+` or len(http.request.cookies["sso"]) >= 0`, sampleLists(b))
	if err != nil {
		b.Fatal(err)
	}
	from, r := sample(), &Request{}
	b.ReportAllocs()
	for b.Loop() {
		r.Reset()
		r.Method, r.Host, r.Path, r.Header, r.Client = from.Method, from.Host, from.Path, from.Header, from.Client
		e.Match(r)
	}
}

func BenchmarkCompile(b *testing.B) {
	lists := sampleLists(b)
	for b.Loop() {
		if _, err := Compile(typical[len(typical)-1].expression, lists); err != nil {
			b.Fatal(err)
		}
	}
}
