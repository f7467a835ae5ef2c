from dataclasses import replace

import pytest

from memoryd.domain.files import Problem
from memoryd.domain.names import Scope
from memoryd.domain.queries import Chat, Degraded, Mode, SearchQuery, Stage
from memoryd.errors import InvalidInputError, PreconditionFailedError
from memoryd.ports import FolderState, IndexStatus, QuarantinedFile
from services.gateway.service import Read
from tests.support.gateway import ANSWER, MODEL, SCOPE, FakeEmbedder, FakeSearcher, Gateway


async def test_search_passes_on_the_scope_the_checked_query_and_less_than_the_deadline() -> None:
    gateway = Gateway()
    found = await gateway.service.search(SCOPE, SearchQuery("boiler", path_prefix="./memory/"), timeout=2.0)
    (scope, query, timeout), *more = gateway.searcher.asked
    assert not more
    assert (scope, query) == (SCOPE, SearchQuery("boiler", path_prefix="memory/"))
    assert timeout == pytest.approx(1.95)
    assert found.answer is ANSWER
    assert not found.answer.differs_from(found.query)
    assert not found.answer.stale


async def test_a_deadline_shorter_than_the_margin_still_leaves_time_to_search() -> None:
    gateway = Gateway()
    await gateway.service.search(SCOPE, SearchQuery("boiler"), timeout=0.02)
    assert gateway.searcher.asked[0][2] == pytest.approx(0.01)


async def test_bad_input_never_reaches_the_searcher() -> None:
    gateway = Gateway()
    with pytest.raises(InvalidInputError):
        await gateway.service.search(SCOPE, SearchQuery(" "), timeout=1.0)
    assert gateway.searcher.asked == []


@pytest.mark.parametrize(
    ("mode", "answer", "fallback", "stale"),
    [
        pytest.param(Mode.HYBRID, replace(ANSWER, mode=Mode.TEXT), True, False, id="a-leg-missing"),
        pytest.param(Mode.TEXT, replace(ANSWER, mode=Mode.TEXT), False, False, id="asked-for-text"),
        pytest.param(
            Mode.HYBRID,
            replace(ANSWER, degraded=(Degraded(Stage.RERANK, "UNAVAILABLE", "down", "fused order"),)),
            True,
            False,
            id="a-stage-degraded",
        ),
        pytest.param(Mode.HYBRID, replace(ANSWER, pending=3), False, True, id="pending"),
    ],
)
async def test_says_what_was_not_as_asked(mode: Mode, answer: object, fallback: bool, stale: bool) -> None:
    gateway = Gateway(searcher=FakeSearcher(answer))  # type: ignore[arg-type]  # a parametrised SearchAnswer
    found = await gateway.service.search(SCOPE, SearchQuery("boiler", mode=mode), timeout=1.0)
    assert (found.answer.differs_from(found.query), found.answer.stale) == (fallback, stale)


# --- memory_get -------------------------------------------------------------------------------------------------------

GET_CASES = [
    pytest.param({}, "memory/2031-01-01.md", ("", 0, False, None, False), id="get-missing"),
    pytest.param({"SYNTAX.md": "x\n"}, "NTAX.md", ("", 0, False, None, False), id="get-suffix"),
    pytest.param({"a.md": "x" * 40_000}, "a.md", ("x" * 12_000, 1, True, None, True), id="get-longline"),
    pytest.param({"empty.md": ""}, "empty.md", ("", 0, False, None, True), id="empty"),
    pytest.param({"a.md": "l\n" * 121}, "a.md", ("l\n" * 120, 120, True, 121, True), id="default-lines"),
    pytest.param({"caf\u00e9.md": "x\n"}, "./cafe\u0301.md", ("x\n", 1, False, None, True), id="normal-form"),
]


@pytest.mark.parametrize(("files", "path", "expected"), GET_CASES)
async def test_get(files: dict[str, str], path: str, expected: tuple[object, ...]) -> None:
    gateway = Gateway()
    for name, text in files.items():
        gateway.workspace.put(name, text)
    content = await gateway.service.get(SCOPE, Read(path))
    part = content.excerpt
    assert (part.text, part.lines, part.truncated, part.next_from, content.found) == expected


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param("../workspace/secret.md", "PARENT", id="get-prefix"),
        pytest.param("/etc/hosts.md", "ABSOLUTE", id="absolute"),
        pytest.param("memory\\a.md", "BACKSLASH", id="backslash"),
        pytest.param("notes.txt", "NOT_MARKDOWN", id="not-markdown"),
        pytest.param("", "EMPTY", id="empty"),
    ],
)
async def test_a_path_that_breaks_a_rule_is_refused_by_name(path: str, rule: str) -> None:
    with pytest.raises(InvalidInputError, match="path: ") as caught:
        await Gateway().service.get(SCOPE, Read(path))
    assert caught.value.details == {"field": "path", "rule": rule}


@pytest.mark.parametrize(("first", "lines", "field"), [(0, 1, "from"), (1, 0, "lines")])
async def test_lines_count_from_one(first: int, lines: int, field: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{field}: 0 is out of range; it must be 1 or more"):
        await Gateway().service.get(SCOPE, Read("a.md", first, lines))


@pytest.mark.parametrize(("chat", "found"), [(Chat.DIRECT, True), (Chat.GROUP, False), (Chat.CHANNEL, False)])
async def test_private_files_look_missing_where_others_listen(chat: Chat, found: bool) -> None:
    gateway = Gateway()
    gateway.workspace.put("MEMORY.md", "secret\n", private=True)
    content = await gateway.service.get(SCOPE, Read("MEMORY.md", chat=chat, expected_hash="" if found else "0" * 64))
    missing = await gateway.service.get(SCOPE, Read("missing.md", chat=chat))
    assert content.found is found
    if not found:
        assert content == replace(missing, path="MEMORY.md")


async def test_another_hash_is_refused_with_the_current_one() -> None:
    gateway = Gateway()
    current = gateway.workspace.put("a.md", "x\n")
    content = await gateway.service.get(SCOPE, Read("a.md", expected_hash=current.upper()))
    assert content.hash == current
    with pytest.raises(PreconditionFailedError, match="read it again") as caught:
        await gateway.service.get(SCOPE, Read("a.md", expected_hash="0" * 64))
    assert caught.value.details == {"current_hash": current}


async def test_another_tenant_s_file_of_the_same_name_is_not_there() -> None:
    gateway = Gateway()
    gateway.workspace.put("a.md", "x\n", scope=Scope("rival", "main"))
    assert not (await gateway.service.get(SCOPE, Read("a.md"))).found


# --- status -----------------------------------------------------------------------------------------------------------


async def test_status_reports_each_workspace_by_name() -> None:
    gateway = Gateway()
    side = Scope("acme", "side")
    set_aside = (QuarantinedFile("big.md", Problem("TOO_LARGE", "12 MiB")),)
    gateway.indexing.statuses[SCOPE] = IndexStatus(SCOPE, 3, 9, 1, set_aside, "7")
    gateway.workspace.problems[side] = Problem("UNREADABLE", "the folder is gone")
    state = await gateway.service.status([side, SCOPE])
    assert [(item.index.scope.workspace, item.folder) for item in state.workspaces] == [
        ("main", FolderState(None, 7.5)),
        ("side", FolderState(Problem("UNREADABLE", "the folder is gone"), 7.5)),
    ]
    assert state.workspaces[0].index.quarantined == set_aside
    assert (state.model, state.disk_bytes) == (MODEL, 4096)
    assert state.version


async def test_status_answers_while_the_embedder_is_down() -> None:
    state = await Gateway(embedder=FakeEmbedder(None)).service.status([SCOPE])
    assert state.model is None
    assert len(state.workspaces) == 1
