import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from memoryd.cli.app import app
from memoryd.domain.files import FileKey, FileState
from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError
from tests.contract.nats_adapters import file_log, key_store
from tests.servers.nats import nats_prefix, nats_url


async def create(*options: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, ["key", "create", "--tenant", "acme", *options])


async def test_a_key_of_a_deployment_is_minted_where_nats_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_NATS_URL", nats_url())
    monkeypatch.setenv("MEMORYD_NAMESPACE", nats_prefix(tmp_path))
    result = await create("-w", "rod", "-w", "linwei")
    assert result.exit_code == 0, result.output
    keys = await key_store(tmp_path)
    principal = await keys.principal(result.stdout.strip())
    assert principal is not None
    assert (principal.tenant, principal.workspaces) == ("acme", frozenset({"rod", "linwei"}))
    await keys.close()


async def test_a_key_for_a_workspace_that_no_log_knows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORYD_NATS_URL", nats_url())
    monkeypatch.setenv("MEMORYD_NAMESPACE", nats_prefix(tmp_path))
    log = await file_log(tmp_path, 60.0)
    await log.put(FileState.deletion(FileKey(Scope("acme", "rod"), "a.md"), 0.0), expected=None, live=False)
    refused = await create("-w", "rdo")
    assert isinstance(refused.exception, InvalidInputError)
    assert "nothing is known of acme/rdo; there are: acme/rod." in str(refused.exception)
    assert [(await create(*options)).exit_code for options in (["-w", "rod"], ["-w", "rdo", "--new"])] == [0, 0]
    await log.close()
