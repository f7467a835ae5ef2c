"""The commit protocol on the real code: any order of any calls of any replica, with crashes and lost answers.

The invariants have the names of the protocol's specification (see docs/architecture.md):
S1 a search returns chunks of one single outline a file, with its flags and lines; S2 both stores hold every chunk that
an outline lists; S3 an outline's revision never goes down; L1 at rest, after one more sweep, the outlines show the last
states of the files and both stores hold exactly their chunks; C1 a search sees every chunk of the outlines that it goes
by, where the sweeper keeps a grace: time does not pass while a search runs. Without a grace the others hold, too. P1
a search that begins after a purge's receipt returns nothing purged; P2 nor does a store hold it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memoryd.domain.names import Scope
from memoryd.domain.queries import Chat
from memoryd.errors import UnavailableError
from services.indexer.prepare import Preparer
from tests.support.asking import Asked, Asker
from tests.support.gate import Outcome, Waiting
from tests.support.indexing import Engines, World, section

T = TypeVar("T")
OpenEngines = Callable[[AsyncExitStack], Awaitable[Engines]]

PATHS = st.sampled_from(["memory/p.md", "memory/q.md"])
ACTORS = st.sampled_from(["one", "two", "search", "purge"])
REPLICAS = st.sampled_from(["one", "two"])
WRITES = {"vectors.upsert", "texts.upsert", "manifest.commit"}
# Of few sections, so that texts repeat: within a file, in the other file, and after they were gone.
TEXTS = st.lists(st.sampled_from(["iris", "moss", "fern"]), max_size=4).map(lambda ws: "\n".join(map(section, ws)))
GRACE = 60.0
OUTCOMES = st.sampled_from([Outcome.DONE] * 6 + [Outcome.REFUSED, Outcome.UNANSWERED])
HALTS = st.sampled_from(["manifest.commit", "vectors.upsert", "vectors.delete", "texts.delete", "delivery.ack"])


async def _at_once(_self: Preparer, _size: int, work: Callable[[], T]) -> T:
    """Run in the event loop: a thread would go on without the gate."""
    return work()


class Shared:
    """Engines that all runs of a machine use, each run with a tenant of its own: opening real ones takes seconds."""

    def __init__(self, open_engines: OpenEngines) -> None:
        self.open_engines = open_engines
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.engines: Engines | None = None
        self.runs = 0

    async def world(self) -> World:
        """Begin a run."""
        if self.engines is None:
            self.engines = await self.open_engines(self.stack)
        self.runs += 1
        return World(self.engines, Scope(f"tenant-{self.runs}", "garden"))

    async def close(self) -> None:
        """Close the engines; the next run opens new ones."""
        self.engines = None
        await self.stack.aclose()
        self.stack = AsyncExitStack()


class ProtocolMachine(RuleBasedStateMachine):
    """Two replicas with their sweepers, and a search, one call of a port after the other."""

    shared: Shared

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(Preparer, "_run", _at_once)
        self.searching: asyncio.Task[Asked] | None = None
        self.purging: asyncio.Task[None] | None = None
        self.world: World = self.run(self.begin())
        self.asker = Asker(self.world)

    def run(self, what: Awaitable[T]) -> T:
        """Run in the engines' event loop."""

        async def wrapped() -> T:
            return await what

        return self.shared.runner.run(wrapped())

    async def begin(self) -> World:
        world = await self.shared.world()
        world.gate.stepping = True
        return world

    @initialize(grace=st.sampled_from([0.0, GRACE]))
    def start(self, grace: float) -> None:
        self.world.settings.grace = grace
        for actor in "one", "two":
            self.run(self.world.start(actor))

    @rule(path=PATHS, text=TEXTS, private=st.booleans())
    def write(self, path: str, text: str, private: bool) -> None:
        self.run(self.world.write(path, text, private=private))

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.run(self.world.delete(path))

    @rule(path=PATHS, delete_first=st.booleans())
    def rename(self, path: str, delete_first: bool) -> None:
        other = "memory/p.md" if path == "memory/q.md" else "memory/q.md"
        last = self.world.last.get(path)
        content = self.world.history[path, last].content if last else None
        if content is not None:
            if delete_first:
                self.run(self.world.delete(path))
            self.run(self.world.write(other, content.decode()))
            if not delete_first:
                self.run(self.world.delete(path))

    @rule(path=PATHS)
    def set_aside(self, path: str) -> None:
        self.run(self.world.set_aside(path, "UNREADABLE"))

    @rule(actor=ACTORS, calls=st.integers(1, 25), outcome=OUTCOMES)
    def advance(self, actor: str, calls: int, outcome: Outcome) -> None:
        """Let one replica go on for a while; the others are slow ones. The outcome is that of its last call."""
        for left in reversed(range(calls)):
            mine = [waiting for waiting in self.world.gate.waiting if waiting.actor == actor]
            self.step(mine[:1], Outcome.DONE if left else outcome)

    @rule(actor=ACTORS, name=HALTS)
    def advance_to(self, actor: str, name: str) -> None:
        """Let one replica go on until it is about to make a call of this name: there it is a slow one."""
        for _ in range(40):
            mine = [waiting for waiting in self.world.gate.waiting if waiting.actor == actor]
            if any(waiting.name == name for waiting in mine):
                return
            self.step(mine[:1], Outcome.DONE)

    @rule(number=st.integers(0, 12), outcome=OUTCOMES)
    def one_call(self, number: int, outcome: Outcome) -> None:
        """Let any single call go on."""
        waiting = self.world.gate.waiting
        self.step(waiting[number % max(len(waiting), 1) :][:1], outcome)

    def step(self, chosen: list[Waiting], outcome: Outcome) -> None:
        for waiting in chosen:
            self.run(self.world.gate.step(waiting, outcome))
            self.run(self.check_search())

    @rule(actor=REPLICAS)
    def crash_and_start(self, actor: str) -> None:
        self.run(self.world.crash(actor))
        self.run(self.world.start(actor))

    @rule()
    def deliver_again(self) -> None:
        self.run(self.world.deliver_again())

    @precondition(lambda self: self.searching is None)
    @rule(seconds=st.sampled_from([GRACE + 1, GRACE + 1, 1_000.0]))
    def time_passes(self, seconds: float) -> None:
        """The grace passes, or so much time that everything is swept."""
        self.run(self.pass_time(seconds))

    async def pass_time(self, seconds: float) -> None:
        self.world.let_pass(seconds)
        await self.world.gate.quiet()

    @precondition(lambda self: self.searching is None and (self.purging is None or self.purging.done()))
    @rule(path=PATHS)
    def purge(self, path: str) -> None:
        """Purge a deleted file, after the time that an indexer may hold an older state of it."""
        last = self.world.last.get(path)
        if last is not None and self.world.history[path, last].deleted:
            self.run(self.pass_time(self.world.settings.lease))
            for waiting in [each for each in self.world.gate.waiting if each.name in WRITES and each.actor != "purge"]:
                self.step([waiting], Outcome.REFUSED)  # a write ends with its lease
            self.run(self.begin_purge(path))

    async def begin_purge(self, path: str) -> None:
        self.purging = asyncio.create_task(self.asker.purge(path))
        await self.world.gate.quiet()

    @precondition(lambda self: self.searching is None)
    @rule(chat=st.sampled_from([Chat.DIRECT, Chat.DIRECT, Chat.GROUP]))
    def search(self, chat: Chat) -> None:
        self.run(self.begin_search(chat))

    async def begin_search(self, chat: Chat) -> None:
        self.searching = asyncio.create_task(self.asker.ask(chat))
        await self.world.gate.quiet()

    async def check_search(self) -> None:
        """S1 and C1, where a search has just ended."""
        if self.searching is not None and self.searching.done():
            searching, self.searching = self.searching, None
            try:
                asked = await searching
            except UnavailableError:
                return
            self.asker.check(asked)

    @invariant()
    def s2_s3_p2(self) -> None:
        self.run(self.world.check_s2_s3())
        self.run(self.asker.check_stores())

    def teardown(self) -> None:
        try:
            self.run(self.end())
        except BaseException:
            self.run(self.world.stop())
            self.run(self.shared.close())  # what it left must not disturb the next run
            raise
        finally:
            self.patch.undo()

    async def end(self) -> None:
        """L1."""
        self.world.gate.open()
        if self.searching is not None:
            await asyncio.wait({self.searching})
            await self.check_search()
        await self.world.deliver_again()
        if self.purging is not None:
            await self.purging
        await self.world.check_rest()
        await self.asker.check_stores()


def check_protocol(open_engines: OpenEngines, *, examples: int, steps: int) -> None:
    """Run the machine on some engines."""

    class Machine(ProtocolMachine):
        shared = Shared(open_engines)

    try:
        run_state_machine_as_test(
            Machine, settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None)
        )
    finally:
        Machine.shared.runner.run(Machine.shared.close())
        Machine.shared.runner.close()
