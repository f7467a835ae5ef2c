"""The Markdown parser, for files of any size: it keeps only the tokens that are asked for, one block at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

# A token takes some 300 bytes. The largest block is held as a whole: a list of 200,000 lines has twice as many.
_MAX_TOKENS = 500_000


class TooManyTokensError(Exception):
    """One block of the text has more parts than are held."""


def _parser(*, front_matter: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table")
    # Without `reference`, link definitions are paragraphs: they are text of the file like any other.
    parser.disable(["reference"])
    return parser.use(front_matter_plugin) if front_matter else parser


_PLAIN = _parser(front_matter=False)
_WITH_FRONT_MATTER = _parser(front_matter=True)


def parse_blocks(
    text: str, take: Callable[[Sequence[Token]], None], *, kinds: Collection[str], front_matter: bool
) -> None:
    """Parse the block structure of a text, and call `take` with the tokens of some of its blocks at a time, in order.

    Args:
        text: its lines end with a line feed.
        take: called with all tokens of one or more blocks that are in no other block.
        kinds: types of the tokens that are kept, and of those the `inline` token that follows a heading's.
        front_matter: whether a block between lines of dashes at the top is a token `front_matter`.

    Raises TooManyTokensError, and whatever the parser raises.
    """
    parser = _WITH_FRONT_MATTER if front_matter else _PLAIN
    state = _State(text.replace("\0", "\ufffd"), parser, take, kinds)
    parser.block.tokenize(state, state.line, state.lineMax)
    take(state.tokens)


class _State(StateBlock):
    """The library's state of a parse, which drops tokens that nobody reads.

    The library makes five tokens for each item of a list and three for each cell of a table, and keeps all of them.
    """

    def __init__(
        self, text: str, parser: MarkdownIt, take: Callable[[Sequence[Token]], None], kinds: Collection[str]
    ) -> None:
        super().__init__(text, parser, {}, [])
        self._take, self._kinds = take, kinds
        self._dropped = Token("", "", 0)

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        """Make a token; the rules fill it in."""
        if self.level == 0 and nesting >= 0 and self.tokens:  # so the blocks before are complete
            self._take(self.tokens)
            self.tokens.clear()
        if ttype in self._kinds or (ttype == "inline" and self.tokens and self.tokens[-1].type == "heading_open"):
            if len(self.tokens) >= _MAX_TOKENS:
                raise TooManyTokensError
            return super().push(ttype, tag, nesting)
        if nesting < 0:
            self.level -= 1
        self._dropped.level = self.level
        if nesting > 0:
            self.level += 1
        return self._dropped
