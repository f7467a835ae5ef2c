"""How answers are judged, on a product that answers what the test says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from memoryd.client import SearchResult
from memoryd.domain.queries import DEFAULT_MIN_SCORE, DEFAULT_RESULTS, Mode
from memoryd.errors import InvalidInputError
from memoryd.evaluation.probes import foreign, gibberish
from memoryd.evaluation.report import ModeReport, report
from memoryd.evaluation.run import Answer, Outcome, run_set
from memoryd.evaluation.sets import Document, Query, RetrievalSet

Hit = tuple[str, int, int, float] | tuple[str, int, int, float, str]


def result(path: str, first: int, last: int, score: float, snippet: str = "") -> SearchResult:
    return SearchResult(path, first, last, score, None, None, None, snippet, "memory", "", "", "", "", ())


@dataclass
class Scripted:
    """Answers by query text; a degraded answer where the script says None."""

    script: dict[str, Sequence[Hit] | None]
    asked: list[tuple[Mode, str, bool]] = field(default_factory=list)

    async def search(self, group: str, text: str, mode: Mode, *, everything: bool) -> Answer:
        self.asked.append((mode, text, everything))
        hits = self.script.get(text, ())
        found = [result(*hit) for hit in hits or () if everything or hit[3] >= DEFAULT_MIN_SCORE]
        return Answer(found if everything else found[:DEFAULT_RESULTS], 5.0, {"fuse": 1.0}, whole=hits is not None)


def made(**more: dict[str, frozenset[str]]) -> RetrievalSet:
    documents = tuple(Document(name, "g", f"{name}.md", "", shift) for name, shift in (("a", 2), ("b", 0), ("c", 0)))
    queries = tuple(Query(name, "g", name, answerable=name != "none") for name in ("one", "two", "none"))
    relevant = {"one": frozenset({"a"}), "two": frozenset({"b", "c"})}
    return RetrievalSet("made", documents, queries, relevant, {"one": (("a", 3, 4),)}, **more)


async def outcomes(product: Scripted, data: RetrievalSet) -> list[Outcome]:
    return (await run_set(product, data, [Mode.HYBRID], lambda *_: None))[Mode.HYBRID]


async def reported(script: dict[str, Sequence[Hit] | None], data: RetrievalSet | None = None) -> ModeReport:
    data = data or made()
    return report(data, await outcomes(Scripted(script), data), [], [])


async def test_a_document_ranks_by_its_best_chunk_and_lines_count_below_the_title() -> None:
    right = await reported({"one": [("b.md", 1, 9, 0.9), ("a.md", 6, 7, 0.8), ("a.md", 1, 2, 0.7)], "two": []})
    assert right.values["mrr@10"] == {"one": 0.5, "two": 0.0}
    assert right.line_hits == 1.0
    beside = await reported({"one": [("a.md", 1, 4, 0.9)], "two": []})
    assert (beside.values["recall@5"]["one"], beside.line_hits) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("hits", "found", "shown"),
    [
        ([("a.md", 5, 6, 0.9, "the berth\nis nine")], 1.0, 1.0),
        ([("a.md", 1, 8, 0.9, "# Title\n\n berth is")], 1.0, 0.0),
        ([("a.md", 6, 9, 0.9, "the berth"), ("a.md", 1, 5, 0.8, "is nin")], 1.0, 1.0),
        ([("a.md", 1, 4, 0.9, "the berth")], 0.0, 0.0),
        ([("b.md", 1, 9, 0.9, "the berth")], None, None),
    ],
    ids=["shown", "not shown", "a slice", "other lines", "another file"],
)
async def test_of_a_file_that_is_found_the_answer_is_looked_for_in_lines_and_snippets(
    hits: list[Hit], found: float | None, shown: float | None
) -> None:
    data = made()
    text = "# Title\n\nof 1\nof 2\nis nine\nthe berth\nof 5\n"
    documents = (replace(data.documents[0], text=text), *data.documents[1:])
    figures = await reported({"one": hits}, replace(data, documents=documents))
    assert (figures.found_lines, figures.shown_lines) == (found, shown)


async def test_a_file_that_the_set_does_not_know_is_a_wrong_answer() -> None:
    assert (await reported({"one": [("x.md", 1, 1, 0.9), ("a.md", 1, 1, 0.8)]})).values["mrr@10"]["one"] == 0.5


async def test_an_ignored_document_is_no_answer_at_all() -> None:
    data = made(ignored={"one": frozenset({"b"})})
    assert (await reported({"one": [("b.md", 1, 1, 0.9), ("a.md", 1, 1, 0.8)]}, data)).values["mrr@10"]["one"] == 1.0


async def test_what_the_default_limit_keeps_and_what_it_answers_in_vain() -> None:
    figures = await reported(
        {"one": [("a.md", 1, 1, 0.3)], "two": [("b.md", 1, 1, 0.8)], "none": [("b.md", 1, 1, 0.5)]}
    )
    assert figures.kept == 0.5
    assert figures.values["recall@5"] == {"one": 1.0, "two": 0.5}
    assert figures.abstention.answered == {"unanswerable": 1.0}
    assert figures.abstention.auroc == {"unanswerable": 0.5}
    # To keep both the limit must be .3; to keep half of them .8 would do, which keeps 90 % too few.
    assert [limit for limit, _ in figures.abstention.curve.values()] == [0.3] * 4


async def test_degraded_answers_are_counted() -> None:
    assert (await reported({"one": None, "two": []})).degraded == 1


async def test_hybrid_is_asked_first_and_as_an_agent_would() -> None:
    product = Scripted({})
    found = await run_set(product, made(), [Mode.TEXT, Mode.HYBRID], lambda *_: None)
    assert list(found) == [Mode.TEXT, Mode.HYBRID]
    assert product.asked[:2] == [(Mode.HYBRID, "one", False), (Mode.HYBRID, "one", True)]
    assert [mode for mode, _, _ in product.asked] == [Mode.HYBRID] * 6 + [Mode.TEXT] * 6


async def test_a_set_without_judgements_measures_nothing() -> None:
    data = RetrievalSet("empty", (), (Query("q", "g", "q", answerable=True),), {}, {})
    with pytest.raises(InvalidInputError, match="nothing to measure"):
        report(data, await outcomes(Scripted({}), data), [], [])


def test_queries_without_an_answer_are_the_same_each_time() -> None:
    queries = tuple(Query(str(n), "h", f"question {n}", answerable=n % 2 == 0) for n in range(500))
    other = RetrievalSet("other", (), queries, {}, {})
    asked = foreign(made(), [made(), other])
    assert 50 <= len(asked) <= 100
    assert all(query.group == "g" and not query.answerable and int(query.text.split()[1]) % 2 == 0 for query in asked)
    assert foreign(made(), [made()]) == []
    assert gibberish(made()) == gibberish(made())
