import os
from pathlib import Path

import pytest

from memoryd.folder.listing import Listing, list_folder
from memoryd.folder.root import RootMissingError, root_problem
from memoryd.folder.rules import Extra, FolderRules


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{path}\n")


def listed(root: Path, rules: FolderRules | None = None) -> Listing:
    return list_folder(root, rules or FolderRules())


def test_markdown_at_any_depth_is_listed_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "MEMORY.md", "memory/a/b/c.md", "x.md/inside.md", "notes.txt", "README.MD")
    write(tmp_path, ".git/a.md", "x/.hidden/a.md", "x/node_modules/p/a.md", ".venv/a.md", "venv/a.md", ".draft.md")
    listing = listed(tmp_path)
    assert set(listing.files) == {"MEMORY.md", "memory/a/b/c.md", "x.md/inside.md"}
    assert listing.unreadable == ()


def test_an_empty_folder_has_no_files(tmp_path: Path) -> None:
    assert listed(tmp_path).files == {}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(
            ["memory/Note.md", "memory/note.md", "memory/2026_06_16.md", "memory/2026-06-16.md"], id="case-names"
        )
    ],
)
def test_similar_names_are_different_files(tmp_path: Path, names: list[str]) -> None:
    write(tmp_path, *names)
    assert set(listed(tmp_path).files) == set(names)


def test_globs_add_and_leave_out(tmp_path: Path) -> None:
    write(tmp_path, "memory/a.md", "drafts/b.md", "memory/old/c.md")
    rules = FolderRules(include=("memory/**/*.md",), exclude=("**/old/**",))
    assert set(listed(tmp_path, rules).files) == {"memory/a.md"}


def test_links_that_leave_loop_or_lead_nowhere_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "a.md", ".secret/s.md")
    write(tmp_path, "outside/o.md")
    (root / "out.md").symlink_to(tmp_path / "outside/o.md")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    (root / "self.md").symlink_to(root / "self.md")
    (root / "nowhere.md").symlink_to(root / "gone.md")
    (root / "hidden.md").symlink_to(root / ".secret/s.md")
    assert set(listed(root).files) == {"a.md"}


def test_a_link_to_a_file_of_another_type_is_a_file(tmp_path: Path) -> None:
    write(tmp_path, "license.txt")
    (tmp_path / "LICENSE.md").symlink_to("license.txt")
    listing = listed(tmp_path)
    assert {path: file.name for path, file in listing.files.items()} == {"LICENSE.md": "license.txt"}


def test_two_names_of_one_inode_are_one_file(tmp_path: Path) -> None:
    write(tmp_path, "m/b.md")
    (tmp_path / "a-link.md").symlink_to("m/b.md")
    os.link(tmp_path / "m/b.md", tmp_path / "m/c.md")
    listing = listed(tmp_path)
    assert set(listing.files) == {"m/b.md"}
    assert listing.aliases == {"a-link.md", "m/c.md"}


def test_a_private_file_is_private_under_every_name(tmp_path: Path) -> None:
    write(tmp_path, "USER.md", "memory/z.md")
    (tmp_path / "A.md").symlink_to("USER.md")
    (tmp_path / "MEMORY.md").symlink_to("memory/z.md")
    files = listed(tmp_path).files
    assert {path: file.private for path, file in files.items()} == {"USER.md": True, "memory/z.md": True}


def test_names_that_are_equal_after_nfc_clash(tmp_path: Path) -> None:
    write(tmp_path, "caf\u00e9.md", "cafe\u0301.md", "re\u0301sume\u0301.md")
    files = listed(tmp_path).files
    clash = files["caf\u00e9.md"].problem
    assert clash is not None
    assert clash.reason == "NAME_CLASH"
    assert "'caf\\xe9.md'" in clash.detail
    assert "'cafe\\u0301.md'" in clash.detail
    assert files["r\u00e9sum\u00e9.md"].problem is None
    assert files["r\u00e9sum\u00e9.md"].name == "re\u0301sume\u0301.md"
    assert len(files) == 2


def test_a_file_whose_name_can_not_be_a_path_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"latin-\xe9.md")).write_text("x")
    write(tmp_path, "back\\slash.md")
    files = listed(tmp_path).files
    problems = {path: file.problem and file.problem.reason for path, file in files.items()}
    assert problems == {"latin-\ufffd.md": "UNREADABLE", "back\\slash.md": "UNREADABLE"}


def test_what_is_no_regular_file_is_set_aside(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    problem = listed(tmp_path).files["pipe.md"].problem
    assert problem is not None
    assert problem.reason == "UNREADABLE"


def test_further_folders_have_their_own_globs_and_a_label(tmp_path: Path) -> None:
    root, wiki, chats = tmp_path / "root", tmp_path / "wiki", tmp_path / "chats"
    write(root, "a.md", "sessions/own.jsonl")
    write(wiki, "b.md", "deep/c.md", ".git/d.md", "e.txt", "USER.md")
    write(chats, "s.jsonl", "deep/t.jsonl", "u.md")
    (wiki / "out.md").symlink_to(root / "a.md")
    extras = (Extra("wiki", wiki, evergreen=False), Extra("sessions", chats, transcripts=True))
    listing = listed(root, FolderRules(extras=extras))
    assert {path: (file.root, file.name) for path, file in listing.files.items()} == {
        "a.md": (root, "a.md"),
        "wiki/b.md": (wiki, "b.md"),
        "wiki/deep/c.md": (wiki, "deep/c.md"),
        "wiki/USER.md": (wiki, "USER.md"),
        "sessions/s.jsonl": (chats, "s.jsonl"),
    }
    assert [path for path, file in listing.files.items() if not file.evergreen] == [
        "wiki/USER.md",
        "wiki/b.md",
        "wiki/deep/c.md",
    ]
    assert set(listed(root, FolderRules(extras=(Extra("wiki", wiki, "*.md"),))).files) == {
        "a.md",
        "wiki/b.md",
        "wiki/USER.md",
    }
    assert set(listed(root, FolderRules(sessions=True)).files) == {"a.md", "sessions/own.jsonl"}


def test_a_further_folder_that_is_not_there_is_unreadable(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, "a.md")
    listing = listed(root, FolderRules(extras=(Extra("wiki", tmp_path / "wiki"),)))
    assert (set(listing.files), listing.unreadable) == ({"a.md", "wiki/"}, ("wiki",))


def test_a_further_folder_inside_the_workspace_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "wiki/a.md", ".hidden/b.md")
    extras = (Extra("wiki", tmp_path / "wiki"), Extra("more", tmp_path / ".hidden"))
    assert set(listed(tmp_path, FolderRules(extras=extras)).files) == {"wiki/a.md", "more/b.md"}


def test_one_path_in_two_folders_is_set_aside(tmp_path: Path) -> None:
    write(tmp_path, "root/wiki/a.md", "wiki/a.md")
    listing = listed(tmp_path / "root", FolderRules(extras=(Extra("wiki", tmp_path / "wiki"),)))
    problem = listing.files["wiki/a.md"].problem
    assert problem is not None
    assert problem.reason == "NAME_CLASH"


def test_a_missing_folder_is_an_error_and_not_an_empty_listing(tmp_path: Path) -> None:
    root = tmp_path / "gone"
    with pytest.raises(RootMissingError, match="does not exist"):
        listed(root)
    problem = root_problem(root)
    assert problem is not None
    assert problem.reason == "ROOT_MISSING"
    assert str(tmp_path) not in problem.detail


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "root")
    with pytest.raises(RootMissingError, match="is not a folder"):
        listed(tmp_path / "root")


def test_a_folder_that_is_there_has_no_problem(tmp_path: Path) -> None:
    assert root_problem(tmp_path) is None


def test_the_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", "m/a.md")
    (tmp_path / "root").symlink_to("real")
    assert {file.name for file in listed(tmp_path / "root").files.values()} == {"m/a.md"}
