import pytest
from structlog.testing import capture_logs

from memoryd.errors import ConfigError, DeadlineExceededError, UnavailableError
from memoryd.process.waiting import until_available
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings


def server() -> Server:
    return Server(ServerSettings(address="127.0.0.1:0"))


async def test_it_goes_on_until_it_works_and_says_so() -> None:
    failures = [UnavailableError("the ferry does not answer"), DeadlineExceededError("too late")]
    waiting = server()

    async def attempt() -> str:
        assert waiting.waits_for == "the ferry"
        if failures:
            raise failures.pop(0)
        return "here"

    with capture_logs() as lines:
        assert await until_available(waiting, "the ferry", attempt) == "here"
    assert [line["event"] for line in lines] == ["waiting", "still waiting", "answered"]
    assert (lines[1]["waits_for"], lines[1]["error"]) == ("the ferry", "the ferry does not answer")


async def test_what_does_not_pass_by_itself_is_not_waited_for() -> None:
    async def attempt() -> None:
        raise ConfigError("a wrong password")

    with pytest.raises(ConfigError, match="a wrong password"):
        await until_available(server(), "the ferry", attempt)
