"""Where a Markdown file can be cut, and how much a cut there would hurt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from markdown_it import MarkdownIt
from markdown_it.token import Token

from memoryd.domain.markdown.blocks import parse_blocks
from memoryd.domain.markdown.lines import is_blank

# A block's kind shows in the first characters of its line, and inline text is not parsed: the rest only costs time.
_LINE_CHARS = 1000
# The parser needs some 10 microseconds a line; real files of the size limit (10 MiB) have fewer lines than this.
_MAX_LINES = 200_000
_TITLE_CHARS = 300
_INTRODUCED = frozenset(
    {"bullet_list_open", "ordered_list_open", "blockquote_open", "table_open", "fence", "code_block"}
)
_BLOCKS = _INTRODUCED | {"paragraph_open", "heading_open", "list_item_open", "html_block", "hr"}
_READ = _BLOCKS | {"front_matter"}


class Strength(IntEnum):
    """How good a place to cut the start of a line is. A greater one is always cut first.

    Headings of level n have HEADING - n. Blocks have BLOCK less their nesting, at least NESTED_BLOCK.
    """

    HEADING = 97
    SUBHEADING = 91
    BREAK = 60
    BLOCK = 50
    NESTED_BLOCK = 20
    AFTER_BLANK = 8
    LINE = 6
    INTRODUCED = 4
    UNDER_HEADING = 3
    EDGE = 2


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that opens a section.

    Attributes:
        line: its first line, 0-based.
        end: the line after its last one.
        level: 1 to 6.
        title: its text without markup.
    """

    line: int
    end: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Structure:
    """The structure of a file.

    Attributes:
        strengths: one a line: how good a cut before it is.
        headings: by line; those inside lists and quotes open no section.
        front_matter: the lines that look like front matter, from the first; 0 without.
        warning: for a person, where the file could not be parsed.
    """

    strengths: list[int]
    headings: list[Heading] = field(default_factory=list)
    front_matter: int = 0
    warning: str = ""


_INLINE = MarkdownIt("commonmark")


def parse(lines: Sequence[str], *, front_matter: bool) -> Structure:
    """Find the structure of a file; with `front_matter`, a block between `---` lines at its top is kept apart.

    A file that the parser can't take is cut at blank lines, and the result has a warning.
    """
    if len(lines) > _MAX_LINES:
        return _unparsed(lines, f"more than {_MAX_LINES} lines: cut at blank lines, headings are not used")
    # The plugin takes any first line that begins with dashes, such as a forwarded mail's.
    front_matter = front_matter and bool(lines) and len(lines[0]) < _LINE_CHARS and not lines[0].strip("-").strip()
    reader = _Reader(lines)
    text = "\n".join(line[:_LINE_CHARS] for line in lines)
    try:
        parse_blocks(text, reader.take, kinds=_READ, front_matter=front_matter)
    except Exception:  # noqa: BLE001  (whatever a parser of foreign text raises, the file must stay searchable)
        return _unparsed(lines, "the Markdown parser failed: cut at blank lines, headings are not used")
    return reader.structure()


def _unparsed(lines: Sequence[str], warning: str) -> Structure:
    strengths = [Strength.NESTED_BLOCK + 0] * len(lines)
    for number in range(1, len(lines)):
        if is_blank(lines[number - 1]):
            strengths[number] = Strength.BLOCK
    return Structure(strengths, warning=warning)


class _Reader:
    """Turns the parser's tokens into strengths."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.strengths = [Strength.LINE + 0] * len(lines)
        for number in range(1, len(lines)):
            if is_blank(lines[number - 1]):
                self.strengths[number] = Strength.AFTER_BLANK
        self.glued: dict[int, int] = {}
        self.headings: list[Heading] = []
        self.breaks: list[int] = []
        self.front_matter = 0
        self.introducing: int | None = None  # the level of a paragraph before, if it ends with a colon

    def take(self, tokens: Sequence[Token]) -> None:
        """Read the tokens of whole blocks."""
        for number, token in enumerate(tokens):
            if token.map is None or token.map[0] >= len(self.lines):
                continue
            start, end = token.map
            if token.type == "front_matter":
                self.front_matter = end
            elif token.type in _BLOCKS:
                self._raise(start, max(Strength.BLOCK - token.level, Strength.NESTED_BLOCK))
                if token.type in _INTRODUCED and token.level == self.introducing:
                    self.glued[start] = Strength.INTRODUCED
                colon = self.lines[end - 1].rstrip().endswith((":", "："))
                self.introducing = token.level if token.type == "paragraph_open" and colon else None
                self._inside(token, start, end)
                if token.type == "heading_open" and token.level == 0:
                    self._open_section(token, tokens[number + 1].content)

    def structure(self) -> Structure:
        """Give what was found in all that was read."""
        self._glue()
        for line, strength in self.glued.items():
            self.strengths[line] = strength
        return Structure(self.strengths, self.headings, self.front_matter)

    def _raise(self, line: int, strength: int) -> None:
        self.strengths[line] = max(self.strengths[line], strength)

    def _open_section(self, token: Token, markup: str) -> None:
        start, end = token.map or (0, 0)
        level = int(token.tag[1:])
        self._raise(start, Strength.HEADING - level)
        self.headings.append(Heading(start, end, level, _title(markup)))

    def _inside(self, token: Token, start: int, end: int) -> None:
        if token.type == "heading_open":
            self.glued.update(dict.fromkeys(range(start + 1, end), Strength.EDGE))
        elif token.type == "hr" and token.level == 0:
            self._raise(start, Strength.BREAK)
            self.breaks.append(end)
        elif token.type in {"fence", "table_open"}:
            # The opening fence, the rows above a table's body and the closing fence stay with what they belong to.
            edges = {start + 1, end - 1} if token.type == "fence" else {start + 1, start + 2}
            self.glued.update({line: Strength.EDGE for line in edges if start < line < end})

    def _glue(self) -> None:
        """Keep a heading and a thematic break with what follows, but for a heading of the same level or above."""
        levels = {heading.line: heading.level for heading in self.headings}
        for end in self.breaks:
            self._glue_next(end, Strength.INTRODUCED, levels, 6)
        for heading in self.headings:
            self._glue_next(heading.end, Strength.UNDER_HEADING, levels, heading.level)

    def _glue_next(self, line: int, strength: int, levels: Mapping[int, int], level: int) -> None:
        while line < len(self.lines) and is_blank(self.lines[line]):
            line += 1
        if line < len(self.lines) and levels.get(line, 7) > level:
            self.glued[line] = strength


def _title(markup: str) -> str:
    """Strip inline markup from a heading's text; what is beyond a bound is dropped (inline parsing is not linear)."""
    (inline,) = _INLINE.parseInline(markup[:_TITLE_CHARS])
    parts = [
        "" if child.type == "html_inline" else " " if child.type in {"softbreak", "hardbreak"} else child.content
        for child in inline.children or []
    ]
    return " ".join("".join(parts).split())
