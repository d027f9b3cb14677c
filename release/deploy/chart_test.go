//go:build kubernetes

package deploy

import (
	"bufio"
	"bytes"
	"context"
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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	yamls "sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite examples/kubernetes/manifests.yaml")

const (
	folder    = "../../examples/kubernetes/chart"
	manifests = "../../examples/kubernetes/manifests.yaml"
)

// render returns the documents that the chart makes of values for a new release, by the templates' names and without the notes.
func render(values string) ([]byte, error) {
	text, _, err := renderAs(common.ReleaseOptions{Name: "anteroom", IsInstall: true}, values, namespace{})
	return text, err
}

// renderAs renders a release for a namespace. The notes are what Helm shows to the operator.
func renderAs(release common.ReleaseOptions, values string, in namespace) (text []byte, notes string, err error) {
	c, err := loader.Load(folder)
	if err != nil {
		return nil, "", err
	}
	var given map[string]any
	if err := yamls.Unmarshal([]byte(values), &given); err != nil {
		return nil, "", err
	}
	release.Namespace = "anteroom"
	all, err := util.ToRenderValues(c, given, release, nil)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.RenderWithClientProvider(c, all, in)
	if err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimSpace(files[name])
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes = text
		case strings.HasSuffix(name, ".yaml") && text != "":
			fmt.Fprintf(&out, "---\n%s\n", text)
		}
	}
	return out.Bytes(), notes, nil
}

// namespace is what the chart finds in Kubernetes when it looks something up: Secrets, by their names.
type namespace struct {
	dynamic.NamespaceableResourceInterface
	secrets []string
}

func (n namespace) GetClientFor(_, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return n, true, nil
}

func (n namespace) Namespace(string) dynamic.ResourceInterface { return n }

func (n namespace) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if !slices.Contains(n.secrets, name) {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": "Secret"}}, nil
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
cluster: {shutOut: [edge, edge-2]}
edges: {existingSecret: web, name: edge-3, nodeSelector: {pool: web}, tolerations: [{key: web, operator: Exists}]}
service: {type: LoadBalancer, port: 443, annotations: {a: b}}
config: {forward_auth: {peers: [10.0.0.0/8]}}
forwardAuth: {enabled: true, from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: gateways}}}]}
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
	got = append([]byte("# Made from chart/ with its defaults by: go -C release/deploy test -tags kubernetes -update\n"), got...)
	if *update {
		if err := os.WriteFile(manifests, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(manifests)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s lags behind the chart; go -C release/deploy test -tags kubernetes -update rewrites it (%v)", manifests, err)
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
		"cluster: {shutOut: [Edge]}":                  "shutOut",
		"edges: {existingSecret: ''}":                 "existingSecret",
		"edges: {existingSecret: anteroom-cluster}":   "secret of the cores",
		"edges: {name: edge-}":                        "name",
		"edges: {name: edges-of-the-second-deck}":     "name",
		"service: {type: ExternalName}":               "type",
		"service: {port: 70000}":                      "port",
		"forwardAuth: {enabled: true}":                "from",
		"forwardAuth: {listen: ':8082'}":              "listen",
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

// Edges have a Secret of their own, which only the cores' of an older release stands in for, and then the notes say so.
func TestOnlyCoresGetTheSecretOfTheCluster(t *testing.T) {
	reused := "edges: {existingSecret: null, name: null}" // values of a release that is older than these keys
	for _, c := range []struct {
		name, values string
		upgrade      bool
		in           []string // Secrets of the namespace
		edges        string
	}{
		{"a new release", "", false, nil, "anteroom-edge"},
		{"a new release with other names", "edges: {existingSecret: web}", false, nil, "web"},
		{"an upgrade before the Secret of edges is made", "", true, nil, "anteroom-cluster"},
		{"an upgrade after that", "", true, []string{"anteroom-edge"}, "anteroom-edge"},
		{"values that are reused, before that", reused, true, nil, "anteroom-cluster"},
		{"values that are reused, after that", reused, true, []string{"anteroom-edge"}, "anteroom-edge"},
	} {
		release := common.ReleaseOptions{Name: "anteroom", IsInstall: !c.upgrade, IsUpgrade: c.upgrade}
		text, notes, err := renderAs(release, c.values, namespace{secrets: c.in})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		all := read(t, text)
		for _, p := range all.pods {
			want := "anteroom-cluster"
			if strings.HasSuffix(p.name, "-edge") {
				want = c.edges
			}
			if got := p.secrets(); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s has the secrets %q, want %s", c.name, p.name, got, want)
			}
		}
		if warned := strings.Contains(notes, "Warning: the edges have the secret of the cores"); warned != (c.edges == "anteroom-cluster") {
			t.Errorf("%s: the notes are\n%s", c.name, notes)
		}
	}
}

// kubectl stands in for the command: Secrets are files of the folder.
const kubectl = `#!/bin/sh
case "$*" in
*"create namespace"*) ;;
*"get secret "*" --template {{.data.secret | base64decode}}") cat "${5:?}" ;;
*"create secret generic "*" --from-literal=secret="*) printf %s "${7#*secret=}" > "${6:?}" ;;
*"create secret generic "*" --from-file=secret=/dev/stdin") cat > "${6:?}" ;;
*) echo "kubectl $*" >&2; exit 1 ;;
esac
`

// The commands of the documents and of the notes make the Secrets, and Anteroom takes them with the configuration and environment
// that pods get.
func TestAnteroomTakesTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	binary := build(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	sh := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-euc", "umask 077\n"+script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, script)
		}
	}
	guide, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(guide), "    kubectl create namespace")
	install, _, found := strings.Cut(after, "    helm ")
	if !found {
		t.Fatal("docs/deploy.md has no commands from kubectl create namespace to helm")
	}
	sh("kubectl create namespace" + install)
	upgrade := common.ReleaseOptions{Name: "anteroom", IsUpgrade: true}
	_, notes, err := renderAs(upgrade, "edges: {existingSecret: web, name: edge-3}", namespace{})
	_, command, found := strings.Cut(notes, "then upgrade again:\n")
	if err != nil || !found {
		t.Fatalf("%v: no command in the notes:\n%s", err, notes)
	}
	sh(command)

	for name, values := range choices {
		release := "anteroom"
		if values == "" {
			release = strings.Repeat("long-name-", 5) + "end" // the names of nodes are bounded, and those of releases less so
		}
		text, _, err := renderAs(common.ReleaseOptions{Name: release, IsInstall: true}, values, namespace{})
		if err != nil {
			t.Fatal(err)
		}
		all := read(t, text)
		file := filepath.Join(dir, "anteroom.yaml")
		if err := os.WriteFile(file, []byte(all.configuration), 0o600); err != nil {
			t.Fatal(err)
		}
		if len(all.pods) == 0 {
			t.Errorf("%s: there are no pods", name)
		}
		for _, p := range all.pods {
			for pod, environment := range p.environments() {
				cmd := exec.Command(binary, "validate", "--config", file)
				cmd.Env = append(environment, "ANTEROOM_CLUSTER_SECRET_FILE="+filepath.Join(dir, p.secrets()[0]), "HOME="+dir)
				if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
					t.Errorf("%s, %s: %v\n%s", name, pod, err, out)
				}
			}
		}
	}
}
