"""Where the other services are, and how they are called."""

from __future__ import annotations

import json
import re
from typing import Literal

from pydantic import Field, PositiveFloat, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.errors import ConfigError

Name = Literal["embedder", "next_embedder", "search", "indexer"]

_ADDRESS = re.compile(r"(?:dns:///)?(?:\[[0-9a-fA-F:.]+\]|[^\s:/,\[\]]+):[0-9]{1,5}|unix:\S+|ipv[46]:\S+")
_WHERE = "HOST:PORT (each address of the name is a replica: in Kubernetes a headless Service), or unix:PATH."


class ClientSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_CLIENT_ and its name in capitals. Times are in seconds."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_CLIENT_", frozen=True)

    embedder: str = Field(default="", description=f"The embedder: {_WHERE}")
    next_embedder: str = Field(
        default="",
        description="The embedder of the model that is to come, beside the one that still answers; empty: none. When "
        "searches use its index, name it in MEMORYD_CLIENT_EMBEDDER, and leave this out.",
    )
    search: str = Field(default="", description=f"The search service: {_WHERE}")
    indexer: str = Field(default="", description=f"The indexer: {_WHERE}")
    timeout: PositiveFloat = Field(default=5.0, description="Deadline of a call whose caller sets none.")
    load_timeout: PositiveFloat = Field(default=60.0, description="Deadline of fetching the model's tokenizer.")
    attempts: int = Field(
        default=4, ge=2, le=5, description="How often a call is sent, within its deadline, while replicas don't answer."
    )
    keepalive: float = Field(
        default=15.0, ge=10, description="A connection is probed this often; servers refuse more than six a minute."
    )
    keepalive_timeout: PositiveFloat = Field(default=5.0, description="A probe without answer for so long ends it.")

    @field_validator("embedder", "next_embedder", "search", "indexer")
    @classmethod
    def _well_formed(cls, address: str) -> str:
        if address and not _ADDRESS.fullmatch(address):
            raise ValueError(f"{address!r} is neither HOST:PORT, dns:///HOST:PORT nor unix:PATH")
        return address

    def address(self, name: Name) -> str:
        """Give a service's address. Raises ConfigError where it is not set."""
        address: str = getattr(self, name)
        if not address:
            raise ConfigError(f"where the {name} service is, is not known: set MEMORYD_CLIENT_{name.upper()}")
        return address

    @property
    def options(self) -> list[tuple[str, str | int]]:
        """The channel arguments of gRPC's core, see its grpc/impl/channel_arg_names.h."""
        return [
            ("grpc.service_config", json.dumps(self._service_config)),
            ("grpc.enable_http_proxy", 0),
            ("grpc.keepalive_time_ms", round(self.keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", round(self.keepalive_timeout * 1000)),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
            ("grpc.dns_min_time_between_resolutions_ms", 1000),  # a new replica is found soon after one is lost
            ("grpc.max_receive_message_length", 64 * 2**20),
            ("grpc.per_rpc_retry_buffer_size", 8 * 2**20),  # a larger request could not be sent again
        ]

    @property
    def _service_config(self) -> dict[str, object]:
        # All that is called here can be repeated. gRPC adds jitter of a fifth to the delays. The throttle: once many
        # calls have failed, each new one is sent once only, and fails at once, until calls succeed again.
        return {
            "loadBalancingConfig": [{"round_robin": {}}],
            # Each replica's health is watched: one that starts or drains gets no calls, though it answers.
            "healthCheckConfig": {"serviceName": ""},
            "methodConfig": [
                {
                    "name": [{}],
                    "retryPolicy": {
                        "maxAttempts": self.attempts,
                        "initialBackoff": "0.05s",
                        "maxBackoff": "0.5s",
                        "backoffMultiplier": 3,
                        # A server that is being stopped cancels what it no longer takes up.
                        "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
                    },
                }
            ],
            "retryThrottling": {"maxTokens": 100, "tokenRatio": 1},
        }
