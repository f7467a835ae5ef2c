import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial

import grpc
import pytest
import structlog
from pydantic import SecretStr, ValidationError

from memoryd.adapters.grpc.remote import Remote
from memoryd.adapters.grpc.searcher import GrpcSearcher
from memoryd.adapters.grpc.settings import ClientSettings
from memoryd.domain.names import Scope
from memoryd.domain.queries import SearchAnswer, SearchQuery
from memoryd.errors import ConfigError, DeadlineExceededError, MemorydError, UnavailableError
from memoryd.server import calls
from memoryd.server.credentials import ServiceCredentialSettings
from memoryd.server.lifecycle import Server
from memoryd.v1 import search_pb2, search_pb2_grpc
from services.indexer.rpc import add_to as add_indexer
from services.search.rpc import SERVICE, add_to
from tests.support.gateway import ANSWER, SCOPE, FakeSearcher
from tests.support.inner import CREDENTIALS, LOCAL, Add, FakeIndexer, reached, remote, serving

QUERY = SearchQuery("boiler")


def searching(service: FakeSearcher) -> Add:
    return lambda server, known: add_to(server, service, known)


async def search(way: Remote, timeout: float = 10.0) -> SearchAnswer:
    return await GrpcSearcher(way).search(SCOPE, QUERY, timeout=timeout)


class Watching(FakeSearcher):
    """Remembers the call that each search came with."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[calls.Call] = []

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
        self.calls.append(calls.current())
        return await super().search(scope, query, timeout=timeout)


async def test_request_id_and_deadline_of_the_call_being_served_go_along() -> None:
    service = Watching()
    async with reached("search", searching(service)) as way:
        serving_call = calls.begin("/outer", "agent-7", 2.0)
        await search(way)
        inner = service.calls[0]
        assert inner.request_id == "agent-7"
        assert inner.end - serving_call.end == pytest.approx(0, abs=0.1)
        assert service.asked[0][2] < 2.0
        calls.begin("/outer", "agent-8", 0.0)
        with pytest.raises(DeadlineExceededError, match="the deadline had passed before the search service at"):
            await search(way)
    assert len(service.calls) == 1


async def test_a_call_that_has_no_deadline_gets_the_settings_one() -> None:
    seen: list[float] = []

    class Servicer(search_pb2_grpc.SearchServiceServicer):
        async def Search(self, request: object, context: object) -> search_pb2.SearchResponse:  # noqa: N802  (proto)
            seen.append(calls.current().left)
            return search_pb2.SearchResponse()

    register = partial(search_pb2_grpc.add_SearchServiceServicer_to_server, Servicer())
    async with reached("search", lambda server, known: server.add("memoryd.v1.SearchService", register, known)) as way:
        stub = search_pb2_grpc.SearchServiceStub(way.channel)
        await way.call(stub.Search, search_pb2.SearchRequest())
        await way.call(stub.Search, search_pb2.SearchRequest(), 2.0)
    assert [round(left) for left in seen] == [5, 2]


async def test_a_service_that_is_too_slow() -> None:
    class Slow(FakeSearcher):
        async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
            await asyncio.Event().wait()
            raise AssertionError

    async with reached("search", searching(Slow())) as way:
        with pytest.raises(DeadlineExceededError):
            await search(way, 0.2)


async def test_a_failure_that_passes_is_tried_again() -> None:
    class Starting(FakeSearcher):
        async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> SearchAnswer:
            self.error = UnavailableError("starting") if len(self.asked) < 3 else None
            return await super().search(scope, query, timeout=timeout)

    service = Starting()
    async with reached("search", searching(service)) as way:
        assert await search(way) == ANSWER
    assert len(service.asked) == 4


async def test_replicas_take_turns_and_one_that_goes_away_costs_no_call() -> None:
    services = [FakeSearcher(), FakeSearcher()]
    async with AsyncExitStack() as replicas:
        servers = [await replicas.enter_async_context(serving(searching(service))) for service in services]
        async with remote("search", [server.address for server in servers]) as way:
            while not all(service.asked for service in services):  # both are connected
                await search(way)
            for service in services:
                service.asked.clear()
            for _ in range(20):
                await search(way)
            assert Counter(len(service.asked) for service in services) == {10: 2}
            await servers[0].__aexit__()
            for _ in range(20):
                await search(way)
    assert len(services[1].asked) == 30


async def test_a_replica_that_still_starts_gets_no_calls() -> None:
    service = FakeSearcher()
    async with (
        serving(searching(service)) as ready,
        Server(LOCAL, coming=[SERVICE]) as starting,
        remote("search", [starting.address, ready.address]) as way,
    ):
        # Many at once: tried again, a call may meet the one that starts each time.
        for _ in range(10):
            await asyncio.gather(*(search(way) for _ in range(20)))
    assert len(service.asked) == 200


async def test_a_service_that_comes_back_is_found_again() -> None:
    with structlog.testing.capture_logs() as logs:
        async with serving(searching(FakeSearcher())) as first, remote("search", [first.address]) as way:
            await search(way)
            await first.__aexit__()
            for _ in range(3):
                with pytest.raises(UnavailableError, match=r"the search service at .* does not answer: check that it"):
                    await search(way)
            settings = LOCAL.model_copy(update={"address": first.address})
            async with serving(searching(FakeSearcher()), settings), asyncio.timeout(30):
                while True:
                    try:
                        assert await search(way) == ANSWER
                        break
                    except UnavailableError:
                        continue
    noted = [(entry["log_level"], entry["event"]) for entry in logs if entry["event"].startswith("a service")]
    assert noted == [("warning", "a service fails"), ("info", "a service answers again")]


@pytest.mark.parametrize("tokens", [(), ("some-other-token-0",)], ids=["none", "another"])
async def test_a_refused_credential_is_not_the_caller_s_fault(tokens: tuple[str, ...]) -> None:
    others = ServiceCredentialSettings(tokens=tuple(map(SecretStr, tokens)))
    service = FakeSearcher()
    async with serving(searching(service)) as server, remote("search", [server.address], others) as way:
        with pytest.raises(UnavailableError, match="refuses this process: give both the same") as caught:
            await search(way)
    assert caught.value.reason == "SERVICE_CREDENTIAL_REFUSED"
    assert service.asked == []
    assert not tokens or tokens[0] not in str(caught.value)


async def test_the_first_token_is_sent_and_each_is_taken() -> None:
    new, old = SecretStr("the-new-token-0001"), SecretStr("the-old-token-0001")
    both = ServiceCredentialSettings(tokens=(new, old))
    assert both.metadata == (("authorization", "Bearer the-new-token-0001"),)
    async with serving(searching(FakeSearcher()), credentials=both) as server:
        for tokens in ((new,), (old,), (old, new)):
            async with remote("search", [server.address], ServiceCredentialSettings(tokens=tokens)) as way:
                assert await search(way) == ANSWER


async def test_another_service_at_the_address() -> None:
    async with (
        serving(lambda server, known: add_indexer(server, FakeIndexer(), known)) as server,
        remote("search", [server.address]) as way,
    ):
        with pytest.raises(UnavailableError, match="answers UNIMPLEMENTED: check that it is one, of this version"):
            await search(way)


async def test_an_unexpected_error_stays_inside_and_keeps_the_request_id() -> None:
    async with reached("search", searching(FakeSearcher(error=ZeroDivisionError("driver text")))) as way:
        calls.begin("/outer", "agent-7", 10.0)
        with pytest.raises(MemorydError, match="internal error") as caught:
            await search(way)
    assert type(caught.value) is MemorydError
    assert "driver text" not in str(caught.value)
    assert caught.value.details["request_id"] == "agent-7"


async def test_an_answer_of_another_version() -> None:
    class Servicer(search_pb2_grpc.SearchServiceServicer):
        async def Search(self, request: object, context: object) -> search_pb2.SearchResponse:  # noqa: N802  (proto)
            response = search_pb2.SearchResponse()
            response.answer.mode = 77  # type: ignore[assignment]  # a number of the future
            return response

    register = partial(search_pb2_grpc.add_SearchServiceServicer_to_server, Servicer())
    async with reached("search", lambda server, known: server.add("memoryd.v1.SearchService", register, known)) as way:
        with pytest.raises(UnavailableError, match="answered what this version can't read: run the same version"):
            await search(way)


async def test_names_that_are_none_are_refused_by_the_service() -> None:
    async with reached("search", searching(FakeSearcher())) as way:
        stub = search_pb2_grpc.SearchServiceStub(way.channel)
        request = search_pb2.SearchRequest(tenant="a.b", workspace="main")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Search(request, metadata=CREDENTIALS.metadata)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (caught.value.details() or "").startswith("tenant, workspace: 'a.b' is not a name")


async def test_the_log_line_of_an_inner_call_names_the_scope() -> None:
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        async with reached("search", searching(FakeSearcher())) as way:
            await search(way)
    (line,) = (entry for entry in logs if entry["event"] == "call")
    assert {name: line[name] for name in ("key_id", "tenant", "workspace", "results")} == {
        "key_id": "service",
        "tenant": "acme",
        "workspace": "main",
        "results": 1,
    }
    assert QUERY.text not in str(logs)


def test_an_address_that_is_not_set() -> None:
    with pytest.raises(ConfigError, match="where the indexer service is, is not known: set MEMORYD_CLIENT_INDEXER"):
        ClientSettings().address("indexer")


@pytest.mark.parametrize("address", ["search", "search:", "http://search:7420", "a b:1", "search:7420,other:7420"])
def test_an_address_of_no_use_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="is neither HOST:PORT"):
        ClientSettings(search=address)


@pytest.mark.parametrize("address", ["search:7420", "dns:///search.memoryd.svc:7420", "[::1]:7420", "unix:/run/m.sock"])
def test_addresses(address: str) -> None:
    assert ClientSettings(search=address).address("search") == address
