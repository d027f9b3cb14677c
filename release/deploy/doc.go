// Package deploy checks what runs Anteroom elsewhere: the Helm chart in examples/kubernetes and the set-up in examples/compose.
// Its tests render the chart, compare the result with the manifests that are checked in, and validate both with Helm's and
// Kubernetes' own code; scripts/kubernetes applies them to a real API server. It is a module of its own because of what these import.
package deploy
