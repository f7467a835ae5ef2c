"""How to reach NATS, and how it keeps what we put there."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.errors import ConfigError


class NatsSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_NATS_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_NATS_", frozen=True, hide_input_in_errors=True)

    url: str = Field(
        default="nats://127.0.0.1:4222",
        pattern=r"^(nats|tls)://[^\s,]+(,(nats|tls)://[^\s,]+)*$",
        description="nats://HOST:PORT or tls://HOST:PORT of each server, separated by commas; each may carry a user "
        "and password, or a token.",
    )
    credentials: Path | None = Field(default=None, description="A file with a user's JWT and key.")
    ca: Path | None = Field(
        default=None, description="PEM file of authorities to trust with tls://; default: the system's."
    )
    timeout: PositiveFloat = Field(default=5.0, description="Seconds that one request may take.")
    replicas: PositiveInt = Field(default=1, le=5, description="Servers that keep each new bucket.")

    @property
    def where(self) -> str:
        """The servers, without users and passwords."""
        return ", ".join(urlsplit(server).netloc.rpartition("@")[2] for server in self.url.split(","))

    async def connect(self, name: str) -> NatsConnection:
        """Connect under a name that the server's monitoring shows. Raises UnavailableError, ConfigError."""
        return await NatsConnection.open(
            self.url.split(","), name=name, timeout=self.timeout, credentials=self.credentials, tls=self._tls()
        )

    def _tls(self) -> ssl.SSLContext | None:
        if not self.url.startswith("tls:"):
            return None
        try:
            return ssl.create_default_context(cafile=self.ca)
        except OSError as error:
            raise ConfigError(f"{self.ca} can't be used: give certificates of authorities, PEM") from error
