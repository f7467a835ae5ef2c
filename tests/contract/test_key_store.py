"""What every key store does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memoryd.errors import InvalidInputError
from memoryd.ports import KeyStore
from tests.contract.registry import KEY_STORES, Opened, opened


@pytest.fixture(params=sorted(KEY_STORES))
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened[KeyStore]]:
    async with opened(KEY_STORES[request.param], tmp_path) as adapter:
        yield adapter


@pytest.fixture
def keys(held: Opened[KeyStore]) -> KeyStore:
    return held.now


async def test_a_key_names_its_tenant_and_workspaces(keys: KeyStore) -> None:
    key = await keys.create("acme", frozenset({"main", "other"}))
    principal = await keys.principal(key)
    assert principal is not None
    assert (principal.tenant, principal.workspaces) == ("acme", frozenset({"main", "other"}))
    assert principal.key_id
    assert principal.key_id in key
    assert key not in repr(principal)


async def test_keys_are_random_and_a_tenant_may_have_several(keys: KeyStore) -> None:
    made = await asyncio.gather(*(keys.create("acme", frozenset({"main"})) for _ in range(20)))
    principals = [await keys.principal(key) for key in made]
    assert len(set(made)) == 20
    assert len({principal.key_id for principal in principals if principal}) == 20


async def test_each_key_covers_its_own(keys: KeyStore) -> None:
    made = {scope: await keys.create(scope[0], frozenset({scope[1]})) for scope in [("a", "x"), ("a", "y"), ("b", "x")]}
    for (tenant, workspace), key in made.items():
        principal = await keys.principal(key)
        assert principal is not None
        assert (principal.tenant, principal.workspaces) == (tenant, frozenset({workspace}))


async def test_anything_else_is_not_known(keys: KeyStore) -> None:
    key = await keys.create("acme", frozenset({"main"}))
    other = await keys.create("acme", frozenset({"main"}))
    swapped = "_".join([*key.split("_")[:2], other.split("_", 2)[2]])
    changed = key[:-1] + ("A" if key[-1] != "A" else "B")
    wrong = ["", "mk", "mk_", "mk__", "mk_a_b", key[:-1], key + "A", changed, swapped, key.upper(), f" {key}", "é" * 50]
    assert [candidate for candidate in wrong if await keys.principal(candidate)] == []


@pytest.mark.parametrize(
    ("tenant", "workspaces"),
    [("Acme", {"main"}), ("", {"main"}), ("acme", {"a/b"}), ("acme", {"main", ""}), ("acme", set()), ("a" * 64, {"m"})],
)
async def test_a_name_outside_the_grammar_gets_no_key(keys: KeyStore, tenant: str, workspaces: set[str]) -> None:
    with pytest.raises(InvalidInputError):
        await keys.create(tenant, frozenset(workspaces))


async def test_keys_outlive_a_restart(held: Opened[KeyStore]) -> None:
    key = await held.now.create("acme", frozenset({"main"}))
    before = await held.now.principal(key)
    keys = await held.again()
    assert await keys.principal(key) == before


async def test_a_revoked_key_ends_at_once_and_no_other(keys: KeyStore) -> None:
    first, second = [await keys.create("acme", frozenset({"main"})) for _ in range(2)]
    principal = await keys.principal(first)
    assert principal is not None
    assert await keys.revoke(principal.key_id)
    assert await keys.principal(first) is None
    assert await keys.principal(second) is not None
    assert [await keys.revoke(key_id) for key_id in (principal.key_id, "never", "", "a.b", "*")] == [False] * 5


async def test_all_keys_of_a_tenant_end_at_once_and_no_other(keys: KeyStore) -> None:
    mine = [await keys.create("acme", frozenset({name})) for name in ("main", "other", "third")]
    theirs = await keys.create("acme-2", frozenset({"main"}))
    revoked = await keys.principal(mine[0])
    assert revoked is not None
    assert await keys.revoke(revoked.key_id)
    assert [await keys.revoke_all(tenant) for tenant in ("acme", "acme", "nobody")] == [2, 0, 0]
    assert [await keys.principal(key) for key in mine] == [None] * 3
    assert await keys.principal(theirs) is not None
    assert await keys.principal(await keys.create("acme", frozenset({"main"}))) is not None
