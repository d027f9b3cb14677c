package deploy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	yamls "sigs.k8s.io/yaml"
)

// The types of the Gateway API read the example whole, and its references are to what the chart makes. What an implementation does with
// the filter is not tested.
func TestGatewayAPITakesItsExample(t *testing.T) {
	text, err := os.ReadFile("../../examples/edges/kubernetes/gateway-api.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := readGateway(documents(t, text)); err != nil {
		t.Error(err)
	}
	for old, broken := range map[string]string{"externalAuth:": "extAuth:", "port: 8082": "port: verdicts", "kind: HTTPRoute\nmetadata": "kind: HTTPRoutes\nmetadata", "hostnames: [": "hostname: ["} {
		if !strings.Contains(string(text), old) {
			t.Fatalf("the example has no %q", old)
		}
		if readGateway(documents(t, []byte(strings.Replace(string(text), old, broken, 1)))) == nil {
			t.Errorf("%q was taken", broken)
		}
	}
	rendered, err := render("forwardAuth: {enabled: true, from: [{podSelector: {}}]}")
	if err != nil || !strings.Contains(string(rendered), "port: 8082") {
		t.Errorf("the chart has no port for verdicts: %v", err)
	}
}

func readGateway(docs [][]byte) error {
	for _, doc := range docs {
		var kind metav1.TypeMeta
		if err := yamls.Unmarshal(doc, &kind); err != nil {
			return err
		}
		var into any
		switch kind.Kind {
		case "HTTPRoute":
			into = &gateway.HTTPRoute{}
		case "ReferenceGrant":
			into = &gateway.ReferenceGrant{}
		default:
			return fmt.Errorf("there is no kind %q", kind.Kind)
		}
		if err := yamls.UnmarshalStrict(doc, into); err != nil {
			return err
		}
	}
	return nil
}
