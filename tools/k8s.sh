#!/bin/sh
# Renders what deploy/k8s holds into build/k8s, and validates it: with the oldest Kubernetes that the workspace sidecar
# runs on, and with the newest that kubernetes-validate knows.
set -eu
cd "$(dirname "$0")/.."

if command -v kubectl >/dev/null; then
    render="kubectl kustomize"
elif command -v kustomize >/dev/null; then
    render="kustomize build"
else
    echo "k8s: kubectl 1.30 or newer is needed, see https://kubernetes.io/docs/tasks/tools; kustomize 5 will do too" >&2
    exit 1
fi

mkdir -p build/k8s
for folder in base overlays/dev overlays/production examples/agent examples/model-change examples/traces; do
    output=build/k8s/$(basename "$folder").yaml
    $render "deploy/k8s/$folder" >"$output"
    .venv/bin/kubernetes-validate --strict --quiet -k 1.33 "$output"
    .venv/bin/kubernetes-validate --strict --quiet "$output"
    echo "k8s: $folder is valid: $(grep -c '^kind:' "$output") objects in $output"
done
