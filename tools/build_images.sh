#!/bin/sh
# Builds images of deploy/Dockerfile: `tools/build_images.sh [SERVICE…]`, by default those of all services.
#
# From the environment: ENGINE (docker, podman or buildah; by default the first that is there), TAG (dev), BASE_IMAGE,
# TORCH=1; PACKAGES and CA, files that the build gets as secrets (see the Dockerfile).
set -eu
cd "$(dirname "$0")/.."

engine=${ENGINE:-}
for candidate in docker podman buildah; do
    if [ -z "$engine" ] && command -v $candidate >/dev/null; then engine=$candidate; fi
done
if [ -z "$engine" ]; then
    echo "images: docker, podman or buildah is needed" >&2
    exit 1
fi

[ $# -gt 0 ] || set -- embedder indexer search gateway workspace standalone
for service in "$@"; do
    case $service in
        embedder | standalone) torch=${TORCH:-0} ;;
        *) torch=0 ;;
    esac
    echo "images: memoryd-$service:${TAG:-dev}"
    "$engine" build --file deploy/Dockerfile --tag "memoryd-$service:${TAG:-dev}" \
        --build-arg "SERVICE=$service" \
        --build-arg "TORCH=$torch" \
        --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || true)" \
        ${BASE_IMAGE:+--build-arg "BASE_IMAGE=$BASE_IMAGE"} \
        ${PACKAGES:+--secret "id=packages,src=$PACKAGES"} \
        ${CA:+--secret "id=ca,src=$CA"} \
        .
done
