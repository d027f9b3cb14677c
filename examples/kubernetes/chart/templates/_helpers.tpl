{{- /* Names stay short enough for "-core-0" to be the name of a node: 32 characters. */ -}}
{{- define "anteroom.name" -}}
{{- if contains "anteroom" .Release.Name }}{{ .Release.Name | trunc 24 | trimSuffix "-" }}{{ else }}{{ printf "%s-anteroom" .Release.Name | trunc 24 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- define "anteroom.selector" -}}
app.kubernetes.io/name: anteroom
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "anteroom.labels" -}}
{{ include "anteroom.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The addresses of all cores, separated by commas. A pod knows its own full name from /etc/hosts, before DNS does. */ -}}
{{- define "anteroom.cores" -}}
{{- $all := list -}}
{{- range $i := until (int .Values.cores.replicas) -}}
{{- $all = append $all (printf "%s-core-%d.%s-core.%s.svc.%s:7222" (include "anteroom.name" $) $i (include "anteroom.name" $) $.Release.Namespace $.Values.cluster.domain) -}}
{{- end -}}
{{- join "," $all -}}
{{- end -}}

{{- /* Environment of every pod: what the chart sets over the configuration file. */ -}}
{{- define "anteroom.environment" -}}
- name: ANTEROOM_LISTEN
  value: ":8080"
- name: ANTEROOM_ADMIN
  value: ":8081"
- name: ANTEROOM_ADMIN_PLAIN
  value: "true"
{{- if .Values.forwardAuth.enabled }}
- name: ANTEROOM_FORWARD_AUTH_LISTEN
  value: ":8082"
{{- end }}
- name: ANTEROOM_DATA
  value: /var/lib/anteroom
- name: ANTEROOM_TIMEOUTS_DRAIN_DELAY
  value: {{ printf "%vs" .Values.drain.delaySeconds }}
- name: ANTEROOM_TIMEOUTS_DRAIN
  value: {{ printf "%vs" .Values.drain.seconds }}
- name: ANTEROOM_CLUSTER_NAME
  value: {{ .Values.cluster.name | quote }}
- name: ANTEROOM_CLUSTER_SITE
  value: {{ .Values.cluster.site | quote }}
- name: ANTEROOM_CLUSTER_SECRET_FILE
  value: /etc/anteroom-cluster/secret
{{- with .Values.api.existingSecret }}
- name: ANTEROOM_API_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: token
{{- end }}
{{- with .Values.scrape.existingSecret }}
- name: ANTEROOM_SCRAPE_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: token
{{- end }}
{{- end -}}

{{- /* The part of a pod that cores and edges share. */ -}}
{{- define "anteroom.container" -}}
image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: [run, --config, /etc/anteroom/anteroom.yaml]
startupProbe:
  httpGet: {path: /-/live, port: admin}
  periodSeconds: 2
  failureThreshold: 300 # cores wait for each other
livenessProbe:
  httpGet: {path: /-/live, port: admin}
  periodSeconds: 10
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /-/ready, port: admin}
  periodSeconds: 2
  failureThreshold: 2
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: configuration
    mountPath: /etc/anteroom
    readOnly: true
  - name: secret
    mountPath: /etc/anteroom-cluster
    readOnly: true
  - name: data
    mountPath: /var/lib/anteroom
{{- end -}}

{{- define "anteroom.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ add .Values.drain.delaySeconds .Values.drain.seconds 15 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "anteroom.volumes" -}}
- name: configuration
  configMap:
    name: {{ include "anteroom.name" . }}
{{- end -}}

{{- define "anteroom.secret" -}}
- name: secret
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end -}}

{{- /* The name of the Secret of edges. Values that a release reuses may be older than it. */ -}}
{{- define "anteroom.edgesOwn" -}}
{{- default "anteroom-edge" .Values.edges.existingSecret -}}
{{- end -}}

{{- /* The Secret that edges get: a release that is older than their own goes on with that of the cores until theirs exists. */ -}}
{{- define "anteroom.edgeSecret" -}}
{{- $own := include "anteroom.edgesOwn" . -}}
{{- if or .Release.IsInstall (lookup "v1" "Secret" .Release.Namespace $own) }}{{ $own }}{{ else }}{{ .Values.cluster.existingSecret }}{{ end -}}
{{- end -}}
