package house

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/anteroom/anteroom"

// tableRow is one row of the import table.
type tableRow struct {
	pkg     string   // folder; "x/..." is x and everything below
	imports []string // packages of this module that its production code may import, in the same notation
	modules []string // other modules that its production code may import, by path prefix
	http    bool     // may import net/http
}

// table is the order of the house: imports point only to what a row names. ARCHITECTURE.md
// shows it as a picture. A package without a row is a fault: who adds a package decides here
// what it may know.
//
// Tests may import any package of this module (the compiler rules out circles), the modules
// of their row and those of testModules.
var table = []tableRow{
	{pkg: "internal/field"},
	{pkg: ".", imports: []string{"internal/field"}},
	{pkg: "internal/wire"},
	{pkg: "engine", imports: []string{".", "internal/wire"}},
	{pkg: "internal/walltime"},
	{pkg: "internal/chart", modules: []string{"gonum.org/v1/plot", "golang.org/x/image"}},
	{pkg: "internal/markup"},
	{pkg: "internal/freeport"},
	{pkg: "internal/packed"},
	{pkg: "internal/zones", imports: []string{"internal/packed"}},
	{pkg: "internal/qr", modules: []string{"rsc.io/qr"}},
	{pkg: "internal/exposition", modules: []string{"google.golang.org/protobuf"}, http: true},
	{pkg: "ticket", imports: []string{".", "internal/wire"}, modules: []string{"golang.org/x/crypto"}},
	{pkg: "ticket/proof", imports: []string{".", "ticket"}, modules: []string{"github.com/go-jose/go-jose/v4"}},
	{pkg: "ticket/pass", imports: []string{".", "ticket"}, http: true},
	{pkg: "ticket/lottery", imports: []string{"."}},
	{pkg: "gateway/route", imports: []string{"."}, modules: []string{"golang.org/x/net", "golang.org/x/text"}},
	{pkg: "rules", imports: []string{"."}},
	{pkg: "rules/geo", imports: []string{".", "rules"}, modules: []string{"github.com/oschwald/maxminddb-golang/v2"}},
	{pkg: "rules/crawler", imports: []string{"."}},
	{pkg: "page/...", imports: []string{".", "internal/markup", "internal/packed", "internal/qr", "page/..."}, modules: []string{"golang.org/x/net", "golang.org/x/text"}},
	{pkg: "config/strict", imports: []string{".", "internal/field"}, modules: []string{"go.yaml.in/yaml/v3"}},
	{pkg: "config", imports: []string{".", "internal/field", "config/strict"}, modules: []string{"go.yaml.in/yaml/v3", "github.com/santhosh-tekuri/jsonschema/v6"}},

	{pkg: "cluster", imports: []string{"internal/wire", "internal/walltime"}},
	{pkg: "gateway/push", imports: []string{".", "cluster"}, modules: []string{"github.com/go-jose/go-jose/v4"}, http: true},
	{pkg: "gateway/push/pushtest", http: true},
	{pkg: "ticket/invite", imports: []string{".", "cluster"}},
	{pkg: "ticket/account", imports: []string{".", "cluster"}, modules: []string{"github.com/go-jose/go-jose/v4"}},
	{pkg: "cluster/memlink", imports: []string{"cluster"}},
	{pkg: "cluster/natslink", imports: []string{"cluster", "internal/wire", "internal/walltime"}, modules: []string{"github.com/klauspost/compress", "github.com/nats-io", "golang.org/x/sys"}},
	{pkg: "cluster/linktest", imports: []string{"cluster"}},

	{pkg: "analytics", imports: []string{".", "internal/wire"}, modules: []string{"github.com/HdrHistogram/hdrhistogram-go"}},
	{pkg: "analytics/store", imports: []string{".", "analytics", "internal/wire"}, modules: []string{"modernc.org/sqlite"}},

	{pkg: "cluster/coordinator/shuffles", imports: []string{".", "engine", "cluster"}},
	{pkg: "cluster/coordinator", imports: []string{".", "engine", "cluster", "cluster/coordinator/shuffles", "internal/walltime", "analytics"}},
	{pkg: "node", imports: []string{".", "engine", "cluster", "cluster/coordinator/shuffles", "cluster/coordinator", "internal/walltime", "analytics", "internal/wire", "ticket/invite", "ticket/account"}},
	{pkg: "cluster/doctor", imports: []string{"cluster", "cluster/coordinator"}},
	{pkg: "manage/webhook", imports: []string{"."}, http: true},
	{pkg: "manage", imports: []string{".", "cluster", "analytics", "gateway/route", "rules", "page", "internal/wire", "ticket/invite", "ticket/account"}},
	{pkg: "analytics/report", imports: []string{".", "analytics", "internal/chart", "internal/markup", "manage"}},

	{pkg: "gateway/socket"},
	{pkg: "gateway/h1", imports: []string{"gateway/socket"}, http: true},
	{pkg: "gateway/extauthz", modules: []string{"google.golang.org/protobuf"}},
	{pkg: "gateway", imports: []string{".", "gateway/h1", "gateway/socket", "gateway/extauthz", "engine", "gateway/route", "rules", "ticket", "ticket/proof", "ticket/pass", "ticket/lottery", "node", "page", "analytics", "ticket/invite", "ticket/account", "gateway/push", "internal/walltime"}, modules: []string{"golang.org/x/net"}, http: true},
	{pkg: "api", imports: []string{".", "manage"}, http: true},
	{pkg: "api/rest", imports: []string{".", "internal/field", "api", "manage", "page"}, http: true},
	{pkg: "api/own/schema", imports: []string{"."}},
	{pkg: "api/own", imports: []string{".", "internal/packed", "api/own/schema", "api", "manage", "analytics", "analytics/report", "rules", "page"}, modules: []string{"github.com/santhosh-tekuri/jsonschema/v6"}, http: true},
	// What talks to an API, ours or another of its shape, knows of it what goes over the wire.
	{pkg: "api/client", imports: []string{"."}, http: true},
	{pkg: "api/inventory", imports: []string{".", "internal/field", "api/client"}, modules: []string{"go.yaml.in/yaml/v3"}, http: true},
	{pkg: "api/inventory/moved", imports: []string{".", "internal/field", "api/inventory"}, modules: []string{"go.yaml.in/yaml/v3"}},
	{pkg: "api/graph", imports: []string{".", "internal/packed", "api", "manage", "analytics"}, modules: []string{"github.com/vektah/gqlparser/v2"}, http: true},
	{pkg: "dashboard/signin", imports: []string{"."}, modules: []string{"github.com/coreos/go-oidc/v3", "golang.org/x/oauth2"}, http: true},
	{pkg: "dashboard/...", imports: []string{".", "internal/field", "internal/packed", "api", "manage", "dashboard/signin"}, http: true},
	{pkg: "bridge", imports: []string{"."}},
	{pkg: "bridge/fastly", imports: []string{"."}},
	{pkg: "bridge/aws", imports: []string{".", "internal/markup", "internal/walltime", "bridge", "api", "manage", "cluster"}, http: true},
	{pkg: "bridge/queueit", imports: []string{".", "bridge", "cluster", "ticket", "gateway/route", "gateway", "ticket/invite"}, http: true},

	{pkg: "sim/published", imports: []string{"."}},
	{pkg: "sim", imports: []string{".", "engine", "node", "cluster/coordinator", "cluster", "cluster/memlink", "sim/published"}},
	{pkg: "sim/mutants", imports: []string{".", "sim"}},
	{pkg: "sim/plan", imports: []string{".", "internal/field", "config/strict", "sim"}, modules: []string{"go.yaml.in/yaml/v3", "github.com/santhosh-tekuri/jsonschema/v6"}},
	{pkg: "sim/outcome", imports: []string{".", "internal/chart", "sim"}},
	{pkg: "sim/figure", imports: []string{".", "internal/chart", "sim"}},
	// What shows the product stands beside it and speaks HTTP to it; the server sends the same crowd for operators who try a room.
	{pkg: "sim/demo/history", imports: []string{".", "analytics"}},
	{pkg: "sim/demo/...", imports: []string{".", "internal/markup", "sim/demo/..."}, modules: []string{"golang.org/x/net"}, http: true},
	{pkg: "server", http: true,
		imports: []string{".", "internal/exposition", "internal/walltime", "engine", "ticket", "ticket/proof", "rules", "page/...", "config", "ticket/account", "cluster/...", "node", "cluster/doctor",
			"analytics/...", "manage/webhook", "analytics/report", "manage", "gateway/...", "api/...", "dashboard/...", "bridge/...", "rules/geo", "rules/crawler", "sim/demo/crowd", "sim/demo/shop"},
		modules: []string{"github.com/caddyserver/certmagic", "github.com/mholt/acmez/v3", "go.uber.org/zap", "google.golang.org/protobuf",
			"github.com/fsnotify/fsnotify"}},

	{pkg: "examples/edges", imports: []string{"internal/packed"}},
	// A command calls the server; "key" and "validate" call the package that they are the face of, "demo" makes its
	// rooms as a program does that embeds the server.
	{pkg: "cmd/...", imports: []string{".", "internal/field", "internal/chart", "internal/zones", "internal/walltime", "server", "manage", "sim/...", "config", "ticket", "ticket/pass", "gateway/route", "rules", "rules/geo", "engine", "manage/webhook", "api/client", "api/own/schema", "api/inventory/...", "examples/edges"}, modules: []string{"github.com/spf13"}, http: true},
	{pkg: "examples/...", imports: []string{"./..."}, http: true},

	// Modules of their own: what they need is not what our users get.
	{pkg: "caddy", imports: []string{".", "ticket/pass"}, http: true},
	{pkg: "caddy/cmd/caddy", imports: []string{"caddy"}},
	{pkg: "lab/...", imports: []string{"./..."}, http: true},
	{pkg: "release"},
	{pkg: "release/deploy"},
	{pkg: "scripts/tools/..."},
	{pkg: "internal/house"},
}

// testModules may be imported by any test.
var testModules = []string{
	"github.com/maxmind/mmdbwriter",
	"golang.org/x/net/dns/dnsmessage", "golang.org/x/net/nettest",
	"pgregory.net/rapid",
	"github.com/cockroachdb/datadriven",
	"github.com/rogpeppe/go-internal",
	"github.com/google/go-cmp",
	"google.golang.org/protobuf",
	// What the product does without, and is compared with.
	"codeberg.org/go-fonts/liberation",
	"github.com/cbroglie/mustache",
	"github.com/prometheus",
	"go.opentelemetry.io/proto/otlp",
}

// under reports whether the folder matches the pattern: itself, or "x/..." for x and below.
func under(pattern, pkg string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return base == "." || pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	return pattern == pkg
}

func anyUnder(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return under(p, pkg) })
}

// rowOf returns the package's row.
func rowOf(pkg string) (tableRow, bool) {
	i := slices.IndexFunc(table, func(r tableRow) bool { return under(r.pkg, pkg) })
	if i < 0 {
		return tableRow{}, false
	}
	return table[i], true
}

// inModule returns the folder of a package of ours.
func inModule(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func brokenArrows(sources []source) []string {
	var faults []string
	unknown := map[string]bool{}
	for _, s := range sources {
		row, ok := rowOf(s.pkg)
		if !ok {
			if !unknown[s.pkg] {
				unknown[s.pkg] = true
				faults = append(faults, s.pkg+": is not in the import table of internal/house/arrows_test.go; add a row that says what it may import")
			}
			continue
		}
		if s.test {
			continue
		}
		for _, imp := range s.imports() {
			target, ours := inModule(imp)
			if ours && target != s.pkg && !anyUnder(row.imports, target) {
				faults = append(faults, fmt.Sprintf("%s: imports %s; %s may import only %s", s.path, imp, s.pkg, orNothing(row.imports)))
			}
		}
	}
	return faults
}

func strayHTTP(sources []source) []string {
	var faults []string
	for _, s := range sources {
		row, ok := rowOf(s.pkg)
		if !ok || row.http || s.test || s.nested {
			continue
		}
		for _, imp := range s.imports() {
			if imp == "net/http" || strings.HasPrefix(imp, "net/http/") {
				faults = append(faults, fmt.Sprintf("%s: imports %s; HTTP stays in the packages whose row of the import table says so", s.path, imp))
			}
		}
	}
	return faults
}

func strayModules(sources []source) []string {
	var faults []string
	for _, s := range sources {
		row, ok := rowOf(s.pkg)
		if !ok || s.nested {
			continue
		}
		allowed := row.modules
		if s.test {
			allowed = slices.Concat(allowed, testModules)
		}
		for _, imp := range s.imports() {
			first, _, _ := strings.Cut(imp, "/")
			if _, ours := inModule(imp); ours || !strings.Contains(first, ".") {
				continue
			}
			if !slices.ContainsFunc(allowed, func(m string) bool { return imp == m || strings.HasPrefix(imp, m+"/") }) {
				faults = append(faults, fmt.Sprintf("%s: imports %s; %s may use of other modules only %s", s.path, imp, s.pkg, orNothing(allowed)))
			}
		}
	}
	return faults
}

func orNothing(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// TestImportTable keeps the table itself in order: no row twice, nothing imported that has
// no row, no circle.
func TestImportTable(t *testing.T) {
	t.Parallel()
	for i, r := range table {
		for _, other := range table[:i] {
			if under(other.pkg, strings.TrimSuffix(r.pkg, "/...")) {
				t.Errorf("the row of %s hides behind that of %s", r.pkg, other.pkg)
			}
		}
		for _, imp := range r.imports {
			if imp == "./..." || under(r.pkg, strings.TrimSuffix(imp, "/...")) {
				continue
			}
			if j := slices.IndexFunc(table, func(o tableRow) bool { return under(o.pkg, strings.TrimSuffix(imp, "/...")) }); j < 0 || j >= i {
				t.Errorf("%s may import %s, which has no row above it", r.pkg, imp)
			}
		}
	}
}

// TestArrowRulesBite shows that each rule of this file finds what it is there for.
func TestArrowRulesBite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, imp string
		rule            func([]source) []string
		faulty          bool
	}{
		{"up the table", "engine/a.go", modulePath + "/node", brokenArrows, true},
		{"down the table", "node/a.go", modulePath + "/engine", brokenArrows, false},
		{"root imports a package", "a.go", modulePath + "/engine", brokenArrows, true},
		{"sim from the server", "server/a.go", modulePath + "/sim", brokenArrows, true},
		{"link implementation from node", "node/a.go", modulePath + "/cluster/natslink", brokenArrows, true},
		{"link implementation from a test of node", "node/a_test.go", modulePath + "/cluster/memlink", brokenArrows, false},
		{"package without a row", "helpers/a.go", "fmt", brokenArrows, true},
		{"HTTP in the engine", "engine/a.go", "net/http", strayHTTP, true},
		{"HTTP helper in page", "page/a.go", "net/http/httputil", strayHTTP, true},
		{"HTTP in the gateway", "gateway/a.go", "net/http", strayHTTP, false},
		{"NATS in node", "node/a.go", "github.com/nats-io/nats.go", strayModules, true},
		{"NATS in its leaf", "cluster/natslink/a.go", "github.com/nats-io/nats.go/jetstream", strayModules, false},
		{"test library in production", "engine/a.go", "pgregory.net/rapid", strayModules, true},
		{"test library in a test", "engine/a_test.go", "pgregory.net/rapid", strayModules, false},
		{"prefix of a module's name", "ticket/a.go", "golang.org/x/cryptography", strayModules, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := parseSource(t, c.file, "package "+packageName(c.file)+"\nimport _ \""+c.imp+"\"\n")
			if got := c.rule([]source{s}); (len(got) > 0) != c.faulty {
				t.Errorf("faults: %q, want some: %v", got, c.faulty)
			}
		})
	}
}

func packageName(file string) string {
	if dir := path.Dir(file); dir != "." {
		return path.Base(dir)
	}
	return "anteroom"
}
