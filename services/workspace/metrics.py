"""Metrics of the workspace service."""

from __future__ import annotations

from prometheus_client import Counter, Gauge

STATES_PUT = Counter(
    "memoryd_workspace_states_put", "File states put into the file log: a file's text, a deletion, a problem.", ["kind"]
)
WATCHER_RESTARTS = Counter(
    "memoryd_workspace_watcher_restarts",
    "Restarts of the watcher: it failed, a workspace's folder came or went, folders in it were not watched.",
    ["cause"],
)
ROOTS_MISSING = Gauge("memoryd_workspace_roots_missing", "Workspaces whose folder can't be read.")
RECONCILED = Gauge(
    "memoryd_workspace_reconciled_timestamp_seconds",
    "When all files of a workspace were last read and compared with the file log.",
    ["tenant", "workspace"],
)
