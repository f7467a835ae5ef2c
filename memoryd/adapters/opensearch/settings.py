"""How to reach OpenSearch, and how it keeps texts."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class OpenSearchSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_OPENSEARCH_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_OPENSEARCH_", frozen=True)

    url: str = Field(
        default="http://127.0.0.1:9200", pattern=r"^https?://[^\s/@]+/?$", description="http(s)://HOST:PORT"
    )
    username: str = Field(default="", description="The user's name, where OpenSearch asks for one.")
    password: SecretStr = Field(default=SecretStr(""), description="The user's password.")
    ca: Path | None = Field(default=None, description="Certificates to trust, PEM; default: the system's.")
    timeout: PositiveFloat = Field(default=10.0, description="Seconds that one request may take.")
    replicas: NonNegativeInt = Field(
        default=1, description="Copies of each index beside the first; fewer where the cluster has fewer machines."
    )
    index_per_tenant: bool = Field(
        default=True,
        description="An index for each tenant, so that no tenant's texts shift another's scores. Off: one index for "
        "all, for very many small tenants.",
    )
    refresh_milliseconds: PositiveInt = Field(
        default=100, description="How often writes become searchable; each write waits for that."
    )
