#!/bin/sh
# Part of check_images.sh, in mount and network namespaces of its own: starts the service in an image's file system ROOT
# as a cluster would, asks for its health and stops it: `tools/start_image.sh ROOT SERVICE ENVIRONMENT`.
set -euf
root=$1 service=$2 environment=$3

fail() {
    cat "$environment.log" >&2
    echo "images: memoryd-$service: $*" >&2
    exit 1
}

ip link set lo up
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=0755,uid=65532,gid=65532 tmpfs "$root/var/lib/memoryd"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind -o ro examples/workspace "$root/mnt"

# The image's environment and its user, no capability and no way to get one.
as_image() {
    # shellcheck disable=SC2046  # a variable a line, none with a blank
    exec setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid --inh-caps=-all \
        chroot --userspec=65532:65532 --groups= "$root" /usr/bin/env -i $(cat "$environment") \
        MEMORYD_SERVICE_TOKENS=a-token-of-this-check \
        MEMORYD_CLIENT_EMBEDDER=127.0.0.1:1 MEMORYD_CLIENT_SEARCH=127.0.0.1:1 MEMORYD_CLIENT_INDEXER=127.0.0.1:1 \
        'MEMORYD_WORKSPACES=[{"path":"/mnt","name":"example"}]' "$@"
}

# Whether a health service of the server comes to a status, within a minute.
comes() {
    for _ in $(seq 120); do
        if [ "$(as_image python -m memoryd.server.probe "$1" 2>&1)" = "$2" ]; then return; fi
        kill -0 $server 2>/dev/null || fail "it has ended"
        sleep 0.5
    done
    fail "health '$1' does not come to '$2': $(as_image python -m memoryd.server.probe "$1" 2>&1)"
}

: >"$environment.log"
if (as_image touch /opt/memoryd/written) 2>/dev/null; then fail "its root file system can be written to"; fi
(as_image memoryd key create --help) >/dev/null || fail "its command line does not work"

(as_image /opt/memoryd/application/bin/start) >"$environment.log" 2>&1 &
server=$!
trap 'kill -KILL $server 2>/dev/null || true' EXIT
comes liveness ''
case $service in
    embedder | standalone) comes '' '' ;;
    *) comes '' 'server: NOT_SERVING' ;; # what it depends on is not here
esac
if [ "$service" = standalone ]; then
    (as_image memoryd search --max-results 1 "what do we do if a cold room is warming up in the middle of the night?")
fi
echo "images: memoryd-$service: up, with $(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$server/status") MB at most"
kill -TERM $server
wait $server || fail "it did not end well: exit status $?"
trap - EXIT
