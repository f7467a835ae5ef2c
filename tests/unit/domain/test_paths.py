import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.domain.globs import matches_glob
from memoryd.domain.paths import (
    BOOTSTRAP_FILES,
    PathError,
    check_path,
    is_evergreen,
    is_hidden,
    is_private,
    is_transcript,
    path_date,
)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param("../workspace/secret.md", "PARENT", id="get-prefix"),
        pytest.param("", "EMPTY", id="empty"),
        pytest.param("  ", "EMPTY", id="blank"),
        pytest.param("memory/a\0.md", "NUL", id="nul"),
        pytest.param("memory\\a.md", "BACKSLASH", id="backslash"),
        pytest.param("C:\\notes\\a.md", "BACKSLASH", id="drive-backslash"),
        pytest.param("C:/notes/a.md", "ABSOLUTE", id="drive"),
        pytest.param("/etc/passwd", "ABSOLUTE", id="absolute"),
        pytest.param("//srv/share/a.md", "ABSOLUTE", id="absolute-twice"),
        pytest.param("memory/../../a.md", "PARENT", id="parent-inside"),
        pytest.param("memory/..", "PARENT", id="parent-last"),
        pytest.param("memory/a.txt", "NOT_MARKDOWN", id="text"),
        pytest.param("memory", "NOT_MARKDOWN", id="folder"),
        pytest.param("memory/a.md/", "NOT_MARKDOWN", id="slash-last"),
        pytest.param("memory/a.MD", "NOT_MARKDOWN", id="upper-case"),
        pytest.param("sessions/a/b.jsonl", "NOT_MARKDOWN", id="transcript-too-deep"),
        pytest.param("memory/a.jsonl", "NOT_MARKDOWN", id="transcript-elsewhere"),
        pytest.param("memory/\udcff.md", "NOT_UNICODE", id="surrogate"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused_by_its_text(path: str, rule: str) -> None:
    with pytest.raises(PathError) as refused:
        check_path(path)
    assert refused.value.rule == rule
    assert repr(path) in str(refused.value)


def test_a_refused_path_is_shown_shortened() -> None:
    with pytest.raises(PathError) as refused:
        check_path("x" * 10_000)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("path", "checked"),
    [
        ("MEMORY.md", "MEMORY.md"),
        ("./memory//a.md", "memory/a.md"),
        ("memory/./a.md", "memory/a.md"),
        ("memory/…/..a.md", "memory/…/..a.md"),
        ("memory/a b.md", "memory/a b.md"),
        ("memory/cafe\u0301.md", "memory/caf\u00e9.md"),
        ("memory/会议.md", "memory/会议.md"),
        ("sessions/2026-05-14.jsonl", "sessions/2026-05-14.jsonl"),
        (".git/config.md", ".git/config.md"),
    ],
)
def test_a_possible_path_is_normalised(path: str, checked: str) -> None:
    assert check_path(path) == checked


@given(st.text(max_size=40).map(lambda text: text + ".md"))
def test_a_checked_path_is_contained_and_checks_to_itself(path: str) -> None:
    try:
        checked = check_path(path)
    except PathError:
        return
    assert check_path(checked) == checked
    assert unicodedata.is_normalized("NFC", checked)
    assert not checked.startswith("/")
    assert {"", ".", ".."}.isdisjoint(checked.split("/"))


@pytest.mark.parametrize(
    ("path", "date"),
    [
        pytest.param("memory/dreaming/light/2026-05-14.md", "2026-05-14", id="nested-date"),
        pytest.param("memory/2026-05-14-standup.md", "2026-05-14", id="nested-date-slug"),
        pytest.param("memory/2026-02-31.md", "", id="nested-date-unreal"),
        pytest.param("memory/2026-05-14.md", "2026-05-14", id="daily"),
        pytest.param("memory/2026-05-14-1730.md", "2026-05-14", id="session"),
        pytest.param("memory/2024-02-29.md", "2024-02-29", id="leap-day"),
        pytest.param("memory/2026-05-14-会议.md", "2026-05-14", id="chinese-slug"),
        pytest.param("memory/0000-01-01.md", "", id="year-zero"),
        pytest.param("memory/2026-05-14x.md", "", id="no-hyphen"),
        pytest.param("memory/2026-05-14-.md", "", id="empty-slug"),
        pytest.param("memory/2026_05_14.md", "", id="underscores"),
        pytest.param("memory/note-2026-05-14.md", "", id="date-last"),
        pytest.param("memory/2026-05-14/note.md", "", id="date-of-folder"),
        pytest.param("notes/2026-05-14.md", "", id="elsewhere"),
        pytest.param("notes/memory/2026-05-14.md", "", id="memory-elsewhere"),
        pytest.param("memory/２０２６-05-14.md", "", id="wide-digits"),
    ],
)
def test_a_date_counts_in_memory_only_and_only_a_real_one(path: str, date: str) -> None:
    assert path_date(path) == date
    assert is_evergreen(path) is not bool(date)


def test_transcripts_decay_and_long_term_memory_does_not() -> None:
    assert not is_evergreen("sessions/a.jsonl")
    assert is_transcript("sessions/a.jsonl")
    assert is_evergreen("MEMORY.md")
    assert is_evergreen("memory/projects/frost.md")


@pytest.mark.parametrize(
    "path",
    [".git/a.md", "x/.obsidian/a.md", "x/.draft.md", "node_modules/p/README.md", "a/venv/a.md", "__pycache__/a.md"],
)
def test_hidden_and_package_folders_are_not_read(path: str) -> None:
    assert is_hidden(path)


@pytest.mark.parametrize("path", ["MEMORY.md", "memory/a.md", "venv-notes/a.md", "memory/a..md"])
def test_other_folders_are_read(path: str) -> None:
    assert not is_hidden(path)


def test_long_term_memory_and_user_are_private_by_default() -> None:
    assert is_private("MEMORY.md")
    assert is_private("USER.md")
    assert is_private("memory.md")
    assert not is_private("memory/MEMORY.md")
    assert not is_private("SOUL.md")
    assert is_private("people/Ragna.md", ["people/**"])
    assert not is_private("MEMORY.md", [])


@pytest.mark.parametrize(
    ("path", "glob", "matches"),
    [
        ("a.md", "*.md", True),
        ("x/a.md", "*.md", False),
        ("a.md", "**/*.md", True),
        ("x/y/a.md", "**/*.md", True),
        ("x/y/a.md", "x/**", True),
        ("x/y/a.md", "x/**/a.md", True),
        ("x/a.md", "x/**/a.md", True),
        ("xx/a.md", "x/**", False),
        ("x/a.md", "?/[ab].md", True),
        ("a.md", "**", True),
        ("x/y/a.md", "**/y/**", True),
        ("x/y/a.md", "**/**/a.md", True),
        ("x/y/z/y/a.md", "x/**/y/*.md", True),
        ("x/y", "x/y/**/z", False),
        ("x", "x/**", True),
        ("a+b.md", "a+b.md", True),
        ("a.mdx", "*.md", False),
        ("", "*", True),
    ],
)
def test_globs(path: str, glob: str, matches: bool) -> None:
    assert matches_glob(path, glob) is matches


def test_a_glob_that_would_be_tried_in_very_many_ways_is_quick() -> None:
    """By trying one way after another this one would take longer than any test may."""
    assert not matches_glob("/".join("a" * 60), "/".join(["**", "a"] * 25 + ["b"]))


def test_user_is_a_bootstrap_file_and_memory_is_not() -> None:
    assert "USER.md" in BOOTSTRAP_FILES
    assert "MEMORY.md" not in BOOTSTRAP_FILES
