#!/bin/sh
# Writes requirements/*.txt from pyproject.toml and requirements/build.in. Versions already locked are kept where
# they still fit; UPGRADE=1 takes the newest ones.
set -eu
cd "$(dirname "$0")/.."
union=$(mktemp)
trap 'rm -f "$union"' EXIT

compile() {
    output=$1
    shift
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-sources \
        --custom-compile-command "make lock" --output-file "$output" "$@"
}

[ -n "${UPGRADE:-}" ] || find requirements -name '*.txt' -exec cat {} + >"$union"
# One resolution of everything comes first; starting from it, each lock arrives at the same versions.
compile "$union" pyproject.toml requirements/build.in --all-extras
for name in build base dev torch; do
    cp "$union" "requirements/$name.txt"
    case $name in
        build) compile requirements/build.txt requirements/build.in ;;
        base) compile requirements/base.txt pyproject.toml ;;
        *) compile "requirements/$name.txt" pyproject.toml --extra "$name" ;;
    esac
done
wc -l requirements/*.txt
