"""Settings of a gRPC server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Self

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.server.tls import Identity

_MAX_PORT = 65_535


class ServerSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_GRPC_ and its name in capitals. Times are in seconds."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_GRPC_", frozen=True)

    address: str = Field(default="127.0.0.1:7420", description="HOST:PORT or unix:PATH; port 0 takes a free one.")
    drain: float = Field(default=10.0, ge=0, description="How long calls in flight may go on after SIGTERM.")
    default_timeout: PositiveFloat = Field(default=10.0, description="Deadline of a call whose client set none.")
    max_timeout: PositiveFloat = Field(default=120.0, description="Longest deadline, whatever the client set.")
    max_stream_timeout: PositiveFloat = Field(
        default=3600.0, description="Longest deadline of a call that sends a stream; its deadline where none is set."
    )
    max_calls: PositiveInt = Field(
        default=256, description="Calls in flight; more are answered RESOURCE_EXHAUSTED. Health checks don't count."
    )
    max_message_bytes: PositiveInt = Field(default=4 * 2**20, description="Largest request.")
    keepalive: PositiveFloat = Field(default=60.0, description="An idle connection is probed this often.")
    keepalive_timeout: PositiveFloat = Field(default=20.0, description="A probe without answer for so long ends it.")
    max_connection_age: PositiveFloat = Field(
        default=1800.0, description="Connections are renewed this often, so that new replicas get their share."
    )
    tls_cert: Path | None = Field(default=None, description="PEM file of the certificate to serve with, and its chain.")
    tls_key: Path | None = Field(default=None, description="PEM file of the certificate's private key.")
    tls_client_ca: Path | None = Field(
        default=None, description="PEM file of authorities: only clients that they certified get a connection."
    )

    @field_validator("address")
    @classmethod
    def _well_formed(cls, address: str) -> str:
        # gRPC takes a missing port for 443 and 99999 for 34463.
        port = re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})", address)
        if not re.fullmatch(r"unix:\S+", address) and (port is None or int(port[1]) > _MAX_PORT):
            message = f"{address!r} is neither HOST:PORT with a port of 0 to {_MAX_PORT} nor unix:PATH"
            raise ValueError(message)
        return address

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None) or (self.tls_client_ca and not self.tls_cert):
            raise ValueError("tls_cert and tls_key are set together, and tls_client_ca only with them")
        return self

    @property
    def identity(self) -> Identity | None:
        """What the server proves itself with; None where it does not use TLS."""
        return Identity(self.tls_cert, self.tls_key) if self.tls_cert and self.tls_key else None

    @property
    def options(self) -> list[tuple[str, int]]:
        """The channel arguments of gRPC's core, see its grpc/impl/channel_arg_names.h."""
        return [
            ("grpc.so_reuseport", 0),  # or a second server would take half of the first one's calls
            ("grpc.max_receive_message_length", self.max_message_bytes),
            ("grpc.keepalive_time_ms", round(self.keepalive * 1000)),
            ("grpc.keepalive_timeout_ms", round(self.keepalive_timeout * 1000)),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", 10_000),  # clients may probe six times a minute
            ("grpc.max_connection_age_ms", round(self.max_connection_age * 1000)),
            ("grpc.max_connection_age_grace_ms", round(max(self.max_timeout, self.max_stream_timeout) * 1000)),
        ]
