"""Settings of the indexer."""

from __future__ import annotations

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.domain.chunking import Limits


class IndexerSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_INDEXER_ and its name in capitals. Times are in seconds."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_INDEXER_")

    consumer: str = Field(default="indexer", description="Name of the durable consumer; replicas share it.")
    chunk_tokens: PositiveInt = Field(
        default=Limits().target_tokens, description="Length that the chunker aims at, in tokens."
    )
    lease: PositiveFloat = Field(default=60.0, description="Lease that the file log gives a delivery: its setting.")
    max_hold: PositiveFloat = Field(
        default=900.0, description="Longest that one delivery is held, however often its lease is extended."
    )
    fetch_timeout: PositiveFloat = Field(default=5.0, description="How long one fetch waits for a first file state.")
    embed_timeout: PositiveFloat = Field(default=20.0, description="Deadline of one call of the embedder.")
    store_timeout: PositiveFloat = Field(default=20.0, description="Deadline of one call of a store or the manifest.")
    group_seconds: PositiveFloat = Field(
        default=2.0,
        description="Time that a group may take to be embedded: what it is filled up to, and so how often an import "
        "commits.",
    )
    group_min_tokens: PositiveInt = Field(default=1024, description="Smallest bound of a group, in tokens.")
    group_max_tokens: PositiveInt = Field(default=32_768, description="Largest bound of a group, in tokens.")
    group_chunks: PositiveInt = Field(default=512, description="Most chunks of one group.")
    group_files: PositiveInt = Field(default=64, description="Most file states fetched for one group.")
    held_bytes: PositiveInt = Field(
        default=32 * 2**20,
        description="Text of unfinished files held at a time, of live edits and as much of others; one larger file is "
        "held alone.",
    )
    poison_after: PositiveInt = Field(
        default=3, description="Permanent failures after which a file's newest state is set aside."
    )
    retry_base: PositiveFloat = Field(default=0.5, description="First delay after a transient failure; it doubles.")
    retry_cap: PositiveFloat = Field(default=30.0, description="Longest delay after a transient failure.")
    grace: float = Field(default=60.0, ge=0, description="Time from first seen unlisted to collected.")
    sweep_interval: PositiveFloat = Field(
        default=900.0, description="Time between comparisons of everything, which find what is to be mended or swept."
    )
    repair: bool = Field(
        default=True, description="Compare and mend by itself. Off: only when an operator asks, by `memoryd doctor`."
    )
    glance_interval: PositiveFloat = Field(
        default=30.0, description="Time between looks whether a whole store, log or manifest is gone."
    )
    sync_timeout: PositiveFloat = Field(
        default=60.0, description="How long the owner of a folder is waited for where only it can tell what is gone."
    )


class GenerationSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_GENERATIONS_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_GENERATIONS_", frozen=True)

    share: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Share of the time that indexing a generation may take that does not answer.",
    )
    keep_days: float = Field(
        default=7.0,
        ge=0,
        description="Days after which a generation is dropped that neither answers nor is of the configured model; "
        "until then it is kept up to date, so that it can answer again. 0: never by itself.",
    )
    interval: PositiveFloat = Field(default=1.0, description="Seconds between two looks at the generations.")
    drop_grace: float = Field(
        default=10.0,
        ge=0,
        description="Seconds that the processes have to close a dropped generation before its parts are removed.",
    )
