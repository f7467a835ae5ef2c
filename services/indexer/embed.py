"""The embedding stage: one call a group; where it fails because of a file, the others go on."""

from __future__ import annotations

from collections.abc import Sequence

from services.indexer.failures import is_transient
from services.indexer.jobs import Group, Job, vector_key
from services.indexer.settings import IndexerSettings
from services.indexer.settle import Settler
from services.indexer.vectors import Vectorizer


class EmbedStage:
    """Completes the vectors of groups; `live`: of live states."""

    def __init__(self, vectors: Vectorizer, settler: Settler, settings: IndexerSettings, *, live: bool) -> None:
        self._live = live
        self._vectors, self._settler, self._settings = vectors, settler, settings

    async def run(self, group: Group) -> None:
        """Embed what is missing; on return every chunk of an unsettled job has its vector."""
        jobs = _lacking(group)
        for job in jobs:
            await self._settler.extend(job)
        jobs = [job for job in jobs if not job.settled]
        try:
            await self._embed(group, jobs)
        except Exception as error:  # noqa: BLE001  (whatever the embedder does, the jobs must end)
            await self._failed(group, jobs, error)

    async def _failed(self, group: Group, jobs: Sequence[Job], error: Exception) -> None:
        if is_transient(error):
            await self._settler.retry(jobs, error, "embed")
        elif len(jobs) == 1:
            await self._settler.blame(jobs[0], error, "embedding")
        else:  # one of them is to blame: each alone
            for job in jobs:
                try:
                    await self._embed(group, [job])
                except Exception as own:  # noqa: BLE001  (as in run)
                    await self._failed(group, [job], own)

    async def _embed(self, group: Group, jobs: Sequence[Job]) -> None:
        missing = group.of(jobs).missing()
        if missing:
            patience = min(self._settings.embed_timeout, *(job.lease.remaining for job in jobs))
            group.vectors |= await self._vectors.embed(missing, max(patience, 0.0), live=self._live)


def _lacking(group: Group) -> list[Job]:
    """List the jobs that need the embedder; the others need not share its failures."""
    return list(
        dict.fromkeys(
            piece.job for piece in group.live if any(vector_key(chunk) not in group.vectors for chunk in piece.chunks)
        )
    )
