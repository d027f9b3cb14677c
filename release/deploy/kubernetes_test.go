//go:build kubernetes

package deploy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	autoscalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	podsecurity "k8s.io/pod-security-admission/api"
	podpolicy "k8s.io/pod-security-admission/policy"
	yamls "sigs.k8s.io/yaml"
)

// pod is a template with how many there are to be.
type pod struct {
	name     string
	replicas int // at least
	spec     *corev1.PodTemplateSpec
}

// objects are what one rendering gives.
type objects struct {
	configuration string
	pods          []pod
	services      []*corev1.Service
	selectors     map[string]*metav1.LabelSelector // of pods, by who selects
	policies      []*networkingv1.NetworkPolicy
	monitors      []*monitoring.ServiceMonitor
	scaled        []string
}

// add decodes a document, refusing members that Kubernetes does not know, and validates it as the API server would.
func (o *objects) add(doc []byte) error {
	if bytes.Contains(doc, []byte("kind: ServiceMonitor")) {
		var m monitoring.ServiceMonitor
		err := yamls.UnmarshalStrict(doc, &m)
		o.monitors = append(o.monitors, &m)
		return err
	}
	given, kind, err := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer().Decode(doc, nil, nil)
	if err != nil {
		return err
	}
	legacyscheme.Scheme.Default(given)
	internal, err := legacyscheme.Scheme.ConvertToVersion(given, runtime.InternalGroupVersioner)
	if err != nil {
		return err
	}
	if o.selectors == nil {
		o.selectors = map[string]*metav1.LabelSelector{}
	}
	switch g := given.(type) {
	case *corev1.ConfigMap:
		o.configuration = g.Data["anteroom.yaml"]
	case *corev1.Service:
		o.services = append(o.services, g)
		o.selectors["service "+g.Name] = &metav1.LabelSelector{MatchLabels: g.Spec.Selector}
	case *appsv1.StatefulSet:
		o.pods = append(o.pods, pod{g.Name, int(*g.Spec.Replicas), &g.Spec.Template})
		o.selectors["stateful set "+g.Name] = g.Spec.Selector
	case *appsv1.Deployment:
		o.pods = append(o.pods, pod{g.Name, 1, &g.Spec.Template})
		o.selectors["deployment "+g.Name] = g.Spec.Selector
	case *policyv1.PodDisruptionBudget:
		o.selectors["disruption budget "+g.Name] = g.Spec.Selector
	case *networkingv1.NetworkPolicy:
		o.policies = append(o.policies, g)
		o.selectors["network policy "+g.Name] = &g.Spec.PodSelector
	case *autoscalingv2.HorizontalPodAutoscaler:
		o.scaled = append(o.scaled, g.Spec.ScaleTargetRef.Name)
	default:
		return fmt.Errorf("nobody knows the kind %s", kind)
	}
	return validate(internal).ToAggregate()
}

// validate checks a new object as the API server does.
func validate(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *apps.StatefulSet:
		return appsvalidation.ValidateStatefulSet(o, appsvalidation.StatefulSetValidationOptions{}, corevalidation.PodValidationOptions{})
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o, corevalidation.PodValidationOptions{})
	case *core.Service:
		if o.Spec.ClusterIP != "" {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP} // the API server fills it in first
		}
		return corevalidation.ValidateServiceCreate(o)
	case *core.ConfigMap:
		return corevalidation.ValidateConfigMap(o)
	case *policy.PodDisruptionBudget:
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *networking.NetworkPolicy:
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *autoscaling.HorizontalPodAutoscaler:
		return autoscalingvalidation.ValidateHorizontalPodAutoscaler(o, autoscalingvalidation.HorizontalPodAutoscalerSpecValidationOptions{MinReplicasLowerBound: 1})
	}
	return field.ErrorList{field.InternalError(nil, fmt.Errorf("no validation for %T", object))}
}

// fit checks that what names pods, ports and services finds them.
func (o *objects) fit(t *testing.T) {
	t.Helper()
	for who, s := range o.selectors {
		if len(o.selected(t, s)) == 0 {
			t.Errorf("%s selects no pod", who)
		}
	}
	for _, s := range o.services {
		for _, p := range o.selected(t, &metav1.LabelSelector{MatchLabels: s.Spec.Selector}) {
			for _, port := range s.Spec.Ports {
				if !p.has(port.TargetPort) {
					t.Errorf("service %s: %s has no port %s", s.Name, p.name, port.TargetPort.String())
				}
			}
		}
	}
	for _, policy := range o.policies {
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				if !slices.ContainsFunc(o.selected(t, &policy.Spec.PodSelector), func(p pod) bool { return p.has(*port.Port) }) {
					t.Errorf("network policy %s: no pod has the port %s", policy.Name, port.Port.String())
				}
			}
		}
	}
	for _, m := range o.monitors {
		found := false
		selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range o.services {
			found = found || selector.Matches(labels.Set(s.Labels)) && s.Spec.Ports[0].Name == m.Spec.Endpoints[0].Port
		}
		if !found {
			t.Errorf("service monitor %s finds no service", m.Name)
		}
	}
	for _, name := range o.scaled {
		if !slices.ContainsFunc(o.pods, func(p pod) bool { return p.name == name }) {
			t.Errorf("there is no %s to scale", name)
		}
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	evaluator, err := podpolicy.NewEvaluator(podpolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range o.pods {
		if sum := podpolicy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &p.spec.ObjectMeta, &p.spec.Spec)); !sum.Allowed {
			t.Errorf("%s: %s", p.name, sum.ForbiddenDetail())
		}
		for _, c := range p.spec.Spec.Containers {
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if probe == nil || !p.has(probe.HTTPGet.Port) || !strings.HasPrefix(probe.HTTPGet.Path, "/-/") {
					t.Errorf("%s: probe %v", p.name, probe)
				}
			}
		}
	}
}

func (o *objects) selected(t *testing.T, s *metav1.LabelSelector) (out []pod) {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range o.pods {
		if selector.Matches(labels.Set(p.spec.Labels)) {
			out = append(out, p)
		}
	}
	return out
}

// has reports whether a container has a port, by name.
func (p pod) has(port intstr.IntOrString) bool {
	for _, c := range p.spec.Spec.Containers {
		if slices.ContainsFunc(c.Ports, func(one corev1.ContainerPort) bool { return one.Name == port.StrVal }) {
			return true
		}
	}
	return false
}

// environments are those of a template's pods, by their names, with references to the pod's name followed.
func (p pod) environments() map[string][]string {
	out := map[string][]string{}
	for i := range p.replicas {
		name := fmt.Sprintf("%s-%d", p.name, i)
		for _, e := range p.spec.Spec.Containers[0].Env {
			if e.ValueFrom == nil {
				out[name] = append(out[name], e.Name+"="+strings.ReplaceAll(e.Value, "$(POD_NAME)", name))
			}
		}
	}
	return out
}

// secrets are the names of the Secrets that a template's pods have as files.
func (p pod) secrets() (names []string) {
	for _, v := range p.spec.Spec.Volumes {
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
	}
	return names
}
