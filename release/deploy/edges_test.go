//go:build kubernetes

package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	envoygateway "github.com/envoyproxy/gateway/api/v1alpha1"
	"google.golang.org/protobuf/encoding/protojson"
	istio "istio.io/api/networking/v1"
	ingress "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	yamls "sigs.k8s.io/yaml"
)

// The types of the Gateway API, Envoy Gateway, Istio and Kubernetes read the examples whole, and their references are to what the chart
// makes. What implementations do with them is not tested.
func TestControllersTakeTheirExamples(t *testing.T) {
	for name, faults := range map[string]map[string]string{
		"gateway-api.yaml":   {"externalAuth:": "extAuth:", "port: 8082": "port: verdicts", "kind: HTTPRoute\nmetadata": "kind: HTTPRoutes\nmetadata", "hostnames: [": "hostname: ["},
		"envoy-gateway.yaml": {"failOpen: false": "failOpen: maybe", "extAuth:": "externalAuth:", "port: 8082": "port: verdicts"},
		"in-path.yaml":       {"pathType: Prefix": "pathKind: Prefix", "timeout: 0s": "timeout: never", "gateways: [": "gateway: ["},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../examples/edges/kubernetes/" + name)
			if err != nil {
				t.Fatal(err)
			}
			if err := readStrictly(documents(t, text)); err != nil {
				t.Error(err)
			}
			for old, broken := range faults {
				if !strings.Contains(string(text), old) {
					t.Fatalf("the example has no %q", old)
				}
				if readStrictly(documents(t, []byte(strings.Replace(string(text), old, broken, 1)))) == nil {
					t.Errorf("%q was taken", broken)
				}
			}
		})
	}
	rendered, err := render("forwardAuth: {enabled: true, from: [{podSelector: {}}]}")
	if err != nil || !strings.Contains(string(rendered), "port: 8082") {
		t.Errorf("the chart has no port for verdicts: %v", err)
	}
}

func readStrictly(docs [][]byte) error {
	for _, doc := range docs {
		var kind metav1.TypeMeta
		if err := yamls.Unmarshal(doc, &kind); err != nil {
			return err
		}
		var into any
		switch kind.GroupVersionKind().String() {
		case "gateway.networking.k8s.io/v1, Kind=HTTPRoute":
			into = &gateway.HTTPRoute{}
		case "gateway.networking.k8s.io/v1, Kind=ReferenceGrant":
			into = &gateway.ReferenceGrant{}
		case "gateway.envoyproxy.io/v1alpha1, Kind=SecurityPolicy":
			into = &envoygateway.SecurityPolicy{}
		case "networking.k8s.io/v1, Kind=Ingress":
			into = &ingress.Ingress{}
		case "networking.istio.io/v1, Kind=VirtualService":
			var object struct{ Spec json.RawMessage }
			if err := yamls.Unmarshal(doc, &object); err != nil {
				return err
			}
			if err := protojson.Unmarshal(object.Spec, &istio.VirtualService{}); err != nil {
				return err
			}
			continue
		default:
			return fmt.Errorf("there is no kind %s", kind.GroupVersionKind())
		}
		if err := yamls.UnmarshalStrict(doc, into); err != nil {
			return err
		}
	}
	return nil
}

// Traefik's middleware in Kubernetes is the one of the file, which end-to-end tests run.
func TestTraefikInKubernetesIsTraefik(t *testing.T) {
	var file struct {
		HTTP struct {
			Routers     map[string]struct{ Rule string }
			Middlewares map[string]struct{ ForwardAuth map[string]any }
		}
	}
	var middleware, routes struct {
		Kind string
		Spec struct {
			ForwardAuth map[string]any
			Routes      []struct{ Match string }
		}
	}
	read := func(name string) [][]byte {
		text, err := os.ReadFile("../../examples/edges/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return documents(t, text)
	}
	docs := read("kubernetes/traefik.yaml")
	for _, one := range []struct {
		doc  []byte
		into any
	}{{read("traefik/dynamic.yaml")[0], &file}, {docs[0], &middleware}, {docs[1], &routes}} {
		if err := yamls.Unmarshal(one.doc, one.into); err != nil {
			t.Fatal(err)
		}
	}
	want, got := file.HTTP.Middlewares["anteroom"].ForwardAuth, middleware.Spec.ForwardAuth
	if got["address"] != "http://anteroom.anteroom.svc:8082/check/traefik" {
		t.Errorf("the address is %v", got["address"])
	}
	delete(want, "address")
	delete(got, "address")
	if !reflect.DeepEqual(got, want) || len(got) == 0 {
		t.Errorf("the middleware is %v, and in the file %v", got, want)
	}
	if routes.Kind != "IngressRoute" || len(routes.Spec.Routes) != 2 || routes.Spec.Routes[0].Match != file.HTTP.Routers["shop-anteroom"].Rule || routes.Spec.Routes[1].Match != file.HTTP.Routers["shop"].Rule {
		t.Errorf("the rules are %v, and in the file %v", routes.Spec.Routes, file.HTTP.Routers)
	}
}
