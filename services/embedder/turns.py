"""Whose turn it is: tenants share a lane by tokens, whatever each has queued."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from services.embedder.requests import Request, Text


class Turns:
    """Start-time fair queueing (Goyal, Vin and Cheng 1996), with a batch as the unit that is served.

    The tenant that has had the fewest tokens comes first, with its oldest text. One that comes back after a pause
    begins where the others are: what it left unused it can't claim later.
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[Text]] = {}
        self._served: dict[str, float] = {}  # tokens, of tenants that have texts here
        self._now = 0.0

    def add(self, request: Request) -> None:
        """Queue a request's texts behind those of its tenant."""
        if request.tenant not in self._queues:
            self._queues[request.tenant] = deque()
            self._served[request.tenant] = self._now
        self._queues[request.tenant].extend(request.texts)

    def next(self, waiting: AbstractSet[Text]) -> Text | None:
        """Take the text whose turn it is, of those that still wait."""
        while self._queues:
            tenant = min(self._served, key=self._served.__getitem__)
            queue = self._queues[tenant]
            self._now = max(self._now, self._served[tenant])
            while queue:
                if (text := queue.popleft()) in waiting:
                    return text
            del self._queues[tenant], self._served[tenant]
        return None

    def charge(self, batch: Iterable[Text]) -> None:
        """Count a batch's tokens to their tenants."""
        for text in batch:
            if text.request.tenant in self._served:
                self._served[text.request.tenant] += len(text.ids)
