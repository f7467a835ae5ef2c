"""The settings of a process: sections, read from the environment."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.errors import ConfigError
from memoryd.logs import LogSettings
from memoryd.metrics import MetricsSettings
from memoryd.server.settings import ServerSettings

S = TypeVar("S", bound=BaseSettings)

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+(?=@)")


class ProcessSettings(BaseSettings):
    """What each process has. `namespace` is the environment variable MEMORYD_NAMESPACE; sections have prefixes."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_", frozen=True)

    namespace: str = Field(
        default="memoryd",
        pattern=r"^[a-z0-9][a-z0-9-]{0,62}$",
        description="What the names of buckets, collections and indexes begin with: the same in all processes of a "
        "deployment, another one in each deployment that uses the same servers.",
    )
    grpc: ServerSettings = Field(default_factory=ServerSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    metrics: MetricsSettings = Field(default_factory=MetricsSettings)


def read(kind: type[S]) -> S:
    """Read the settings. Raises ConfigError that names each variable that can't be used, but not its value."""
    try:
        return kind()
    except ValidationError as error:
        prefix = _prefixes(kind).get(error.title, "MEMORYD_")
        wrong = "; ".join(
            f"{prefix}{'_'.join(map(str, problem['loc'])).upper()}: {problem['msg']}" for problem in error.errors()
        )
        raise ConfigError(f"the environment can't be used: {wrong}") from error


def shown(settings: BaseSettings) -> dict[str, Any]:
    """Give the settings as they may be logged: secrets and the users in URLs are masked."""
    masked = _mask(settings.model_dump(mode="json"))
    assert isinstance(masked, dict)  # noqa: S101  (what a model is dumped to)
    return masked


def _mask(value: object) -> object:
    if isinstance(value, dict):
        return {name: _mask(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_mask(each) for each in value]
    return _CREDENTIALS.sub("***", value) if isinstance(value, str) else value


def _prefixes(kind: type[BaseSettings]) -> dict[str, str]:
    """The prefixes of the sections, by the names of their classes."""
    sections = [field.annotation for field in kind.model_fields.values()]
    return {
        section.__name__: section.model_config.get("env_prefix", "")
        for section in (kind, *sections)
        if isinstance(section, type) and issubclass(section, BaseSettings)
    }
