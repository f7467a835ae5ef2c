"""Settings of the search service."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.domain.names import Scope
from memoryd.domain.queries import SearchQuery


class Ranking(BaseModel):
    """What a query that says nothing else gets in one workspace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mmr_lambda: float | None = Field(default=None, ge=0, le=1, description="See MemorySearchRequest. None: off.")
    decay_half_life_days: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="See MemorySearchRequest. None: off."
    )


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
    max_listed: int = Field(
        default=20_000,
        ge=0,
        description="Where few of a leg's candidates are visible, it is told which chunks are, if they are no more.",
    )
    max_depth: int = Field(
        default=3840, ge=100, description="Where they are more, how many candidates a leg is asked for at most."
    )
    embed_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of the call's time that embedding the query may take."
    )
    leg_share: float = Field(default=0.8, gt=0, le=1, description="Share of the time then left that a leg may take.")
    answer_cache_bytes: int = Field(
        default=32 << 20, ge=0, description="Memory for whole answers, about; 0: none are kept."
    )
    answer_cache_seconds: float = Field(
        default=300.0, gt=0, description="How long an answer is kept at most, while nothing of its workspace changes."
    )
    vector_cache_bytes: int = Field(
        default=32 << 20, ge=0, description="Memory for queries' embeddings, about; 0: none are kept."
    )
    chunk_cache_bytes: int = Field(
        default=64 << 20,
        ge=0,
        description="Memory for chunks that were found before, about; 0: none are kept. 64 MiB are 20,000 chunks.",
    )
    sketch_cache_bytes: int = Field(
        default=64 << 20,
        ge=0,
        description="Memory for token sketches of chunks, about; 0: none are kept. 64 MiB are 10,000 of them.",
    )
    chunk_cache_seconds: float = Field(
        default=3600.0, gt=0, description="How long a chunk, or its sketch, is kept at most."
    )
    rerank_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of the time then left that each way to rerank may take."
    )
    cross_encoder_seconds: float = Field(
        default=0.25,
        gt=0,
        description="Seconds that a cross-encoder gets where a query leaves reranking to us; with less it is left out.",
    )
    cross_encoder_depth: int = Field(default=20, ge=1, le=256, description="Candidates that a cross-encoder sees.")
    cross_encoder_tokens: int = Field(
        default=8192, ge=1, description="Tokens that it reads at most, about, queries included; then it sees fewer."
    )
    at_once: int = Field(
        default=8,
        ge=1,
        description="Searches that work at a time; others wait for them in turn, for half of their time at most.",
    )
    outline_share: float = Field(
        default=0.3, gt=0, le=1, description="Share of the call's time that reading the outlines may take."
    )
    breaker_failures: int = Field(
        default=5, ge=1, description="Failures in a row after which a dependency is left alone for a while."
    )
    breaker_pause: float = Field(default=1.0, gt=0, description="Seconds for which it is; then one call tries.")
    breaker_patience: float = Field(
        default=0.2,
        ge=0,
        description="Seconds that a dependency must have had for a missed deadline to count as its failure.",
    )
    workspaces: dict[str, Ranking] = Field(
        default_factory=dict,
        description="What queries get that say nothing else, by TENANT/WORKSPACE, as JSON: "
        '{"local/notes": {"decay_half_life_days": 30, "mmr_lambda": 0.7}}.',
    )

    def without_caches(self) -> SearchSettings:
        """Do all work of a query anew each time, as a measurement of it needs; chunks that are known stay known."""
        return self.model_copy(update={"answer_cache_bytes": 0, "vector_cache_bytes": 0})

    def applied(self, scope: Scope, query: SearchQuery) -> SearchQuery:
        """Fill in what a query leaves to its workspace; a half-life of 0 days and λ = 1 switch it off."""
        ranking = self.workspaces.get(str(scope), _OFF)
        half_life = ranking.decay_half_life_days if query.decay_half_life_days is None else query.decay_half_life_days
        balance = ranking.mmr_lambda if query.mmr_lambda is None else query.mmr_lambda
        return replace(query, decay_half_life_days=half_life or None, mmr_lambda=None if balance == 1.0 else balance)


_OFF = Ranking()
