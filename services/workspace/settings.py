"""Settings of the workspace service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.domain.names import Scope, is_name
from memoryd.folder.rules import FolderRules

LOCAL_TENANT = "local"
_RULES = FolderRules()


class WorkspaceSettings(BaseModel):
    """One folder to index: a table `[[workspaces]]` of a configuration file, or an object in MEMORYD_WORKSPACES."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path = Field(description="The folder of Markdown files.")
    name: str = Field(default="", description="The workspace's name; default: made from the folder's name.")
    tenant: str = Field(default=LOCAL_TENANT, description="The tenant that it belongs to.")

    @field_validator("path")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().resolve()

    @model_validator(mode="after")
    def _named(self) -> Self:
        for name in (self.tenant, self.name or self.default_name):
            if not is_name(name):
                raise ValueError(f"{name!r} is not a name: use 1 to 63 of a-z, 0-9 and -")
        return self

    @property
    def default_name(self) -> str:
        """Make a name from the folder's: lower case, everything else a hyphen."""
        return re.sub(r"[^a-z0-9]+", "-", self.path.name.lower()).strip("-")[:63] or "workspace"

    @property
    def scope(self) -> Scope:
        """The tenant and the workspace's name."""
        return Scope(self.tenant, self.name or self.default_name)


def _distinct(workspaces: tuple[WorkspaceSettings, ...]) -> tuple[WorkspaceSettings, ...]:
    scopes = [workspace.scope for workspace in workspaces]
    for scope in scopes:
        if scopes.count(scope) > 1:
            raise ValueError(f"two workspaces are called {scope}: give one of them another name")
    return workspaces


Workspaces = Annotated[tuple[WorkspaceSettings, ...], AfterValidator(_distinct)]


class WorkspaceServiceSettings(BaseSettings):
    """Each field is also an environment variable: MEMORYD_WORKSPACE_ and its name in upper case."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_WORKSPACE_", extra="ignore", frozen=True)

    max_file_bytes: int = Field(
        default=_RULES.max_bytes, ge=1, description="A larger file is set aside and shown in the status."
    )
    private: tuple[str, ...] = Field(
        default=_RULES.private, description="Globs of files that are withheld in chats that are not direct."
    )
    include: tuple[str, ...] = Field(default=_RULES.include, description="Globs of the Markdown files to index.")
    exclude: tuple[str, ...] = Field(default=_RULES.exclude, description="Globs of files to leave out.")
    debounce_ms: int = Field(
        default=300, ge=20, le=10_000, description="How long a folder must be quiet before its changes are taken."
    )
    max_debounce_ms: int = Field(
        default=1000, ge=20, le=60_000, description="Changes are taken after this time though more keep coming."
    )
    reconcile_seconds: float = Field(
        default=900.0, gt=0, description="Interval at which folders are compared with the file log in any case."
    )
    check_ms: int = Field(
        default=1000, ge=50, le=60_000, description="Interval at which it is checked that the folders are still there."
    )
    polling: bool = Field(
        default=False, description="Look through the folders again and again: for network file systems."
    )
    poll_ms: int = Field(default=2000, ge=50, description="Interval of polling, where it is on.")
    live_limit: int = Field(
        default=100, ge=0, description="More changes than this, at once or soon after each other, wait behind edits."
    )
    concurrency: int = Field(default=2, ge=1, le=64, description="Folders that are compared at the same time.")

    parallel_files: int = Field(
        default=8, ge=1, le=64, description="Files of one folder that are read and put at the same time."
    )

    @property
    def rules(self) -> FolderRules:
        """What of a folder is read."""
        return FolderRules(self.max_file_bytes, self.private, self.include, self.exclude)
