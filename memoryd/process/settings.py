"""The settings of a process: sections, read from the environment."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.errors import ConfigError, listed
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
        raise ConfigError(f"the environment can't be used: {wrong(error, kind)}") from error


def wrong(error: ValidationError, kind: type[BaseSettings], *, in_file: bool = False) -> str:
    """Name each setting that can't be used, by its variable or its place `in_file`, and say why, without its value."""
    # A section that nothing is given of is read from its variables alone, and fails alone, under its own name.
    section = _sections(kind).get(error.title, kind)
    of_variable = not in_file or section is not kind
    prefix = section.model_config.get("env_prefix", "") if of_variable else ""
    told = []
    for problem in error.errors():
        name = ("_" if of_variable else ".").join(map(str, problem["loc"]))
        told.append(f"{prefix}{name.upper() if of_variable else name or 'settings'}: {_reason(problem, section)}")
    return "; ".join(told)


def _reason(problem: ErrorDetails, kind: type[BaseModel]) -> str:
    if problem["type"] != "extra_forbidden":
        return problem["msg"]
    *place, name = problem["loc"]
    known = _within(kind, place).model_fields
    near = difflib.get_close_matches(str(name), known, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are: {listed(known)}"
    return f"there is no such setting; {meant}"


def _within(kind: type[BaseModel], place: Sequence[int | str]) -> type[BaseModel]:
    """Find the table at a place: numbers and names that are no fields are places in a list or a mapping of tables."""
    for name in place:
        field = kind.model_fields.get(str(name))
        if field is not None:
            kind = next(_models(field.annotation), kind)
    return kind


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


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


def _sections(kind: type[BaseSettings]) -> dict[str, type[BaseSettings]]:
    """The sections, by the names of their classes."""
    sections = [field.annotation for field in kind.model_fields.values()]
    return {
        section.__name__: section
        for section in sections
        if isinstance(section, type) and issubclass(section, BaseSettings)
    }
