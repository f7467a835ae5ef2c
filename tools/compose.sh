#!/bin/sh
# docker compose, with a service token in .env: drawn once, readable by its owner alone. COMPOSE names another compose.
set -eu
cd "$(dirname "$0")/.."

if ! grep -qs '^MEMORYD_SERVICE_TOKENS=' .env; then
    umask 077
    echo "MEMORYD_SERVICE_TOKENS=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" >>.env
fi
exec ${COMPOSE:-docker compose} "$@"
