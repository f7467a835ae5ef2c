import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.repo.checkout import ROOT

PROTO = 'syntax = "proto3";\n\npackage memoryd.v1;\n\nmessage Note {\n  string text = 1;\n}\n'


class Checkout:
    """A small repository with one proto file and the project's own check."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proto = folder / "proto/memoryd/v1/note.proto"
        self.proto.parent.mkdir(parents=True)
        shutil.copytree(ROOT / "tools", folder / "tools")
        shutil.copy(ROOT / "buf.yaml", folder)
        (folder / ".venv/bin").mkdir(parents=True)
        (folder / ".venv/bin/buf").symlink_to(Path(sysconfig.get_path("scripts")) / "buf")

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=self.folder, check=True, capture_output=True)  # noqa: S607  (git is found on PATH)

    def commit(self, proto: str) -> None:
        self.proto.write_text(proto)
        self.git("add", "proto", "buf.yaml")
        self.git("commit", "--message", "change", "--allow-empty")

    def check(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.folder / "tools/buf_breaking.sh"], capture_output=True, check=False, text=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = Checkout(tmp_path / "checkout")
    made.git("init", "--initial-branch", "main")
    return made


def test_a_breaking_change_on_a_branch_is_refused_also_when_other_commits_follow(checkout: Checkout) -> None:
    checkout.commit(PROTO)
    checkout.git("switch", "--create", "topic")
    checkout.commit(PROTO.replace("string", "bytes"))
    checkout.commit(PROTO.replace("string", "bytes"))
    result = checkout.check()
    assert result.returncode != 0
    assert "note.proto:6:3:Field" in result.stdout


def test_a_breaking_change_in_main_s_last_commit_is_refused(checkout: Checkout) -> None:
    checkout.commit(PROTO)
    checkout.commit(PROTO.replace("text = 1", "text = 2"))
    assert checkout.check().returncode != 0


def test_a_breaking_change_that_is_not_committed_is_refused(checkout: Checkout) -> None:
    checkout.commit(PROTO)
    checkout.proto.write_text(PROTO.replace("text = 1", "text = 2"))
    assert checkout.check().returncode != 0


def test_a_new_field_is_accepted(checkout: Checkout) -> None:
    checkout.commit(PROTO)
    checkout.commit(PROTO.replace("= 1;\n", "= 1;\n  string path = 2;\n"))
    result = checkout.check()
    assert result.returncode == 0
    assert "compared with" in result.stdout


def test_without_anything_to_compare_with_the_check_says_so(checkout: Checkout) -> None:
    assert "not checked: nothing is committed yet" in checkout.check().stdout
    checkout.commit(PROTO)
    assert "not checked: this is the first commit" in checkout.check().stdout
    shutil.rmtree(checkout.folder / ".git")
    assert "not checked: this is no git checkout" in checkout.check().stdout


def test_a_shallow_clone_is_told_how_to_get_its_history(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit(PROTO)
    checkout.commit(PROTO.replace("string", "bytes"))
    clone = Checkout(tmp_path / "clone")
    clone.git("init", "--initial-branch", "main")
    clone.git("fetch", "--depth", "1", f"file://{checkout.folder}", "main")
    clone.git("reset", "--hard", "FETCH_HEAD")
    assert "not checked: this clone is shallow (git fetch --unshallow)" in clone.check().stdout
