from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memoryd.adapters.embedded.datadir import DataDirectory
from memoryd.errors import ConfigError, DataError
from tests.support.privileges import as_nobody, open_folder

HOLD = """
import sys
from pathlib import Path
from memoryd.adapters.embedded.datadir import DataDirectory
DataDirectory.open(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "a" / "data"
    directory = DataDirectory.open(root)
    directory.generation("g1")
    assert root.stat().st_mode & 0o777 == 0o700
    assert json.loads((root / "format.json").read_text()) == {"format": 1}
    assert {part.parent for part in (directory.filelog, directory.keys)} == {root}
    directory.close()


def test_a_generation_has_a_folder_with_its_parts(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path / "data")
    assert directory.generations() == []
    paths = [directory.generation(name) for name in ("b", "a", "b")]
    assert directory.generations() == ["a", "b"]
    assert paths[0] == paths[2]
    assert {part.parent for part in (paths[0].manifest, paths[0].vectors, paths[0].text)} == {paths[0].root}
    directory.close()


def test_it_opens_again(tmp_path: Path) -> None:
    for _ in range(2):
        directory = DataDirectory.open(tmp_path)
        directory.close()
        directory.close()


def test_a_second_process_is_told_who_holds_it(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=f"{tmp_path} is in use by process {holder.pid}") as caught:
            DataDirectory.open(tmp_path)
        assert caught.value.reason == "DATA_DIRECTORY_LOCKED"
        holder.kill()
    DataDirectory.open(tmp_path).close()


def test_a_failed_opening_leaves_no_lock(tmp_path: Path) -> None:
    (tmp_path / "format.json").write_text("{")
    with pytest.raises(DataError):
        DataDirectory.open(tmp_path)
    (tmp_path / "format.json").write_text('{"format": 1}')
    DataDirectory.open(tmp_path).close()


@pytest.mark.parametrize("found", ["2", "0", '"1"', "null"])
def test_another_format_is_refused(tmp_path: Path, found: str) -> None:
    (tmp_path / "format.json").write_text(f'{{"format": {found}}}')
    with pytest.raises(DataError, match=f"{tmp_path} has format .* reads format 1: run the version"):
        DataDirectory.open(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "\0" * 20])
def test_a_damaged_format_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "format.json").write_text(text)
    with pytest.raises(DataError, match=r"format\.json is damaged"):
        DataDirectory.open(tmp_path)


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.md").write_text("x")
    with pytest.raises(DataError, match=r"holds thesis\.md"):
        DataDirectory.open(tmp_path)
    assert not (tmp_path / "format.json").exists()


def test_what_a_crash_in_the_first_start_left_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("")
    (tmp_path / "format.json.new").write_text('{"for')
    DataDirectory.open(tmp_path).close()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    with pytest.raises(ConfigError, match=f"can't use {path}"):
        DataDirectory.open(path)


def test_a_directory_that_may_not_be_written_to() -> None:
    def open_it() -> str:
        with pytest.raises(ConfigError) as caught:
            DataDirectory.open(folder / "data")
        return str(caught.value)

    with open_folder() as folder:
        folder.chmod(0o555)
        assert f"can't use {folder / 'data'}" in as_nobody(open_it)


async def test_disk_use(tmp_path: Path) -> None:
    directory = DataDirectory.open(tmp_path)
    before = await directory.disk_bytes()
    (directory.generation("g").root / "part").write_bytes(b"x" * 1_000_000)
    assert 1_000_000 <= await directory.disk_bytes() - before < 1_100_000
    directory.close()
