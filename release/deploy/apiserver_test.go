//go:build kubernetes && apiserver

package deploy

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	yamls "sigs.k8s.io/yaml"
)

// restricted is a namespace that refuses pods that do not keep to the restricted profile, and warns about what would make such pods.
const restricted = `
apiVersion: v1
kind: Namespace
metadata:
  name: anteroom
  labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}`

// account is what a controller would put into the namespace; pods are refused without it.
const account = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: anteroom}`

// serviceMonitors stands in for the Prometheus operator's definition and takes any members; TestKubernetesTakesTheChart checks them
// by the operator's types.
const serviceMonitors = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`

// TestAPIServer gives what is rendered to a real API server with its etcd, which scripts/kubernetes builds. It applies objects as
// kubectl and Helm do, on the server's side and with unknown members refused.
func TestAPIServer(t *testing.T) {
	k := startAPIServer(t)
	for _, doc := range []string{restricted, account, serviceMonitors} {
		for _, r := range resources(t, []byte(doc)) {
			k.apply(t, r)
		}
	}
	eventually(t, 30*time.Second, func() string {
		status, answer, _ := k.ask(t, http.MethodGet, "/apis/monitoring.coreos.com/v1/servicemonitors", nil)
		if status != http.StatusOK {
			return fmt.Sprint("the API server does not know service monitors: ", answer)
		}
		return ""
	})
	plain, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]resource{"manifests.yaml": resources(t, plain)}
	for name, values := range choices {
		all[name] = rendered(t, values)
	}

	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run("installs "+name, func(t *testing.T) {
			for _, r := range all[name] {
				if status, _ := k.apply(t, r); status != http.StatusCreated {
					t.Errorf("%s is not new: %d", r.path, status)
				}
				k.counts(r).created++
				first := k.read(t, r)
				k.apply(t, r)
				if again := k.read(t, r); version(again) != version(first) {
					t.Errorf("%s changes when it is applied again", r.path)
				}
				k.admit(t, r)
			}
			k.remove(t, all[name])
		})
	}
	t.Run("upgrades", func(t *testing.T) {
		// Kubernetes refuses to change the volumes of a stateful set.
		all["everything"] = rendered(t, strings.Replace(choices["everything"], ", storage: {size: 20Gi, className: fast}", "", 1))
		var before []resource
		for _, name := range []string{"defaults", "everything", "one core", "a fixed number of edges", "manifests.yaml"} {
			for _, r := range all[name] {
				was, had := version(k.get(t, r)), slices.ContainsFunc(before, r.is)
				status, answer := k.apply(t, r)
				switch {
				case had != (status == http.StatusOK):
					t.Errorf("upgrade to %s: %s: %d", name, r.path, status)
				case !had:
					k.counts(r).created++
				case version(answer) != was:
					k.counts(r).upgraded++
				}
				k.read(t, r)
			}
			k.remove(t, slices.DeleteFunc(before, func(r resource) bool { return slices.ContainsFunc(all[name], r.is) }))
			before = slices.Clone(all[name])
		}
		k.remove(t, before)
	})
	t.Run("refuses", func(t *testing.T) {
		create := func(r resource) (status int, warnings []string) {
			status, _, warnings = k.ask(t, http.MethodPost, path.Dir(r.path)+tried, r.doc)
			return status, warnings
		}
		for old, broken := range faults {
			refused := false
			for _, r := range resources(t, bytes.ReplaceAll(plain, []byte(old), []byte(broken))) {
				status, _ := create(r)
				refused = refused || status >= 400 && status < 500
			}
			if !refused {
				t.Errorf("%q was taken", broken)
			}
		}
		for _, r := range resources(t, bytes.ReplaceAll(plain, []byte("runAsNonRoot: true"), []byte("runAsNonRoot: false"))) {
			if status, warnings := create(r); status != http.StatusCreated || (len(warnings) > 0) != (r.template() != nil) {
				t.Errorf("%s with pods that run as root: %d, %q", r.path, status, warnings)
			}
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(k.kinds)) {
		c := k.kinds[kind]
		t.Logf("%-50s %2d created and read, %2d upgraded, %2d pods admitted, %2d deleted", kind, c.created, c.upgraded, c.pods, c.deleted)
	}
}

// Options of requests: of a server-side apply, and of a creation that only tries.
const (
	applied = "?fieldManager=helm&fieldValidation=Strict"
	tried   = "?dryRun=All&fieldValidation=Strict"
)

// resource is a document and where the API server keeps it.
type resource struct {
	kind, path string
	doc        []byte
	members    map[string]any
}

func (r resource) is(other resource) bool { return r.path == other.path }

// template returns what pods are made of, or nil.
func (r resource) template() map[string]any {
	spec, _ := r.members["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	return template
}

func rendered(t *testing.T, values string) []resource {
	t.Helper()
	text, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	return resources(t, text)
}

func resources(t *testing.T, text []byte) (all []resource) {
	t.Helper()
	for _, doc := range documents(t, text) {
		var o struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		r := resource{doc: doc}
		if err := yamls.Unmarshal(doc, &o); err != nil {
			t.Fatal(err)
		}
		if err := yamls.Unmarshal(doc, &r.members); err != nil {
			t.Fatal(err)
		}
		if len(r.members) == 0 {
			continue // a comment
		}
		plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
		r.kind = o.APIVersion + " " + o.Kind
		r.path = "/apis/" + o.APIVersion
		if plural.Group == "" {
			r.path = "/api/" + o.APIVersion
		}
		if o.Metadata.Namespace != "" {
			r.path += "/namespaces/" + o.Metadata.Namespace
		}
		r.path += "/" + plural.Resource + "/" + o.Metadata.Name
		all = append(all, r)
	}
	return all
}

// count is what happened to the objects of a kind.
type count struct{ created, upgraded, pods, deleted int }

// apiServer is one that runs.
type apiServer struct {
	url, token string
	client     *http.Client
	kinds      map[string]*count
}

func (k *apiServer) counts(r resource) *count {
	if k.kinds[r.kind] == nil {
		k.kinds[r.kind] = &count{}
	}
	return k.kinds[r.kind]
}

// startAPIServer runs etcd and the API server on this machine until the test ends, with keys and a token of their own.
func startAPIServer(t *testing.T) *apiServer {
	t.Helper()
	dir := t.TempDir()
	store, peer, serving := freePort(t), freePort(t), freePort(t)
	storeURL, peerURL := "http://127.0.0.1:"+store, "http://127.0.0.1:"+peer
	runs(t, "etcd", "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", storeURL, "--advertise-client-urls", storeURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	eventually(t, time.Minute, func() string {
		answer, err := http.Get(storeURL + "/health")
		if err != nil {
			return err.Error()
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return "etcd: " + answer.Status
		}
		return ""
	})

	k := &apiServer{url: "https://127.0.0.1:" + serving, token: rand.Text(), kinds: map[string]*count{}}
	tokens, accounts := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "accounts.key")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{
		tokens:   []byte(k.token + ",operator,operator\n"),
		accounts: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runs(t, "kube-apiserver", "--etcd-servers", storeURL, "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
		"--secure-port", serving, "--cert-dir", dir, "--service-cluster-ip-range", "10.96.0.0/16", "--endpoint-reconciler-type", "none",
		"--authorization-mode", "AlwaysAllow", "--anonymous-auth=false", "--token-auth-file", tokens,
		"--service-account-issuer", k.url, "--service-account-key-file", accounts, "--service-account-signing-key-file", accounts)
	eventually(t, 2*time.Minute, func() string { // the API server makes a certificate for itself
		roots := x509.NewCertPool()
		text, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
		if err != nil || !roots.AppendCertsFromPEM(text) {
			return fmt.Sprint("the API server has no certificate: ", err)
		}
		k.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		answer, err := k.client.Do(k.request(t, http.MethodGet, "/readyz", nil))
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		if text, err = io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Sprintf("the API server is not ready: %v\n%s", err, text)
		}
		return ""
	})
	_, about, _ := k.ask(t, http.MethodGet, "/version", nil)
	t.Log("kube-apiserver ", about["gitVersion"])
	return k
}

func (k *apiServer) request(t *testing.T, method, target string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.url+target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+k.token)
	switch method {
	case http.MethodPost:
		r.Header.Set("Content-Type", "application/yaml") // JSON is YAML, too
	case http.MethodPatch:
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	return r
}

// ask returns what the API server answers, and the warnings with it.
func (k *apiServer) ask(t *testing.T, method, target string, body []byte) (status int, answer map[string]any, warnings []string) {
	t.Helper()
	got, err := k.client.Do(k.request(t, method, target, body))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(text, &answer) != nil { // of paths that it does not know, it says so in plain text
		answer = map[string]any{"message": string(text)}
	}
	return got.StatusCode, answer, got.Header.Values("Warning")
}

// apply creates or changes an object, without a warning.
func (k *apiServer) apply(t *testing.T, r resource) (status int, answer map[string]any) {
	t.Helper()
	status, answer, warnings := k.ask(t, http.MethodPatch, r.path+applied, r.doc)
	if status != http.StatusOK && status != http.StatusCreated || len(warnings) > 0 {
		t.Fatalf("%s: %d, %q, %v\n%s", r.path, status, warnings, answer["message"], r.doc)
	}
	return status, answer
}

// get returns what the API server has, which may be nothing.
func (k *apiServer) get(t *testing.T, r resource) map[string]any {
	t.Helper()
	_, answer, _ := k.ask(t, http.MethodGet, r.path, nil)
	return answer
}

// read checks that the API server keeps all that it was given.
func (k *apiServer) read(t *testing.T, r resource) map[string]any {
	t.Helper()
	got := k.get(t, r)
	if fault := lacks(r.members, got, r.path); fault != "" {
		t.Error(fault)
	}
	return got
}

// admit asks whether pods of an object would be taken, if it has any, as its controller would make them.
func (k *apiServer) admit(t *testing.T, r resource) {
	t.Helper()
	template := r.template()
	if template == nil {
		return
	}
	spec := maps.Clone(template["spec"].(map[string]any))
	volumes := slices.Clone(spec["volumes"].([]any))
	claims, _ := r.members["spec"].(map[string]any)["volumeClaimTemplates"].([]any)
	for _, claim := range claims {
		name := claim.(map[string]any)["metadata"].(map[string]any)["name"]
		volumes = append(volumes, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}})
	}
	spec["volumes"] = volumes
	labels := template["metadata"].(map[string]any)["labels"]
	body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"generateName": "pod-", "labels": labels}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	status, answer, warnings := k.ask(t, http.MethodPost, "/api/v1/namespaces/anteroom/pods"+tried, body)
	if status != http.StatusCreated || len(warnings) > 0 {
		t.Errorf("a pod of %s: %d, %q, %v", r.path, status, warnings, answer["message"])
		return
	}
	k.counts(r).pods++
}

// remove deletes objects, and sees that they are gone.
func (k *apiServer) remove(t *testing.T, all []resource) {
	t.Helper()
	for _, r := range all {
		status, answer, _ := k.ask(t, http.MethodDelete, r.path, nil)
		if status != http.StatusOK {
			t.Errorf("deleting %s: %d, %v", r.path, status, answer["message"])
		}
		if status, _, _ := k.ask(t, http.MethodGet, r.path, nil); status != http.StatusNotFound {
			t.Errorf("%s is still there: %d", r.path, status)
		}
		k.counts(r).deleted++
	}
}

// version returns the number of an object's last change.
func version(object map[string]any) any {
	metadata, _ := object["metadata"].(map[string]any)
	return metadata["resourceVersion"]
}

// lacks names a member of want that got does not have with its value. The API server adds members of its own.
func lacks(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for name, value := range w {
			if fault := lacks(value, g[name], at+" "+name); fault != "" {
				return fault
			}
		}
		return ""
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Sprintf("%s: %v, want %v", at, got, want)
		}
		for i, value := range w {
			if fault := lacks(value, g[i], fmt.Sprintf("%s %d", at, i)); fault != "" {
				return fault
			}
		}
		return ""
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s: %v, want %v", at, got, want)
	}
	return ""
}

// runs starts a program, ends it with the test, and shows its log if the test has failed.
func runs(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	cmd := exec.CommandContext(ctx, name, args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; scripts/kubernetes builds it", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
		if t.Failed() {
			t.Logf("%s:\n%s", name, log.Bytes()[max(0, log.Len()-4000):])
		}
	})
}

// freePort returns a port on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// eventually waits until ok returns "" and fails with its last word when that takes longer than within.
func eventually(t *testing.T, within time.Duration, ok func() string) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		word := ok()
		if word == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %v: %s", within, word)
		case <-tick.C:
		}
	}
}
