from pathlib import Path

from memoryd.folder.locating import locate


def test_a_path_in_nfc_finds_a_name_that_is_not(tmp_path: Path) -> None:
    (tmp_path / "re\u0301sume\u0301s").mkdir()
    (tmp_path / "re\u0301sume\u0301s/cafe\u0301.md").write_text("x")
    assert locate(tmp_path, "r\u00e9sum\u00e9s/caf\u00e9.md") == "re\u0301sume\u0301s/cafe\u0301.md"
    assert locate(tmp_path, "r\u00e9sum\u00e9s/th\u00e9.md") is None


def test_the_exact_name_is_preferred(tmp_path: Path) -> None:
    (tmp_path / "caf\u00e9.md").write_text("x")
    (tmp_path / "cafe\u0301.md").write_text("x")
    assert locate(tmp_path, "caf\u00e9.md") == "caf\u00e9.md"


def test_links_lead_to_the_real_name_and_not_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "m").mkdir(parents=True)
    (root / "m/a.md").write_text("x")
    (tmp_path / "root-of-others").mkdir()
    (tmp_path / "root-of-others/b.md").write_text("x")
    (root / "in").symlink_to("m")
    (root / "out").symlink_to(tmp_path / "root-of-others")
    (root / "loop.md").symlink_to("loop.md")
    assert locate(root, "in/a.md") == "m/a.md"
    assert locate(root, "out/b.md") is None
    assert locate(root, "loop.md") is None
    assert locate(tmp_path / "gone", "a.md") is None
