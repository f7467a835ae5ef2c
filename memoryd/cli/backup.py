"""The commands `memoryd backup` and `memoryd restore`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from memoryd.cli.local import Config, DataDir
from memoryd.cli.output import Json, out, print_json


def backup(
    file: Annotated[Path, typer.Argument(help="Where to write the copy; it must not exist.")],
    *,
    data_dir: DataDir = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Copy a standalone's data directory into one file, also while it is served.

    In it: every file's last state and the API keys. Not in it: the indexes, which are built again from that.
    """
    from memoryd.adapters.embedded.backup import back_up  # noqa: PLC0415  (only these commands need it)
    from services.standalone.settings import load  # noqa: PLC0415  (as above)

    copy = back_up(load(config, data_dir=data_dir).data_dir, file)
    _tell({"file": str(file), "bytes": copy.bytes, "created": _time(copy.created), "version": copy.version}, as_json)


def restore(
    file: Annotated[Path, typer.Argument(help="A copy that `memoryd backup` has made.")],
    *,
    data_dir: DataDir = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make a data directory of a copy; the next start builds the indexes, and takes up what has changed since."""
    from memoryd.adapters.embedded.backup import restore as restore_copy  # noqa: PLC0415  (as above)
    from services.standalone.settings import load  # noqa: PLC0415

    place = load(config, data_dir=data_dir).data_dir
    copy = restore_copy(file, place)
    _tell({"data_dir": str(place), "created": _time(copy.created), "version": copy.version}, as_json)


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _tell(facts: dict[str, Any], as_json: bool) -> None:  # noqa: FBT001  (an option, as typer gives it)
    if as_json:
        print_json(facts)
    else:
        out.print(", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in facts.items()), markup=False)
