import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoryd.cli.app import app
from tests.contract.nats_adapters import key_store
from tests.servers.nats import nats_prefix, nats_url


async def test_a_key_of_a_deployment_is_minted_where_nats_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_NATS_URL", nats_url())
    monkeypatch.setenv("MEMORYD_NAMESPACE", nats_prefix(tmp_path))
    result = await asyncio.to_thread(
        CliRunner().invoke, app, ["key", "create", "--tenant", "acme", "-w", "rod", "-w", "linwei"]
    )
    assert result.exit_code == 0, result.output
    keys = await key_store(tmp_path)
    principal = await keys.principal(result.stdout.strip())
    assert principal is not None
    assert (principal.tenant, principal.workspaces) == ("acme", frozenset({"rod", "linwei"}))
    await keys.close()
