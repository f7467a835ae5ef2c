#!/bin/sh
# Builds images without Docker, on a base made of Debian packages, and starts each as it runs in a cluster: not root,
# nothing writable but /tmp and the data folder, no capability. `tools/check_images.sh [SERVICE…]`; by default all, and
# without torch: `TORCH=1 tools/check_images.sh embedder` starts that on sentence-transformers.
#
# Needs root, some minutes, 4 GB below WORK (by default a folder in /var/tmp, deleted at the end), and the Debian
# packages buildah, debootstrap and iproute2. PACKAGES and CA as in build_images.sh; MIRROR is debootstrap's.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "images: $*" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || fail "this check needs root"
for tool in buildah debootstrap ip setpriv unshare; do
    command -v $tool >/dev/null || fail "$tool is needed: apt-get install buildah debootstrap iproute2 util-linux"
done
[ $# -gt 0 ] || set -- embedder indexer search gateway workspace standalone

work=${WORK:-$(mktemp -d /var/tmp/memoryd-images.XXXXXX)}
clean_up() {
    buildah rm --all >/dev/null 2>&1 || true
    [ -n "${WORK:-}" ] || rm -rf "$work"
}
trap clean_up EXIT
mkdir -p "$work/lower" "$work/upper" "$work/scratch" "$work/mount"
# Without overlayfs (within most containers) each layer is a copy: then none is kept.
driver=vfs
if mount -t overlay -o "lowerdir=$work/lower,upperdir=$work/upper,workdir=$work/scratch" overlay "$work/mount" 2>/dev/null
then
    umount "$work/mount"
    driver=overlay
    export BUILDAH_LAYERS=true
fi
cat >"$work/storage.conf" <<END
[storage]
driver = "$driver"
graphroot = "$work/storage"
runroot = "$work/run"
END
export CONTAINERS_STORAGE_CONF="$work/storage.conf" BUILDAH_ISOLATION=chroot ENGINE=buildah TAG=check
export BASE_IMAGE=localhost/memoryd-base

if ! buildah inspect --type image "$BASE_IMAGE" >/dev/null 2>&1; then
    echo "images: making the base image"
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv bookworm "$work/base" ${MIRROR:-} \
        >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" >&2; fail "debootstrap failed"; }
    rm -rf "$work/base/var/cache/apt" "$work/base/var/lib/apt/lists" "$work/base/usr/share/doc" "$work/base/usr/share/locale"
    container=$(buildah from scratch)
    buildah copy --quiet "$container" "$work/base" / >/dev/null
    buildah commit --quiet --rm "$container" "$BASE_IMAGE" >/dev/null
    du -sm "$work/base" | cut -f1 >"$work/base.megabytes"
    rm -rf "$work/base"
fi

for service in "$@"; do
    tools/build_images.sh "$service" >"$work/$service.log" 2>&1 || { tail -20 "$work/$service.log" >&2; fail "$service"; }
    container=$(buildah from "localhost/memoryd-$service:check")
    root=$(buildah mount "$container")
    buildah inspect --format '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' "$container" >"$work/environment"
    echo "images: memoryd-$service: $(($(du -sm "$root" | cut -f1) - $(cat "$work/base.megabytes"))) MB," \
        "and the base image's $(cat "$work/base.megabytes") MB"
    unshare --mount --net sh tools/start_image.sh "$root" "$service" "$work/environment"
    buildah rm "$container" >/dev/null
    buildah rmi --force "localhost/memoryd-$service:check" >/dev/null
done
