from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.chunks import ChunkRef, chunk_id, chunk_identity
from memoryd.domain.files import FileKey, FileState, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Listed, Outline

KEY = FileKey(Scope("acme", "rod"), "memory/a.md")
REVISIONS = st.builds(Revision, st.integers(1, 2**40), st.integers(0, 2**60))


@given(REVISIONS, REVISIONS)
def test_revisions_are_ordered_by_epoch_and_come_back_from_their_token(one: Revision, other: Revision) -> None:
    assert Revision.parse(one.token) == one
    assert (one < other) == ((one.epoch, one.sequence) < (other.epoch, other.sequence))


@pytest.mark.parametrize("token", ["", "1", "1-", "-1", "x-1", "01-1", "1-0x1", "1-1-1", " 1-1", "1-1 "])
def test_nothing_else_is_a_revision(token: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Revision.parse(token)


@pytest.mark.parametrize("name", ["", "A", "a.b", "a/b", "ä", "a" * 64, "a b", "*"])
def test_a_scope_has_names_of_the_grammar(name: str) -> None:
    with pytest.raises(ValueError, match="is not a name"):
        Scope("acme", name)
    with pytest.raises(ValueError, match="is not a name"):
        Scope(name, "rod")


def identity(**changed: object) -> str:
    fields: dict[str, object] = {
        "key": KEY,
        "text": "text",
        "breadcrumb": "A > B",
        "source": Source.MEMORY,
        "private": False,
        "date": "2026-03-05",
        "tags": ("x", "y"),
    }
    return chunk_identity(**(fields | changed))  # type: ignore[arg-type]  # one field at a time is changed


@pytest.mark.parametrize(
    "changed",
    [
        {"key": FileKey(Scope("acme", "linwei"), "memory/a.md")},
        {"key": FileKey(Scope("other", "rod"), "memory/a.md")},
        {"key": replace(KEY, path="memory/b.md")},
        {"text": "texT"},
        {"breadcrumb": "A"},
        {"breadcrumb": "A > Btext", "text": ""},
        {"source": Source.SESSIONS},
        {"private": True},
        {"date": ""},
        {"tags": ("xy",)},
        {"tags": ("x", "y", "")},
    ],
)
def test_every_stored_field_is_part_of_a_chunks_identity(changed: dict[str, object]) -> None:
    assert identity(**changed) != identity()


def test_a_chunk_id_is_a_uuid_that_differs_by_ordinal_and_birth() -> None:
    ids = {chunk_id(identity(), ordinal, Revision(1, birth)) for ordinal in range(3) for birth in range(3)}
    assert len(ids) == 9
    assert all(str(uuid.UUID(one)) == one for one in ids)
    assert chunk_id(identity(), 0, Revision(1, 0)) in ids


def test_only_what_an_outline_has_outlived_is_collectable() -> None:
    outline = Outline(KEY, Revision(1, 5), "hash", (Listed("kept", "i", 0, 1, 2),))
    assert not outline.collectable(ChunkRef("kept", KEY.path, Revision(1, 3)))
    assert outline.collectable(ChunkRef("dropped", KEY.path, Revision(1, 3)))
    assert outline.collectable(ChunkRef("dropped", KEY.path, Revision(1, 5)))
    assert not outline.collectable(ChunkRef("in flight", KEY.path, Revision(1, 6)))
    assert not outline.collectable(ChunkRef("in flight", KEY.path, Revision(2, 1)))


def test_the_modification_time_alone_is_no_change() -> None:
    state = FileState(KEY, "hash", b"text", 1.0)
    assert state.same_as(replace(state, modified=2.0, content=None))
    for changed in (
        {"hash": "other"},
        {"private": True},
        {"deleted": True},
        {"problem": Problem("BINARY", "NUL bytes")},
        {"source": Source.SESSIONS},
    ):
        assert not state.same_as(replace(state, **changed))
