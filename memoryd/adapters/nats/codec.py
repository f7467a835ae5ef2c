"""How file states and outlines are written in NATS.

A state's description is a header, its content the value, so listings need not carry contents.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
import zstandard

from memoryd.adapters.codec import decode_outline, encode_outline
from memoryd.domain.files import FileKey, FileState, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline

STATE = "Memoryd-State"  # a state's description
REVISION = "Memoryd-Revision"  # of an outline; of what was settled; of what a pointer points to


def state_header(state: FileState, *, live: bool) -> str:
    """Describe a state in one line of ASCII, as headers want it."""
    problem = state.problem
    description: dict[str, Any] = {
        "path": state.key.path,
        "hash": state.hash,
        "modified": state.modified,
        "source": state.source.value,
        "private": state.private,
        "lossy": state.lossy,
        "deleted": state.deleted,
        "problem": [problem.reason, problem.detail] if problem else None,
        "evergreen": state.evergreen,
        "content": state.content is not None,
        "live": live,
    }
    return json.dumps(description, separators=(",", ":"))  # it escapes what is not ASCII


def pack_content(state: FileState) -> bytes:
    """Compress a state's content; empty where it has none."""
    return b"" if state.content is None else zstandard.compress(state.content)


def read_state(scope: Scope, header: str, value: bytes | None) -> tuple[FileState, bool]:
    """Read a state, without content where `value` is None, and whether it is live."""
    fields = orjson.loads(header)
    state = FileState(
        key=FileKey(scope, fields["path"]),
        hash=fields["hash"],
        content=zstandard.decompress(value) if value is not None and fields["content"] else None,
        modified=fields["modified"],
        source=Source(fields["source"]),
        private=fields["private"],
        lossy=fields["lossy"],
        deleted=fields["deleted"],
        problem=Problem(*fields["problem"]) if fields["problem"] else None,
        evergreen=fields.get("evergreen", True),
    )
    return state, fields["live"]


def outline_value(outline: Outline) -> bytes:
    """Write an outline: a line of path and revision, then the rest."""
    revision = outline.revision
    head = orjson.dumps([outline.key.path, revision.epoch, revision.sequence])  # JSON has no bare line end
    return head + b"\n" + encode_outline(outline)


def read_outline(scope: Scope, value: bytes, entry: int) -> Outline:
    """Read an outline."""
    head, _, body = value.partition(b"\n")
    path, epoch, sequence = orjson.loads(head)
    return decode_outline(FileKey(scope, path), Revision(epoch, sequence), entry, body)
