package deploy

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/util/yaml"
	yamls "sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite examples/kubernetes/manifests.yaml")

const (
	folder    = "../../examples/kubernetes/chart"
	manifests = "../../examples/kubernetes/manifests.yaml"
)

// render returns the documents that the chart makes of values, by the templates' names and without the notes.
func render(values string) ([]byte, error) { return renderAs("anteroom", values) }

// renderAs renders a release with a name.
func renderAs(release, values string) ([]byte, error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	var given map[string]any
	if err := yamls.Unmarshal([]byte(values), &given); err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(c, given, common.ReleaseOptions{Name: release, Namespace: "anteroom", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		if strings.HasSuffix(name, ".yaml") && text != "" {
			fmt.Fprintf(&out, "---\n%s\n", text)
		}
	}
	return out.Bytes(), nil
}

// read takes in what was rendered, as Kubernetes would.
func read(t *testing.T, text []byte) (all objects) {
	t.Helper()
	for _, doc := range documents(t, text) {
		if err := all.add(doc); err != nil {
			t.Errorf("%v\n%s", err, doc)
		}
	}
	return all
}

// documents returns the parts of a file between its lines of three hyphens.
func documents(t *testing.T, text []byte) (all [][]byte) {
	t.Helper()
	in := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := in.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, doc)
	}
}

// Every choice that the values offer, on and off.
var choices = map[string]string{
	"defaults": "",
	"everything": `
image: {repository: registry.example/anteroom, tag: "1.2", pullPolicy: Always, pullSecrets: [{name: pull}]}
api: {existingSecret: anteroom-api}
cores: {replicas: 5, storage: {size: 20Gi, className: fast}, nodeSelector: {disk: ssd}, tolerations: [{key: core, operator: Exists}]}
edges: {nodeSelector: {pool: web}, tolerations: [{key: web, operator: Exists}]}
service: {type: LoadBalancer, port: 443, annotations: {a: b}}
scrape: {existingSecret: anteroom-scrape}
serviceMonitor: {enabled: true, interval: 30s, labels: {release: prometheus}}`,
	"one core": `
cores: {replicas: 1}
edges: {enabled: false}
networkPolicy: {enabled: false}`,
	"a fixed number of edges": `
edges: {replicas: 4, autoscaling: {enabled: false}, resources: null}
cores: {resources: null}
networkPolicy: {adminFrom: []}
drain: {delaySeconds: 0, seconds: 0}`,
}

// The manifests are what the chart makes of its defaults.
func TestManifestsAreRendered(t *testing.T) {
	got, err := render("")
	if err != nil {
		t.Fatal(err)
	}
	got = append([]byte("# Made from chart/ with its defaults by: go -C release/deploy test -update\n"), got...)
	if *update {
		if err := os.WriteFile(manifests, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(manifests)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s lags behind the chart; go -C release/deploy test -update rewrites it (%v)", manifests, err)
	}
}

func TestLint(t *testing.T) {
	for _, m := range lint.RunAll(folder, nil, "anteroom").Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
}

// Values that make no sense are refused, by name.
func TestRefusedValues(t *testing.T) {
	for values, says := range map[string]string{
		"cores: {replicas: 2}":                        "replicas",
		"cores: {replicas: 4}":                        "replicas",
		"cores: {replicas: 0}":                        "replicas",
		"cores: {storage: {size: 5 GB}}":              "size",
		"core: {replicas: 3}":                         "core",
		"edges: {replicas: 0}":                        "replicas",
		"edges: {autoscaling: {maxReplicas: 1}}":      "maxReplicas 1 is less than minReplicas 2",
		"edges: {autoscaling: {cpu: 150}}":            "cpu",
		"edges: {resources: {requests: {cpu: null}}}": "needs edges.resources.requests.cpu",
		"edges: {autoscaling: {min: 3}}":              "min",
		"image: {repository: ''}":                     "repository",
		"image: {tag: 'a b'}":                         "tag",
		"config: {listen: ':80'}":                     "/config/listen",
		"config: {cluster: {site: a}}":                "/config/cluster",
		"config: {sites: []}":                         "sites",
		"config: null":                                "config",
		"cluster: {existingSecret: ''}":               "existingSecret",
		"cluster: {site: Dublin}":                     "site",
		"service: {type: ExternalName}":               "type",
		"service: {port: 70000}":                      "port",
		"drain: {seconds: -1}":                        "seconds",
		"serviceMonitor: {interval: soon}":            "interval",
		"serviceMonitor: {enabled: true}":             "needs scrape.existingSecret",
		"networkPolicy: {adminFrom: [{}]}":            "adminFrom",
	} {
		if out, err := render(values); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a fault that names %q\n%.300s", values, err, says, out)
		}
	}
}

// Kubernetes takes what is rendered, its parts find each other, and pods keep to the restricted profile.
func TestKubernetesTakesTheChart(t *testing.T) {
	for name, values := range choices {
		t.Run(name, func(t *testing.T) {
			text, err := render(values)
			if err != nil {
				t.Fatal(err)
			}
			all := read(t, text)
			all.fit(t)
		})
	}
}

// Replacements in the manifests that Kubernetes would refuse.
var faults = map[string]string{
	"periodSeconds: 10":             "periodSecond: 10",
	"failureThreshold: 3":           "failureThreshold: -3",
	"name: nodes, containerPort":    "name: nodes-of-the-site, containerPort",
	"maxUnavailable: 1\n  selector": "maxUnavailable: 1\n  minAvailable: 1\n  selector",
	"maxReplicas: 10":               "maxReplicas: 0",
	"policyTypes: [Ingress]":        "policyTypes: [Inward]",
	"- {name: http, port: 80,":      "- {name: http, port: 80000,",
	"kind: ConfigMap":               "kind: ConfigMaps",
}

// What Kubernetes would refuse is noticed.
func TestValidationBites(t *testing.T) {
	text, err := render("")
	if err != nil {
		t.Fatal(err)
	}
	for old, broken := range faults {
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("the manifests have no %q", old)
		}
		var all objects
		var refusals error
		for _, doc := range documents(t, bytes.ReplaceAll(text, []byte(old), []byte(broken))) {
			refusals = errors.Join(refusals, all.add(doc))
		}
		if refusals == nil {
			t.Errorf("%q was taken", broken)
		}
	}
}

// Anteroom takes the configuration and environment that pods get.
func TestAnteroomTakesTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	binary := build(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, values := range choices {
		release := "anteroom"
		if values == "" {
			release = strings.Repeat("long-name-", 5) + "end" // the names of nodes are bounded, and those of releases less so
		}
		text, err := renderAs(release, values)
		if err != nil {
			t.Fatal(err)
		}
		all := read(t, text)
		file := filepath.Join(dir, "anteroom.yaml")
		if err := os.WriteFile(file, []byte(all.configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		pods := all.environments()
		if len(pods) == 0 {
			t.Errorf("%s: there are no pods", name)
		}
		for pod, environment := range pods {
			cmd := exec.Command(binary, "validate", "--config", file)
			cmd.Env = append(environment, "ANTEROOM_CLUSTER_SECRET_FILE="+filepath.Join(dir, "secret"), "HOME="+dir)
			if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
				t.Errorf("%s, %s: %v\n%s", name, pod, err, out)
			}
		}
	}
}

// build makes Anteroom in a folder.
func build(t *testing.T, dir string) (binary string) {
	t.Helper()
	binary = filepath.Join(dir, "anteroom")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/anteroom")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}
