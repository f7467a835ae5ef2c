import re
import tomllib
from collections import defaultdict

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repo.checkout import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED: dict[str, list[str]] = {
    "build": [line for line in (ROOT / "requirements/build.in").read_text().splitlines() if not line.startswith("#")],
    "base": PROJECT["dependencies"],
    "dev": PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"],
    "torch": PROJECT["dependencies"] + PROJECT["optional-dependencies"]["torch"],
}


def locked(name: str) -> dict[str, set[str]]:
    """Returns the versions of each package in a lock; more than one where Python versions differ."""
    versions = defaultdict[str, set[str]](set)
    text = (ROOT / f"requirements/{name}.txt").read_text()
    for package, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE):
        versions[canonicalize_name(package)].add(version)
    return versions


@pytest.mark.parametrize("name", sorted(WANTED))
def test_lock_satisfies_pyproject(name: str) -> None:
    versions = locked(name)
    for requirement in map(Requirement, WANTED[name]):
        found = versions[canonicalize_name(requirement.name)]
        assert found, f"{requirement} is not in requirements/{name}.txt: run `make lock`"
        assert all(requirement.specifier.contains(version) for version in found), f"{requirement}: locked {found}"


def test_locks_agree_on_every_version() -> None:
    versions = defaultdict[str, set[frozenset[str]]](set)
    for name in WANTED:
        for package, found in locked(name).items():
            versions[package].add(frozenset(found))
    assert {package: found for package, found in versions.items() if len(found) > 1} == {}


@pytest.mark.parametrize("name", sorted(WANTED))
def test_lock_pins_hashes_and_names_no_host(name: str) -> None:
    text = (ROOT / f"requirements/{name}.txt").read_text()
    assert "://" not in text
    assert "index-url" not in text
    for block in re.split(r"^(?=[\w])", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block, block


def test_each_dependency_has_its_reason_in_the_architecture() -> None:
    section = (ROOT / "docs/architecture.md").read_text().partition("\n## Dependencies\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.-]+)` \| \S.* \|$", section, re.MULTILINE)
    wanted = {Requirement(text).name for texts in WANTED.values() for text in texts}
    assert sorted(rows) == sorted(wanted)
