import re

from tests.repo.checkout import ROOT, project_files

# A developer's machine, or a package registry: neither means anything on a reader's machine.
FOREIGN = re.compile(
    r"(?<![\w.~*})-])/(?:home|Users|root|work)/\w"
    r"|pypi\.(?:org|python)|pythonhosted\.|npmjs\.|maven\.(?:org|apache)|deb\.debian|index-url[= ]http"
)


def test_no_file_names_a_machine_s_path_or_a_registry() -> None:
    found = []
    for path in project_files():
        text = path.read_text(errors="replace")
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in FOREIGN.finditer(text)]
    assert found == []


def test_changelog_has_a_place_for_the_next_change() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
