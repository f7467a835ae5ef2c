"""From the text of a Markdown file to its pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memoryd.domain.chunking.breadcrumbs import Path, breadcrumbs, common_path, section_paths
from memoryd.domain.chunking.cutting import halves, slices
from memoryd.domain.chunking.limits import Count, Limits, count_all
from memoryd.domain.chunking.splitting import Range, Splitter, Units
from memoryd.domain.chunks import Piece
from memoryd.domain.markdown.front_matter import FrontMatter, read_front_matter
from memoryd.domain.markdown.lines import is_blank, split_lines
from memoryd.domain.markdown.structure import Structure, parse

CHUNKER_VERSION = "2"
_SLICE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Chunked:
    """A file cut into pieces.

    Attributes:
        pieces: in the order of the file. Every line that is not blank is in exactly one, front matter left out; a line
            that is too long is cut into parts, each a piece.
        front_matter: what the front matter says.
        warning: for a person, where the file was cut without regard to its structure; else empty.
    """

    pieces: tuple[Piece, ...]
    front_matter: FrontMatter
    warning: str = ""


def chunk_markdown(text: str, *, count: Count, limits: Limits = Limits()) -> Chunked:  # noqa: B008  (immutable)
    """Cut the text of a Markdown file into pieces whose embedding inputs fit the window.

    `count` is called about twice for each character. Nothing in a text makes this fail.
    """
    lines = split_lines(text)
    structure, front_matter = _read(lines)
    chunker = _Chunker(lines, structure, front_matter, count, limits)
    return Chunked(tuple(chunker.pieces()), front_matter, structure.warning)


def _read(lines: Sequence[str]) -> tuple[Structure, FrontMatter]:
    structure = parse(lines, front_matter=True)
    if not structure.front_matter:
        return structure, FrontMatter()
    front_matter = read_front_matter(lines[: structure.front_matter])
    if front_matter is None:
        return parse(lines, front_matter=False), FrontMatter()
    return structure, front_matter


@dataclass(frozen=True, slots=True)
class _Draft:
    """A piece and the units that it holds, or a part of one."""

    piece: Piece
    units: Range


class _Chunker:
    """The work on one file."""

    def __init__(
        self, lines: Sequence[str], structure: Structure, front_matter: FrontMatter, count: Count, limits: Limits
    ) -> None:
        self.lines = lines
        self.count = count
        self.limits = limits
        numbers = [n for n in range(front_matter.last_line, len(lines)) if not is_blank(lines[n])]
        (overhead,) = count([""])
        # A line over the limit of characters is cut whatever its tokens are, and may be megabytes long: not counted.
        counted = count_all(count, (lines[n] if len(lines[n]) <= limits.max_chars else "" for n in numbers))
        sizes = [max(tokens - overhead, 1) for tokens in counted]
        self.units = Units.of(lines, numbers, sizes, structure.strengths)
        self.splitter = Splitter(self.units, limits, overhead)
        self.overhead = overhead
        self.paths = section_paths(structure.headings, front_matter.title)
        self.sections, self.is_heading = self._place(structure, numbers)

    @staticmethod
    def _place(structure: Structure, numbers: Sequence[int]) -> tuple[list[int], list[bool]]:
        """Tell for each unit in which section it is and whether it is a heading."""
        sections, is_heading = [], []
        section = 0
        for number in numbers:
            while section < len(structure.headings) and structure.headings[section].line <= number:
                section += 1
            sections.append(section)
            is_heading.append(section > 0 and number < structure.headings[section - 1].end)
        return sections, is_heading

    def pieces(self) -> Iterator[Piece]:
        if not len(self.units.lines):
            return
        ranges = self.splitter.split((0, len(self.units.lines)))
        paths = [self._path(*each) for each in ranges]
        crumbs = breadcrumbs(set(paths), self.count, self.limits.breadcrumb_tokens + self.overhead)
        drafts: list[_Draft] = []
        for (first, end), path in zip(ranges, paths, strict=True):
            if end - first > 1 or self.splitter.single_fits(first):
                drafts.append(self._draft(first, end, crumbs[path]))
            else:
                drafts += self._parts(first, crumbs[path])
        counts = count_all(self.count, (draft.piece.embedding_input for draft in drafts))
        for draft, tokens in zip(drafts, counts, strict=True):
            yield from [draft.piece] if tokens <= self.limits.max_tokens else self._shrunk(draft)

    def _path(self, first: int, end: int) -> Path:
        body = {self.sections[unit] for unit in range(first, end) if not self.is_heading[unit]}
        return common_path(self.paths[section] for section in body or set(self.sections[first:end]))

    def _draft(self, first: int, end: int, crumb: str) -> _Draft:
        top, bottom = int(self.units.lines[first]), int(self.units.lines[end - 1])
        return _Draft(Piece("\n".join(self.lines[top : bottom + 1]), crumb, top + 1, bottom + 1), (first, end))

    def _parts(self, unit: int, crumb: str) -> Iterator[_Draft]:
        """Cut a line that is too long into parts near the target."""
        number = int(self.units.lines[unit])
        cut = list(slices(self.lines[number], min(_SLICE_CHARS, self.limits.max_chars)))
        counts = count_all(self.count, cut)
        text, size = "", 0
        for part, counted in zip([*cut, ""], [*counts, 0], strict=True):
            tokens = counted - self.overhead
            full = size + tokens > self.splitter.part_tokens or len(text) + len(part) > self.limits.max_chars
            if (full or not part) and not is_blank(text):
                yield _Draft(Piece(text, crumb, number + 1, number + 1), (unit, unit + 1))
            text, size = (part, tokens) if full else (text + part, size + tokens)

    def _shrunk(self, draft: _Draft) -> Iterator[Piece]:
        """Cut a draft until its parts fit: the sum of its lines' tokens was less than the tokens of its text."""
        todo = [draft]
        while todo:
            draft = todo.pop()
            piece, (first, end) = draft.piece, draft.units
            (tokens,) = self.count([piece.embedding_input])
            if tokens <= self.limits.max_tokens or len(piece.text) < 2:  # noqa: PLR2004  (a character can't be cut)
                yield piece
            elif end - first > 1:
                cut = self.splitter.cut(first, end)
                todo += [self._draft(cut, end, piece.breadcrumb), self._draft(first, cut, piece.breadcrumb)]
            else:
                parts = [replace(piece, text=text) for text in halves(piece.text) if not is_blank(text)]
                todo += [_Draft(part, draft.units) for part in reversed(parts)]
