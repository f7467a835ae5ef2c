"""Many searches at once: so many work, the others wait in turn, and none waits for ever."""

from __future__ import annotations

import asyncio

import pytest

from services.search.admission import Admission

LONG, AT_ONCE, CALLERS = 60.0, 2, 6


async def test_so_many_work_at_a_time_and_the_others_in_the_order_in_which_they_came() -> None:
    admission, working, begun, most = Admission(AT_ONCE), 0, [], 0

    async def search(number: int) -> None:
        nonlocal working, most
        async with admission.turn(LONG):
            begun.append(number)
            working += 1
            most = max(most, working)
            await asyncio.sleep(0)
            working -= 1

    await asyncio.gather(*map(search, range(CALLERS)))
    assert most == AT_ONCE
    assert begun == list(range(CALLERS))


async def test_who_has_waited_for_as_long_as_it_can_goes_all_the_same() -> None:
    admission = Admission(1)
    async with admission.turn(LONG):
        async with admission.turn(0.0):
            pass
        waiting = asyncio.create_task(admission.turn(LONG).__aenter__())
        await asyncio.sleep(0)
        assert not waiting.done()  # it gave no turn back that it had not got
    await asyncio.wait_for(waiting, LONG)


async def test_whoever_goes_away_leaves_its_turn_to_the_next() -> None:
    admission = Admission(1)
    async with admission.turn(LONG):
        gone = asyncio.create_task(admission.turn(LONG).__aenter__())
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
    async with asyncio.timeout(LONG), admission.turn(LONG):
        pass
