package e2e

import (
	"encoding/json"
	"testing"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3" // the types of the recipe's filters
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

// Envoy does not run in these tests. Its own types read the recipe: every field exists and has a value of its kind. Bounds are
// checked but for those inside filters.
func TestEnvoyReadsItsRecipe(t *testing.T) {
	t.Parallel()
	for _, recipe := range []string{"envoy", "envoy-grpc", "envoy-pass"} {
		if err := readByEnvoy(edited(t, "../../examples/edges/"+recipe+"/envoy.yaml")); err != nil {
			t.Errorf("%s: %v", recipe, err)
		}
	}
	for name, bad := range map[string]string{
		"a field that is none":     edited(t, "../../examples/edges/envoy/envoy.yaml", "failure_mode_allow: false", "failure_mode_allowed: false"),
		"a timeout that is none":   edited(t, "../../examples/edges/envoy/envoy.yaml", "timeout: 5s}", "timeout: soon}"),
		"a filter that is unknown": edited(t, "../../examples/edges/envoy/envoy.yaml", "ext_authz.v3.ExtAuthz\n", "ext_authz.v3.ExtAuth\n"),
		"no service of gRPC":       edited(t, "../../examples/edges/envoy-grpc/envoy.yaml", "cluster_name: verdicts}, timeout", "cluster: verdicts}, timeout"),
		"no key of the claims":     edited(t, "../../examples/edges/envoy-pass/envoy.yaml", "payload_in_metadata: pass", "payload_in_meta: pass"),
		"a port out of bounds":     edited(t, "../../examples/edges/envoy/envoy.yaml", "port_value: 80}", "port_value: 80000}"),
	} {
		if readByEnvoy(bad) == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
}

// readByEnvoy reads a bootstrap configuration by Envoy's types.
func readByEnvoy(text string) error {
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return err
	}
	asJSON, err := json.Marshal(tree)
	if err != nil {
		return err
	}
	var b bootstrap.Bootstrap
	if err := protojson.Unmarshal(asJSON, &b); err != nil {
		return err
	}
	return b.ValidateAll()
}
