"""The application: all commands, and what an error becomes."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from memoryd.cli.backup import backup, restore
from memoryd.cli.doctor import doctor
from memoryd.cli.evaluate import evaluate
from memoryd.cli.generations import app as generations
from memoryd.cli.keys import app as keys
from memoryd.cli.local import index, serve
from memoryd.cli.model import app as models
from memoryd.cli.output import fail, out
from memoryd.cli.purge import purge
from memoryd.cli.query import get, search, status, sync
from memoryd.errors import MemorydError
from memoryd.logs import LogSettings, configure
from memoryd.process.variables import warn_of_mistyped

app = typer.Typer(
    name="memoryd",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong input or usage, 3 the server can't be reached, 4 not allowed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# They warn of their settings' variables, too, once they have read them.
_WITH_SETTINGS = {"serve", "index"}

for command in (serve, search, get, status, sync, index, doctor, purge, backup, restore):
    app.command()(command)
app.command(name="eval")(evaluate)
app.add_typer(models, name="model")
app.add_typer(keys, name="key")
app.add_typer(generations, name="generations")


def _show_version(wanted: bool) -> None:  # noqa: FBT001  (typer passes the option's value)
    if wanted:
        out.print(f"memoryd {version('memoryd')}")
        raise typer.Exit


@app.callback()
def _configure(
    context: typer.Context,
    *,
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """The memory backend that AI agents share: hybrid retrieval over their Markdown."""
    # `serve` configures its own; all other commands print results, and only what went wrong beside them.
    configure(LogSettings(level="warning"))
    if context.invoked_subcommand not in _WITH_SETTINGS:
        warn_of_mistyped()


def main() -> None:
    """Run the command line; an error of ours is one line and an exit code, never a traceback."""
    try:
        app()
    except MemorydError as error:
        sys.exit(fail(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
