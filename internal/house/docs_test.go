package house

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// boundless are packages whose constants are no limits of the product.
var boundless = []string{"sim/demo/...", "cmd/...", "examples/..."}

// limits are the limits of the product, by folder, that no other package has to know. Exported ones need no list: they are
// called Max… or Min….
var limits = map[string][]string{
	"analytics/report": {"maxRange", "maxEvents"},
	"analytics/store":  {"maxHistogramRows", "minSize"},
	"api":              {"maxBodyMembers", "maxBodyBytes", "maxBodyDepth", "maxFaults", "MinPerPage", "MaxPerPage"},
	"api/graph": {
		"maxRequestBytes", "maxQueryBytes", "maxTokens", "maxNesting", "maxDepth", "maxSelections", "maxArguments",
		"maxVariables", "maxVariableValues", "maxVariableMembers", "maxConditions", "maxFilterValues", "maxSpans",
		"maxZones", "maxPageSize", "maxNodeFields", "maxScanned", "maxFields", "maxMetaFields", "maxQueries",
	},
	"api/own":          {"maxAnalyticsPoints"},
	"api/rest":         {"maxPreviews", "maxPreviewBytes", "maxListPage", "maxOperations"},
	"bridge":           {"joinEvery", "joinWithin", "maxNetworks"},
	"bridge/aws":       {"maxBody", "maxBatches", "maxSigned", "maxIssued", "maxToken", "maxAuthorize", "maxSkew", "codeTime", "claimWithin", "joinTime"},
	"bridge/queueit":   {"maxReturns", "returnsWithin", "leastRedeem", "maxCanceled", "maxInvitation", "storeTime"},
	"dashboard":        {"maxSessions"},
	"manage":           {"maxLent", "maxInviteUses", "maxInviteLife", "maxInviteCodes", "maxInviteBatches", "maxZones", "maxRules", "maxEvents", "maxPages", "maxAuditRecords", "maxBackupLine", "MaxAdmitNow", "defaultInviteLife", "inviteMemory"},
	"gateway/socket":   {"maxPipes"},
	"gateway/push":     {"maxSubscriptions", "maxMessage", "maxEndpoint", "KeptFor", "tries"},
	"ticket/invite":    {"maxText", "again", "attempts"},
	"ticket/account":   {"maxToken", "maxJWKS", "leeway", "maxName", "remembered", "attempts", "maxKeys", "refresh", "again", "fetchTime", "maxSources"},
	"gateway":          {"maxEdges", "maxDrawDownloads", "touchesPerSecond", "touchesAtOnce", "moveTime", "pushesAtOnce", "pushesPerMinute", "maxBackURL", "movesAtOnce", "movesPerMinute", "inviteTries", "invitesPerMinute", "inviteTime", "accountTime", "accountMemory", "accountTokens", "bodyGrace", "bodyTime", "cookieSlack", "verifyTime", "verifyMost", "verifyFew", "limiterTime", "maxFormBytes", "maxFormFields", "limiterLeast", "crowdsPerPart"},
	"engine":           {"maxProving", "maxProbation", "probationAll", "probationFew"},
	"gateway/h1":       {"maxFields", "maxTrailer", "maxInterim", "maxShort", "inBuffer", "unreadBody", "lingerTime", "leftTime"},
	"manage/webhook":   {"maxKept", "maxSignature"},
	"ticket/pass":      {"maxReports"},
	"page":             {"maxTemplateTags", "maxBarriers", "maxFormHTML", "maxTemplateNesting"},
	"bridge/fastly":    {"maxCookie"},
	"gateway/extauthz": {"maxBytes"},
	"node":             {"maxMoves", "maxStreamsOfVisitor"},
	"ticket":           {"maxKeys"},
	"rules": {
		"maxNodes", "maxDepth", "maxSetItems", "maxRegexps", "maxRegexpLength", "maxRegexpProgram", "maxWork", "maxSetWork",
	},
	"rules/crawler": {"maxVerified", "maxImpostors", "maxPending", "maxPendingPerNetwork"},
	"rules/geo":     {"maxFiles", "maxFileBytes"},
	"server":        {"maxRehearsals", "pushesAtOnce", "pushesPerHost", "pushTime", "pushLook", "pushPause", "pushLongPause", "pushAgain", "pushSlack", "spanText", "spansWaiting", "spansAtOnce", "traceKeep", "maxTraceState"},
}

// limitsPageFaults compares docs/limits.md with the constants of limits.go, with every other exported constant of the
// product called Max… or Min…, and with the listed ones: each has one row, with the value, a reason and what happens at it.
func limitsPageFaults(sources []source, listed map[string][]string, page string) []string {
	values := constants(sources)
	wanted := map[string]bool{}
	for name := range values {
		dir, short := path.Split(name)
		if ast.IsExported(short) && (dir == "" || strings.HasPrefix(short, "Max") || strings.HasPrefix(short, "Min")) {
			wanted[name] = true
		}
	}
	var faults []string
	for folder, names := range listed {
		for _, name := range names {
			key := folder + "/" + name
			if _, ok := values[key]; !ok {
				faults = append(faults, fmt.Sprintf("the list of limits: %s.%s is gone; take it off the list and off docs/limits.md", folder, name))
				continue
			}
			wanted[key] = true
		}
	}
	exists := map[string]bool{}
	for _, s := range sources {
		exists[s.pkg] = true
	}
	rows := map[string]bool{}
	for i, cells := range tableRows(page) {
		name, ok := codeOf(cells[0])
		if !ok {
			continue
		}
		key := constantKey(name)
		where := fmt.Sprintf("docs/limits.md, row %d (%s)", i+1, name)
		if rows[key] {
			faults = append(faults, where+": is there twice")
		}
		rows[key] = true
		if !wanted[key] {
			if pkg, _ := path.Split(key); pkg != "" && !exists[strings.TrimSuffix(pkg, "/")] {
				continue // the package is still to come
			}
			faults = append(faults, where+": there is no such constant")
			continue
		}
		if len(cells) != 4 || cells[2] == "" || cells[3] == "" {
			faults = append(faults, where+": needs four cells: name, value, reason, what happens at it")
			continue
		}
		if want := shown(values[key]); len(want) > 0 && !slices.Contains(want, cells[1]) {
			faults = append(faults, fmt.Sprintf("%s: says %q; the code says %s", where, cells[1], strings.Join(want, " or ")))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if !rows[key] {
			faults = append(faults, fmt.Sprintf("docs/limits.md: %s (%s) is missing; add a row with its reason and what happens at it",
				strings.ReplaceAll(key, "/", "."), strings.Join(shown(values[key]), " or ")))
		}
	}
	return faults
}

// value of a constant. A duration when it was written with units of package time.
type value struct {
	v        constant.Value // nil when it could not be computed
	duration bool
}

// constants returns the constants of limits.go by name, and those of all other packages as "folder/Name".
func constants(sources []source) map[string]value {
	out := map[string]value{}
	for range 2 { // a constant may refer to one of a file that comes later
		for _, s := range sources {
			if s.test || s.nested || anyUnder(boundless, s.pkg) || (s.pkg == "." && s.path != "limits.go") {
				continue
			}
			for _, d := range s.file.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.CONST {
					continue
				}
				for _, spec := range g.Specs {
					vs := spec.(*ast.ValueSpec)
					for i, id := range vs.Names {
						key := id.Name
						if s.pkg != "." {
							key = s.pkg + "/" + id.Name
						}
						out[key] = value{}
						if i < len(vs.Values) {
							out[key] = evaluate(vs.Values[i], s.pkg, out)
						}
					}
				}
			}
		}
	}
	return out
}

var timeUnits = map[string]time.Duration{"Nanosecond": 1, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// evaluate computes the few forms in which limits are written.
func evaluate(e ast.Expr, pkg string, known map[string]value) value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return value{v: constant.MakeFromLiteral(e.Value, e.Kind, 0)}
	case *ast.ParenExpr:
		return evaluate(e.X, pkg, known)
	case *ast.Ident:
		if pkg == "." {
			return known[e.Name]
		}
		return known[pkg+"/"+e.Name]
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		if !ok {
			return value{}
		}
		if x.Name == "time" {
			if unit, ok := timeUnits[e.Sel.Name]; ok {
				return value{v: constant.MakeInt64(int64(unit)), duration: true}
			}
		}
		if x.Name == "anteroom" {
			return known[e.Sel.Name]
		}
	case *ast.BinaryExpr:
		x, y := evaluate(e.X, pkg, known), evaluate(e.Y, pkg, known)
		if x.v == nil || y.v == nil || x.v.Kind() != constant.Int || y.v.Kind() != constant.Int {
			return value{}
		}
		switch e.Op {
		case token.SHL:
			n, _ := constant.Uint64Val(y.v)
			return value{v: constant.Shift(x.v, token.SHL, uint(n)), duration: x.duration}
		case token.ADD, token.SUB, token.MUL:
			return value{v: constant.BinaryOp(x.v, e.Op, y.v), duration: x.duration || y.duration}
		}
	}
	return value{}
}

// shown returns the forms in which the page may write a value: 5m, 10,000; and 64 KiB where
// that is exact. None when the value is unknown.
func shown(v value) []string {
	if v.v == nil {
		return nil
	}
	n, exact := constant.Int64Val(v.v)
	if v.v.Kind() != constant.Int || !exact {
		return []string{v.v.ExactString()}
	}
	if v.duration {
		s := time.Duration(n).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return []string{s}
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	forms := []string{digits}
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		forms = append(forms, fmt.Sprintf("%d MiB", n>>20))
	case n >= 1<<10 && n%(1<<10) == 0:
		forms = append(forms, fmt.Sprintf("%d KiB", n>>10))
	}
	return forms
}

// constantKey turns a name as the page writes it into a key of constants: "cluster.MaxValue"
// into "cluster/MaxValue"; names without a package are of the root.
func constantKey(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i] + "/" + name[i+1:]
	}
	return name
}

// glossaryFaults: every Go name in docs/glossary.md (second column) exists, once its package
// does. A word that lost its type, or was renamed in one place only, shows here.
func glossaryFaults(sources []source, page string) []string {
	types := map[string]bool{}
	exists := map[string]bool{}
	for _, s := range sources {
		if s.test {
			continue
		}
		exists[s.file.Name.Name] = true
		for _, d := range s.file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, spec := range g.Specs {
					types[s.file.Name.Name+"."+spec.(*ast.TypeSpec).Name.Name] = true
				}
			}
		}
	}
	var faults []string
	words := map[string]bool{}
	for _, cells := range tableRows(page) {
		if len(cells) != 4 || cells[2] == "" {
			faults = append(faults, fmt.Sprintf("docs/glossary.md: %q needs four cells: word, type, meaning, not", cells[0]))
			continue
		}
		if words[cells[0]] {
			faults = append(faults, fmt.Sprintf("docs/glossary.md: %q is there twice", cells[0]))
		}
		words[cells[0]] = true
		for part := range strings.SplitSeq(cells[1], ",") {
			name, ok := codeOf(strings.TrimSpace(part))
			if !ok {
				continue
			}
			pkg, _, _ := strings.Cut(name, ".")
			if exists[pkg] && !types[name] {
				faults = append(faults, fmt.Sprintf("docs/glossary.md: %q names %s, and there is no such type", cells[0], name))
			}
		}
	}
	if len(words) == 0 {
		faults = append(faults, "docs/glossary.md: has no table")
	}
	return faults
}

// markdownLink matches an inline link and takes its target up to the anchor.
var markdownLink = regexp.MustCompile(`\]\(([^)#\s]*)[^)]*\)`)

// brokenLinks: a link in a page that leads to a file of the repository leads to one that is
// there.
func brokenLinks(t *testing.T, root string) []string {
	t.Helper()
	var faults []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skippedDir(d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(p) != ".md" {
			return nil
		}
		for _, m := range markdownLink.FindAllStringSubmatch(readText(t, p), -1) {
			target := m[1]
			if target == "" || strings.Contains(target, ":") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), target)); err != nil {
				faults = append(faults, fmt.Sprintf("%s: links to %s, which is not there", p, target))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// TestLinkRuleBites: a link to a missing file is a fault; to a file, a page elsewhere or an
// anchor is none.
func TestLinkRuleBites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.md", "[b](b.md) [part](b.md#x) [here](#y) [web](https://example.com/c.md)")
	write("b.md", "")
	if got := brokenLinks(t, dir); len(got) != 0 {
		t.Errorf("good links: %q", got)
	}
	write("b.md", "[gone](c.md)")
	if got := brokenLinks(t, dir); len(got) != 1 {
		t.Errorf("one broken link: %q", got)
	}
}

// adrCode matches a piece of code in an ADR's text.
var adrCode = regexp.MustCompile("`([^`\n]+)`")

// adrName matches an exported name behind its package, its type, or both: engine.Site,
// Desk.Step, engine.Site.Visit.
var adrName = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*)((?:\.[A-Z][A-Za-z0-9]*)+)(?:\(.*\))?$`)

// adrFile matches a file or folder: a path, or the name of a Go file.
var adrFile = regexp.MustCompile(`^(?:\./)?(?:[\w*.-]+/[\w*./-]*|[\w*-]+\.go)$`)

// adrFaults: an ADR that is not superseded names no package, file or exported identifier
// of ours, in backticks, that is gone. Names that an ADR mentions as history stand without backticks.
// The files are paths from the root of the repository.
func adrFaults(sources []source, files []string, page, text string) []string {
	if _, status, ok := strings.Cut(text, "Status:"); ok {
		status, _, _ = strings.Cut(status, "\n")
		if strings.HasPrefix(strings.TrimSpace(strings.ToLower(status)), "superseded by") {
			return nil
		}
	}
	declared := declaredNames(sources)
	foreign := map[string]bool{} // import paths and the names of packages of others
	for _, s := range sources {
		for _, p := range s.imports() {
			if !strings.HasPrefix(p, "anteroom.") && !strings.Contains(p, "/anteroom") {
				foreign[p], foreign[strings.TrimSuffix(path.Base(p), "-go")] = true, true
			}
		}
	}
	var faults []string
	for _, m := range adrCode.FindAllStringSubmatch(text, -1) {
		code := m[1]
		switch name := adrName.FindStringSubmatch(code); {
		case name != nil:
			if !foreign[name[1]] && !declared[name[1]+name[2]] {
				faults = append(faults, fmt.Sprintf("%s: names %s, which is gone; a later ADR supersedes this one, or the name stands without backticks as history", page, code))
			}
		case adrFile.MatchString(code) && !foreign[code]:
			if !hasFile(files, strings.TrimPrefix(code, "./")) {
				faults = append(faults, fmt.Sprintf("%s: names %s, and there is no such file or folder", page, code))
			}
		}
	}
	return faults
}

// declaredNames returns every exported name as ADRs write it: pkg.Name, pkg.Type.Member and Type.Member,
// where a member is a method or a field.
func declaredNames(sources []source) map[string]bool {
	out := map[string]bool{}
	for _, s := range sources {
		pkg := s.file.Name.Name
		member := func(typ, name string) { out[typ+"."+name], out[pkg+"."+typ+"."+name] = true, true }
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					out[pkg+"."+d.Name.Name] = true
				} else if typ := receiverType(d.Recv.List[0].Type); typ != "" {
					member(typ, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							out[pkg+"."+id.Name] = true
						}
					case *ast.TypeSpec:
						out[pkg+"."+spec.Name.Name] = true
						var fields *ast.FieldList
						switch t := spec.Type.(type) {
						case *ast.StructType:
							fields = t.Fields
						case *ast.InterfaceType:
							fields = t.Methods
						}
						if fields == nil {
							continue
						}
						for _, f := range fields.List {
							for _, id := range f.Names {
								member(spec.Name.Name, id.Name)
							}
						}
					}
				}
			}
		}
	}
	return out
}

// receiverType returns the name of a method's type, without pointer and type parameters.
func receiverType(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverType(e.X)
	case *ast.IndexExpr:
		return receiverType(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// hasFile says whether a pattern names a file or a folder: a path from the root, or a file's name alone,
// wherever the file is. What a build makes (bin) is taken as there.
func hasFile(files []string, pattern string) bool {
	if strings.HasPrefix(pattern, "bin/") {
		return true
	}
	folder := strings.TrimSuffix(pattern, "/")
	return slices.ContainsFunc(files, func(f string) bool {
		if !strings.Contains(pattern, "/") {
			ok, _ := path.Match(pattern, path.Base(f))
			return ok
		}
		for ; f != "."; f = path.Dir(f) {
			if ok, _ := path.Match(folder, f); ok {
				return true
			}
		}
		return false
	})
}

// adrPageFaults applies adrFaults to every ADR below root, and holds the table of the ADRs to their files:
// each has one row, which says "superseded" exactly where the file does.
func adrPageFaults(t *testing.T, sources []source, root string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			files = append(files, p)
			return err
		}
		if d.Name() == ".git" || d.Name() == "node_modules" {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	adrs, err := filepath.Glob(filepath.Join(root, "docs/adr/[0-9]*.md"))
	if err != nil || len(adrs) == 0 {
		t.Fatalf("no ADRs: %v", err)
	}
	rows := map[string]string{}
	for _, cells := range tableRows(readText(t, filepath.Join(root, "docs/adr/README.md"))) {
		rows[strings.TrimSuffix(strings.SplitAfterN(cells[0], "(", 2)[1], ")")] = cells[len(cells)-1]
	}
	var faults []string
	for _, p := range adrs {
		text, base := readText(t, p), filepath.Base(p)
		if base == "0000-template.md" {
			continue
		}
		faults = append(faults, adrFaults(sources, files, "docs/adr/"+base, text)...)
		if row, ok := rows[base]; !ok {
			faults = append(faults, fmt.Sprintf("docs/adr/README.md: has no row for %s", base))
		} else if !strings.Contains(strings.ToLower(text), "status: "+strings.ToLower(row)) {
			faults = append(faults, fmt.Sprintf("docs/adr/README.md: calls %s %q, its own status line does not", base, row))
		}
	}
	return faults
}

// TestADRRuleBites: a package, file, identifier or member that is gone is a fault; one that exists, one of
// another module, an address, and anything in a superseded ADR is none.
func TestADRRuleBites(t *testing.T) {
	t.Parallel()
	sources := []source{
		parseSource(t, "engine/site.go", "package engine\nimport \"testing/synctest\"\nvar _ = synctest.Test\ntype Site struct{ Told int }\nfunc (s *Site) Visit() {}\nfunc New() {}\nconst TouchSlack = 1\n"),
	}
	files := []string{"engine/site.go", "tools/go.mod", "house_docs_test.go"}
	const accepted = "Date: 2026-11-20. Status: accepted.\n\n"
	for _, good := range []string{"`engine.Site`", "`engine.Site.Visit`", "`Site.Told`", "`Site.Visit()`", "`engine.New`", "`engine.TouchSlack`", "`engine/`", "`engine/site.go`",
		"`site.go`", "`tools/go.mod`", "`house_*_test.go`", "`testing/synctest`", "`synctest.Test`", "`/client/v4`", "`go test ./gone`", "engine.Gone", "`pause`", "`manage.zone.<id>`"} {
		if got := adrFaults(sources, files, "a.md", accepted+good); len(got) != 0 {
			t.Errorf("%s: %q", good, got)
		}
	}
	for _, bad := range []string{"`engine.Gone`", "`gone.Site`", "`engine.Site.Gone`", "`Site.Gone`", "`gone/`", "`engine/gone.go`", "`gone.go`", "`gone_*_test.go`"} {
		if got := adrFaults(sources, files, "a.md", accepted+bad); len(got) != 1 {
			t.Errorf("%s: %d faults, want 1: %q", bad, len(got), got)
		}
		if got := adrFaults(sources, files, "a.md", "Status: Superseded by 0014.\n"+bad); len(got) != 0 {
			t.Errorf("superseded, %s: %q", bad, got)
		}
		if got := adrFaults(sources, files, "a.md", "Status: accepted. Part superseded by 0014.\n"+bad); len(got) != 1 {
			t.Errorf("superseded in part, %s: %d faults, want 1", bad, len(got))
		}
	}
}

// tableRows returns the cells of the rows of all Markdown tables, without headings.
func tableRows(page string) [][]string {
	var rows [][]string
	body := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			body = false
			continue
		}
		if strings.Trim(line, "|-: ") == "" {
			body = true
			continue
		}
		if !body {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}

// codeOf returns the text of a cell that is one piece of code.
func codeOf(cell string) (string, bool) {
	if len(cell) > 2 && cell[0] == '`' && cell[len(cell)-1] == '`' {
		return cell[1 : len(cell)-1], true
	}
	return "", false
}

// TestLimitsPageRuleBites: a missing row, a wrong value, an unknown name and an empty reason
// are faults; a right page is none.
func TestLimitsPageRuleBites(t *testing.T) {
	t.Parallel()
	sources := []source{
		parseSource(t, "limits.go", "package anteroom\nimport \"time\"\nconst (\n\tDefaultX = 5*time.Minute\n\tMaxBodyBytes = 64 << 10\n\tMaxUsers = 1<<31 - 1\n)\n"),
		parseSource(t, "ticket/a.go", "package ticket\nconst MaxLife = anteroom.DefaultX + time.Hour\nconst Version = 1\nconst (\n\tmaxKeys = 2 * Version\n\tmaxNames = 3\n)\n"),
	}
	const head = "| bound | value | reason | at it |\n|---|---|---|---|\n"
	const x, body, users, life = "| `DefaultX` | 5m | r | a |\n", "| `MaxBodyBytes` | 64 KiB | r | a |\n", "| `MaxUsers` | 2,147,483,647 | r | a |\n", "| `ticket.MaxLife` | 1h5m | r | a |\n| `ticket.maxKeys` | 2 | r | a |\n"
	for _, c := range []struct {
		name, page string
		faults     int
	}{
		{"right", head + x + body + users + life, 0},
		{"row missing", head + x + body + users, 2},
		{"wrong value", head + x + strings.Replace(body, "64", "65", 1) + users + life, 1},
		{"no such constant", head + x + body + users + life + "| `MaxOld` | 1 | r | a |\n", 1},
		{"no such constant of a package", head + x + body + users + life + "| `ticket.MaxOld` | 1 | r | a |\n", 1},
		{"package to come", head + x + body + users + life + "| `sims.MaxOld` | 1 | r | a |\n", 0},
		{"twice", head + x + x + body + users + life, 1},
		{"no reason", head + "| `DefaultX` | 5m | | a |\n" + body + users + life, 1},
		{"not listed", head + x + body + users + life + "| `ticket.maxNames` | 3 | r | a |\n", 1},
		{"empty page", "", 5},
	} {
		if got := limitsPageFaults(sources, map[string][]string{"ticket": {"maxKeys"}}, c.page); len(got) != c.faults {
			t.Errorf("%s: %d faults, want %d: %q", c.name, len(got), c.faults, got)
		}
	}
	if got := limitsPageFaults(sources, map[string][]string{"ticket": {"maxKeys", "maxGone"}}, head+x+body+users+life); len(got) != 1 {
		t.Errorf("one listed that is gone: %d faults, want 1: %q", len(got), got)
	}
}

// TestGlossaryRuleBites: a type that is gone is a fault; one of a package to come is none.
func TestGlossaryRuleBites(t *testing.T) {
	t.Parallel()
	sources := []source{parseSource(t, "room.go", "package anteroom\ntype Room struct{}\n")}
	const head = "| word | type | meaning | not |\n|---|---|---|---|\n"
	if got := glossaryFaults(sources, head+"| room | `anteroom.Room` | m | |\n| door | `engine.Door` | m | entry |\n| slot | | m | |\n"); len(got) != 0 {
		t.Errorf("right page: %q", got)
	}
	if got := glossaryFaults(sources, head+"| hall | `anteroom.Hall` | m | |\n"); len(got) != 1 {
		t.Errorf("unknown type: %q", got)
	}
}
