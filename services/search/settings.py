"""Settings of the search service."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class SearchSettings(BaseSettings):
    """Each field is also an environment variable: MEMORYD_SEARCH_ and its name in upper case."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_SEARCH_", frozen=True)

    # nDCG@10 at 60 and at 100 candidates: .831/.830 on documentation, .622/.620 on an agent's workspace, .539/.540 on
    # conversations, equal on notes; a search takes 2.7 ms less.
    depth: int = Field(
        default=60,
        ge=50,
        le=1000,
        description="Candidates asked of each leg. The same for every call, so that a shorter answer is a prefix of a "
        "longer one.",
    )
    max_depth: int = Field(
        default=3840, ge=100, description="How far a leg is asked for more where candidates were not visible."
    )
    embed_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of the call's time that embedding the query may take."
    )
    leg_share: float = Field(default=0.8, gt=0, le=1, description="Share of the time then left that a leg may take.")
