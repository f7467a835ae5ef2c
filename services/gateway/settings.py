"""Settings of the gateway."""

from __future__ import annotations

from pydantic import Field, PositiveFloat
from pydantic_settings import BaseSettings, SettingsConfigDict


class GatewaySettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_GATEWAY_ and its name in capitals. Times are in seconds."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_GATEWAY_", frozen=True)

    margin: float = Field(
        default=0.05, ge=0, description="Kept back from a search's deadline, so that a degraded answer still arrives."
    )
    info_timeout: PositiveFloat = Field(default=2.0, description="How long a status waits for the embedder.")
    key_grace: float = Field(
        default=300.0,
        ge=0,
        description="How long a key is let in that was confirmed before its store stopped answering. While the store "
        "answers, a revoked key ends at once; where it can't be reached, after this time. 0: at once.",
    )
    key_patience: PositiveFloat = Field(
        default=0.5, description="How long the key store has to answer for a key that was confirmed a moment ago."
    )
