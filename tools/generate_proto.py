"""Generates `memoryd/v1` from `proto/`, or with `--check` tells whether what is committed is up to date."""

import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "memoryd" / "v1"
INIT = '"""Messages and stubs generated from `proto/memoryd/v1` by `make proto`; not edited by hand."""\n'


def generate() -> dict[str, str]:
    """Returns what `proto/` generates now: the text of each file of the package, by file name.

    Raises:
        subprocess.CalledProcessError: A proto file does not compile; the compiler has said why on stderr.
    """
    scripts = sysconfig.get_path("scripts")
    with tempfile.TemporaryDirectory() as target:
        subprocess.run(
            [
                *(sys.executable, "-m", "grpc_tools.protoc", "--proto_path=proto"),
                f"--python_out={target}",
                f"--grpc_python_out={target}",
                f"--plugin=protoc-gen-mypy={scripts}/protoc-gen-mypy",
                f"--mypy_out=quiet:{target}",
                f"--plugin=protoc-gen-mypy_grpc={scripts}/protoc-gen-mypy_grpc",
                # The whole program is asynchronous: stubs for grpc.aio alone.
                f"--mypy_grpc_out=quiet,only_async:{target}",
                *(str(path.relative_to(ROOT / "proto")) for path in sorted((ROOT / "proto").rglob("*.proto"))),
            ],
            check=True,
            cwd=ROOT,
        )
        return {"__init__.py": INIT} | read_files(Path(target, "memoryd", "v1"))


def read_files(folder: Path) -> dict[str, str]:
    """Returns the text of each file directly in `folder`, by file name; empty where there is no such folder."""
    return {path.name: path.read_text() for path in folder.glob("*") if path.is_file()}


def stale_files() -> list[str]:
    """Returns the names of files in which `memoryd/v1` differs from what `proto/` generates now."""
    fresh, present = generate(), read_files(PACKAGE)
    return sorted(name for name in fresh | present if fresh.get(name) != present.get(name))


def update() -> None:
    """Brings `memoryd/v1` up to date; files that need no change stay untouched."""
    fresh, present = generate(), read_files(PACKAGE)
    PACKAGE.mkdir(exist_ok=True)
    for name in fresh | present:
        if name not in fresh:
            (PACKAGE / name).unlink()
        elif fresh[name] != present.get(name):
            (PACKAGE / name).write_text(fresh[name])


def main() -> int:
    """Runs the program; returns its exit status."""
    if sys.argv[1:] != ["--check"]:
        update()
        return 0
    stale = stale_files()
    if stale:
        print(f"generated code is out of date ({', '.join(stale)}): run `make proto` and commit it", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
