package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// panel is what Grafana needs of one.
type panel struct {
	ID         int             `json:"id"`
	Type       string          `json:"type"`
	Title      string          `json:"title"`
	Datasource json.RawMessage `json:"datasource"`
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

type board struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Annotations   struct {
		List []struct {
			Expr string `json:"expr"`
		} `json:"list"`
	} `json:"annotations"`
	Templating struct {
		List []struct {
			Name  string          `json:"name"`
			Type  string          `json:"type"`
			Query json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

// boards reads the dashboards and checks what Grafana needs to take them in.
func boards(t *testing.T) (queries map[string]string) {
	t.Helper()
	queries = map[string]string{}
	files, err := filepath.Glob("../../examples/monitoring/dashboards/*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v: %v", err, files)
	}
	uids := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var b board
		if err == nil {
			err = json.Unmarshal(text, &b)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if b.UID == "" || len(b.UID) > 40 || uids[b.UID] || b.Title == "" || b.SchemaVersion < 36 {
			t.Errorf("%s: uid %q, title %q, schema %d", file, b.UID, b.Title, b.SchemaVersion)
		}
		uids[b.UID] = true
		if len(b.Templating.List) == 0 || b.Templating.List[0].Type != "datasource" || b.Templating.List[0].Name != "datasource" {
			t.Errorf("%s: the first variable is not the datasource", file)
		}
		ids := map[int]bool{}
		for _, p := range b.Panels {
			at := fmt.Sprintf("%s: %s", filepath.Base(file), p.Title)
			if ids[p.ID] || p.ID == 0 || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: id %d at %+v", at, p.ID, p.GridPos)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			if len(p.Targets) == 0 || !strings.Contains(string(p.Datasource), `"${datasource}"`) {
				t.Errorf("%s: %d queries to %s", at, len(p.Targets), p.Datasource)
			}
			for _, q := range p.Targets {
				queries[at+" "+q.RefID] = q.Expr
			}
		}
		for i, a := range b.Annotations.List {
			queries[fmt.Sprintf("%s: annotation %d", filepath.Base(file), i)] = a.Expr
		}
	}
	return queries
}

// TestDashboardsShowTheOrigin: what admission follows, and the pace that comes of it, are on a dashboard.
func TestDashboardsShowTheOrigin(t *testing.T) {
	t.Parallel()
	all := ""
	for _, query := range boards(t) {
		all += query + "\n"
	}
	for _, name := range []string{"anteroom_origin_up", "anteroom_origin_failed_last_minute", "anteroom_origin_median_seconds", "anteroom_origin_tail_seconds",
		"anteroom_origin_requests_in_flight", "anteroom_pace_per_minute", "anteroom_pace_reduced"} {
		if !strings.Contains(all, name+"{") {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// Prometheus takes the configurations of both set-ups, and finds the rules that they name.
func TestPrometheusTakesItsConfiguration(t *testing.T) {
	for _, name := range []string{"../../examples/monitoring/prometheus.yml", "../../examples/compose/prometheus.yml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(string(text), promslog.NewNopLogger())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(c.RuleFiles, []string{"rules.yml"}) || len(c.ScrapeConfigs) != 1 || c.ScrapeConfigs[0].JobName != "anteroom" {
			t.Errorf("%s: rules %q, %d jobs", name, c.RuleFiles, len(c.ScrapeConfigs))
		}
	}
	if _, faults := rulefmt.ParseFile("../../examples/monitoring/rules.yml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), promslog.NewNopLogger()); len(faults) > 0 {
		t.Error(faults)
	}
}

// ruleQueries reads the rules; recorded are their own metrics.
func ruleQueries(t *testing.T) (queries map[string]string, recorded []string) {
	t.Helper()
	text, err := os.ReadFile("../../examples/monitoring/rules.yml")
	var file struct {
		Groups []struct {
			Rules []struct{ Record, Alert, Expr string }
		}
	}
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	queries = map[string]string{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			queries["rules.yml: "+r.Record+r.Alert] = r.Expr
			if r.Record != "" {
				recorded = append(recorded, r.Record)
			}
		}
	}
	return queries, recorded
}

// exposed are the labels of every metric in text form, with le of buckets.
func exposed(text string) map[string][]string {
	out := map[string][]string{}
	line := regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? \S+$`)
	label := regexp.MustCompile(`([a-z_]+)="`)
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		names := []string{}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			names = append(names, l[1])
		}
		out[m[1]] = names
		if base, ok := strings.CutSuffix(m[1], "_count"); ok {
			out[base] = names // its native form
		}
	}
	return out
}

// TestMonitoringNamesExist: every query of rules and dashboards parses, and every metric and label in it is shown by
// a process alone or by a node of a cluster.
func TestMonitoringNamesExist(t *testing.T) {
	t.Parallel()
	queries, recorded := ruleQueries(t)
	for at, q := range boards(t) {
		queries[at] = q
	}
	cert, key := certificate(t)
	alone := startGate(t, "  - {name: shop, host: \"*\", total_active_users: 1, new_users_per_minute: 100, session_duration: 1s, protect: true}\n",
		fmt.Sprintf("tls:\n  certificates:\n    - {cert: %s, key: %s}", cert, key))
	newVisitor(t, alone).enter()
	second := newVisitor(t, alone).wait()
	second.hold("not a ticket")
	second.get("/")
	next := newVisitor(t, alone).wait()
	var text string
	eventually(t, 60*time.Second, func() string {
		if next.get("/").admitted() { // one after the other, until newcomers are told how long it takes
			next = newVisitor(t, alone)
			next.get("/")
			_, text = alone.ask("/metrics")
		}
		for _, want := range []string{"anteroom_wait_seconds_count", "anteroom_session_seconds_count", "anteroom_estimate_error_seconds_count", "anteroom_tickets_rejected_total", "anteroom_wait_forecast_seconds"} {
			if !strings.Contains(text, want) {
				return "no " + want
			}
		}
		return ""
	})
	metrics := exposed(text)

	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(rand.Text()+rand.Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	core := startGate(t, oneSeat, fmt.Sprintf("cluster:\n  listen: %s\n  secret_file: %s", freeAddress(t), secret))
	eventually(t, 60*time.Second, func() string {
		newVisitor(t, core).get("/")
		_, text := core.ask("/metrics")
		found := exposed(text)
		if found["anteroom_lease_age_seconds"] == nil || found["anteroom_active_sessions"] == nil {
			return "the core shows no lease, or no room: " + tail(text, 300)
		}
		for name, labels := range found {
			metrics[name] = labels
		}
		return ""
	})
	for _, name := range recorded {
		metrics[name] = []string{"room"}
	}
	metrics["up"] = []string{}

	variables := strings.NewReplacer("$__rate_interval", "5m", "$room", "x", "$instance", "x")
	p := parser.NewParser(parser.Options{})
	for at, query := range queries {
		expr, err := p.ParseExpr(variables.Replace(query))
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			switch n := n.(type) {
			case *parser.VectorSelector:
				labels, ok := metrics[n.Name]
				if !ok {
					t.Errorf("%s: no node shows %s", at, n.Name)
				}
				for _, m := range n.LabelMatchers {
					if m.Name != "__name__" && m.Name != "instance" && m.Name != "job" && !slices.Contains(labels, m.Name) {
						t.Errorf("%s: %s has no label %s", at, n.Name, m.Name)
					}
				}
			case *parser.AggregateExpr:
				known := []string{"instance"}
				parser.Inspect(n.Expr, func(inner parser.Node, _ []parser.Node) error {
					if s, ok := inner.(*parser.VectorSelector); ok {
						known = append(known, metrics[s.Name]...)
					}
					return nil
				})
				for _, label := range n.Grouping {
					if !slices.Contains(known, label) {
						t.Errorf("%s: nothing in it has the label %s", at, label)
					}
				}
			}
			return nil
		})
	}
}
