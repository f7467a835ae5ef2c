"""The service credential: how the deployment's own processes know each other.

A shared token, or mutual TLS, or both. It is trusted with every tenant, so it never leaves the deployment.
"""

from __future__ import annotations

import hmac
import re
from pathlib import Path
from typing import Annotated, Self

import grpc
import structlog
from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from memoryd.auth import bearer
from memoryd.endpoint import is_loopback
from memoryd.errors import ConfigError, UnauthenticatedError
from memoryd.ports import Principal
from memoryd.server.interceptor import Authenticate
from memoryd.server.settings import ServerSettings
from memoryd.server.tls import Identity, channel_credentials

# Covers no tenant and no workspace: what is a credential inside opens nothing outside.
SERVICE = Principal("service", "", frozenset())
_TOKEN = re.compile(r"[!-+\--~]{16,}")  # printable ASCII but the comma

_log = structlog.get_logger(__name__)


class ServiceCredentialSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_SERVICE_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_SERVICE_", frozen=True, hide_input_in_errors=True)

    tokens: Annotated[tuple[SecretStr, ...], NoDecode] = Field(
        default=(),
        description="Shared tokens, separated by commas: a call carries the first, a server takes any of them. To "
        "replace one, give every process the new one as second, then as first, then alone.",
    )
    ca: Path | None = Field(
        default=None,
        description="PEM file of authorities of the inner servers' certificates; absent: calls use no TLS.",
    )
    cert: Path | None = Field(default=None, description="PEM file of the certificate to call with (mutual TLS).")
    key: Path | None = Field(default=None, description="PEM file of the certificate's private key.")
    insecure: bool = Field(
        default=False, description="Serve without token and mutual TLS, on loopback alone: for trying things out."
    )

    @field_validator("tokens", mode="before")
    @classmethod
    def _split(cls, tokens: object) -> object:
        if isinstance(tokens, str):
            return tuple(token.strip() for token in tokens.split(",") if token.strip())
        return tokens

    @field_validator("tokens")
    @classmethod
    def _strong(cls, tokens: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if not all(_TOKEN.fullmatch(token.get_secret_value()) for token in tokens):
            raise ValueError("a token has at least 16 characters, printable ASCII without blanks and commas")
        return tokens

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.cert is None) != (self.key is None) or (self.cert and not self.ca):
            raise ValueError("cert and key are set together, and with ca")
        return self

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What a call carries."""
        return tuple(("authorization", f"Bearer {token.get_secret_value()}") for token in self.tokens[:1])

    def channel(self) -> grpc.ChannelCredentials | None:
        """Read what a connection needs; None where it uses no TLS. Raises ConfigError."""
        if self.ca is None:
            return None
        return channel_credentials(self.ca, Identity(self.cert, self.key) if self.cert and self.key else None)


def service_authenticator(server: ServerSettings, credentials: ServiceCredentialSettings) -> Authenticate:
    """Decide how an inner service knows its callers.

    Raises ConfigError where nothing would keep others out.
    """
    if credentials.tokens:
        if not server.identity and not is_loopback(server.address):
            _log.warning("service tokens arrive unencrypted: use TLS where others share the network")
        return _Tokens(credentials.tokens)
    if server.tls_client_ca:
        return _anybody  # the handshake has shown a certificate already
    if not credentials.insecure:
        raise ConfigError(
            "an inner service needs a credential: set MEMORYD_SERVICE_TOKENS, or mutual TLS with "
            "MEMORYD_GRPC_TLS_CERT, _KEY and _CLIENT_CA (to try things out on one machine: MEMORYD_SERVICE_INSECURE=1)"
        )
    if not is_loopback(server.address):
        raise ConfigError(
            f"{server.address} can be reached by others: MEMORYD_SERVICE_INSECURE=1 is for loopback alone"
        )
    _log.warning("any process of this machine may call this service", address=server.address)
    return _anybody


class _Tokens:
    """Knows the holders of a token."""

    def __init__(self, tokens: tuple[SecretStr, ...]) -> None:
        self._tokens = [token.get_secret_value().encode() for token in tokens]

    async def __call__(self, authorization: str) -> Principal:
        given = bearer(authorization).encode()
        # Each is compared, in a time that does not tell how much of it was right.
        if not any([hmac.compare_digest(given, token) for token in self._tokens]):  # noqa: C419  (see above)
            raise UnauthenticatedError("the call does not carry this deployment's service credential")
        return SERVICE


async def _anybody(_authorization: str) -> Principal:
    return SERVICE
