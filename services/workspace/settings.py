"""Settings of the workspace service."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.domain.names import Scope, is_name
from memoryd.domain.paths import SESSIONS
from memoryd.folder.rules import Extra, FolderRules

LOCAL_TENANT = "local"
_RULES = FolderRules()
Folder = Annotated[Path, AfterValidator(lambda path: path.expanduser().resolve())]
"""A folder: absolute, wherever the process changes to."""


class ExtraSettings(BaseModel):
    """A further folder of a workspace: a table `[[workspaces.extra]]`, or an object in its list `extra`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Folder = Field(description="The folder.")
    name: str = Field(
        default="", description="What the paths of its files begin with, to filter by; default: made from its name."
    )
    glob: str = Field(default="**/*.md", description="Which files of it are read, by their paths below it.")
    evergreen: bool = Field(
        default=True,
        description="Whether its files never decay; else they do, by front matter date or modification time.",
    )

    @model_validator(mode="after")
    def _named(self) -> Self:
        if not is_name(self.label) or self.label == SESSIONS:
            raise ValueError(f"{self.label!r} can't be a further folder's name: use 1 to 63 of a-z, 0-9 and -")
        return self

    @property
    def label(self) -> str:
        """The name, or one made from the folder's."""
        return self.name or name_of(self.path)

    @property
    def extra(self) -> Extra:
        """As the folder's reader takes it."""
        return Extra(self.label, self.path, self.glob, self.evergreen)


class WorkspaceSettings(BaseModel):
    """One folder to index: a table `[[workspaces]]` of a configuration file, or an object in MEMORYD_WORKSPACES."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Folder = Field(description="The folder of Markdown files.")
    name: str = Field(default="", description="The workspace's name; default: made from the folder's name.")
    tenant: str = Field(default=LOCAL_TENANT, description="The tenant that it belongs to.")
    sessions: bool | Folder = Field(
        default=False,
        description="Whether session transcripts are indexed, secrets redacted: true for its sessions/*.jsonl, or "
        "another folder of *.jsonl files.",
    )
    extra: tuple[ExtraSettings, ...] = Field(default=(), description="Further folders of Markdown.")

    @model_validator(mode="after")
    def _named(self) -> Self:
        for name in (self.tenant, self.name or self.default_name):
            if not is_name(name):
                raise ValueError(f"{name!r} is not a name: use 1 to 63 of a-z, 0-9 and -")
        labels = [each.label for each in self.extra]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two further folders are called {label}: give one of them another name")
        return self

    @property
    def default_name(self) -> str:
        """Make a name from the folder's."""
        return name_of(self.path)

    def rules(self, general: FolderRules) -> FolderRules:
        """What of this workspace is read, given the rules of all."""
        extras = tuple(each.extra for each in self.extra)
        if isinstance(self.sessions, Path):
            transcripts = Extra(SESSIONS, self.sessions, transcripts=True)
            return replace(general, extras=(*extras, transcripts))
        return replace(general, sessions=self.sessions, extras=extras)

    @property
    def scope(self) -> Scope:
        """The tenant and the workspace's name."""
        return Scope(self.tenant, self.name or self.default_name)


def name_of(folder: Path) -> str:
    """Make a name from a folder's: lower case, everything else a hyphen."""
    return re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:63] or "workspace"


def _distinct(workspaces: tuple[WorkspaceSettings, ...]) -> tuple[WorkspaceSettings, ...]:
    scopes = [workspace.scope for workspace in workspaces]
    for scope in scopes:
        if scopes.count(scope) > 1:
            raise ValueError(f"two workspaces are called {scope}: give one of them another name")
    return workspaces


Workspaces = Annotated[tuple[WorkspaceSettings, ...], AfterValidator(_distinct)]


class WorkspaceServiceSettings(BaseSettings):
    """Each field is also an environment variable: MEMORYD_WORKSPACE_ and its name in upper case."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_WORKSPACE_", frozen=True)

    max_file_bytes: int = Field(
        default=_RULES.max_bytes, ge=1, description="A larger file is set aside and shown in the status."
    )
    max_transcript_bytes: int = Field(
        default=_RULES.max_transcript_bytes,
        ge=1,
        description="A session transcript that is larger on disk is set aside.",
    )
    session_delta_bytes: int = Field(
        default=100_000, ge=0, description="A growing transcript is taken after so many bytes more, or by interval."
    )
    session_delta_messages: int = Field(default=50, ge=0, description="The same in messages.")
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
    coverage_seconds: float = Field(
        default=60.0, gt=0, description="Interval at which it is checked that the system watches every folder."
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
        return FolderRules(
            max_bytes=self.max_file_bytes,
            private=self.private,
            include=self.include,
            exclude=self.exclude,
            max_transcript_bytes=self.max_transcript_bytes,
        )
