// Package monitoring checks examples/monitoring with the libraries of Prometheus: the scrape
// configuration loads, the rules parse, and every alert fires when it should and not before.
//
// testdata/alerts.yml is in the format of promtool test rules, which runs it as well.
package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

const folder = "../../../examples/monitoring"

func TestMonitoringConfigurationLoads(t *testing.T) {
	c, err := config.LoadFile(folder+"/prometheus.yml", false, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	scrapes, err := c.GetScrapeConfigs()
	if err != nil || len(scrapes) != 1 || scrapes[0].JobName != "anteroom" || !*scrapes[0].ScrapeNativeHistograms {
		t.Errorf("%v: %v", err, scrapes)
	}
	for _, f := range c.RuleFiles {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
}

// TestMonitoringRules: the rules parse, and each alert says how bad it is and links to its section.
func TestMonitoringRules(t *testing.T) {
	parsed, errs := rulefmt.ParseFile(folder+"/rules.yml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	page, err := os.ReadFile("../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllSubmatch(page, -1) {
		sections[string(m[1])] = true
	}
	alerts := 0
	for _, g := range parsed.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			alerts++
			if !sections[r.Alert] {
				t.Errorf("docs/monitoring.md has no section %s", r.Alert)
			}
			link, err := url.Parse(r.Annotations["runbook_url"])
			if err != nil || !strings.HasSuffix(link.Path, "/docs/monitoring.md") || link.Fragment != strings.ToLower(r.Alert) {
				t.Errorf("%s: its runbook is %s", r.Alert, link)
			}
			if s := r.Labels["severity"]; s != "critical" && s != "warning" || r.Annotations["summary"] == "" || r.For == 0 {
				t.Errorf("%s: severity %q, summary %q, for %v", r.Alert, s, r.Annotations["summary"], r.For)
			}
		}
	}
	if alerts < 12 {
		t.Errorf("there are %d alerts", alerts)
	}
}

// cases are a file of promtool test rules, as far as it is used.
type cases struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string         `yaml:"name"`
		Interval    model.Duration `yaml:"interval"`
		InputSeries []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		AlertRuleTest []struct {
			EvalTime  model.Duration `yaml:"eval_time"`
			Alertname string         `yaml:"alertname"`
			ExpAlerts []struct {
				ExpLabels      map[string]string `yaml:"exp_labels"`
				ExpAnnotations map[string]string `yaml:"exp_annotations"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func TestMonitoringAlerts(t *testing.T) {
	const file = "testdata/alerts.yml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c cases
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, f := range c.RuleFiles {
		files = append(files, filepath.Join(filepath.Dir(file), f))
	}
	fired, silent := map[string]bool{}, map[string]bool{}
	for _, one := range c.Tests {
		t.Run(one.Name, func(t *testing.T) {
			load := fmt.Sprintf("load %v\n", one.Interval)
			for _, s := range one.InputSeries {
				load += fmt.Sprintf("  %s %s\n", s.Series, s.Values)
			}
			suite, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
			if err != nil {
				t.Fatal(err)
			}
			defer suite.Close()
			suite.SubqueryInterval = time.Duration(c.EvaluationInterval)
			m := rules.NewManager(&rules.ManagerOptions{QueryFunc: rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()), Appendable: suite.Storage(), Context: t.Context(),
				NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{})})
			loaded, errs := m.LoadGroups(time.Duration(one.Interval), labels.EmptyLabels(), "", nil, false, files...)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			groups := slices.SortedFunc(maps.Values(loaded), func(a, b *rules.Group) int { // records come first
				return strings.Compare(a.Name(), b.Name())
			})
			at := func(when time.Duration) {
				suite.WithSamplesTill(time.Unix(0, 0).UTC().Add(when), func(err error) {
					if err != nil {
						t.Fatal(err)
					}
					for _, g := range groups {
						g.Eval(suite.Context(), time.Unix(0, 0).UTC().Add(when))
						for _, r := range g.Rules() {
							if err := r.LastError(); err != nil {
								t.Fatalf("%s at %v: %v", r.Name(), when, err)
							}
						}
					}
				})
			}
			now := time.Duration(0)
			for _, expect := range one.AlertRuleTest {
				for ; now <= time.Duration(expect.EvalTime); now += time.Duration(c.EvaluationInterval) {
					at(now)
				}
				var got, want []string
				for _, g := range groups {
					for _, r := range g.AlertingRules() {
						if r.Name() != expect.Alertname {
							continue
						}
						for _, a := range r.ActiveAlerts() {
							if a.State == rules.StateFiring {
								got = append(got, a.Labels.String()+a.Annotations.Get("summary"))
							}
						}
					}
				}
				for _, e := range expect.ExpAlerts {
					all := maps.Clone(e.ExpLabels)
					all[labels.AlertName] = expect.Alertname
					want = append(want, labels.FromMap(all).String()+e.ExpAnnotations["summary"])
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s at %v:\n%s\nwant:\n%s", expect.Alertname, expect.EvalTime, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				fired[expect.Alertname] = fired[expect.Alertname] || len(want) > 0
				silent[expect.Alertname] = silent[expect.Alertname] || len(want) == 0
			}
		})
	}
	parsed, _ := rulefmt.ParseFile(folder+"/rules.yml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, g := range parsed.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" && !(fired[r.Alert] && silent[r.Alert]) {
				t.Errorf("%s: no case in which it fires, or none in which it does not", r.Alert)
			}
		}
	}
}
