#!/bin/sh
# Refuses a change of proto/ that would break callers (buf's FILE rules); needs no network.
# On a branch the change is everything since main; on main it is what is not committed yet, else the last commit.
set -eu
cd "$(dirname "$0")/.."

skip() {
    echo "not checked: $*"
    exit 0
}

[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ] || skip "this is no git checkout"
git rev-parse --quiet --verify HEAD >/dev/null || skip "nothing is committed yet"
base=HEAD
for main in origin/main main; do
    if git rev-parse --quiet --verify "$main" >/dev/null; then
        base=$(git merge-base HEAD "$main") || skip "the history that this branch shares with $main is not here"
        break
    fi
done
if [ "$(git rev-parse "$base")" = "$(git rev-parse HEAD)" ] && git diff --quiet HEAD -- proto; then
    if ! base=$(git rev-parse --quiet --verify HEAD^); then
        [ "$(git rev-parse --is-shallow-repository)" = false ] || skip "this clone is shallow (git fetch --unshallow)"
        skip "this is the first commit"
    fi
fi
[ -n "$(git ls-tree "$base" proto/)" ] || skip "$base has no proto files"

old=$(mktemp -d)
trap 'rm -rf "$old"' EXIT
git archive "$base" proto | tar -x -C "$old"
cp buf.yaml "$old"
echo "compared with $(git rev-parse --short "$base")"
.venv/bin/buf breaking --against "$old"
