package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readers says who reads a text: visitors say "line", operators say "queue".
type readers uint8

const (
	visitors readers = 1 << iota
	operators
	everyone = visitors | operators
)

// wording is one thing, its word, and the words that are refused because a reader would look for two things.
type wording struct {
	thing, word string
	readers     readers
	refused     string // a pattern, in any case
	// allowed are expressions in which a refused word means something else, each with the reason.
	allowed map[string]string
	// bad holds one sentence for each refused word. The column "not" of docs/glossary.md has no word that is not in one.
	bad []string
}

// wordings are the words of docs/glossary.md, as a reader would meet them. A word with many meanings is refused with its neighbors.
var wordings = []wording{
	{
		thing: "visitors who wait, for visitors", word: "line", readers: visitors,
		refused: `\bqueu(e|es|ed|ing)\b`,
		bad:     []string{"You are in the queue."},
	},
	{
		thing: "visitors who wait, for operators", word: "queue", readers: operators,
		refused: `\b(in|into|of|from|leave|leaves|left|join|joins|joined|the|whole|waiting|your) line\b|\blines? (of|is|are) (waiting|visitors|people|held|longer|gone|empty)\b`,
		allowed: map[string]string{
			`place in line`: "what a visitor keeps",
			`\| in line \|`: "the label of the simulator's report, explained",
			`You are in line|page says (that )?the line|says "line"`: "quotes the visitor's page",
		},
		bad: []string{"Those in line are let in.", "The line is held.", "The whole line", "a line of visitors"},
	},
	{
		thing: "a visitor", word: "visitor", readers: operators,
		refused: `\b(waiting|admitted) (users?|clients?)\b|\b(users?|clients?) (who|in the queue)\b`,
		bad:     []string{"A waiting user", "clients in the queue"},
	},
	{
		thing: "total_active_users", word: "active users", readers: everyone,
		refused: `\b(sessions|users|people|many) (inside )?at once\b|\b(may|are|is|be|was|were|get|how many|visitors|people|everybody|users|count) inside\b|\binside at\b|^\W?inside\W?$|\binside and\b|\d\*? inside\b`,
		bad:     []string{"Inside at once", "sessions at once", "how many are inside"},
	},
	{
		thing: "new_users_per_minute", word: "new users per minute", readers: everyone,
		refused: `\b(new|users|visitors|sessions|admitted|admissions) (a|each|every) minute\b|\blet in (a|per|each) minute\b`,
		bad:     []string{"New a minute", "let in per minute"},
	},
	{
		thing: "the number in the queue", word: "position", readers: everyone,
		refused: `\branks?\b|\bstandings?\b|\bnumbers? in (the )?(line|queue)\b`,
		allowed: map[string]string{`"standing"`: "a member of the API: whether a visitor waits, is active or was"},
		bad:     []string{"your rank", "the visitor's standing", "number in line"},
	},
	{
		thing: "what a visitor keeps", word: "place in line", readers: everyone,
		refused: `\bspots?\b`,
		bad:     []string{"You keep your spot."},
	},
	{
		thing: "the predicted wait", word: "estimated wait", readers: everyone,
		refused: `\bforecasts?\b|\b(announced|predicted|expected) waits?\b`,
		bad:     []string{"No forecast", "the announced wait"},
	},
	{
		thing: "entering", word: "admitted; for visitors: it's your turn", readers: everyone,
		refused: `\b(let|lets|letting) (\w+ ){0,2}in\b|\b(come|comes|came|coming|go|goes) inside\b|\b(have|has|had|who|already|they|visitors|people) entered\b|\bentered (lately|with)\b`,
		bad:     []string{"You will be let in.", "You have already entered.", "They come inside."},
	},
	{
		thing: "random", word: "random order; at the start of an event: shuffle", readers: everyone,
		refused: `\bby lot\b|\b(a|the|every|each|next|new|of) draws?\b|\bdrawn\b|\bdraws? (lots|the order|places|visitors)\b`,
		allowed: map[string]string{`"drawn \d`: "a kind of worlds of sim/mutants"},
		bad:     []string{"places by lot", "at the next draw"},
	},
	{
		thing: "a page with the operator's HTML", word: "custom page", readers: operators,
		refused: `\bpages? of (one|its|your|their)('s)? own\b|\bown waiting pages?\b`,
		bad:     []string{"a page of one's own"},
	},
	{
		thing: "pause, queue_all, drain, reject", word: "exactly these", readers: operators,
		refused: `\b(hold|holds|held|holding) (everybody|everyone|all|anyone|newcomers|visitors|the (line|queue))\b|\b(everybody|everyone|queue|line|visitors|room|newcomers) (is|are|was|were) held\b|^\W?[Hh]eld\b`,
		bad:     []string{"holds everybody who has no session", "The queue is held.", "hold all visitors", "Queue-all and prequeues hold everybody."},
	},
	{
		thing: "keeping the place of a visitor who missed a check-in", word: "place hold", readers: operators,
		refused: `\bplaces? (is|are) held\b|\b(the|a|its|their) hold\b`,
		bad:     []string{"until the hold is over"},
	},
	{
		thing: "bypass", word: "bypass", readers: operators,
		refused: `\b(pass|passes|passed|passing) (a|the|by|this|every|all|nearly) (room|rooms|waiting room|rules?)\b|\bwho passes\b|\blet pass\b|\brequests? pass(es)?\b`,
		bad:     []string{"who may pass a room"},
	},
	{
		thing: "the listener for operators", word: "admin address", readers: operators,
		refused: `\boperators?(' |'s |’ |’s | )(address|listener|port)\b|\badmin (listener|port)\b`,
		bad:     []string{"the operators' address"},
	},
	{
		thing: "prefix of metrics", word: "anteroom_", readers: operators,
		refused: `\bwr_`,
		allowed: map[string]string{"former prefix, `wr_`": "tells what to replace in this release"},
		bad:     []string{"wr_waiting"},
	},
	{
		thing: "hosts with their origins", word: "proxied site; a site is a data center of a cluster", readers: operators,
		refused: `\b(your|protected) sites?\b|\bsites? (you|to) protect\b|\bsites? behind\b`,
		bad:     []string{"as many as your site can serve", "the site behind it"},
	},
	{
		thing: "a process without a cluster, a node without its site", word: "standalone, detached", readers: operators,
		refused: `\b(process|node|runs|running|door|installation|answers|stands)( is)? alone\b|^\W?alone\W?$`,
		bad:     []string{"a process alone", "the node is alone and"},
	},
	{
		thing: "someone who arrives", word: "a visitor, a new visitor, anyone who", readers: everyone,
		refused: `\bwho ?ever\b|\bnewcomers?\b|(^|[.;:(] ?)who (comes?|waits?|joins?|asks?|arrives?|is inside)\b`,
		bad:     []string{"Whoever joins waits.", "Newcomers are turned away.", "Who joins now gets in at 9."},
	},
	{
		thing: "American spelling", word: "customize, color, behavior, center", readers: everyone,
		refused: `\b\w*(colour|behaviour|favour|honour)\w*|\bcentres?\b|\b(customis|normalis|serialis|recognis|organis|minimis|optimis|initialis)\w+|\bcancell(ed|ing)\b|\blicence`,
		bad:     []string{"data centres", "the colour", "customise"},
	},
}

// passage is a text that people read, with the place where it begins.
type passage struct {
	path    string
	line    int
	readers readers
	words   string
}

// codeWord matches a key, a kind or a name in code: one word in lower case.
var codeWord = regexp.MustCompile("^['\"`]?[./a-z][A-Za-z0-9_./:%-]*['\"`]?$")

// goPassages returns the string literals of a file, with those that are added together as one: errors, log messages, help,
// descriptions of metrics, sentences in the tags of fields.
func goPassages(s source) (out []passage) {
	add := func(at token.Pos, words string) {
		out = append(out, passage{path: s.path, line: s.fset.Position(at).Line, readers: operators, words: words})
	}
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				words, _ := literal(n.Tag)
				for _, name := range []string{"doc", "label"} {
					add(n.Tag.Pos(), reflect.StructTag(words).Get(name))
				}
				ast.Inspect(n.Type, visit)
			}
			return n.Tag == nil
		case *ast.BinaryExpr:
			if n.Op != token.ADD {
				return true
			}
			var sum strings.Builder
			var operand func(e ast.Expr)
			operand = func(e ast.Expr) {
				if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
					operand(b.X)
					operand(b.Y)
				} else if words, ok := literal(e); ok {
					sum.WriteString(words)
				} else {
					sum.WriteString("…")
					ast.Inspect(e, visit)
				}
			}
			operand(n)
			add(n.Pos(), sum.String())
			return false
		case *ast.BasicLit:
			if words, ok := literal(n); ok && !codeWord.MatchString(words) {
				add(n.Pos(), words)
			}
		}
		return true
	}
	ast.Inspect(s.file, visit)
	return out
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	words, err := strconv.Unquote(lit.Value)
	return words, err == nil
}

// scriptComment matches comments of TypeScript, and addresses, whose slashes begin none.
var scriptComment = regexp.MustCompile(`(?s)https?://|/\*.*?\*/|//[^\n]*`)

// scriptText matches what the dashboard's sources show: strings, and text between elements and expressions.
var scriptText = regexp.MustCompile("'[^'\n]*'|\"[^\"\n]*\"|`[^`]*`" + `|[>}][^<>{};]*[<{]|(?m)^\s*[\pL(][^<>{};=]*[<{]?$`)

// script matches what no text has.
var script = regexp.MustCompile(`\b(const|import|from|function|return|export|interface) |=>|===|&&| = |\w\.\w+\W|\?:|\w: (string|number|boolean)`)

// scriptPassages returns the texts of a file of the dashboard.
func scriptPassages(name, text string) (out []passage) {
	text = scriptComment.ReplaceAllStringFunc(text, func(c string) string {
		return strings.Repeat(" ", len(c)-strings.Count(c, "\n")) + strings.Repeat("\n", strings.Count(c, "\n"))
	})
	for _, m := range scriptText.FindAllStringIndex(text, -1) {
		words := text[m[0]:m[1]]
		if codeWord.MatchString(words) || (!strings.ContainsAny(words[:1], "'\"`") || strings.Contains(words, "\n")) && script.MatchString(words) {
			continue
		}
		out = append(out, passage{path: name, line: 1 + strings.Count(text[:m[0]], "\n"), readers: operators, words: words})
	}
	return out
}

// wordFaults returns the refused words of the passages.
func wordFaults(passages []passage, wordings []wording) (faults []string) {
	for _, w := range wordings {
		refused := regexp.MustCompile(`(?i)` + w.refused)
		var allowed []*regexp.Regexp
		for pattern := range w.allowed {
			allowed = append(allowed, regexp.MustCompile(`(?i)`+pattern))
		}
		for _, p := range passages {
			if p.readers&w.readers == 0 {
				continue
			}
			words := strings.ReplaceAll(p.words, "\n", " ") // a phrase may go over the end of a line
			for _, m := range refused.FindAllStringIndex(words, -1) {
				if slices.ContainsFunc(allowed, func(a *regexp.Regexp) bool {
					return slices.ContainsFunc(a.FindAllStringIndex(words, -1), func(e []int) bool { return e[0] < m[1] && m[0] < e[1] })
				}) {
					continue
				}
				from, to := max(0, m[0]-30), min(len(words), m[1]+30)
				faults = append(faults, fmt.Sprintf("%s:%d: %q in %q; write: %s (%s)", p.path, p.line+strings.Count(p.words[:m[0]], "\n"),
					words[m[0]:m[1]], strings.TrimSpace(words[from:to]), w.word, w.thing))
			}
		}
	}
	return faults
}

// fence matches a block of the output of a command.
var fence = regexp.MustCompile("(?ms)^```text$.*?^```$")

// passages collects what people read: the waiting page, the dashboard, help, errors, logs, descriptions of metrics and of the
// APIs, the documents, the examples. Some files are left out:
//   - the glossary lists the refused words, the changelog, the track record and ADRs say what things were called;
//   - lab, scripts/tools and house are not shipped, and linktest and mutants are tests;
//   - engine and sim with the reports of its simulations (and their copies in docs/simulate.md) keep the words of queueing theory;
//     the demo below sim, which people see, does not.
func passages(t *testing.T, sources []source) (out []passage) {
	t.Helper()
	for _, s := range sources {
		leftOut := anyUnder([]string{"internal/house", "engine/...", "sim/...", "cluster/linktest"}, s.pkg) && !under("sim/demo/...", s.pkg)
		if !s.test && !s.nested && !leftOut {
			out = append(out, goPassages(s)...)
		}
	}
	for name, text := range dashboardScripts(t) {
		if !under("dashboard/app/test", path.Dir(name)) {
			out = append(out, scriptPassages(name, text)...)
		}
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skippedDir(d.Name()) || slices.Contains([]string{"lab", "scripts/tools", "sim", "docs/adr"}, p) {
				return fs.SkipDir
			}
			return nil
		}
		reader := operators
		switch name := path.Base(p); {
		case p == "docs/glossary.md" || p == "TRACK-RECORD.md" || p == "CHANGELOG.md":
			return nil
		case under("page/asset", path.Dir(p)) || p == "page/lang/en-US.json":
			reader = visitors
		case name == "openapi.json" || name == "schema.json" || name == "fields.json" || under("examples/...", path.Dir(p)):
		case !slices.Contains([]string{".md", ".yml", ".yaml", ".graphql"}, path.Ext(p)):
			return nil
		}
		words := readText(t, path.Join(root, p))
		if p == "docs/simulate.md" {
			words = fence.ReplaceAllStringFunc(words, func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) })
		}
		out = append(out, passage{path: p, line: 1, readers: reader, words: words})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// glossaryWords returns the words of the column "not" of the glossary.
func glossaryWords(page string) (words []string) {
	for _, cells := range tableRows(page) {
		if len(cells) != 4 {
			continue
		}
		for word := range strings.SplitSeq(cells[3], ",") {
			if word = strings.TrimSpace(word); word != "" && !strings.HasPrefix(word, "in ") && !strings.HasPrefix(word, "where ") {
				words = append(words, word)
			}
		}
	}
	return words
}

// TestWordRuleBites: each refused word is a fault where it stands for the thing, and every word that the glossary refuses is one
// of them; the word itself is none.
func TestWordRuleBites(t *testing.T) {
	t.Parallel()
	var bad []string
	for _, w := range wordings {
		for _, words := range w.bad {
			bad = append(bad, strings.ToLower(words))
			if got := wordFaults([]passage{{path: "a.md", line: 1, readers: w.readers, words: words}}, []wording{w}); len(got) == 0 {
				t.Errorf("%s: %q is no fault", w.thing, words)
			}
		}
		for expression, reason := range w.allowed {
			if reason == "" {
				t.Errorf("%s: %s is allowed without a reason", w.thing, expression)
			}
		}
		if got := wordFaults([]passage{{path: "a.md", line: 1, readers: w.readers, words: w.word}}, []wording{w}); len(got) != 0 {
			t.Errorf("%s: its own word is a fault: %q", w.thing, got)
		}
	}
	for _, word := range glossaryWords(readText(t, root+"/docs/glossary.md")) {
		if !slices.ContainsFunc(bad, func(s string) bool { return strings.Contains(s, word) }) {
			t.Errorf("docs/glossary.md: %q is not refused in any text; add it to wordings", word)
		}
	}
}

// TestPassages: what people read is found, where it is; what only the machine reads is not.
func TestPassages(t *testing.T) {
	t.Parallel()
	found := func(all []passage) (out []string) {
		for _, p := range all {
			if words := strings.Trim(p.words, "'\"`<>{} \n"); words != "" {
				out = append(out, fmt.Sprintf("%d %s", p.line, words))
			}
		}
		return out
	}
	source := parseSource(t, "a.go", "package a\nimport \"fmt\"\nvar x = fmt.Sprint(\"in the \" +\n\t\"line\"+f(\"a wait\"), \"standing\")\ntype t struct {\n\tF int `key:\"line\" doc:\"Let in.\"`\n}\n")
	if got, want := found(goPassages(source)), []string{"3 in the line…", "6 Let in."}; !slices.Contains(got, want[0]) || !slices.Contains(got, want[1]) || !slices.Contains(got, "4 a wait") || len(got) != 3 {
		t.Errorf("Go: %q", got)
	}
	script := "import { line } from './line'\n// the line\nconst line = (n) => <p title=\"In line\">\n  The line\n  is long. {n ? 'Wait' : `${n} wait`}</p>\n"
	if got, want := found(scriptPassages("a.tsx", script)), []string{"3 In line", "3 The line\n  is long.", "5 Wait", "5 ${n} wait"}; !slices.Equal(got, want) {
		t.Errorf("TypeScript: %q, want %q", got, want)
	}
	over := wordFaults([]passage{{path: "a.md", line: 7, readers: operators, words: "one\nin the\nline"}}, wordings)
	if len(over) != 1 || !strings.HasPrefix(over[0], `a.md:8: "the line"`) {
		t.Errorf("over the end of a line: %q", over)
	}
}
