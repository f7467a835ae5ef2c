"""The throttle of a generation that does not answer yet."""

from __future__ import annotations

import asyncio

from services.indexer.throttle import Throttle


async def test_without_a_throttle_there_is_no_rest() -> None:
    throttle = Throttle()
    with throttle.working():
        pass
    resting = asyncio.create_task(throttle.rest())
    await asyncio.sleep(0)
    assert resting.done()


async def test_a_rest_ends_when_the_generation_answers() -> None:
    throttle = Throttle(share=1e-9)
    with throttle.working():
        await asyncio.sleep(0.001)
    resting = asyncio.create_task(throttle.rest())
    await asyncio.wait({resting}, timeout=0.05)
    assert not resting.done()
    throttle.ease(1.0)
    await asyncio.wait_for(resting, 5.0)
    await throttle.rest()  # what was owed is paid
