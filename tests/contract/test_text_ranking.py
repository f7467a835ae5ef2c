"""Which chunks every text store finds, and in which order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from memoryd.domain.files import Source
from memoryd.ports import Filter, QueryTerm, TextStore
from tests.contract.registry import TEXT_STORES, opened
from tests.contract.text_chunks import HERE, NEIGHBOURS, SCOPE, chunk, found, hits
from tests.support.hits import text_hits


@pytest.fixture(params=sorted(TEXT_STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[TextStore]:
    async with opened(TEXT_STORES[request.param], tmp_path) as held:
        yield held.now


# id: the files, the query, the paths expected, best first.
CASES: Mapping[str, tuple[Mapping[str, str], str, list[str]]] = {
    "id-hyphen": ({"memory/a.md": "Decision DEC-0054: retire the old queue.\n"}, "DEC-0054", ["memory/a.md"]),
    "id-hyphen-short": ({"memory/a.md": "We moved the summariser to gpt-4 last week.\n"}, "gpt-4", ["memory/a.md"]),
    "id-snake": (
        {"memory/a.md": "The helper atomic_write_json replaces the file.\n"},
        "atomic_write_json",
        ["memory/a.md"],
    ),
    "id-snake-parts": (
        {"memory/a.md": "The helper atomic_write_json replaces the file.\n", "memory/b.md": "Nothing of it.\n"},
        "atomic write json",
        ["memory/a.md"],
    ),
    "version": (
        {"memory/b.md": "Pinned to 2026.4.11 later.\n", "memory/a.md": "Pinned to 2026.4.10 after the regression.\n"},
        "2026.4.10",
        ["memory/a.md", "memory/b.md"],
    ),
    "path-token": ({"memory/a.md": "Strings live in src/lib/i18n.ts now.\n"}, "src/lib/i18n.ts", ["memory/a.md"]),
    "scope-package": ({"memory/a.md": "Installed @acme/tool-kit globally.\n"}, "@acme/tool-kit", ["memory/a.md"]),
    "colon": ({"memory/a.md": "TODO: fix the flaky upload test\n"}, "TODO: fix", ["memory/a.md"]),
    "quote": ({"memory/a.md": "Ticket PIO-1384 is blocked.\n"}, '"PIO-1384"', ["memory/a.md"]),
    "date-literal": ({"memory/a.md": "Freeze starts 2026-03-31.\n"}, "2026-03-31", ["memory/a.md"]),
    "nfd": ({"memory/a.md": "Paye\u0301 l'impo\u0302t foncier.\n"}, "imp\u00f4t", ["memory/a.md"]),
    "nfd-query": ({"memory/a.md": "Pay\u00e9 l\u2019imp\u00f4t foncier.\n"}, "impo\u0302t", ["memory/a.md"]),
    "cjk-substring": (
        {"memory/a.md": "已确认中文合約轉換體驗課問題的处理办法。\n", "memory/b.md": "明天开会。\n"},
        "中文合約",
        ["memory/a.md"],
    ),
    "cjk-idiom": (
        {"memory/a.md": "周末和孩子玩成语接龙。\n", "memory/b.md": "明天开会。\n"},
        "成语接龙",
        ["memory/a.md"],
    ),
    "cjk-mixed": (
        {"memory/a.md": "Telegram 的配置信息在 TOOLS.md 里。\n", "memory/b.md": "Slack webhook rotated.\n"},
        "Telegram 配置信息",
        ["memory/a.md"],
    ),
    "and-zero": ({"memory/a.md": "Rocky Point hike on Saturday.\n"}, "Rocky Point bagging", ["memory/a.md"]),
    "question": (
        {"memory/a.md": "Rod works Mon-Fri, 9 to 5, from Austin.\n", "memory/b.md": "The cellar is damp.\n"},
        "what are Rod's working hours?",
        ["memory/a.md"],
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_case(store: TextStore, case: str) -> None:
    files, query, expected = CASES[case]
    await store.upsert([chunk(text, path) for path, text in files.items()])
    assert await found(store, query) == expected


class TestRanking:
    async def test_a_rare_word_counts_more_than_a_common_one(self, store: TextStore) -> None:
        common = [chunk(f"the report of week {n}", f"{n}.md") for n in range(20)]
        await store.upsert([*common, chunk("the zeppelin of nobody", "z.md")])
        assert (await found(store, "zeppelin report"))[0] == "z.md"

    async def test_a_shorter_chunk_counts_more_than_a_longer_one(self, store: TextStore) -> None:
        await store.upsert([chunk("zeppelin " + "filler " * 200, "long.md"), chunk("a zeppelin", "short.md")])
        assert await found(store, "zeppelin") == ["short.md", "long.md"]

    async def test_weights_of_terms_decide(self, store: TextStore) -> None:
        await store.upsert([chunk("alpha", "a.md"), chunk("beta", "b.md")])
        for first, second in (("alpha", "beta"), ("beta", "alpha")):
            result = await text_hits(store, [QueryTerm(first, 1.0), QueryTerm(second, 0.1)], HERE, 10)
            assert result[0].chunk.text == first
            assert result[0].score == pytest.approx(10 * result[1].score, rel=1e-4)

    async def test_headings_and_paths_are_found_and_count_less_than_the_text(self, store: TextStore) -> None:
        await store.upsert(
            [
                chunk("a zeppelin flew", "b.md", breadcrumb="Sky"),
                chunk("it flew away", "h.md", breadcrumb="Zeppelin"),
                chunk("it flew away", "notes/zeppelin.md", breadcrumb="Sky"),
            ]
        )
        best, *others = await found(store, "zeppelin")
        assert best == "b.md"
        assert sorted(others) == ["h.md", "notes/zeppelin.md"]

    async def test_equal_chunks_come_in_the_order_of_their_paths(self, store: TextStore) -> None:
        for name in ("c.md", "a.md", "b.md"):
            await store.upsert([chunk("zeppelin", name, heading_terms="")])
        assert await found(store, "zeppelin") == ["a.md", "b.md", "c.md"]

    async def test_the_filter_changes_no_score(self, store: TextStore) -> None:
        await store.upsert([chunk(f"zeppelin number {n}", f"memory/{n}.md", date="2026-01-02") for n in range(9)])
        strict = Filter(SCOPE, frozenset({Source.MEMORY}), "memory/", "2026-01-01", "2026-01-03", include_private=False)
        assert await hits(store, "zeppelin 3", strict) == await hits(store, "zeppelin 3")

    async def test_it_gives_no_more_than_asked_for(self, store: TextStore) -> None:
        await store.upsert([chunk(f"zeppelin {n}", f"{n}.md") for n in range(10)])
        assert [len(await found(store, "zeppelin", limit=limit)) for limit in (1, 9, 10, 50)] == [1, 9, 10, 10]

    async def test_no_terms_find_nothing(self, store: TextStore) -> None:
        await store.upsert([chunk("zeppelin")])
        assert await text_hits(store, [], HERE, 10) == []
        assert await found(store, "。!? ---") == []

    async def test_stop_words_alone_find_something(self, store: TextStore) -> None:
        await store.upsert([chunk("to be or not to be", "a.md"), chunk("zeppelin", "b.md")])
        assert await found(store, "to be or not to be") == ["a.md"]

    @pytest.mark.parametrize(
        "term",
        [
            "*",
            "zep*",
            'zeppelin" OR "',
            "body:zeppelin",
            "(",
            "[a TO z]",
            "/zep.*/",
            "a b",
            "\\",
            "",
            "~",
            "AND",
            "\x00",
        ],
    )
    async def test_a_term_is_never_parsed(self, store: TextStore, term: str) -> None:
        await store.upsert([chunk("zeppelin and b")])
        assert await text_hits(store, [QueryTerm(term)], HERE, 10) == []

    async def test_other_tenants_do_not_change_scores(self, store: TextStore) -> None:
        await store.upsert([chunk("zeppelin alpha", "a.md"), chunk("beta", "b.md")])
        before = await hits(store, "zeppelin")
        await store.upsert([chunk(f"zeppelin {n}", scope=NEIGHBOURS[1]) for n in range(30)])
        assert await hits(store, "zeppelin") == before
