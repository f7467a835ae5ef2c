"""The checkout under test and what it holds."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("memoryd", "services", "tests", "bench", "tools")
GENERATED = ROOT / "memoryd" / "v1"


def project_files() -> list[Path]:
    """Returns every file that is committed, or would be by `git add .`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607  (git is found on PATH)
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def modules(*packages: str) -> list[Path]:
    """Returns the hand-written modules of these top-level packages, all of ours by default."""
    found = [path for package in packages or CODE for path in (ROOT / package).rglob("*.py")]
    return sorted(path for path in found if GENERATED not in path.parents)
