"""The repair job: compares everything at the start and by interval, and at once where a part seems to be gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog

from memoryd.domain.names import Scope
from memoryd.domain.repairs import Checkup, Treatment
from memoryd.ports import ChunkStore
from services.indexer.failures import backoff
from services.indexer.metrics import IndexerMetrics
from services.indexer.repair.inspect import Inspector
from services.indexer.repair.mend import Mender
from services.indexer.settings import IndexerSettings
from services.indexer.settle import Settler

_log = structlog.get_logger(__name__)


class Repairer:
    """One replica's repair. Several may find the same: a compare-and-set lets one of them mend it.

    Attributes:
        checked: when each workspace was last compared, Unix seconds.
    """

    def __init__(
        self,
        inspector: Inspector,
        mender: Mender,
        stores: Sequence[ChunkStore],
        *,
        settings: IndexerSettings,
        metrics: IndexerMetrics,
        settler: Settler,
    ) -> None:
        self._inspector, self._mender, self._stores = inspector, mender, stores
        self._settings, self._metrics, self._settler = settings, metrics, settler
        self._one_at_a_time = asyncio.Lock()
        self._unjudged: set[Scope] = set()
        self.checked: dict[Scope, float] = {}

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that anything is known of."""
        return await self._inspector.scopes()

    async def check(self, scope: Scope, *, mend: bool = True) -> Checkup:
        """Compare a workspace, and mend what does not fit."""
        async with self._one_at_a_time:
            checkup = await self._inspector.inspect(scope)
            if mend:
                checkup = await self._mender.mend(checkup)
        self.checked[scope] = time.time()
        if checkup.judged:
            self._unjudged.discard(scope)
        else:
            self._unjudged.add(scope)
        if mend and checkup.findings:
            self._report(checkup)
        return checkup

    async def run(self) -> None:
        """Repair until cancelled."""
        failures = 0
        whole = 0.0
        while True:
            if self._settler.store_lost.is_set():  # as a write, a search for vectors or a look here has found
                self._settler.store_lost.clear()
                whole = 0.0
            try:
                if time.monotonic() >= whole:
                    await self._everything()
                    whole = time.monotonic() + self._settings.sweep_interval
                else:
                    await self._glance()
            except Exception as error:  # noqa: BLE001  (whatever does not answer, repair goes on)
                failures += 1
                self._settler.failed("repair", error)
                await asyncio.sleep(backoff(failures, self._settings.retry_base, self._settings.retry_cap))
                continue
            failures = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.glance_interval):
                    await self._settler.store_lost.wait()

    async def _everything(self) -> None:
        for store in self._stores:
            async with asyncio.timeout(self._settings.store_timeout):
                await store.ensure()
        for scope in await self._inspector.scopes():
            await self.check(scope)

    async def _glance(self) -> None:
        logged = await self._inspector.logged()
        for scope in await self._inspector.scopes(logged):
            new = scope not in self.checked  # it had no file when everything was compared
            if new or scope in self._unjudged or await self._inspector.is_suspicious(scope, logged):
                await self.check(scope)

    def _report(self, checkup: Checkup) -> None:
        counts: dict[str, int] = {}
        for finding in checkup.findings:
            self._metrics.repairs.labels(finding.defect.value, finding.treatment.value).inc()
            name = f"{finding.defect.value}_{finding.treatment.value}"
            counts[name] = counts.get(name, 0) + 1
        left = next((each.detail for each in checkup.findings if each.treatment is Treatment.LEFT), "")
        _log.warning("repaired", scope=str(checkup.scope), **counts, **({"left": left} if left else {}))
