"""Several processes at once: who gets what, and whether each counts right."""

import asyncio
import os

import pytest

from memoryd.adapters.nats import filelog
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.domain.files import FileKey, FileState
from memoryd.errors import InvalidInputError, UnavailableError
from tests.adapters.nats.deployment import LONG, OTHER, SCOPE, Deployment, drain, put, state
from tests.servers.nats import NatsServer
from tests.servers.process import server_folder


async def test_every_process_counts_what_every_other_has_put_and_settled(deployment: Deployment) -> None:
    writer, indexer, search = [await deployment.log() for _ in range(3)]
    assert await search.pending("one", SCOPE) == 0
    await indexer.subscribe("one")
    for n in range(30):
        await put(writer, f"{n}.md", live=n % 3 == 0)
        assert await search.pending("one", SCOPE) == 1
        (delivery,) = await indexer.fetch("one", limit=5, timeout=LONG)
        assert await search.pending("one", SCOPE) == 1
        await delivery.ack()
        assert await search.pending("one", SCOPE) == 0


async def test_a_workspace_does_not_count_what_is_stuck_in_another(deployment: Deployment) -> None:
    log = await deployment.log()
    await log.subscribe("one")
    await put(log, "stuck.md", scope=OTHER)
    (stuck,) = await log.fetch("one", limit=1, timeout=LONG)
    await stuck.retry(3600)
    for n in range(5):
        await put(log, f"{n}.md")
    await drain(log)
    late = await deployment.log()
    assert [await late.pending("one", scope) for scope in (SCOPE, OTHER)] == [0, 1]
    assert [await log.pending("one", scope) for scope in (SCOPE, OTHER)] == [0, 1]


async def test_a_process_that_comes_late_counts_live_edits_that_the_main_consumer_has_handed_over(
    deployment: Deployment,
) -> None:
    log = await deployment.log(lease=3600)
    await log.subscribe("one")
    await put(log, "live.md", live=True)
    await put(log, "a.md")
    held = await log.fetch("one", limit=5, timeout=LONG)
    assert [d.file.state.key.path for d in held] == ["live.md", "a.md"]
    await held[1].ack()
    assert await (await deployment.log(lease=3600)).pending("one", SCOPE) == 1
    await held[0].ack()
    assert await (await deployment.log(lease=3600)).pending("one", SCOPE) == 0


async def test_replicas_share_the_work_and_live_edits_overtake(deployment: Deployment) -> None:
    writer = await deployment.log(lease=3600)
    indexers = [await deployment.log(lease=3600) for _ in range(3)]
    await indexers[0].subscribe("one")
    await asyncio.gather(*(put(writer, f"bulk{n}.md") for n in range(60)))
    first = await indexers[1].fetch("one", limit=10, timeout=LONG)
    await asyncio.gather(*(put(writer, f"live{n}.md", live=True) for n in range(10)))
    second = await indexers[2].fetch("one", limit=10, timeout=LONG)
    assert {d.file.state.key.path for d in second} == {f"live{n}.md" for n in range(10)}
    rest = [path for paths in await asyncio.gather(*map(drain, indexers)) for path in paths]
    given = [d.file.state.key.path for d in (*first, *second)] + rest
    assert len(given) == len(set(given)) == 70


async def test_an_edit_of_an_idle_moment_is_given_once(deployment: Deployment) -> None:
    writer = await deployment.log(lease=3600)
    indexers = [await deployment.log(lease=3600) for _ in range(2)]
    await indexers[0].subscribe("one")
    given: list[str] = []

    async def work(log: NatsFileLog) -> None:
        while len(given) < 40:
            for delivery in await log.fetch("one", limit=3, timeout=0.2):
                given.append(delivery.file.state.key.path)
                await delivery.ack()

    working = [asyncio.create_task(work(log)) for log in indexers]
    for n in range(40):
        await put(writer, f"{n}.md", live=True)
    async with asyncio.timeout(LONG):
        await asyncio.gather(*working)
    assert sorted(given) == sorted(f"{n}.md" for n in range(40))


async def test_a_live_state_whose_pointer_was_never_put_is_delivered(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(*_: object) -> None:
        raise UnavailableError("the connection is lost")

    log = await deployment.log()
    await log.subscribe("one")
    with monkeypatch.context() as patch:
        patch.setattr(filelog, "point_to", dies)
        revision = await put(log, live=True)
    (delivery,) = await log.fetch("one", limit=5, timeout=LONG)
    assert delivery.file.revision == revision
    await delivery.ack()
    assert await log.pending("one", SCOPE) == 0
    assert await drain(log) == []


async def test_a_pointer_to_a_superseded_state_is_dropped(deployment: Deployment) -> None:
    log = await deployment.log()
    await log.subscribe("one")
    await put(log, content="1", live=True)
    last = await put(log, content="2")
    (delivery,) = await log.fetch("one", limit=5, timeout=LONG)
    assert delivery.file.revision == last
    await delivery.ack()
    assert await log.pending("one", SCOPE) == 0
    assert await drain(log) == []


async def test_an_acknowledgement_that_comes_late_settles_no_later_state(deployment: Deployment) -> None:
    log, search = await deployment.log(), await deployment.log()
    await log.subscribe("one")
    await put(log, content="1")
    (late,) = await log.fetch("one", limit=5, timeout=LONG)
    await put(log, content="2")
    (delivery,) = await log.fetch("one", limit=5, timeout=LONG)
    await late.ack()
    assert await search.pending("one", SCOPE) == 1
    await delivery.ack()
    await late.ack()
    assert await search.pending("one", SCOPE) == 0
    assert await (await deployment.log()).pending("one", SCOPE) == 0


async def test_a_file_above_the_server_s_limit_is_refused_and_nothing_else_happens(deployment: Deployment) -> None:
    small = NatsServer(server_folder("nats"), max_payload=1 << 16)
    small.process.start()
    try:
        there = Deployment(small)
        log = await there.log()
        noise = os.urandom(1 << 16)
        with pytest.raises(InvalidInputError, match="65536") as failure:
            await log.put(FileState(FileKey(SCOPE, "a.md"), "h", noise, 1.0), expected=None, live=True)
        assert failure.value.reason == "TOO_LARGE"
        assert await log.get(FileKey(SCOPE, "a.md")) is None
        await log.put(state(), expected=None, live=True)
        await there.close()
    finally:
        small.process.kill()
