import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repo.checkout import ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A checkout in which nothing has been set up."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def setup(copy: Path, python: str) -> subprocess.CompletedProcess[str]:
    interpreter = copy / "python3"
    interpreter.write_text(f"#!/bin/sh\n{python}\n")
    interpreter.chmod(0o755)
    environment = os.environ | {"PYTHON": str(interpreter)}
    return subprocess.run(
        [copy / "tools/setup.sh", "base"], env=environment, capture_output=True, check=False, text=True
    )


def test_an_old_python_is_refused_in_one_line(copy: Path) -> None:
    result = setup(copy, "exit 1  # what a Python before 3.11 answers to the question for its version")
    assert result.returncode == 1
    assert result.stderr == (
        "setup: Python 3.11 or newer is needed; install one and try again, "
        "or name one: make setup PYTHON=/path/to/python3\n"
    )
    assert not (copy / ".venv").exists()


def test_a_python_without_venv_is_refused_in_one_line(copy: Path) -> None:
    result = setup(copy, '[ "$1" != -m ] || exit 1')
    assert result.returncode == 1
    assert result.stderr == (
        f"setup: {copy}/python3 has no working venv module; install it (Debian, Ubuntu: python3-venv) and try again\n"
    )


def test_what_a_linked_environment_leads_to_stays_whole(copy: Path) -> None:
    others = copy / "others"
    (others / "bin").mkdir(parents=True)
    (others / "bin/pip").touch()
    (copy / ".venv").symlink_to(others)
    setup(copy, '[ "$1" != -m ] || exit 1')
    assert (others / "bin/pip").exists()
    assert not (copy / ".venv").is_symlink()
