"""Names on NATS: buckets, keys and the subjects that they become.

Keys of files are `tenant.workspace.hash-of-path`: the names' grammar has no dot, and a hash makes a token of any path.
"""

from __future__ import annotations

import re

from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.domain.sealing import path_hash
from memoryd.errors import ConfigError

_TOKEN = re.compile(r"[A-Za-z0-9_-]+")

EVERY_FILE = "*.*.*"
EVERY_POINTER = "*.*.*.live"
EPOCH = "epoch"


def token(what: str, text: str) -> str:
    """Check a name that becomes part of a bucket, a consumer or a subject. Raises ConfigError."""
    if not _TOKEN.fullmatch(text):
        raise ConfigError(f"{text!r} can't be the name of a {what} in NATS: use letters, digits, - and _")
    return text


def file_key(key: FileKey) -> str:
    """Name a file."""
    return f"{scope_key(key.scope)}.{path_hash(key.path)}"


SCOPE_PARTS = 2
"""Parts of a key that name the workspace."""


def scope_key(scope: Scope) -> str:
    """Name a workspace: what its files' keys begin with."""
    return f"{scope.tenant}.{scope.workspace}"


def pointer_key(file: str) -> str:
    """Name the pointer to a live state of a file."""
    return f"{file}.live"


def settled_key(file: str, consumer: str) -> str:
    """Name the record of what a consumer has settled of a file."""
    return f"{file}.settled.{consumer}"


def workspace_subject(prefix: str, scope: Scope, call: str) -> str:
    """Name the subject on which the process that has a workspace's folder is asked."""
    return f"{prefix}.workspace.{scope_key(scope)}.{call}"


def epoch_subject(stream: str) -> str:
    """Name the subject on which processes tell each other that a new epoch has begun."""
    return f"memoryd.{stream}.epoch"


def scope_of(key: str) -> Scope:
    """Read the workspace of a file's key."""
    tenant, workspace, _ = key.split(".", SCOPE_PARTS)
    return Scope(tenant, workspace)


def scope_named(name: str) -> Scope:
    """Read what `scope_key` made."""
    return Scope(*name.split("."))
