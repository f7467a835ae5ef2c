import hashlib
import os
from pathlib import Path

import pytest

from memoryd.domain.files import Problem
from memoryd.folder import reading
from memoryd.folder.listing import list_folder
from memoryd.folder.reading import FileText, decode, open_contained, read_file
from memoryd.folder.root import RootMissingError, root_problem
from memoryd.folder.rules import FolderRules
from tests.support.privileges import as_nobody, open_folder

LIMIT = 1000
RULES = FolderRules(max_bytes=LIMIT)


def read(root: Path, name: str = "a.md") -> FileText:
    file = read_file(root, name, RULES)
    assert isinstance(file, FileText)
    return file


def refused(root: Path, name: str = "a.md") -> str:
    file = read_file(root, name, RULES)
    assert isinstance(file, Problem)
    return file.reason


def test_a_file_is_read_with_the_hash_of_its_bytes(tmp_path: Path) -> None:
    data = "\ufeff# Café\r\n\r\n会议\n".encode()
    (tmp_path / "a.md").write_bytes(data)
    file = read(tmp_path)
    assert file.text == "# Café\r\n\r\n会议\n"
    assert file.hash == hashlib.sha256(data).hexdigest()
    assert not file.lossy


def test_a_file_written_just_now_has_no_signature_yet(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    assert read(tmp_path).signature is None


def test_bytes_that_are_not_utf_8_are_replaced_and_flagged(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("Grüße aus Ærø\n".encode("latin-1"))
    file = read(tmp_path)
    assert file.text == "Gr\ufffd\ufffde aus \ufffdr\ufffd\n"
    assert file.lossy


@pytest.mark.parametrize("data", [b"PNG\0\1\2", bytes(range(128, 256)) * 3, "文字编码".encode("gbk") * 20])
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.md").write_bytes(data)
    assert refused(tmp_path) == "BINARY"


def test_a_replacement_character_that_is_in_the_text_is_text() -> None:
    assert decode("\ufffd\ufffd".encode()) == ("\ufffd\ufffd", False)


def test_the_size_limit_is_the_last_size_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x" * LIMIT)
    assert len(read(tmp_path).text) == LIMIT
    (tmp_path / "a.md").write_text("x" * (LIMIT + 1))
    assert refused(tmp_path) == "TOO_LARGE"


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    assert refused(tmp_path) == "UNREADABLE"


def test_a_folder_named_like_a_file_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").mkdir()
    assert refused(tmp_path) == "UNREADABLE"


@pytest.mark.parametrize("name", ["a.md", "no/such/folder/a.md", "file/a.md", "x" * 300 + ".md"])
def test_a_file_that_is_not_there_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    assert read_file(tmp_path, name, RULES) is None


def test_no_link_is_followed_wherever_it_stands(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret.md").write_text("secret")
    (root / "a.md").symlink_to(tmp_path / "secret.md")
    (root / "up").symlink_to(tmp_path)
    assert read_file(root, "a.md", RULES) is None
    assert read_file(root, "up/secret.md", RULES) is None
    with pytest.raises(OSError, match="Not a directory"):
        open_contained(root, "up/secret.md")


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.md"
    file.write_text("before")
    once = reading._read  # noqa: SLF001  (a change in the middle of a read can't be timed from outside)
    reads = []

    def change_after_first(root: Path, name: str, limit: int) -> tuple[os.stat_result, bytes, os.stat_result]:
        before, data, after = once(root, name, limit)
        reads.append(data)
        if len(reads) == 1:
            file.write_text("afterwards")
            after = file.stat()
        return before, data, after

    monkeypatch.setattr(reading, "_read", change_after_first)
    assert read(tmp_path).text == "afterwards"
    assert reads == [b"before", b"afterwards"]


def test_a_file_that_never_rests_is_taken_as_it_is_and_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.md"
    file.write_text("0")
    once = reading._read  # noqa: SLF001  (as above)

    def always_changing(root: Path, name: str, limit: int) -> tuple[os.stat_result, bytes, os.stat_result]:
        before, data, _ = once(root, name, limit)
        file.write_text(data.decode() + "1")
        os.utime(file, (1, 1))
        return before, data, file.stat()

    monkeypatch.setattr(reading, "_read", always_changing)
    seen = read(tmp_path)
    assert seen.text == "011"
    assert seen.signature is None


def test_an_unreadable_file_is_refused() -> None:
    with open_folder() as root:
        (root / "a.md").write_text("x")
        (root / "a.md").chmod(0)
        assert as_nobody(lambda: refused(root)) == "UNREADABLE"


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_an_unreadable_subfolder_is_told_and_its_files_are_unknown(mode: int) -> None:
    with open_folder() as root:
        (root / "closed").mkdir()
        (root / "closed/a.md").write_text("x")
        (root / "b.md").write_text("x")
        (root / "closed").chmod(mode)
        listing = as_nobody(lambda: list_folder(root, FolderRules()))
        assert set(listing.files) == {"b.md", "closed/"}
        assert listing.unreadable == ("closed",)


def test_an_unreadable_root_is_an_alarm() -> None:
    with open_folder() as folder:
        root = folder / "root"
        root.mkdir()
        root.chmod(0)
        problem = as_nobody(lambda: root_problem(root))
        assert problem is not None
        assert problem.reason == "ROOT_MISSING"
        with pytest.raises(RootMissingError, match="can't be read"):
            as_nobody(lambda: list_folder(root, FolderRules()))
