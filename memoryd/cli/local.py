"""Commands that own a data directory: serve, index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memoryd.cli.output import Json, err, out, print_json
from memoryd.cli.progress import bar

if TYPE_CHECKING:
    from services.standalone.settings import StandaloneSettings

DataDir = Annotated[Path | None, typer.Option(help="Where indexes and keys are kept; default: MEMORYD_DATA_DIR.")]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file; see the README.")]
Folders = Annotated[
    list[Path] | None, typer.Argument(help="Folders of Markdown, each a workspace.", show_default=False)
]
Sessions = Annotated[
    bool, typer.Option("--sessions", help="Index the transcripts in sessions/*.jsonl, too; secrets are redacted.")
]
Extra = Annotated[
    list[str] | None, typer.Option(help="NAME=FOLDER: a further folder of Markdown; repeat it for several.")
]


def serve(
    folders: Folders = None,
    *,
    sessions: Sessions = False,
    extra: Extra = None,
    address: Annotated[str | None, typer.Option(help="HOST:PORT to listen on; default 127.0.0.1:7420.")] = None,
    data_dir: DataDir = None,
    config: Config = None,
) -> None:
    """Index folders, watch them and serve memory_search and memory_get, until SIGTERM or Ctrl-C."""
    from memoryd.process.loop import run_loop  # noqa: PLC0415  (only these commands need it and the services)
    from services.standalone.serve import serve as run  # noqa: PLC0415  (as above)

    run_loop(run(_settings(_workspaces(folders, extra, sessions=sessions), data_dir, config, address), err))


def index(
    folders: Folders = None,
    *,
    sessions: Sessions = False,
    extra: Extra = None,
    data_dir: DataDir = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Index folders once, with a progress bar, and exit: 1 where a file had to be set aside."""
    from memoryd.process.loop import run_loop  # noqa: PLC0415  (as above)
    from services.standalone.index import index_once  # noqa: PLC0415  (as above)

    settings = _settings(_workspaces(folders, extra, sessions=sessions), data_dir, config)
    with bar(err) as report:
        statuses = run_loop(index_once(settings, report))
    aside = [(status, file) for status in statuses for file in status.quarantined]
    if as_json:
        print_json(
            [
                {
                    "workspace": status.scope.workspace,
                    "files": status.files,
                    "chunks": status.chunks,
                    "pending": status.pending,
                    "quarantined": [{"path": file.path, "reason": file.problem.reason} for file in status.quarantined],
                    "warnings": [{"path": file.path, "warning": file.warning} for file in status.warnings],
                }
                for status in statuses
            ]
        )
    else:
        for status in statuses:
            out.print(f"{status.scope.workspace}: {status.files} files, {status.chunks} chunks")
        for status, file in aside:
            line = f"set aside: {status.scope.workspace}/{file.path}: {file.problem.reason}: {file.problem.detail}"
            err.print(line, style="yellow", markup=False)
        for status in statuses:
            for warned in status.warnings:
                line = f"warning: {status.scope.workspace}/{warned.path}: {warned.warning}"
                err.print(line, style="yellow", markup=False)
    raise typer.Exit(1 if aside else 0)


def _workspaces(
    folders: list[Path] | None, extra: list[str] | None, *, sessions: bool
) -> list[dict[str, object]] | None:
    """Give the settings of the workspaces that the command line names; None where it leaves them to the file."""
    if not folders:
        if extra or sessions:
            raise typer.BadParameter("--sessions and --extra belong to a folder that is named beside them")
        return None
    if extra and len(folders) > 1:
        raise typer.BadParameter("--extra belongs to one folder: name several in a configuration file")
    further = []
    for each in extra or ():
        name, equals, path = each.partition("=")
        if not (name and equals and path):
            raise typer.BadParameter(f"{each!r} is not NAME=FOLDER")
        further.append({"name": name, "path": path})
    return [{"path": folder, "sessions": sessions, "extra": further} for folder in folders]


def _settings(
    workspaces: list[dict[str, object]] | None, data_dir: Path | None, config: Path | None, address: str | None = None
) -> StandaloneSettings:
    from memoryd.errors import ConfigError  # noqa: PLC0415
    from services.standalone.settings import load  # noqa: PLC0415

    settings = load(
        config,
        data_dir=data_dir,
        workspaces=workspaces,
        grpc={"address": address} if address else None,
    )
    if not settings.workspaces:
        raise ConfigError("no workspace to index: name a folder, or a configuration file with [[workspaces]]")
    return settings
