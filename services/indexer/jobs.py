"""Jobs: file states under lease on their way through the indexer, and the groups that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from memoryd import tracing
from memoryd.domain.chunking import Chunked
from memoryd.domain.chunks import Chunk
from memoryd.domain.files import FileKey, LoggedFile
from memoryd.domain.plans import Plan
from memoryd.ports import Delivery, Embedding

# Part of a lease that is used: the rest covers the way from the log to here and a call that is just running.
_USED = 0.8
# About four bytes of UTF-8 make a token of a multilingual vocabulary, in English as in Chinese.
_BYTES_PER_TOKEN = 4

VectorKey = tuple[str, str]  # tenant and text hash: vectors are found again within a tenant only
Vectors = dict[VectorKey, Embedding]


class LeaseLostError(Exception):
    """The lease has run out, or is too short for the next write: another indexer may hold the state now."""


class Lease:
    """How long this indexer may still write for a delivery: a hard deadline, checked before each write.

    Args:
        delivery: what is held.
        seconds: the file log's lease.
        longest: total time after which it is not extended any more.
        clock: monotonic seconds.
    """

    def __init__(self, delivery: Delivery, seconds: float, longest: float, clock: Callable[[], float]) -> None:
        self._delivery, self._seconds, self._clock = delivery, seconds * _USED, clock
        self._last = clock() + longest
        self._until = min(clock() + self._seconds, self._last)

    @property
    def remaining(self) -> float:
        """Seconds left; not above 0 where the lease is lost."""
        return self._until - self._clock()

    async def extend(self) -> None:
        """Begin the lease anew where half of it is gone. Raises LeaseLostError where it has run out."""
        if self.remaining <= 0:
            raise LeaseLostError
        if self.remaining < self._seconds / 2 and self._until < self._last:
            asked = self._clock()
            if not await self._delivery.in_progress():
                self._until = self._last = asked
                raise LeaseLostError
            self._until = min(asked + self._seconds, self._last)

    @property
    def seconds(self) -> float:
        """Seconds that one extension gives."""
        return self._seconds


@dataclass(eq=False, slots=True)
class Job:
    """A delivery in work.

    Attributes:
        delivery: the file state.
        lease: until when it may be written.
        chunked: its pieces; None before they are made, and for deletions and problems.
        plan: the diff against its outline.
        lost: what the outline lists and a store has lost.
        cursor: how many of the plan's born chunks are handed on to groups.
        settled: given up or done: what is still on its way is dropped.
    """

    delivery: Delivery
    lease: Lease
    chunked: Chunked | None = None
    plan: Plan = field(init=False)
    lost: frozenset[str] = frozenset()
    cursor: int = 0
    settled: bool = False

    @property
    def logged(self) -> LoggedFile:
        """The file state."""
        return self.delivery.file

    @property
    def key(self) -> FileKey:
        """The file."""
        return self.delivery.file.state.key

    @property
    def size(self) -> int:
        """Bytes of its text."""
        return len(self.delivery.file.state.content or b"")

    def take(self, tokens: int, chunks: int) -> Slice:
        """Hand on the next born chunks: at most `chunks`, about `tokens`, at least one where any is left."""
        begin = self.cursor
        born = self.plan.born
        while self.cursor < len(born) and self.cursor - begin < chunks and tokens > 0:
            tokens -= estimate(born[self.cursor])
            self.cursor += 1
        return Slice(self, born[begin : self.cursor], last=self.cursor == len(born))


@dataclass(slots=True)
class Slice:
    """Part of a job's born chunks; with the `last` one written, the job commits."""

    job: Job
    chunks: tuple[Chunk, ...]
    last: bool


@dataclass(slots=True)
class Group:
    """Slices of several jobs that share one embedding call and one upsert a store.

    Attributes:
        slices: in the order in which they were taken.
        vectors: those known so far.
        tokens: estimate of what is to be embedded.
        span: of its way through the stages.
    """

    slices: list[Slice] = field(default_factory=list)
    vectors: Vectors = field(default_factory=dict)
    tokens: int = 0
    span: tracing.Span | None = None

    @property
    def live(self) -> list[Slice]:
        """The slices of jobs that are not settled."""
        return [piece for piece in self.slices if not piece.job.settled]

    @property
    def jobs(self) -> list[Job]:
        """The unsettled jobs, each once."""
        return list(dict.fromkeys(piece.job for piece in self.live))

    @property
    def chunks(self) -> list[Chunk]:
        """The chunks to write, each id once: a state that was delivered twice has the same ids."""
        return list({chunk.id: chunk for piece in self.live for chunk in piece.chunks}.values())

    def missing(self) -> list[Chunk]:
        """Chunks whose vectors are not known."""
        return [chunk for chunk in self.chunks if vector_key(chunk) not in self.vectors]

    def of(self, jobs: Iterable[Job]) -> Group:
        """Narrow to some jobs; the vectors are shared."""
        chosen = set(jobs)
        return Group([piece for piece in self.slices if piece.job in chosen], self.vectors)


def vector_key(chunk: Chunk) -> VectorKey:
    """Name the vector of a chunk."""
    return chunk.key.scope.tenant, chunk.text_hash


def estimate(chunk: Chunk) -> int:
    """Estimate the tokens of a chunk's embedding input, without the tokenizer."""
    return len(chunk.embedding_input.encode()) // _BYTES_PER_TOKEN + 1
