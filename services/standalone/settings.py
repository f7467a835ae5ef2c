"""Settings of standalone: arguments, then environment variables, then a TOML file, then defaults."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.endpoint import local_data_dir
from memoryd.errors import ConfigError
from memoryd.logs import LogSettings
from memoryd.metrics import MetricsSettings
from memoryd.process.settings import wrong
from memoryd.server.settings import ServerSettings
from services.embedder.settings import EmbedderSettings
from services.gateway.settings import GatewaySettings
from services.indexer.settings import GenerationSettings, IndexerSettings
from services.search.settings import SearchSettings
from services.workspace.settings import Workspaces, WorkspaceServiceSettings


class StandaloneSettings(BaseSettings):
    """`data_dir` is also the environment variable MEMORYD_DATA_DIR; each section has its own prefix, see there.

    In the TOML file a section is a table: `[grpc]`, `[embedder]`, `[search]`, …
    """

    model_config = SettingsConfigDict(env_prefix="MEMORYD_", frozen=True)

    data_dir: Path = Field(default_factory=local_data_dir, description="Where indexes, file log and keys are kept.")
    workspaces: Workspaces = Field(default=(), description="The folders to index.")
    grpc: ServerSettings = Field(default_factory=ServerSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)
    gateway: GatewaySettings = Field(default_factory=GatewaySettings)
    search: SearchSettings = Field(default_factory=SearchSettings)
    indexer: IndexerSettings = Field(default_factory=IndexerSettings)
    generations: GenerationSettings = Field(default_factory=GenerationSettings)
    workspace: WorkspaceServiceSettings = Field(default_factory=WorkspaceServiceSettings)
    embedder: EmbedderSettings = Field(default_factory=EmbedderSettings)


def load(config: Path | None = None, **arguments: Any) -> StandaloneSettings:  # noqa: ANN401  (pydantic validates them)
    """Read the settings. Raises ConfigError that names the file or variable, and what is wrong with it."""
    values = _below_environment(StandaloneSettings, _read(config) if config else {})
    for name, value in arguments.items():
        section = values.get(name)
        if isinstance(value, dict) and isinstance(section, dict):
            values[name] = section | value  # an argument replaces one key of a section, the others stay
        elif value is not None:
            values[name] = value
    try:
        return StandaloneSettings(**values)
    except ValidationError as error:
        where = config or "arguments and MEMORYD_ variables"
        what = wrong(error, StandaloneSettings, in_file=True)
        raise ConfigError(f"the settings can't be used ({where}): {what}") from error


def _read(config: Path) -> dict[str, Any]:
    try:
        with config.open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"the configuration file {config} can't be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config} is not valid TOML: {error}") from error


def _below_environment(settings: type[BaseSettings], values: Mapping[str, Any]) -> dict[str, Any]:
    """Drop what the environment sets too: pydantic lets arguments win, and the file's values are passed as such."""
    kept = {}
    for name, value in values.items():
        field = settings.model_fields.get(name)
        section = field.annotation if field else None
        if isinstance(value, dict) and isinstance(section, type) and issubclass(section, BaseSettings):
            kept[name] = _below_environment(section, value)
        elif f"{settings.model_config['env_prefix']}{name}".upper() not in os.environ:
            kept[name] = value
    return kept
