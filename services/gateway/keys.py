"""API keys while their store does not answer: a key that it has confirmed a moment ago is taken for a while."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import Counter

from memoryd.breaker import Breaker
from memoryd.errors import UnavailableError
from memoryd.ports import KeyStore, Principal
from services.gateway.settings import GatewaySettings

_KEPT = 10_000
_FAILURES, _PAUSE = 3, 1.0
_NO_ANSWER = Principal("", "", frozenset())

REMEMBERED = Counter("memoryd_gateway_remembered_keys_total", "Calls let in by memory, since no key store answered.")


@dataclass(frozen=True, slots=True)
class _Confirmed:
    principal: Principal
    at: float


class RememberingKeys:
    """The port `KeyStore` in front of a store that can be out of reach.

    The store is asked for every call, and what it says counts: a revoked key ends at once. Only where it does not
    answer, a key that it confirmed less than `key_grace` seconds ago is still let in, so that searches go on while
    NATS is away. Keys are remembered by their hash.
    """

    def __init__(self, store: KeyStore, settings: GatewaySettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Remember nothing yet; `clock` gives seconds."""
        self._store, self._settings, self._clock = store, settings, clock
        self._breaker = Breaker("keys", _FAILURES, _PAUSE, clock)
        self._confirmed: OrderedDict[bytes, _Confirmed] = OrderedDict()

    async def principal(self, key: str) -> Principal | None:
        """Find who a key belongs to; None where it is not known."""
        name = hashlib.sha256(key.encode()).digest()
        known = self._confirmed.get(name)
        if known is None or self._clock() - known.at >= self._settings.key_grace:
            return self._learn(name, await self._store.principal(key))
        found = await self._ask(key)
        if found is _NO_ANSWER:
            REMEMBERED.inc()
            return known.principal
        return self._learn(name, found)

    async def create(self, tenant: str, workspaces: frozenset[str]) -> str:
        """Mint a key, random; it is returned once and never stored."""
        return await self._store.create(tenant, workspaces)

    async def revoke(self, key_id: str) -> bool:
        """End a key at once; whether there was one."""
        return await self._store.revoke(key_id)

    async def revoke_all(self, tenant: str) -> int:
        """End all keys of a tenant at once; how many there were."""
        return await self._store.revoke_all(tenant)

    async def _ask(self, key: str) -> Principal | None:
        """Ask the store, unless it has failed several times in a row; gives `_NO_ANSWER` where it does not answer."""
        try:
            self._breaker.enter()
        except UnavailableError:
            return _NO_ANSWER
        try:
            async with asyncio.timeout(self._settings.key_patience):
                found = await self._store.principal(key)
        except (UnavailableError, TimeoutError):
            self._breaker.failed()
            return _NO_ANSWER
        self._breaker.succeeded()
        return found

    def _learn(self, name: bytes, found: Principal | None) -> Principal | None:
        if found is None:
            self._confirmed.pop(name, None)
            return None
        self._confirmed[name] = _Confirmed(found, self._clock())
        self._confirmed.move_to_end(name)
        if len(self._confirmed) > _KEPT:
            self._confirmed.popitem(last=False)
        return found
