"""Probing: each part is asked something small, as an indexing or a search would ask it, and timed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from memoryd.domain.files import FileKey
from memoryd.domain.names import Scope
from memoryd.errors import MemorydError
from memoryd.ports import (
    Embedder,
    FileLog,
    Filter,
    Lane,
    Manifest,
    PartProbe,
    QueryTerm,
    TextKind,
    TextStore,
    VectorStore,
)

_TEXT = "is anybody there"
# Neither need exist: what is asked for must be looked for, not found.
_HASH, _PATH = "0" * 64, "probe.md"

_log = structlog.get_logger(__name__)


class Prober:
    """Asks the parts of one generation."""

    def __init__(
        self,
        *,
        log: FileLog,
        manifest: Manifest,
        vectors: VectorStore,
        texts: TextStore,
        embedder: Embedder,
        consumer: str,
        clock: Callable[[], float],
    ) -> None:
        """Take the ports. `clock`: monotonic seconds."""
        self._log, self._manifest, self._vectors, self._texts = log, manifest, vectors, texts
        self._embedder, self._consumer, self._clock = embedder, consumer, clock

    async def probe(self, scope: Scope, timeout: float) -> Sequence[PartProbe]:
        """Ask all parts at once, with data of `scope`; one that takes `timeout` seconds has failed."""
        key = FileKey(scope, _PATH)
        questions: dict[str, Callable[[], Awaitable[object]]] = {
            "embedder": lambda: self._embedder.embed(
                [_TEXT], kind=TextKind.QUERY, lane=Lane.QUERY, timeout=timeout, tenant=scope.tenant
            ),
            "vector store": lambda: self._vectors.embeddings(scope.tenant, [_HASH]),
            "text store": lambda: self._texts.search([QueryTerm(_TEXT)], Filter(scope), 1),
            "file log": lambda: self._log.pending(self._consumer, scope),
            "manifest": lambda: self._manifest.outline(key),
        }
        return await asyncio.gather(*(self._ask(part, question, timeout) for part, question in questions.items()))

    async def _ask(self, part: str, question: Callable[[], Awaitable[object]], timeout: float) -> PartProbe:
        began, reason, detail = self._clock(), "", ""
        try:
            async with asyncio.timeout(timeout):
                await question()
        except TimeoutError:
            reason, detail = "DEADLINE_EXCEEDED", f"it did not answer within {timeout:.1f} s"
        except MemorydError as error:
            reason, detail = error.reason, str(error)
        except Exception as error:  # noqa: BLE001  (whatever it is, the part has failed)
            _log.exception("a probe has failed in a way that nobody foresaw", part=part)
            reason, detail = "INTERNAL", type(error).__name__
        return PartProbe(part, (self._clock() - began) * 1000, reason, detail)
