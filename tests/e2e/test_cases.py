"""Small inputs on which memory search goes wrong in the field, through the whole product, by the case's id."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment


@dataclass(frozen=True, init=False)
class Case:
    """Files, and queries for each of which `memory/a.md` must come first."""

    id: str
    files: dict[str, str]
    queries: tuple[str, ...]

    def __init__(self, name: str, files: dict[str, str], *queries: str) -> None:
        object.__setattr__(self, "id", name)
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "queries", queries)


CASES = [
    Case("id-hyphen", {"memory/a.md": "Decision DEC-0054: retire the old queue.\n"}, "DEC-0054"),
    Case("id-hyphen-short", {"memory/a.md": "We moved the summariser to gpt-4 last week.\n"}, "gpt-4"),
    Case(
        "id-snake",
        {"memory/a.md": "The helper atomic_write_json replaces the file.\n"},
        "atomic_write_json",
        "atomic write json",
    ),
    Case(
        "version",
        {
            "memory/a.md": "Pinned to 2026.4.10 after the regression.\n",
            "memory/b.md": "Pinned to 2026.4.11 later.\n",
        },
        "2026.4.10",
    ),
    Case("path-token", {"memory/a.md": "Strings live in src/lib/i18n.ts now.\n"}, "src/lib/i18n.ts"),
    Case("scope-package", {"memory/a.md": "Installed @acme/tool-kit globally.\n"}, "@acme/tool-kit"),
    Case("colon", {"memory/a.md": "TODO: fix the flaky upload test\n"}, "TODO: fix"),
    Case("quote", {"memory/a.md": "Ticket PIO-1384 is blocked.\n"}, '"PIO-1384"'),
    Case("date-literal", {"memory/a.md": "Freeze starts 2026-03-31.\n"}, "2026-03-31"),
    Case(
        "nfd",
        {"memory/a.md": unicodedata.normalize("NFD", "Payé l'impôt foncier.\n"), "memory/b.md": "A horse.\n"},
        *(unicodedata.normalize(form, "impôt") for form in ("NFC", "NFD")),
    ),
    Case("cjk-substring", {"memory/a.md": "已确认中文合約轉換體驗課問題的处理办法。\n"}, "中文合約"),
    Case("cjk-idiom", {"memory/a.md": "周末和孩子玩成语接龙。\n"}, "成语接龙"),
    Case(
        "cjk-mixed",
        {"memory/a.md": "Telegram 的配置信息在 TOOLS.md 里。\n", "memory/b.md": "Slack webhook rotated.\n"},
        "Telegram 配置信息",
    ),
    Case("and-zero", {"memory/a.md": "Rocky Point hike on Saturday.\n"}, "Rocky Point bagging"),
    Case("question", {"memory/a.md": "Rod works Mon-Fri, 9 to 5, from Austin.\n"}, "what are Rod's working hours?"),
    Case("bm25-only", {"memory/a.md": "build tag zx81-qqy-774 shipped\n"}, "zx81-qqy-774"),
]


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
async def test_found_at_the_default_limits(running: Deployment, folder: Path, case: Case) -> None:
    write(folder, case.files)
    for query in case.queries:
        # The vector leg finds every chunk of so small a workspace.
        await running.until(query, lambda found: len(found) == len(case.files), min_score=0.0, mode="vector")
        for mode in ("hybrid", "text"):
            assert (await running.found(query, mode=mode))[:1] == ["memory/a.md"]


async def test_gibberish(running: Deployment, folder: Path) -> None:
    """Case `gibberish`: nothing at the default `min_score`."""
    write(folder, {"memory/a.md": "Rod works Mon-Fri.\n"})
    await running.until("Rod works", bool)
    for mode in ("hybrid", "text"):
        assert await running.found("florbnik quazzle wug", mode=mode) == []


async def test_mmr_cjk(running: Deployment, folder: Path) -> None:
    """Case `mmr-cjk`: Chinese texts about different things are no near-duplicates, a text and its copy are."""
    one, two = "今天修复了登录接口的超时问题", "明天和客户讨论报价方案"
    write(folder, {"memory/a.md": f"{one}\n", "memory/b.md": f"{one}。\n", "memory/c.md": f"{two}\n"})
    query = f"{one} {two}"
    plain = await running.until(query, lambda found: len(found) == 3, min_score=0.0)
    diverse = await running.search(query, min_score=0.0, mmr=0.5)
    assert "mmr" in diverse.timings
    assert {result.path: result.score for result in diverse.results} == {
        result.path: result.score for result in plain.results
    }
    assert "memory/c.md" in [result.path for result in diverse.results][:2]


async def test_nested_date(running: Deployment, folder: Path) -> None:
    """Case `nested-date`: a date counts at any depth and with a slug, if it is one."""
    dated = {"memory/dreaming/light/2026-05-14.md", "memory/2026-05-14-standup.md"}
    evergreen = {"memory/2026-02-31.md", "memory/ferry.md", "MEMORY.md"}
    write(folder, dict.fromkeys(dated | evergreen, "The ferry Halcyon leaves at noon.\n"))
    await running.until("ferry Halcyon", lambda found: len(found) == 5, min_score=0.0)
    reply = await running.search("ferry Halcyon", min_score=0.0, decay=30, explain=True)
    decayed = {result.path for result in reply.results if any(step.startswith("decay:") for step in result.explanation)}
    assert decayed == dated


async def test_case_names(running: Deployment, folder: Path) -> None:
    """Case `case-names`: names that differ in case or by a dash are different files."""
    texts = {"memory/Note.md": "one\n", "memory/note.md": "two\n", "memory/2026_06_16.md": "x\n"}
    texts["memory/2026-06-16.md"] = "y\n"
    write(folder, texts)
    await running.until("note", lambda found: {r.path for r in found} == set(texts), min_score=0.0, mode="vector")
    for path, text in texts.items():
        assert (await running.client.get(path)).text == text


async def test_get_missing(running: Deployment) -> None:
    """Case `get-missing`."""
    reply = await running.client.get("memory/2031-01-01.md")
    assert (reply.status, reply.text, reply.next_from) == ("not_found", "", None)


async def test_get_suffix(running: Deployment, folder: Path) -> None:
    """Case `get-suffix`: a path is not matched by its end."""
    write(folder, {"SYNTAX.md": "x\n"})
    await running.synced()
    assert (await running.client.get("NTAX.md")).status == "not_found"
    assert (await running.client.get("SYNTAX.md")).status == "ok"


async def test_get_longline(running: Deployment, folder: Path) -> None:
    """Case `get-longline`: one line of 40,000 characters is cut on a code point, without a next line."""
    write(folder, {"memory/long.md": "🌲界" * 20_000})
    await running.synced()
    reply = await running.client.get("memory/long.md")
    assert reply.truncated
    assert reply.next_from is None
    assert reply.text == ("🌲界" * 20_000)[: len(reply.text)]
    assert 0 < len(reply.text) <= 12_000
