// Package deploy checks what runs Anteroom elsewhere: the Helm chart in examples/kubernetes and the set-up in examples/compose.
// Its tests render the chart, compare the result with the manifests that are checked in, and validate both with Helm's and
// Kubernetes' own code. It is a module of its own because of what these import.
package deploy
