"""How to reach Qdrant, and how it keeps vectors."""

from __future__ import annotations

from pydantic import Field, PositiveInt, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class QdrantSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_QDRANT_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_QDRANT_", frozen=True)

    url: str = Field(
        default="http://127.0.0.1:6334",
        pattern=r"^https?://(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):[0-9]{1,5}$",
        description="Qdrant's gRPC endpoint: http://HOST:PORT, or https:// for TLS (the roots that gRPC trusts are set "
        "by GRPC_DEFAULT_SSL_ROOTS_FILE_PATH).",
    )
    api_key: SecretStr | None = Field(default=None, description="Qdrant's API key.")
    timeout: PositiveInt = Field(default=10, description="Seconds that one request may take.")
    replication: PositiveInt = Field(
        default=1, description="Copies of each vector in a cluster; writes and reads then need a majority of them."
    )
    quantize: bool = Field(
        default=False,
        description="Keep vectors of one byte a dimension in memory and the full ones on the disk, for rescoring.",
    )

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.url.startswith("https:")

    @property
    def host(self) -> str:
        """The host of `url`."""
        return self.url.partition("://")[2].rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port of `url`."""
        return int(self.url.rpartition(":")[2])
