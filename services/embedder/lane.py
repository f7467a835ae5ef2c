"""A lane: the queue that callers put texts into and workers take batches from. Bounded in tokens."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left, insort

from memoryd.errors import InvalidInputError, ResourceExhaustedError, UnavailableError
from services.embedder.pace import Pace
from services.embedder.requests import Request, Text
from services.embedder.turns import Turns

_PADDING_SHARE = 0.1
_FREE_PADDING = 16  # tokens: a batch more costs about as much
# Of a call's time, what may be foreseen to pass in the queue. Later texts that are company to others' turns double the
# time of those that are not, where a batch has four (ln 4 × 4/3 = 1.85); the rest is for a pace that varies.
_FORESEEN_SHARE = 0.3


def _length(text: Text) -> int:
    return len(text.ids)


class Lane:
    """Tenants in turn, with the texts nearest in length as company, so that hardly anything is padding."""

    def __init__(self, name: str, *, batch_tokens: int, queue_tokens: int, threads: int = 1) -> None:
        self.name = name
        self.pace = Pace(threads, batch_tokens)
        self._batch_tokens, self._queue_tokens = batch_tokens, queue_tokens
        self._changed = threading.Condition()
        self._reserved = 0
        self._turns = Turns()
        self._by_length: list[Text] = []
        self._waiting: set[Text] = set()
        self._closed = False

    @property
    def reserved(self) -> int:
        """Tokens of the calls that are in the lane."""
        return self._reserved

    @property
    def limit(self) -> int:
        """Tokens that it takes."""
        return self._queue_tokens

    @property
    def waiting(self) -> int:
        """Texts that wait for a batch."""
        return len(self._waiting)

    def reserve(self, tokens: int, timeout: float = math.inf) -> None:
        """Count tokens in, for a call that has `timeout` seconds.

        Raises ResourceExhaustedError where they don't fit now or would not be embedded in time, with the seconds after
        which to try again; InvalidInputError where they never fit; UnavailableError where the lane is closed.
        """
        with self._changed:
            self._check_open()
            if tokens > self._queue_tokens:
                raise InvalidInputError(
                    f"the call has about {tokens} tokens, a lane takes {self._queue_tokens}: send fewer texts a call"
                )
            over = self._reserved + tokens - self._queue_tokens
            if over > 0:
                raise ResourceExhaustedError(
                    f"the {self.name} lane is full ({self._reserved} of {self._queue_tokens} tokens): try again later",
                    retry_after=self.pace.seconds(over),
                )
            late = self.pace.seconds(self._reserved + tokens) - timeout * _FORESEEN_SHARE
            if self._reserved and late > 0:  # alone it is tried: so the pace is measured again, too
                raise ResourceExhaustedError(
                    f"the {self.name} lane has {self._reserved} tokens to embed first, too many for this call's "
                    f"{timeout:.3g} s: try again later",
                    retry_after=late,
                )
            self._reserved += tokens

    def recount(self, estimated: int, counted: int) -> None:
        """Replace the estimate that a call was reserved by, when its tokens are known."""
        with self._changed:
            self._reserved += counted - estimated

    def release(self, tokens: int) -> None:
        """Count tokens out."""
        with self._changed:
            self._reserved -= tokens

    def put(self, request: Request) -> None:
        """Queue a request's texts. Raises UnavailableError where the lane is closed."""
        with self._changed:
            self._check_open()
            self._turns.add(request)
            for text in request.texts:
                insort(self._by_length, text, key=_length)
            self._waiting.update(request.texts)
            self._changed.notify_all()

    def remove(self, request: Request) -> None:
        """Drop what is still queued of a request."""
        with self._changed:
            gone = self._waiting.intersection(request.texts)
            if gone:
                self._waiting -= gone
                self._by_length = [text for text in self._by_length if text in self._waiting]

    def take(self) -> list[Text] | None:
        """Wait for a batch; None where the lane is closed. Every text of it was still wanted just now."""
        with self._changed:
            while not self._closed:
                while (first := self._turns.next(self._waiting)) is not None:
                    batch = [text for text in self._with_company(first) if not text.request.over]
                    if batch:
                        self._turns.charge(batch)
                        return batch
                self._changed.wait()
            return None

    def close(self) -> list[Request]:
        """Let workers end; returns the requests that had texts in the queue."""
        with self._changed:
            self._closed = True
            left = list({text.request for text in self._waiting})
            self._by_length.clear()
            self._waiting.clear()
            self._changed.notify_all()
            return left

    def _with_company(self, first: Text) -> list[Text]:
        """Take a text and those nearest in length that fit into the budget with it."""
        texts, size = self._by_length, _length(first)
        low = texts.index(first, bisect_left(texts, size, key=_length))
        high, tokens = low + 1, size
        while low or high < len(texts):
            down = size - _length(texts[low - 1]) if low else math.inf
            up = _length(texts[high]) - size if high < len(texts) else math.inf
            company = texts[high] if up <= down else texts[low - 1]
            tokens += _length(company)
            if not self._fits(high - low + 1, max(_length(company), _length(texts[high - 1])), tokens):
                break
            low, high = (low, high + 1) if up <= down else (low - 1, high)
        batch = texts[low:high]
        del texts[low:high]
        self._waiting.difference_update(batch)
        return batch

    def _check_open(self) -> None:
        if self._closed:
            raise UnavailableError("the embedder is shutting down")

    def _fits(self, count: int, longest: int, tokens: int) -> bool:
        padded = count * longest
        return padded <= self._batch_tokens and padded - tokens <= max(_FREE_PADDING, padded * _PADDING_SHARE)
