"""What one query or sub-query looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memoryd.domain.queries import Mode
from memoryd.domain.text import MAX_QUERY_WORDS, QueryWord, surplus_words, term_weights
from memoryd.ports import QueryTerm, TextKind
from services.search.days import NO_NOTES, Notes


@dataclass(frozen=True, slots=True)
class Ask:
    """What the legs look for.

    Attributes:
        text: of any length; what the model's window does not hold is left out.
        mode: the legs to run.
        words: of the text, for the text leg.
        kind: what the text is to the model.
        main: the caller's own query, not one of its sub-queries.
        notes: of the days that it names; they are looked at even where others are closer.
        sketches: whether its tokens are wanted, too, to be compared with token sketches.
    """

    text: str
    mode: Mode
    words: Sequence[QueryWord]
    kind: TextKind = TextKind.QUERY
    main: bool = True
    notes: Notes = NO_NOTES
    sketches: bool = False

    @property
    def terms(self) -> list[QueryTerm]:
        """What the text leg looks up; days as they stand in the paths of notes."""
        return query_terms(self.words) + [QueryTerm(day) for day in sorted(self.notes.days)]

    @property
    def surplus(self) -> int:
        """How many words of the text are not among `words`."""
        return surplus_words(self.text) if len(self.words) == MAX_QUERY_WORDS else 0

    def without(self, leg: Mode) -> str:
        """Say what is done where a leg fails."""
        if not self.main:
            return "the search without this sub-query"
        if self.mode is leg:
            return "nothing"
        return f"the {Mode.TEXT if leg is Mode.VECTOR else Mode.VECTOR} leg alone"


def query_terms(words: Sequence[QueryWord]) -> list[QueryTerm]:
    """Flatten the words of a query into the distinct terms that the text store looks up."""
    return [QueryTerm(term, weight) for term, weight in term_weights(words).items()]
