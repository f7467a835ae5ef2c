"""Settings of the workspace service."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.folder.rules import FolderRules

_RULES = FolderRules()


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
        default=100, ge=0, description="More changes at once are no edits but an import, and wait behind edits."
    )
    concurrency: int = Field(default=2, ge=1, le=64, description="Folders that are compared at the same time.")

    parallel_files: int = Field(
        default=8, ge=1, le=64, description="Files of one folder that are read and put at the same time."
    )

    @property
    def rules(self) -> FolderRules:
        """What of a folder is read."""
        return FolderRules(self.max_file_bytes, self.private, self.include, self.exclude)
