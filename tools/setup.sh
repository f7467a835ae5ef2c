#!/bin/sh
# Makes .venv from the locks: `tools/setup.sh base [dev] [torch]`, or `build` for the installer alone.
# What is installed already and has not changed costs nothing.
set -eu
cd "$(dirname "$0")/.."
python=.venv/bin/python

fail() {
    echo "setup: $*" >&2
    exit 1
}

is_recent() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# What a set of packages is installed from: its lock, and for base also the project itself.
fingerprint() {
    case $1 in
        base) cat requirements/base.txt pyproject.toml | cksum ;;
        *) cksum <"requirements/$1.txt" ;;
    esac
}

is_installed() {
    [ -x $python ] && [ "$(cat ".venv/.installed-$1" 2>/dev/null)" = "$(fingerprint "$1")" ]
}

create_venv() {
    # Clearing would empty what a link leads to, which may be another checkout's.
    [ ! -L .venv ] || rm .venv
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if is_recent "$candidate"; then
            echo "setup: creating .venv with $("$candidate" --version)"
            "$candidate" -m venv --clear .venv >/dev/null ||
                fail "$candidate has no working venv module; install it (Debian, Ubuntu: python3-venv) and try again"
            return
        fi
    done
    fail "Python 3.11 or newer is needed; install one and try again, or name one: make setup PYTHON=/path/to/python3"
}

# One setup at a time: a second one waits here and then finds its work done.
exec 9<requirements
if command -v flock >/dev/null; then flock 9; fi

if ! is_recent $python; then
    create_venv
elif [ -f .venv/.root ] && [ "$(cat .venv/.root)" != "$PWD" ]; then
    echo "setup: this folder has moved, and a .venv can't follow"
    create_venv
fi
echo "$PWD" >.venv/.root

if ! is_installed build || [ ! -x .venv/bin/uv ]; then
    echo "setup: installing the installer"
    # A .venv that uv made has no pip.
    $python -m pip --version >/dev/null 2>&1 || $python -m ensurepip >/dev/null
    $python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt
    fingerprint build >.venv/.installed-build
fi

for name in "$@"; do
    if is_installed "$name"; then continue; fi
    echo "setup: installing requirements/$name.txt"
    .venv/bin/uv pip install --quiet --python $python --require-hashes -r "requirements/$name.txt"
    if [ "$name" = base ]; then
        .venv/bin/uv pip install --quiet --python $python --no-deps --no-build-isolation --editable .
    fi
    fingerprint "$name" >".venv/.installed-$name"
done
