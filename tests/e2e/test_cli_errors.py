"""What the command line says of mistakes, and with which exit code it ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memoryd.cli.operator import chosen
from memoryd.domain.names import Scope
from memoryd.errors import NotFoundError
from tests.e2e.processes import command, serve
from tests.support.eventually import eventually


def write_notes(folder: Path) -> Path:
    folder.mkdir()
    (folder / "MEMORY.md").write_text("# Long-term\n\nThe studio opens at nine.\n")
    return folder


@pytest.mark.parametrize("name", ["serve", "index"])
async def test_a_folder_that_never_was_there_ends_the_command(tmp_path: Path, name: str) -> None:
    ended = await command(tmp_path / "data", name, tmp_path / "stduio")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"memoryd: {tmp_path}/stduio does not exist: make the folder, or correct its path\n"


async def test_a_known_folder_that_is_away_at_the_start_is_waited_for(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", write_notes(tmp_path / "studio")
    assert (await command(data, "index", folder)).code == 0
    folder.rename(tmp_path / "elsewhere")
    async with serve(data, folder) as served:

        async def state() -> tuple[bool, int]:
            (status,) = (await served.client.status()).workspaces
            return status.available, status.files

        assert await state() == (False, 1)
        (tmp_path / "elsewhere").rename(folder)
        (folder / "more.md").write_text("More.\n")
        await eventually(state, (True, 2))


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("[grpc]\nadress = '127.0.0.1:1'\n", "grpc.adress: there is no such setting; did you mean address?"),
        ("[workspace]\nincludes = []\n", "workspace.includes: there is no such setting; did you mean include?"),
        ("[[workspaces]]\npath = '.'\nnmae = 'x'\n", "workspaces.0.nmae: there is no such setting; did you mean name?"),
        ("[log]\nlevel = 'loud'\n", "log.level: Input should be"),
        ("[grpc\n", "is not valid TOML"),
    ],
)
async def test_a_wrong_configuration_is_a_usage_error(tmp_path: Path, toml: str, told: str) -> None:
    config = tmp_path / "memoryd.toml"
    config.write_text(toml)
    ended = await command(tmp_path / "data", "serve", "--config", config)
    assert (ended.code, told in ended.err, str(config) in ended.err) == (2, True, True), ended.err


async def test_a_key_for_an_unknown_workspace_is_refused(tmp_path: Path) -> None:
    data, studio, empty = tmp_path / "data", write_notes(tmp_path / "studio"), tmp_path / "empty"
    assert (await command(data, "key", "create", "-w", "first")).code == 0  # nothing is there to compare it with
    empty.mkdir()
    async with serve(data, studio, empty) as served:
        await served.client.sync(workspace="studio")
        wrong = await command(data, "key", "create", "-w", "stduio", "-w", "studio")
        assert (wrong.code, wrong.out) == (2, "")
        assert "nothing is known of local/stduio; there are: local/empty, local/studio." in wrong.err
        assert (await command(data, "key", "create", "-w", "studio", "-w", "empty")).code == 0
        assert (await command(data, "key", "create", "-w", "studio", "--tenant", "acme")).code == 2
        assert (await command(data, "key", "create", "-w", "later", "--new")).code == 0
        named = await command(data, "status", "-w", "stduio")
        assert (named.code, "'stduio'; it covers empty, studio" in named.err) == (4, True)
    (data / "endpoint.json").unlink()
    after = await command(data, "key", "create", "-w", "stduio")
    assert (after.code, "there are: local/studio." in after.err) == (2, True)


async def test_a_purge_of_an_unknown_workspace_has_no_receipt(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", write_notes(tmp_path / "studio")
    assert (await command(data, "index", folder)).code == 0
    ended = await command(data, "purge", "MEMORY.md", "-w", "stduio")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "memoryd: nothing is known of local/stduio; there are: local/studio\n"


def test_operators_commands_choose_among_the_workspaces_that_there_are() -> None:
    known = [Scope("acme", "rod"), Scope("local", "rod")]
    assert chosen(known, "acme", "") == known
    assert chosen(known, "local", "rod") == known[1:]
    with pytest.raises(NotFoundError, match="nothing is known of local/Rod; there are: acme/rod, local/rod"):
        chosen(known, "local", "Rod")


async def test_lines_past_the_end_and_before_the_first(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", write_notes(tmp_path / "studio")
    async with serve(data, folder) as served:
        past = await command(data, "get", "MEMORY.md", "--from", "9999")
        assert (past.code, past.out, past.err) == (0, "", "MEMORY.md has 3 lines: nothing from line 9999 on\n")
        as_json = json.loads((await command(data, "get", "MEMORY.md", "--from", "2", "--json")).out)
        assert (as_json["lines"], as_json["total_lines"]) == (2, 3)
        before = await command(data, "get", "MEMORY.md", "--from", "-1")
        assert (before.code, "'--from'" in before.err, "or equal to 1" in before.err) == (2, True, True)
        with_scheme = await command(data, "status", "--server", f"http://{served.address}")
        assert (with_scheme.code, f"leave the scheme out, {served.address}" in with_scheme.err) == (2, True)


async def test_a_table_goes_into_a_pipe_whole(tmp_path: Path) -> None:
    data, folder = tmp_path / "data", write_notes(tmp_path / "studio")
    assert (await command(data, "index", folder)).code == 0
    (generation,) = json.loads((await command(data, "generations", "list", "--json")).out)
    listed = (await command(data, "generations", "list")).out
    assert re.search(rf"{generation['id']}.*{generation['model']}.*answers", listed)


@pytest.mark.parametrize(
    ("arguments", "variable", "near"),
    [
        (["status"], "MEMORYD_SERVRE", "MEMORYD_SERVER"),
        (["index", "stduio"], "MEMORYD_GRPC_DRIAN", "MEMORYD_GRPC_DRAIN"),
    ],
)
async def test_a_mistyped_variable_is_named(tmp_path: Path, arguments: list[str], variable: str, near: str) -> None:
    ended = await command(tmp_path / "data", *arguments, **{variable: "s3cret"})
    warning = json.loads(ended.err.partition("\n")[0])
    assert (warning["event"], warning["variable"]) == ("no setting has this name: it is ignored", variable)
    assert (warning["did_you_mean"], "s3cret" in ended.err) == (near, False)
