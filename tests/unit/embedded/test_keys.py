from __future__ import annotations

from pathlib import Path

from memoryd.adapters.embedded.keys import SqliteKeyStore

MAIN = frozenset({"main"})


async def test_the_secret_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.db"
    keys = await SqliteKeyStore.open(path)
    key = await keys.create("acme", MAIN)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    await keys.close()
    prefix, key_id, secret = key.split("_", 2)
    assert prefix == "mk"
    assert len(secret) == 43  # 256 bits in base64
    assert key_id.encode() in stored
    assert secret.encode() not in stored
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_revoked_key_ends_at_once_whichever_process_revokes_it(tmp_path: Path) -> None:
    serving = await SqliteKeyStore.open(tmp_path / "keys.db")
    command = await SqliteKeyStore.open(tmp_path / "keys.db")
    first, second = await command.create("acme", MAIN), await command.create("acme", MAIN)
    listed = await command.list()
    principal = await serving.principal(first)
    assert principal is not None
    assert [item.key_id for item in listed] == [first.split("_")[1], second.split("_")[1]]
    assert await command.revoke(principal.key_id)
    assert not await command.revoke(principal.key_id)
    assert await serving.principal(first) is None
    assert await serving.principal(second) is not None
    await serving.close()
    await command.close()
