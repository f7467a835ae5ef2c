"""The epoch of the file log: with the stream's sequences it makes revisions that are never given twice."""

from __future__ import annotations

import asyncio
import time

import structlog

from memoryd.adapters.nats.bucket import Bucket
from memoryd.adapters.nats.names import EPOCH, epoch_subject
from memoryd.domain.files import Revision
from memoryd.errors import ConflictError

# A leader that was just elected may not know its stream's end yet: what looks lost is looked at again.
_LOOKS, _BETWEEN = 3, 0.5

_log = structlog.get_logger(__name__)


async def resume(bucket: Bucket, known: Revision | None) -> int:
    """Take over the log as it is now, or begin one; returns its epoch.

    An epoch is the time at which it began, in Unix seconds, so a log that was recreated by somebody who knows nothing
    of the old one still begins a later one. A log that has not given the revision `known` was recreated, restored or
    lost its tail: then the next epoch begins.
    """
    looks = 0
    while True:
        extent = await bucket.ensure()
        entry = await bucket.last(EPOCH)
        epoch = int(entry.data) if entry else 0
        if epoch and (known is None or known <= Revision(epoch, extent.last)):
            return epoch
        looks += 1
        if epoch and looks < _LOOKS:
            await asyncio.sleep(_BETWEEN)
            continue
        later = max(int(time.time()), epoch + 1, known.epoch + 1 if known else 0)
        if epoch:
            _log.warning("the file log lost states that were indexed: all files are indexed anew", epoch=later)
        try:
            await bucket.put(EPOCH, str(later).encode(), last=entry.sequence if entry else 0)
        except ConflictError:
            continue  # another process was first: read what it put
        async with bucket.connection.answering():
            await bucket.connection.client.publish(epoch_subject(bucket.stream))
        return later
