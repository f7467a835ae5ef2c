import asyncio
import socket
import urllib.request

import pytest
from prometheus_client import Counter

from memoryd.errors import ConfigError
from memoryd.metrics import MetricsSettings, exposed

SCRAPES = Counter("memoryd_test_scrapes_total", "What this test counts.")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        return str(response.read().decode())


async def test_metrics_can_be_scraped_while_exposed() -> None:
    port = free_port()
    SCRAPES.inc()
    async with exposed(MetricsSettings(port=port)):
        assert "memoryd_test_scrapes_total 1.0" in await asyncio.to_thread(scrape, port)
    with pytest.raises(OSError, match="refused"):
        await asyncio.to_thread(scrape, port)


@pytest.mark.parametrize("port", [None, 0])
async def test_no_port_means_off(port: int | None) -> None:
    async with exposed(MetricsSettings(port=port)):
        pass


async def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConfigError, match=f"can't serve metrics on 127.0.0.1:{port}: Address already in use"):
            async with exposed(MetricsSettings(port=port)):
                pass
