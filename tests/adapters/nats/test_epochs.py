"""A log that was recreated or lost its tail gives no revision twice, and everything is delivered again."""

import asyncio

import pytest

from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.domain.files import FileKey, Revision
from memoryd.errors import ConflictError
from tests.adapters.nats.deployment import LONG, SCOPE, Deployment, drain, put, soon, state


async def test_opening_again_keeps_the_epoch(deployment: Deployment) -> None:
    log = await deployment.log()
    given = [await put(log), await put(log)]
    again = await deployment.log(known=given[-1])
    given.append(await put(again))
    assert {revision.epoch for revision in given} == {given[0].epoch}
    assert given == sorted(set(given))


async def test_processes_that_begin_a_log_at_once_agree(deployment: Deployment) -> None:
    logs = await asyncio.gather(*(deployment.log() for _ in range(5)))
    assert len({(await put(log, f"{n}.md")).epoch for n, log in enumerate(logs)}) == 1


async def test_a_log_that_was_recreated_begins_a_later_epoch(deployment: Deployment) -> None:
    log, indexer = await deployment.log(), await deployment.log()
    await indexer.subscribe("one")
    before = [await put(log, f"{n}.md") for n in range(3)]
    assert len(await drain(indexer)) == 3
    deployment.stop()
    deployment.lose_everything()
    deployment.start()
    assert await soon(lambda: log.get(FileKey(SCOPE, "0.md"))) is None
    revision = await put(log, "0.md")
    assert revision > max(before)
    assert await soon(lambda: indexer.pending("one", SCOPE)) == 1
    (delivery,) = await soon(lambda: indexer.fetch("one", limit=5, timeout=LONG))
    assert delivery.file.revision == revision
    await delivery.ack()
    assert await indexer.pending("one", SCOPE) == 0


async def test_a_log_that_was_recreated_and_filled_unseen_begins_a_later_epoch(deployment: Deployment) -> None:
    known = await put(await deployment.log())
    deployment.stop()
    deployment.lose_everything()
    deployment.start()
    filler = await deployment.log()  # knows nothing of the old one
    await asyncio.gather(*(put(filler, f"{n}.md") for n in range(20)))
    log = await deployment.log(known=known)
    assert await put(log, "new.md") > known


async def test_a_lost_tail_is_noticed_by_whoever_knew_it(deployment: Deployment) -> None:
    log = await deployment.log()
    await log.subscribe("one")
    await put(log, "kept.md", live=True)
    await put(log, "bulk.md")
    assert sorted(await drain(log)) == ["bulk.md", "kept.md"]
    deployment.stop()
    deployment.back_up()
    deployment.start()
    lost = [await soon(lambda n=n: put(log, f"lost{n}.md")) for n in range(3)]  # type: ignore[misc]
    deployment.stop()
    deployment.restore()
    deployment.start()
    assert await soon(lambda: log.get(FileKey(SCOPE, "lost1.md"))) is None
    assert await log.pending("one", SCOPE) == 2
    revision = await put(log, "new.md")
    assert revision > max(lost)
    assert sorted(await drain(log)) == ["bulk.md", "kept.md", "new.md"]
    assert await log.pending("one", SCOPE) == 0


async def test_an_epoch_that_another_process_begins_is_learned(deployment: Deployment) -> None:
    log, indexer = await deployment.log(), await deployment.log()
    await indexer.subscribe("one")
    old = await put(log, "a.md")
    (held,) = await indexer.fetch("one", limit=5, timeout=LONG)
    await indexer.pending("one", SCOPE)
    ahead = Revision(old.epoch, old.sequence + 100)
    await deployment.log(known=ahead)
    await _epoch_after(log, ahead)
    await _epoch_after(indexer, ahead)
    revision = await put(log, "b.md")
    assert revision > ahead
    await held.ack()  # of the epoch that is over: without effect
    assert await indexer.pending("one", SCOPE) == 2
    assert sorted(await drain(indexer)) == ["a.md", "b.md"]
    assert await indexer.pending("one", SCOPE) == 0


async def _epoch_after(log: NatsFileLog, ahead: Revision) -> None:
    async with asyncio.timeout(LONG):
        while (found := await log.get(FileKey(SCOPE, "a.md"))) and found.revision < ahead:
            await asyncio.sleep(0.01)


async def test_an_old_expectation_is_refused_in_a_new_epoch(deployment: Deployment) -> None:
    old = await put(await deployment.log())
    log = await deployment.log(known=Revision(old.epoch, old.sequence + 1))
    found = await log.get(FileKey(SCOPE, "a.md"))
    assert found is not None
    assert found.revision > old
    assert found.revision.sequence == old.sequence
    with pytest.raises(ConflictError):
        await log.put(state(), expected=old, live=False)
    assert await log.put(state(), expected=found.revision, live=False) > found.revision
