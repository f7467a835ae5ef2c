"""Plans: what an indexer writes to bring a file from its current outline to a new state.

The plan is a diff: a piece that the current outline lists is kept with its id, every other piece is born now, with the
file's new revision in its id. A text that comes back is born again, even where a store still holds the old chunk.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memoryd.domain.chunking import Chunked
from memoryd.domain.chunks import Chunk, chunk_id, chunk_identity, text_hash
from memoryd.domain.files import LoggedFile, Problem, Source
from memoryd.domain.outlines import Listed, Outline
from memoryd.domain.paths import is_evergreen, path_date

POISON = "POISON"
_LOSSY = "some bytes are not UTF-8 and were replaced: convert the file"
BLOCKED = "BLOCKED"
"""Reason of a file that must not be indexed: its state holds no text, and its outline lists nothing."""
_NONE_LOST: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """A diff against one outline.

    Attributes:
        outline: to be committed last, by compare-and-set on the entry of the outline that was diffed.
        born: the chunks to write to both stores before that, in the order of the file, still without their terms.
        dropped: ids that the diffed outline lists and the new one does not; the sweeper collects them.
        changed: whether the outline is another one at all: where it is not, there is nothing to commit.
    """

    outline: Outline
    born: tuple[Chunk, ...] = ()
    dropped: tuple[str, ...] = ()
    changed: bool = True


def is_old(logged: LoggedFile, outline: Outline | None) -> bool:
    """Whether a delivered state is older than the outline, or what the outline already shows.

    An equal revision with another hash or other flags is news. Where front matter may have made the outline private,
    the state alone can't tell, so it counts as news; its plan then changes nothing.
    """
    if outline is None or logged.revision > outline.revision:
        return False
    if logged.revision < outline.revision:
        return True
    state = logged.state
    if outline.problem is not None:  # the indexer itself sets a state without a problem aside: POISON
        return state.problem in {None, outline.problem}
    shown = (outline.deleted, outline.file_hash, outline.source, outline.private)
    return state.problem is None and shown == (state.deleted, state.hash, state.source, state.private)


def is_put_again(logged: LoggedFile, base: Outline | None) -> bool:
    """Whether a state may show nothing new: it was put again to be indexed anew (a re-index, a repair, a new epoch).

    Then it is worth looking whether both stores hold what the outline lists.
    """
    if base is None or not base.chunks or logged.revision <= base.revision:
        return False
    return base.problem is not None or logged.state.hash == base.file_hash


def plan(logged: LoggedFile, base: Outline | None, chunked: Chunked | None, lost: frozenset[str] = _NONE_LOST) -> Plan:
    """Diff a state against the file's current outline.

    Args:
        logged: the state.
        base: the current outline, None where there is none.
        chunked: the pieces of the state's text; None for a deletion or a problem.
        lost: chunks that the outline lists and a store does not hold: they are born anew, under other ids.
    """
    blocked = _blocked(logged, base)
    if blocked is not None:
        return Plan(blocked, dropped=tuple(base.by_id) if base else ())
    if logged.state.problem is not None:
        outline = set_aside(logged, base, logged.state.problem, lost)
        return Plan(outline, dropped=_dropped(base, outline))
    if logged.state.deleted:
        return _tombstone(logged, base)
    if chunked is None:
        message = f"{logged.state.key.path} at {logged.revision.token} has a content: its plan needs the pieces"
        raise ValueError(message)
    return _diff(logged, base, chunked, lost)


def set_aside(logged: LoggedFile, base: Outline | None, problem: Problem, lost: frozenset[str] = _NONE_LOST) -> Outline:
    """Make the outline of a state that can't be indexed: its revision, the problem, and the chunks of before.

    What is private stays private, and what becomes private is so at once, though the text itself is the old one. Chunks
    that a store has lost are shown no more: their text is gone.
    """
    state = logged.state
    if base is None or base.deleted:
        return _without_text(logged, base, problem)
    chunks = tuple(listed for listed in base.chunks if listed.id not in lost)
    return replace(
        base, revision=logged.revision, problem=problem, private=base.private or state.private, chunks=chunks
    )


def _blocked(logged: LoggedFile, base: Outline | None) -> Outline | None:
    """Make the outline of a blocked file; None where it is not.

    A block outlives a lost log: once an outline shows it, only a deletion takes it away, never a text.
    """
    state = logged.state
    problems = [state.problem] if base is None or state.deleted else [state.problem, base.problem]
    problem = next((each for each in problems if each is not None and each.reason == BLOCKED), None)
    if problem is None:
        return None
    return _without_text(logged, base, problem)


def _tombstone(logged: LoggedFile, base: Outline | None) -> Plan:
    outline = replace(_without_text(logged, base, None), deleted=True)
    return Plan(outline, dropped=tuple(base.by_id) if base else ())


def _without_text(logged: LoggedFile, base: Outline | None, problem: Problem | None) -> Outline:
    """Make the outline of a state that nothing is shown of."""
    state = logged.state
    return Outline(
        state.key,
        logged.revision,
        file_hash="",
        chunks=(),
        source=state.source,
        private=state.private,
        problem=problem,
        entry=base.entry if base else 0,
    )


def _dropped(base: Outline | None, outline: Outline) -> tuple[str, ...]:
    return tuple(name for name in base.by_id if name not in outline.by_id) if base else ()


def _diff(logged: LoggedFile, base: Outline | None, chunked: Chunked, lost: frozenset[str]) -> Plan:
    state, front = logged.state, chunked.front_matter
    date = path_date(state.key.path) or front.date
    private = state.private or bool(front.private)
    kept = [listed for listed in base.chunks if listed.id not in lost] if base else []
    known = {(listed.identity, listed.ordinal): listed.id for listed in kept}
    seen: Counter[str] = Counter()
    listed: list[Listed] = []
    born: list[Chunk] = []
    for piece in chunked.pieces:
        identity = chunk_identity(
            key=state.key,
            text=piece.text,
            breadcrumb=piece.breadcrumb,
            source=state.source,
            private=private,
            date=piece.date or date,
            tags=front.tags,
        )
        ordinal = seen[identity]
        seen[identity] += 1
        name = known.get((identity, ordinal))
        if name is None:
            name = chunk_id(identity, ordinal, logged.revision)
            born.append(
                Chunk(
                    id=name,
                    key=state.key,
                    text=piece.text,
                    breadcrumb=piece.breadcrumb,
                    source=state.source,
                    private=private,
                    date=piece.date or date,
                    tags=front.tags,
                    birth=logged.revision,
                    text_hash=text_hash(piece.embedding_input),
                    terms="",
                    heading_terms="",
                )
            )
        listed.append(Listed(name, identity, ordinal, piece.start_line, piece.end_line))
    outline = Outline(
        state.key,
        logged.revision,
        file_hash=state.hash,
        chunks=tuple(listed),
        source=state.source,
        private=private,
        date=date or max((piece.date for piece in chunked.pieces), default="") or _utc_date(state.modified),
        evergreen=state.evergreen and is_evergreen(state.key.path) and state.source is Source.MEMORY,
        warning="; ".join(filter(None, (_LOSSY if state.lossy else "", front.warning, chunked.warning))),
        entry=base.entry if base else 0,
    )
    return Plan(outline, tuple(born), _dropped(base, outline), changed=outline != base)


def _utc_date(modified: float) -> str:
    """YYYY-MM-DD; empty for a time stamp that no calendar holds (file systems do store such)."""
    try:
        return datetime.fromtimestamp(modified, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""
