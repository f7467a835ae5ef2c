"""What is refused, how, and that nothing is lost by it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError, PermissionDeniedError, PreconditionFailedError, UnauthenticatedError
from tests.e2e.deployment import Deployment, Shape
from tests.support.eventually import eventually

OUT_OF_BOUNDS: list[tuple[dict[str, Any], str]] = [
    ({"query": ""}, "query"),
    ({"query": " \n\t"}, "query"),
    ({"query": "x" * 100_000}, "query"),
    ({"max_results": 0}, "max_results.*50"),
    ({"max_results": 1000}, "max_results.*50"),
    ({"min_score": 1.5}, "min_score"),
    ({"min_score": float("nan")}, "min_score"),
    ({"source": "nowhere"}, "source.*memory, sessions, all"),
    ({"mode": "fuzzy"}, "mode"),
    ({"since": "yesterday"}, "since"),
    ({"since": "2026-02-31"}, "since"),
    ({"since": "2026-03-02", "until": "2026-03-01"}, "since"),
    ({"path_prefix": "../x"}, "path_prefix"),
    ({"decay": -1.0}, "decay"),
]


async def test_a_search_out_of_bounds_names_the_field(running: Deployment) -> None:
    for options, message in OUT_OF_BOUNDS:
        with pytest.raises(InvalidInputError, match=message):
            await running.search(**{"query": "ferry"} | options)
    assert (await running.search("ferry")).results == ()


async def test_a_path_that_breaks_a_rule_is_named(running: Deployment) -> None:
    for path in ("../x", "../workspace/secret.md", "a/../b.md", "/etc/passwd", "/etc/x.md", "a\\b.md", "", "x.txt"):
        with pytest.raises(InvalidInputError, match="path"):
            await running.client.get(path)


async def test_a_missing_file_is_an_answer(running: Deployment) -> None:
    reply = await running.client.get("memory/2031-01-01.md")
    assert (reply.status, reply.text) == ("not_found", "")


async def test_a_wrong_key(running: Deployment) -> None:
    for key in ("", "wrong", "mk_000000000000_wrong"):
        async with MemorydClient(running.address, key) as stranger:
            for call in (stranger.search("ferry"), stranger.get("a.md"), stranger.status()):
                with pytest.raises(UnauthenticatedError, match="API key"):
                    await call


async def test_another_hash(running: Deployment, folder: Path) -> None:
    (folder / "a.md").write_text("one\n")
    await running.synced()
    now = await running.client.get("a.md")
    assert (await running.client.get("a.md", expected_hash=now.file_hash)).text == "one\n"
    (folder / "a.md").write_text("two\n")
    await running.synced()
    with pytest.raises(PreconditionFailedError) as caught:
        await running.client.get("a.md", expected_hash=now.file_hash)
    assert caught.value.details["current_hash"] == (await running.client.get("a.md")).file_hash


async def test_files_that_are_no_markdown_are_set_aside_and_named(running: Deployment, folder: Path) -> None:
    (folder / "binary.md").write_bytes(bytes(range(256)) * 40)
    (folder / "latin.md").write_bytes("Die Fähre nach Föhr fährt täglich.\n".encode("latin-1") * 3)
    (folder / "good.md").write_text("The lighthouse is painted white.\n")
    await running.until("lighthouse painted", lambda found: [r.path for r in found] == ["good.md"], mode="text")
    await running.until("nach", lambda found: [r.path for r in found] == ["latin.md"], mode="text", min_score=0.0)
    await running.settled()
    (status,) = (await running.client.status()).workspaces
    assert [(file.path, file.reason) for file in status.quarantined] == [("binary.md", "BINARY")]
    assert status.files == 2
    (folder / "binary.md").write_text("It was a photograph of the harbour.\n")
    await running.until("photograph of the harbour", lambda found: [r.path for r in found][:1] == ["binary.md"])
    assert (await running.client.status()).workspaces[0].quarantined == ()


async def test_an_empty_workspace_answers_nothing(running: Deployment) -> None:
    reply = await running.search("ferry")
    assert (reply.results, reply.degraded, reply.stale) == ((), (), False)
    (status,) = (await running.client.status()).workspaces
    assert (status.files, status.chunks, status.pending, status.available) == (0, 0, 0, True)


async def test_a_folder_that_disappears_is_an_alarm_and_deletes_nothing(running: Deployment, folder: Path) -> None:
    (folder / "a.md").write_text("The ferry leaves at noon.\n")
    await running.until("ferry noon", bool)
    moved = folder.with_name("elsewhere")
    shutil.move(folder, moved)

    async def available() -> bool:
        return (await running.client.status()).workspaces[0].available

    await eventually(available, False)
    assert "folder does not exist" in (await running.client.status()).workspaces[0].problem
    assert await running.found("ferry noon") == ["a.md"]
    shutil.move(moved, folder)
    await eventually(available, True)
    (folder / "b.md").write_text("The bus leaves at one.\n")
    await running.until("bus leaves at one", lambda found: [r.path for r in found][:1] == ["b.md"])


async def test_case_tenant_leak(shape: Shape, tmp_path: Path) -> None:
    """Case `tenant-leak`: nothing of another tenant, in every mode, nor of a workspace that the key does not cover."""
    folders = {
        Scope("acme", "rod"): tmp_path / "a",
        Scope("globex", "rod"): tmp_path / "b",
        Scope("acme", "x"): tmp_path / "c",
    }
    texts = (
        "The apricot tree blossoms in March.\n",
        "The vault code word is zanzibar-77.\n",
        "Quince jelly sets at 105 degrees.\n",
    )
    for folder, text in zip(folders.values(), texts, strict=True):
        folder.mkdir()
        (folder / "a.md").write_text(text)
        (folder / f"{folder.name}.md").write_text(text)
    async with shape(tmp_path / "data", folders) as running:
        await running.settled()
        key = await running.keys.create("acme", frozenset({"rod"}))
        async with MemorydClient(running.address, key) as rod:
            assert {r.path for r in (await rod.search("apricot blossoms")).results} == {"a.md"}
            for mode in ("hybrid", "vector", "text"):
                for query in ("vault code word zanzibar-77", "*", "Quince jelly", "a.md"):
                    results = (await rod.search(query, mode=mode, min_score=0.0, max_results=50)).results
                    assert all("apricot" in result.snippet for result in results)
            for path in ("b.md", "c.md"):
                assert (await rod.get(path)).status == "not_found"
            assert "apricot" in (await rod.get("a.md")).text
            for workspace in ("x", "globex", "nowhere"):
                with pytest.raises(PermissionDeniedError, match="does not cover"):
                    await rod.search("apricot", workspace=workspace)
                with pytest.raises(PermissionDeniedError):
                    await rod.get("a.md", workspace=workspace)
            assert [status.workspace for status in (await rod.status()).workspaces] == ["rod"]
