"""The command line, as a person and as a script use it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.e2e.processes import command, serve


def write_notes(folder: Path) -> None:
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "2026-05-01.md").write_text(
        "# Friday\n\nThe kiln was serviced by Ambrose.\nHe comes in May.\n"
    )
    (folder / "MEMORY.md").write_text("# Long-term\n\nThe studio opens at nine.\n")


async def test_search_get_and_status(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "studio"
    write_notes(folder)
    async with serve(data, folder) as served:
        found = await command(data, "search", "who serviced the kiln?")
        while "Ambrose" not in found.out:  # it is being indexed
            found = await command(data, "search", "who serviced the kiln?")
        assert "memory/2026-05-01.md:1-4" in found.out
        as_json = await command(data, "search", "who serviced the kiln?", "--json", "--explain")
        reply = json.loads(as_json.out)
        assert reply["results"][0]["citation"] == "memory/2026-05-01.md#L1-L4"
        assert reply["results"][0]["explanation"]
        also = ["--lex", "opens", "--vec", "opening hours", "--hyde", "It opens at nine.", "--json"]
        with_typed = json.loads((await command(data, "search", "who serviced the kiln?", *also)).out)
        assert "MEMORY.md" in {result["path"] for result in with_typed["results"]}
        lines = await command(data, "get", "memory/2026-05-01.md", "--from", "3", "--lines", "1")
        assert (lines.code, lines.out) == (0, "The kiln was serviced by Ambrose.\n")
        assert "--from 4" in lines.err
        missing = await command(data, "get", "memory/2031-01-01.md", "--json")
        assert (missing.code, json.loads(missing.out)["status"]) == (0, "not_found")
        status = json.loads((await command(data, "status", "--json")).out)
        (workspace,) = status["workspaces"]
        assert (workspace["workspace"], workspace["files"], workspace["pending"]) == ("studio", 2, 0)
        assert status["disk_bytes"] > 0
        deep = await command(data, "status", "--deep", "--json")
        parts = json.loads(deep.out)["parts"]
        assert (deep.code, len(parts), {part["reason"] for part in parts}) == (0, 5, {""})
        assert (await command(data, "search", " ")).code == 2
        assert (await command(data, "get", "../x")).code == 2
        assert (await command(data, "status", MEMORYD_KEY="wrong")).code == 4
        minted = json.loads((await command(data, "key", "create", "-w", "studio", "--json")).out)
        with_key = await command(data, "status", "--json", "--server", served.address, MEMORYD_KEY=minted["key"])
        assert with_key.code == 0


async def test_without_a_server(tmp_path: Path) -> None:
    ended = await command(tmp_path / "data", "search", "kiln")
    assert (ended.code, ended.out) == (3, "")
    assert "memoryd serve" in ended.err
    absent = await command(tmp_path / "data", "status", "--server", "127.0.0.1:9", MEMORYD_KEY="x")
    assert absent.code == 3
    assert "nothing answers at 127.0.0.1:9" in absent.err


async def test_index_once(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "studio"
    write_notes(folder)
    ended = await command(data, "index", folder, "--json")
    assert ended.code == 0
    (status,) = json.loads(ended.out)
    assert (status["workspace"], status["files"], status["pending"]) == ("studio", 2, 0)
    (folder / "photo.md").write_bytes(bytes(range(256)) * 10)
    ended = await command(data, "index", folder)
    assert ended.code == 1
    assert "studio/photo.md: BINARY" in ended.err
    nothing = await command(data, "index")
    assert (nothing.code, "name a folder" in nothing.err) == (2, True)


async def test_index_sessions_and_a_further_folder(tmp_path: Path) -> None:
    data, folder, wiki = tmp_path / "data", tmp_path / "studio", tmp_path / "wiki"
    write_notes(folder)
    for file, text in ((wiki / "a.md", "More.\n"), (folder / "sessions/s.jsonl", '{"role":"user","content":"Hi"}\n')):
        file.parent.mkdir()
        file.write_text(text)
    ended = await command(data, "index", folder, "--sessions", "--extra", f"wiki={wiki}", "--json")
    assert (ended.code, json.loads(ended.out)[0]["files"]) == (0, 4)
    for wrong in ([folder, "--extra", "wiki"], ["--sessions"], [folder, wiki, "--extra", f"w={wiki}"]):
        assert (await command(data, "index", *wrong)).code == 2


async def test_help_and_version(tmp_path: Path) -> None:
    for arguments in (["--help"], ["search", "--help"], ["serve", "-h"], ["model", "prepare", "--help"], ["--version"]):
        ended = await command(tmp_path, *arguments)
        assert ended.code == 0
        assert ended.out


async def test_doctor(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "studio"
    write_notes(folder)
    assert (await command(data, "index", folder)).code == 0
    (texts,) = data.glob("generations/*/text")
    shutil.rmtree(texts)
    found = await command(data, "doctor", "--check")
    assert (found.code, found.out.count("chunks lost")) == (1, 2)
    mended = await command(data, "doctor", "--json")
    (workspace,) = json.loads(mended.out)["workspaces"]
    assert (mended.code, workspace["clean"], len(workspace["found"])) == (0, True, 2)


async def test_purge_backup_and_restore(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", tmp_path / "studio"
    write_notes(folder)
    assert (await command(data, "index", folder)).code == 0
    purge = ["purge", "MEMORY.md", "-w", "studio", "--block", "--json"]
    purged = await command(data, *purge, MEMORYD_INDEXER_LEASE="1")
    receipt = json.loads(purged.out)
    assert (purged.code, receipt["verified"]) == (0, True)
    assert [(file["path"], file["vector_chunks"]) for file in receipt["files"]] == [("MEMORY.md", 1)]
    assert (await command(data, "purge", "a.md")).code == 2
    copy, restored = tmp_path / "copy", tmp_path / "restored"
    assert json.loads((await command(data, "backup", copy, "--json")).out)["bytes"] == copy.stat().st_size
    assert (await command(restored, "restore", copy)).code == 0
    assert (restored / "filelog.db").is_file()
    assert (await command(restored, "restore", copy)).code == 2
    assert (await command(data, "key", "create", "-w", "studio")).code == 0
    purged = await command(data, "purge", "--yes", "--json", MEMORYD_INDEXER_LEASE="1")
    receipt = json.loads(purged.out)
    assert (purged.code, receipt["verified"], receipt["keys"], len(receipt["files"])) == (0, True, 1, 2)
    databases = [file for file in data.rglob("*.db*") if file.is_file()]
    assert len(databases) > 2
    assert [file for file in databases if b"MEMORY.md" in file.read_bytes()] == []
    checked = json.loads((await command(data, "doctor", "--json")).out)
    assert [(each["clean"], each["files"], each["stray"]) for each in checked["workspaces"]] == [(True, 0, 0)]
    assert (await command(data, "index", folder)).code == 0
    again = json.loads((await command(data, "doctor", "--check", "--json")).out)
    assert [(each["clean"], each["files"]) for each in again["workspaces"]] == [(True, 2)]
