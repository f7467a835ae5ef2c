"""Plans: what is kept, what is born, what is dropped, and which events are old."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.chunking import Chunked, FrontMatter
from memoryd.domain.chunks import ChunkRef, Piece
from memoryd.domain.files import FileKey, FileState, LoggedFile, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline
from memoryd.domain.plans import POISON, Plan, is_old, plan, set_aside

SCOPE = Scope("acme", "garden")
MARCH = 1_710_000_000.0  # 2024-03-09 UTC
TOO_LARGE = Problem("TOO_LARGE", "11 MiB")


def logged(sequence: int, path: str = "memory/moss.md", **fields: Any) -> LoggedFile:  # noqa: ANN401  (fields of a state)
    base = FileState(FileKey(SCOPE, path), hash=f"h{sequence}", content=b"text", modified=MARCH)
    return LoggedFile(replace(base, **fields), Revision(1, sequence))


def chunked(*texts: str, at: int = 1, front: FrontMatter = FrontMatter()) -> Chunked:  # noqa: B008  (immutable)
    return Chunked(tuple(Piece(text, "Top", at + i, at + i) for i, text in enumerate(texts)), front)


def first(*texts: str) -> Plan:
    return plan(logged(1), None, chunked(*texts))


def texts_of(made: Plan) -> list[str]:
    return [chunk.text for chunk in made.born]


def test_a_new_file_is_born_whole() -> None:
    made = first("a", "b")
    assert texts_of(made) == ["a", "b"]
    assert [listed.id for listed in made.outline.chunks] == [chunk.id for chunk in made.born]
    assert {chunk.birth for chunk in made.born} == {Revision(1, 1)}
    assert made.outline.entry == 0
    assert made.dropped == ()


def test_shifted_lines_keep_their_ids() -> None:
    base = replace(first("a", "b").outline, entry=7)
    made = plan(logged(2), base, chunked("a", "b", at=2))
    assert made.born == ()
    assert made.dropped == ()
    assert [listed.id for listed in made.outline.chunks] == list(base.by_id)
    assert [listed.start_line for listed in made.outline.chunks] == [2, 3]
    assert (made.outline.entry, made.outline.revision, made.outline.file_hash) == (7, Revision(1, 2), "h2")


def test_equal_pieces_are_told_apart_by_their_ordinal() -> None:
    base = first("a", "a").outline
    assert len(base.by_id) == 2
    made = plan(logged(2), base, chunked("a", "b", "a", "a"))
    assert texts_of(made) == ["b", "a"]
    assert plan(logged(2), base, chunked("a")).dropped == (base.chunks[1].id,)


def test_a_text_that_comes_back_is_born_again() -> None:
    base = first("a", "b").outline
    without = plan(logged(2), base, chunked("b")).outline
    made = plan(logged(3), without, chunked("a", "b"))
    assert texts_of(made) == ["a"]
    assert made.born[0].id != base.chunks[0].id


@pytest.mark.parametrize(
    ("state", "front"),
    [
        ({"private": True}, FrontMatter()),
        ({"source": Source.SESSIONS}, FrontMatter()),
        ({}, FrontMatter(private=True)),
        ({}, FrontMatter(tags=("seed",))),
        ({}, FrontMatter(date="2026-01-02")),
    ],
)
def test_a_changed_flag_makes_other_chunks(state: dict[str, Any], front: FrontMatter) -> None:
    made = plan(logged(2, **state), first("a").outline, chunked("a", front=front))
    assert texts_of(made) == ["a"]
    assert len(made.dropped) == 1
    assert made.outline.private == made.born[0].private


def test_the_modification_time_alone_changes_no_chunk() -> None:
    made = plan(logged(2, modified=MARCH + 1e7), first("a").outline, chunked("a"))
    assert made.born == ()
    assert made.outline.date == "2024-07-03"


@pytest.mark.parametrize(
    ("path", "front", "of_outline", "of_chunk", "evergreen"),
    [
        ("memory/2026-05-14-call.md", "2026-01-02", "2026-05-14", "2026-05-14", False),
        ("memory/2026-02-30.md", "2026-01-02", "2026-01-02", "2026-01-02", True),
        ("memory/moss.md", "2026-01-02", "2026-01-02", "2026-01-02", True),
        ("memory/moss.md", "", "2024-03-09", "", True),
    ],
)
def test_dates(path: str, front: str, of_outline: str, of_chunk: str, evergreen: bool) -> None:
    made = plan(logged(1, path), None, chunked("a", front=FrontMatter(date=front)))
    assert made.outline.date == of_outline
    assert made.born[0].date == of_chunk
    assert made.outline.evergreen == evergreen


def test_a_time_stamp_beyond_the_calendar_gives_no_date() -> None:
    assert plan(logged(1, modified=1e30), None, chunked("a")).outline.date == ""


def test_transcripts_decay() -> None:
    assert not plan(logged(1, "sessions/a.jsonl", source=Source.SESSIONS), None, chunked("a")).outline.evergreen


def test_front_matter_can_make_private_but_not_public() -> None:
    assert plan(logged(1), None, chunked("a", front=FrontMatter(private=True))).outline.private
    assert plan(logged(1, private=True), None, chunked("a", front=FrontMatter(private=False))).outline.private


def test_a_deletion_is_a_tombstone_also_for_an_unknown_file() -> None:
    state = FileState.deletion(FileKey(SCOPE, "memory/moss.md"), MARCH)
    unknown = plan(LoggedFile(state, Revision(1, 4)), None, None)
    assert unknown.outline.deleted
    assert unknown.outline.entry == 0
    base = replace(first("a").outline, entry=3)
    made = plan(LoggedFile(state, Revision(1, 4)), base, None)
    assert (made.outline.deleted, made.outline.chunks, made.outline.entry) == (True, (), 3)
    assert made.dropped == tuple(base.by_id)


def test_a_file_set_aside_keeps_its_chunks() -> None:
    base = first("a").outline
    made = plan(logged(2, content=None, hash="", problem=TOO_LARGE), base, None)
    assert made.outline == replace(base, revision=Revision(1, 2), problem=TOO_LARGE)
    assert made.born == ()


def test_a_file_set_aside_that_becomes_private_is_so_at_once() -> None:
    state = logged(2, content=None, hash="", problem=TOO_LARGE, private=True)
    assert plan(state, first("a").outline, None).outline.private


def test_a_file_set_aside_after_its_tombstone_is_there_again() -> None:
    tombstone = plan(logged(1, deleted=True, content=None, hash=""), None, None).outline
    made = set_aside(logged(2), replace(tombstone, entry=5), TOO_LARGE)
    assert (made.deleted, made.chunks, made.entry, made.problem) == (False, (), 5, TOO_LARGE)


def test_a_content_needs_its_pieces() -> None:
    with pytest.raises(ValueError, match="needs the pieces"):
        plan(logged(1), None, None)


def test_old_events() -> None:
    outline = plan(logged(5), None, chunked("a")).outline
    assert not is_old(logged(5), None)
    assert is_old(logged(4), outline)
    assert is_old(logged(5), outline)
    assert not is_old(logged(6), outline)


@pytest.mark.parametrize(
    "state",
    [
        {"hash": "other"},
        {"private": True},
        {"source": Source.SESSIONS},
        {"deleted": True, "content": None, "hash": ""},
        {"problem": TOO_LARGE, "content": None, "hash": ""},
    ],
)
def test_an_equal_revision_with_another_state_is_news(state: dict[str, Any]) -> None:
    assert not is_old(logged(5, **state), plan(logged(5), None, chunked("a")).outline)


def test_what_front_matter_made_private_is_planned_again_and_changes_nothing() -> None:
    pieces = chunked("a", front=FrontMatter(private=True))
    outline = plan(logged(5), None, pieces).outline
    assert not is_old(logged(5), outline)
    again = plan(logged(5), outline, pieces)
    assert not again.changed
    assert again.born == ()


def test_a_poisoned_state_is_old() -> None:
    outline = set_aside(logged(5), first("a").outline, Problem(POISON, "three times"))
    assert is_old(logged(5), outline)
    assert not is_old(logged(6), outline)
    large = logged(5, problem=TOO_LARGE, content=None, hash="")
    assert not is_old(large, outline)
    assert is_old(large, set_aside(large, None, TOO_LARGE))


STATES = st.lists(st.lists(st.sampled_from("abc"), max_size=5), min_size=1, max_size=6)


@given(STATES)
def test_ids_never_come_back_and_unlisted_chunks_are_collectable(states: list[list[str]]) -> None:
    base: Outline | None = None
    gone: dict[str, Revision] = {}
    births: dict[str, Revision] = {}
    for number, texts in enumerate(states, 1):
        made = plan(logged(number), base, chunked(*texts))
        births |= {chunk.id: chunk.birth for chunk in made.born}
        assert not gone.keys() & made.outline.by_id.keys()
        assert set(made.outline.by_id) == set(base.by_id if base else {}) - set(made.dropped) | {
            c.id for c in made.born
        }
        assert len(made.outline.by_id) == len(texts)
        gone |= {name: births[name] for name in made.dropped}
        base = made.outline
        for name, birth in births.items():
            ref = ChunkRef(name, "memory/moss.md", birth)
            assert base.collectable(ref) == (name not in base.by_id)
        assert not base.collectable(ChunkRef("later", "memory/moss.md", Revision(1, number + 1)))
