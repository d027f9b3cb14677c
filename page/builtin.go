package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"sync"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/packed"
)

//go:embed asset
var files embed.FS

// lang.gz holds the files of lang, one for each of [anteroom.Languages]. go test ./page -update packs them.
//
//go:embed lang.gz
var packedLanguages []byte

var languages = sync.OnceValue(func() map[string]string { return packed.UnpackFiles(packedLanguages) })

// titleTail ends every title, in every language: monitors, load tests and extensions know
// the page by it, as by the class of its footer and the ids wrapper, waitTime and last-updated.
const titleTail = " – Waiting Room powered by Anteroom"

// rightToLeft languages of [anteroom.Languages].
var rightToLeft = map[string]bool{"ar-EG": true, "fa-IR": true, "he-IL": true}

// shelf holds the built-in page in every language, each made at its first visit.
type shelf struct {
	policies     [numChallenges]string
	formPolicies [numChallenges]string // with a form
	work         string                // script of the challenge
	token        string                // likewise
	form         string                // script of a form
	beside       string                // script of pages beside the waiting page
	stay         string                // and by which they stay in line
	leavePolicy  string
	prints       map[string]func() *builtin
}

// library never changes once it is made.
var library = sync.OnceValue(func() *shelf {
	style, script, event := bare("asset/page.css"), bare("asset/page.js"), bare("asset/event.js")
	s := &shelf{work: bare("asset/work.js"), token: bare("asset/token.js"), form: bare("asset/form.js"), beside: bare("asset/beside.js"), stay: bare("asset/stay.js"), prints: map[string]func() *builtin{}}
	policies := func(also, forms string) [numChallenges]string {
		policy := func(scripts, others string) string {
			return "default-src 'none'; style-src 'sha256-" + hash(style) + "'; script-src 'sha256-" + hash(script) +
				"' 'sha256-" + hash(event) + "' 'sha256-" + more().print + "='" + also + scripts + "; worker-src 'self'; img-src data:; connect-src 'self'" + others + "; base-uri 'none'" + forms
		}
		return [numChallenges]string{
			NoChallenge: policy("", ""),
			Work:        policy(" 'sha256-"+hash(s.work)+"'", ""),
			Turnstile:   policy(" 'sha256-"+hash(s.token)+"' "+turnstileOrigin, "; frame-src "+turnstileOrigin),
			Hook:        policy(" 'sha256-"+hash(s.token)+"' "+hookOrigin, " "+hookOrigin+"; frame-src "+hookOrigin),
		}
	}
	s.policies = policies("", "; form-action 'none'")
	// A form's policy counts for the redirects of its answer too, and a shop may redirect to a bank.
	s.formPolicies = policies(" 'sha256-"+hash(s.form)+"'", "")
	// So too a visitor who gets in by an invite code.
	s.leavePolicy = "default-src 'none'; style-src 'sha256-" + hash(style) + "' 'sha256-" + hash(inviteStyle) + "' 'sha256-" + hash(moveStyle) + "'; script-src 'sha256-" + hash(s.beside) + "' 'sha256-" + hash(s.stay) + "'; img-src data:; connect-src 'self'; base-uri 'none'"
	for _, language := range anteroom.Languages {
		s.prints[language] = sync.OnceValue(func() *builtin {
			return newBuiltin(newDeflater(), language, style, script, event)
		})
	}
	return s
})

func printed(language string) *builtin {
	prints := library().prints
	if b := prints[language]; b != nil {
		return b()
	}
	return prints[anteroom.Languages[0]]()
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// tight takes the space around operators and brackets, and after what separates, out of a script's code.
var tight = strings.NewReplacer(" = ", "=", " => ", "=>", " + ", "+", " || ", "||", " && ", "&&", " ? ", "?", " : ", ":", " == ", "==", " != ", "!=",
	" > ", ">", " < ", "<", " >= ", ">=", " <= ", "<=", " * ", "*", " / ", "/", " - ", "-", " | ", "|", " % ", "%", " ** ", "**",
	"if (", "if(", "for (", "for(", "catch (", "catch(", "try {", "try{", ") {", "){", "{ ", "{", " }", "}", "} else ", "}else ", " else {", " else{", ", ", ",", "; ", ";", ": ", ":")

// tighten does so with a line, whose strings stay.
func tighten(line string) string {
	var b strings.Builder
	for line != "" {
		begin := strings.IndexAny(line, `'"`)
		if begin < 0 {
			begin = len(line)
		}
		b.WriteString(strings.ReplaceAll(tight.Replace(line[:begin]), ") ", ")"))
		if line = line[begin:]; line != "" {
			end := strings.IndexByte(line[1:], line[0]) + 2
			b.WriteString(line[:end])
			line = line[end:]
		}
	}
	return b.String()
}

// bare reads an asset without what only its reader needs: indentation, empty lines, spaces around
// operators, and comments, which stand on lines of their own.
func bare(name string) string {
	raw, err := files.ReadFile(name)
	if err != nil {
		panic(err) // embedded: cannot be missing
	}
	var b strings.Builder
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") {
			continue
		}
		if strings.HasSuffix(name, ".js") {
			line = tighten(line)
		}
		b.WriteString(line)
		if !strings.HasSuffix(name, ".css") { // whose rules end with a brace
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// The variants of a page beside its state.
const (
	firstVisit = iota // with the hint about cookies
	returning
	paused
	numVariants
)

// builtin is the page in one language.
type builtin struct {
	documents [2][numStates][numVariants]document // without an event, and with one
	numerals  numerals

	headings                                     [numStates]string
	notes                                        map[anteroom.Reason]string
	ahead, wait, unknown, day, ref, updated, sep string
	less, more, min, hour, kept, begins, ends    around
	start, check, unsent, resend                 string
	available, unlikely, chance, choice, code    string
}

// wordsOf reads the words of one of [anteroom.Languages].
func wordsOf(language string) *words {
	w := new(words)
	if err := json.Unmarshal([]byte(languages()[language+".json"]), w); err != nil {
		panic(fmt.Sprintf("page: lang/%s.json: %v", language, err)) // a test holds the files to the list
	}
	return w
}

func newBuiltin(press *deflater, language, style, script, event string) *builtin {
	w := wordsOf(language)
	e := html.EscapeString
	b := &builtin{
		numerals: w.numerals(),
		notes: map[anteroom.Reason]string{
			anteroom.ReasonPlaceLost:   e(w.Lost),
			anteroom.ReasonSessionOver: e(w.over()),
			anteroom.ReasonUsed:        e(w.Used),
			anteroom.ReasonBound:       e(w.Bound),
		},
		ahead: e(w.Ahead), wait: e(w.Wait), unknown: e(w.Unknown), day: e(w.Day), ref: e(w.Ref), updated: e(w.Updated), sep: e(w.Range),
		less: cut(w.Less), more: cut(w.More), min: cut(w.Min), hour: cut(w.Hour), kept: cut(w.Kept),
		begins: cut(w.Begins), ends: cut(w.Ends), start: e(w.Start), check: e(w.Check), unsent: e(w.Unsent), resend: e(w.Resend),
		available: e(w.Available), unlikely: e(w.Unlikely), chance: e(w.Chance), choice: e(w.Choice), code: e(w.Code),
	}
	head := headOf(language, style)
	for st, said := range w.sayings() {
		told, err := json.Marshal(spoken(w, language, state(st))) // escapes <, > and &
		if err != nil {
			panic(err) // strings only
		}
		b.headings[st] = e(said[0])
		lead := `<main>` + picture(state(st)) + `<h1>` + e(said[0]) + `</h1><p id="lead">` + e(said[1]) + `</p>`
		for variant := range numVariants {
			for i, scripts := range [...]string{script, event + "</script><script>" + script} {
				b.documents[i][st][variant] = document{
					press.text(head),
					{hole: titleHole},
					press.text(lead),
					{hole: factsHole},
					press.text(foot(w, language, state(st), variant) + `<script type="application/json" id="words">` + string(told) + `</script>`),
					press.text("<script>" + scripts + "</script></body></html>\n"),
				}
			}
		}
	}
	return b
}

// headOf is what stands before the title. No text stands there that is not ASCII: the charset comes first.
func headOf(language, style string) string {
	direction := "ltr"
	if rightToLeft[language] {
		direction = "rtl"
	}
	return `<!doctype html><html lang="` + tagOf(language) + `" dir="` + direction + `"><head><meta charset="utf-8">` +
		`<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">` +
		`<meta name="color-scheme" content="light dark"><link rel="icon" href="` + icon + `">` +
		"<style>" + style + "</style>"
}

// tagOf returns the language tag of the page's words, which says the script where a reader
// could guess wrong.
func tagOf(language string) string {
	switch language {
	case "zh-CN":
		return "zh-Hans-CN"
	case "zh-TW":
		return "zh-Hant-TW"
	case "sr-BA":
		return "sr-Cyrl-BA"
	case "tl-PH":
		return "fil-PH"
	}
	return language
}

// spoken are the words that the script needs, and where it finds what few visitors need (more.go).
func spoken(w *words, language string, st state) map[string]any {
	kept := w.Kept
	if st == chances { // there is no place that could be kept
		kept = ""
	}
	return map[string]any{
		"unknown": w.Unknown, "day": w.Day, "less": w.Less, "more": w.More, "min": w.Min, "hour": w.Hour, "range": w.Range,
		"kept": kept, "offline": w.Offline, "turn": w.Turn, "soon": w.Soon,
		"lang": tagOf(language), "rest": more().print,
	}
}

// foot is what follows the facts and is the same for every visitor.
func foot(w *words, language string, st state, variant int) string {
	e := html.EscapeString
	var b strings.Builder
	if !st.static() {
		b.WriteString(`<button id="tell" type="button" hidden>` + e(w.Tell) + `</button>`)
		if variant == paused {
			b.WriteString(`<noscript><p class="note">` + e(w.Paused) + `</p></noscript>`)
		} else {
			auto, cookies := `<p class="quiet">`+e(w.Auto)+`</p>`, w.Cookies
			if st == chances {
				auto, cookies = "", w.NoTry // its lead says that the page updates
			}
			b.WriteString(auto + `<noscript>`)
			if variant == firstVisit {
				b.WriteString(`<p class="quiet">` + e(cookies) + `</p>`)
			}
			b.WriteString(`<p class="quiet"><a href="?` + holdQuery + `" rel="nofollow">` + e(w.Pause) + `</a></p></noscript>`)
		}
		if st != lineFull {
			b.WriteString(`<p class="quiet"><a href="?` + leaveQuery + `" rel="nofollow">` + e(w.Leave) + `</a></p>`)
			if st != chances && st != rejected { // else there is no place, or none that moves
				b.WriteString(`<p class="quiet"><a href="?` + MoveQuery + `" rel="nofollow">` + e(w.Moving[0]) + `</a></p>`)
			}
		}
	}
	b.WriteString(`<p id="say" role="status"></p><p id="turn" role="alert"></p></main>` + switchTo(language) +
		`<footer class="waitingrooms-text" lang="en" dir="ltr">Waiting Room powered by Anteroom</footer></div>`)
	return b.String()
}
