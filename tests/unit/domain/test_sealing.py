"""Sealed paths: what stands for a path, and a file that is known under one of the two."""

from __future__ import annotations

from memoryd.domain.sealing import find, is_sealed, merged, path_hash, sealed


def test_what_stands_for_a_path_stands_for_itself() -> None:
    once = sealed("memory/日記.md")
    assert sealed(once) == once
    assert path_hash(once) == path_hash("memory/日記.md")
    assert is_sealed(once)
    assert not is_sealed("memory/日記.md")
    assert "memory" not in once
    assert sealed("memory/x.md") != once


def test_a_file_is_known_once_under_its_path_or_sealed() -> None:
    base = {"a.md": 1, "b.md": 2}
    gone = merged(base, {sealed("a.md"): 3})
    assert gone == {"b.md": 2, sealed("a.md"): 3}
    assert [find(gone, path) for path in ("a.md", sealed("a.md"), "b.md", "c.md")] == [3, 3, 2, None]
    assert merged(gone, {"a.md": 4}) == {"b.md": 2, "a.md": 4}
    assert base == {"a.md": 1, "b.md": 2}
