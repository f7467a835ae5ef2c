"""The Prometheus endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import start_http_server
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from memoryd.errors import ConfigError


class MetricsSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_METRICS_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_METRICS_", frozen=True)

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int | None = Field(default=None, ge=0, le=65_535, description="Port; absent or 0: off.")


@asynccontextmanager
async def exposed(settings: MetricsSettings) -> AsyncIterator[None]:
    """Serve the process's metrics at /metrics from a thread of its own. Raises ConfigError where the port is taken."""
    if not settings.port:
        yield
        return
    try:
        server, thread = start_http_server(settings.port, settings.host)
    except OSError as error:
        raise ConfigError(
            f"can't serve metrics on {settings.host}:{settings.port}: {error.strerror}. "
            "Choose another port, or 0 for none.",
            reason="ADDRESS_UNUSABLE",
        ) from error
    try:
        yield
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        await asyncio.to_thread(thread.join)
