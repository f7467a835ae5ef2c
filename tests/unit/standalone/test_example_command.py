import sys
from pathlib import Path

import pytest

from services.standalone.serve import example_command
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import WorkspaceSettings


@pytest.fixture(autouse=True)
def _started_as(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORYD_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bin/memoryd", "serve"])


def _settings(data_dir: Path, *folders: tuple[str, str]) -> StandaloneSettings:
    workspaces = tuple(WorkspaceSettings(path=Path(name), name=name, tenant=tenant) for name, tenant in folders)
    return StandaloneSettings(data_dir=data_dir, workspaces=workspaces)


def test_a_workspace_is_named_only_where_the_key_covers_several(tmp_path: Path) -> None:
    default = tmp_path / "share" / "memoryd"
    alone = _settings(default, ("rod", "local"), ("linwei", "acme"))
    assert example_command(alone, alone.workspaces[0].scope, "two words") == "bin/memoryd search 'two words'"
    both = _settings(default, ("rod", "local"), ("linwei", "local"))
    assert example_command(both, both.workspaces[1].scope, "x") == "bin/memoryd search -w linwei x"


def test_a_data_directory_of_its_own_is_named(tmp_path: Path) -> None:
    settings = _settings(tmp_path / "data", ("rod", "local"))
    found = example_command(settings, settings.workspaces[0].scope, "")
    assert found == f"MEMORYD_DATA_DIR={tmp_path}/data bin/memoryd search 'what did we decide?'"
