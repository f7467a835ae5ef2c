import pytest

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.domain.files import FileKey, FileState, Problem
from memoryd.domain.plans import BLOCKED
from memoryd.errors import ConflictError
from services.workspace.observe import Observed
from services.workspace.publish import Publisher
from tests.unit.workspace.conftest import SCOPE

KEY = FileKey(SCOPE, "a.md")


async def overwrite(log: SqliteFileLog, text: str) -> None:
    """Put a state as another process would."""
    logged = await log.get(KEY)
    state = FileState(KEY, text, text.encode(), 0.0)
    await log.put(state, expected=logged.revision if logged else None, live=False)


async def test_after_a_lost_race_the_file_is_looked_at_again(log: SqliteFileLog) -> None:
    looks: list[str] = []

    async def look() -> Observed:
        looks.append(f"look {len(looks) + 1}")
        if len(looks) == 1:
            await overwrite(log, "stray")
        return Observed(FileState(KEY, looks[-1], looks[-1].encode(), 0.0))

    put, observed = await Publisher(SCOPE, log).put("a.md", look, live=True)
    assert put
    assert observed is not None
    logged = await log.get(KEY)
    assert logged is not None
    assert logged.state.content == observed.state.content == b"look 2"


async def test_races_lost_for_ever_are_an_error(log: SqliteFileLog) -> None:
    turns: list[str] = []

    async def look() -> Observed:
        turns.append(f"turn {len(turns)}")
        await overwrite(log, turns[-1])
        return Observed(FileState(KEY, "ours", b"ours", 0.0))

    with pytest.raises(ConflictError, match="by one process"):
        await Publisher(SCOPE, log).put("a.md", look, live=True)
    assert len(turns) == 8


async def test_what_another_process_put_alike_is_not_put_again(log: SqliteFileLog) -> None:
    async def look() -> Observed:
        if await log.get(KEY) is None:
            await overwrite(log, "same")
        return Observed(FileState(KEY, "same", b"same", 0.0))

    put, _ = await Publisher(SCOPE, log).put("a.md", look, live=True)
    assert not put


async def test_a_deletion_of_a_file_that_was_never_logged_is_not_put(log: SqliteFileLog) -> None:
    async def look() -> Observed:
        return Observed(FileState.deletion(KEY, 0.0))

    put, _ = await Publisher(SCOPE, log).put("a.md", look, live=True)
    assert not put
    assert await log.get(KEY) is None


async def test_a_blocked_file_is_put_by_nobody_but_the_operator(log: SqliteFileLog) -> None:
    blocked = FileState(KEY, "", None, 0.0, problem=Problem(BLOCKED, "for a test"))
    await log.put(blocked, expected=None, live=False)

    async def look() -> Observed:
        return Observed(FileState(KEY, "text", b"text", 0.0))

    async def gone() -> Observed:
        return Observed(FileState.deletion(KEY, 0.0))

    publisher = Publisher(SCOPE, log)
    assert (await publisher.put("a.md", look, live=True))[0] is False
    assert (await publisher.put("a.md", gone, live=True))[0] is False
    logged = await log.get(KEY)
    assert logged is not None
    assert logged.state.problem == blocked.problem
