// Package deploy checks what runs Anteroom elsewhere: the Helm chart in examples/kubernetes and the set-up in examples/compose.
// Its tests render the chart, compare the result with the manifests that are checked in, and validate both with Helm's and
// Kubernetes' own code. What Kubernetes has written takes minutes to compile: those tests have the tag kubernetes, and scripts/release and
// scripts/kubernetes run them, which also applies the objects to a real API server. It is a module of its own because of what they import.
package deploy
