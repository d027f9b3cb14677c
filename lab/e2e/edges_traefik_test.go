package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/traefik/yaegi/interp"
	"github.com/traefik/yaegi/stdlib"
	"go.yaml.in/yaml/v3"
)

// startTraefikPlugin runs the plugin of examples/edges/traefik-pass in the interpreter that Traefik has for plugins, with the
// configuration from dynamic.yaml. Around it stands a double of Traefik, with the rules that this recipe needs: forwarding headers of
// visitors are replaced, the plugin comes before the middleware headers, and both before the application.
func startTraefikPlugin(t *testing.T, dir string, at addresses, now int64, _, _ string) {
	var file struct {
		HTTP struct {
			Routers     map[string]struct{ Middlewares []string }
			Middlewares map[string]struct {
				Plugin  map[string]map[string]any
				Headers struct {
					CustomResponseHeaders map[string]string `yaml:"customResponseHeaders"`
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(edited(t, filepath.Join(dir, "dynamic.yaml"))), &file); err != nil {
		t.Fatal(err)
	}
	chain := file.HTTP.Routers["shop"].Middlewares
	if len(chain) != 2 {
		t.Fatalf("the middlewares are %q", chain)
	}
	application := through(at.application, func(answer *http.Response) error {
		for name, value := range file.HTTP.Middlewares[chain[1]].Headers.CustomResponseHeaders {
			if value == "" {
				answer.Header.Del(name)
			}
		}
		return nil
	})
	edge := interpreted(t, filepath.Join(dir, "anteroompass.go"), now, file.HTTP.Middlewares[chain[0]].Plugin["anteroompass"], application)
	serveEdge(t, at.listen, func(w http.ResponseWriter, r *http.Request) {
		delete(r.Header, "X-Forwarded-For")
		r.Header.Set("X-Forwarded-Proto", "http")
		edge.ServeHTTP(w, r)
	})
}

// interpreted makes the plugin's handler as Traefik does: the package is found below GOPATH/src by its name, CreateConfig returns the
// defaults, and New takes them with what the configuration says.
func interpreted(t *testing.T, source string, now int64, config map[string]any, next http.Handler) http.Handler {
	t.Helper()
	clock := "now: time.Now"
	if now != 0 {
		clock = fmt.Sprintf("now: func() time.Time { return time.Unix(%d, 0) }", now)
	}
	text := edited(t, source, "now: time.Now", clock)
	path := t.TempDir()
	folder := filepath.Join(path, "src", "anteroompass")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "anteroompass.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i := interp.New(interp.Options{GoPath: path, Env: []string{}})
	if err := i.Use(stdlib.Symbols); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Eval(`import "anteroompass"`); err != nil {
		t.Fatal(err)
	}
	defaults, err := i.Eval(`anteroompass.CreateConfig()`)
	if err != nil {
		t.Fatal(err)
	}
	values, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(values, defaults.Interface())
	}
	if err != nil {
		t.Fatal(err)
	}
	made, err := i.Eval("anteroompass.New")
	if err != nil {
		t.Fatal(err)
	}
	out := made.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.ValueOf(next), defaults, reflect.ValueOf("anteroom")})
	if err, _ := out[1].Interface().(error); err != nil {
		t.Fatal(err)
	}
	return out[0].Interface().(http.Handler)
}
