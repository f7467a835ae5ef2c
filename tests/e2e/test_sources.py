"""Sources beside the workspace's own Markdown: session transcripts and further folders."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.conftest import ROD
from tests.e2e.deployment import Shape
from tests.e2e.test_cases import write

SECRET = "sk-live-51H8xEXAMPLEEXAMPLE"


def message(role: str, text: str, day: str = "2026-03-05") -> str:
    """Make a transcript's line."""
    record = {"type": "message", "message": {"role": role, "content": text}, "timestamp": f"{day}T10:22:00Z"}
    return json.dumps(record) + "\n"


@pytest.mark.parametrize("case", [pytest.param("session-secret", id="session-secret")])
async def test_a_secret_of_a_session_leaves_the_machine_nowhere(
    shape: Shape, tmp_path: Path, folder: Path, case: str
) -> None:
    line = json.dumps({"type": "message", "message": {"role": "user", "content": f"my key is {SECRET}"}})
    write(folder, {"sessions/s.jsonl": f'{{"type":"session"}}\n{line}\n', "memory/a.md": "The ferry leaves at noon.\n"})
    async with shape(tmp_path / "data", {ROD: {"path": folder, "sessions": True}}) as running:
        reply = await running.until("what is my key", bool, source="sessions", min_score=0.0)
        await running.settled()
        (result,) = reply.results
        assert (result.path, result.start_line, result.end_line) == ("sessions/s.jsonl", 2, 2)
        assert (result.source, result.snippet) == ("sessions", "User: my key is [REDACTED]")
        assert await running.found(SECRET, mode="text", source="sessions", min_score=0.0) == []
        read = await running.client.get("sessions/s.jsonl")
        assert (read.status, read.text) == ("ok", "\nUser: my key is [REDACTED]\n")
        for kept in await running.kept():
            assert "[REDACTED]" in kept
            assert SECRET not in kept
            assert "EXAMPLEEXAMPLE".lower() not in kept.lower()


async def test_sessions_are_found_by_source_day_and_decay_by_message(
    shape: Shape, tmp_path: Path, folder: Path
) -> None:
    today = datetime.now(UTC).date()
    days = [(today - timedelta(days=age)).isoformat() for age in (60, 0)]
    text = message("user", "The ferry Halcyon leaves at noon.", days[0])
    text += message("toolResult", "tool-canary-ferry Halcyon", days[0]) + "half a li"
    text += "\n" + message("assistant", "The ferry Halcyon leaves at one.", days[1])
    write(folder, {"sessions/s.jsonl": text, "memory/ferry.md": "The ferry Halcyon leaves at two.\n"})
    async with shape(tmp_path / "data", {ROD: {"path": folder, "sessions": True}}) as running:
        reply = await running.until("When does the ferry Halcyon leave?", lambda found: len(found) == 3)
        await running.settled()
        query = "When does the ferry Halcyon leave?"
        assert {(r.path, r.start_line) for r in reply.results} == {
            ("sessions/s.jsonl", 1),
            ("sessions/s.jsonl", 4),
            ("memory/ferry.md", 1),
        }
        assert await running.found(query, source="memory") == ["memory/ferry.md"]
        assert await running.found(query, source="sessions") == ["sessions/s.jsonl"] * 2
        # Each message counts with its own day, in filters and in decay.
        old = (await running.search(query, source="sessions", until=days[0])).results
        assert [result.start_line for result in old] == [1]
        new = (await running.search(query, source="sessions", since=days[1])).results
        assert [result.start_line for result in new] == [4]
        decayed = (await running.search(query, source="sessions", decay=30.0, min_score=0.0)).results
        assert decayed[0].start_line == 4
        assert decayed[1].score == pytest.approx(old[0].score / 4, abs=0.01)
        # What was said in a direct conversation is for that conversation.
        assert await running.found(query, chat="group") == ["memory/ferry.md"]
        assert (await running.client.get("sessions/s.jsonl", chat="group")).status == "not_found"
        assert not any("tool-canary" in kept for kept in await running.kept())


async def test_sessions_are_opt_in(shape: Shape, tmp_path: Path, folder: Path) -> None:
    write(folder, {"sessions/s.jsonl": message("user", "The ferry leaves."), "memory/a.md": "The ferry leaves.\n"})
    async with shape(tmp_path / "data", {ROD: folder}) as running:
        await running.until("ferry", bool)
        await running.settled()
        assert await running.found("ferry") == ["memory/a.md"]
        assert (await running.client.get("sessions/s.jsonl")).status == "not_found"
        assert not any("jsonl" in kept for kept in await running.kept())


async def test_further_folders_have_a_name_a_glob_and_may_decay(shape: Shape, tmp_path: Path, folder: Path) -> None:
    wiki, log, chats = tmp_path / "Wiki", tmp_path / "log", tmp_path / "chats"
    write(folder, {"memory/a.md": "The ferry Halcyon leaves at noon.\n", "wiki/clash.md": "The ferry Halcyon?\n"})
    write(
        wiki,
        {
            "ferry/times.md": "The ferry Halcyon leaves at one.\n",
            "clash.md": "The ferry Halcyon!\n",
            "draft.txt": "The ferry Halcyon leaves never.\n",
            ".git/x.md": "The ferry Halcyon leaves never.\n",
        },
    )
    write(
        log,
        {
            "old/x.md": "The ferry Halcyon was late.\n",
            "day.md": "---\ndate: 2020-01-01\n---\nThe ferry Halcyon was late.\n",
        },
    )
    write(
        chats, {"s.jsonl": message("user", "Is the ferry Halcyon here?"), "x.md": "The ferry Halcyon leaves never.\n"}
    )
    settings = {
        "path": folder,
        "sessions": chats,
        "extra": [{"path": wiki}, {"path": log, "name": "log", "glob": "*.md", "evergreen": False}],
    }
    async with shape(tmp_path / "data", {ROD: settings}) as running:
        query = "ferry Halcyon"
        await running.until(query, lambda found: len(found) == 4)
        await running.settled()
        assert set(await running.found(query)) == {
            "memory/a.md",
            "wiki/ferry/times.md",
            "log/day.md",
            "sessions/s.jsonl",
        }
        assert await running.found(query, path_prefix="wiki/") == ["wiki/ferry/times.md"]
        decayed = (await running.search(query, decay=30.0, min_score=0.0, max_results=50)).results
        scores = {result.path: result.score for result in decayed}
        assert scores["log/day.md"] < 0.4 < scores["wiki/ferry/times.md"]  # an exact hit keeps at least `min_score`
        assert (await running.client.get("wiki/ferry/times.md")).text == "The ferry Halcyon leaves at one.\n"
        assert (await running.client.get("wiki/clash.md")).status == "not_found"
        (status,) = (await running.client.status()).workspaces
        assert [(file.path, file.reason) for file in status.quarantined] == [("wiki/clash.md", "NAME_CLASH")]
        # A change there is seen, and a folder that is gone is an alarm.
        (wiki / "ferry/times.md").write_text("The ferry Halcyon leaves at three.\n")
        await running.until(query, lambda found: "three" in found[0].snippet, path_prefix="wiki/ferry")
        wiki.rename(tmp_path / "away")
        await running.synced()
        await running.settled()
        assert await running.found(query, path_prefix="wiki/ferry") == ["wiki/ferry/times.md"]
        (status,) = (await running.client.status()).workspaces
        assert ("wiki/ferry/times.md", "UNREADABLE") in [(file.path, file.reason) for file in status.quarantined]
