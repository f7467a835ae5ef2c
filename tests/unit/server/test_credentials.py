from typing import Any, NoReturn

import grpc
import pytest
import structlog
from google.protobuf.descriptor import MethodDescriptor
from pydantic import SecretStr, ValidationError

from memoryd.auth import resolve_scope
from memoryd.errors import ConfigError, PermissionDeniedError, UnauthenticatedError
from memoryd.server.credentials import SERVICE, ServiceCredentialSettings, service_authenticator
from memoryd.server.interceptor import Authenticate
from memoryd.server.lifecycle import Server
from memoryd.server.settings import ServerSettings
from memoryd.v1 import embedder_pb2, indexer_pb2, search_pb2, search_pb2_grpc
from services.embedder.rpc import add_to as add_embedder
from services.indexer.rpc import add_to as add_indexer
from services.search.rpc import add_to
from tests.support.gateway import FakeSearcher
from tests.support.inner import CREDENTIALS, serving

LOOPBACK = ServerSettings(address="127.0.0.1:0")
PUBLIC = ServerSettings(address="0.0.0.0:7421")


def tokens(*values: str) -> ServiceCredentialSettings:
    return ServiceCredentialSettings(tokens=tuple(map(SecretStr, values)))


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param((), id="none"),
        pytest.param((("authorization", "Bearer the-tests-own-tokem"),), id="one letter off"),
        pytest.param((("authorization", "Bearer the-tests-own-token-and-more"),), id="longer"),
        pytest.param((("authorization", "Bearer "),), id="empty"),
        pytest.param((("authorization", "Basic the-tests-own-token"),), id="another scheme"),
        pytest.param((("authorization", "the-tests-own-token"),), id="no scheme"),
        pytest.param((("x-token", "the-tests-own-token"),), id="elsewhere"),
    ],
)
@pytest.mark.parametrize("tenant", ["acme", "", "no tenant at all"])
async def test_without_the_credential_a_call_is_unauthenticated_whatever_tenant_it_names(
    metadata: tuple[tuple[str, str], ...], tenant: str
) -> None:
    service = FakeSearcher()
    async with (
        serving(lambda server, known: add_to(server, service, known)) as server,
        grpc.aio.insecure_channel(server.address) as channel,
    ):
        request = search_pb2.SearchRequest(tenant=tenant, workspace="main")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await search_pb2_grpc.SearchServiceStub(channel).Search(request, metadata=metadata)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert service.asked == []


METHODS = [
    method
    for module, name in (
        (embedder_pb2, "EmbedderService"),
        (indexer_pb2, "IndexerService"),
        (search_pb2, "SearchService"),
    )
    for method in module.DESCRIPTOR.services_by_name[name].methods
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name)
async def test_no_method_of_an_inner_service_is_open(method: MethodDescriptor) -> None:
    def add_all(server: Server, known: Authenticate) -> None:
        service: Any = Untouched()
        for add in (add_embedder, add_indexer, add_to):
            add(server, service, known)

    async with serving(add_all) as server, grpc.aio.insecure_channel(server.address) as opened:
        channel: Any = opened  # requests go as bytes
        path = f"/{method.containing_service.full_name}/{method.name}"
        if method.client_streaming:
            call = channel.stream_stream(path)(iter([b""]))
        elif method.server_streaming:
            call = channel.unary_stream(path)(b"")
        else:
            call = channel.unary_unary(path)(b"")
        assert await call.code() is grpc.StatusCode.UNAUTHENTICATED


class Untouched:
    """A service that nobody may reach."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name} was reached")


async def test_each_token_is_known_and_no_other() -> None:
    authenticate = service_authenticator(LOOPBACK, tokens("the-new-token-0001", "the-old-token-0001"))
    assert await authenticate("Bearer the-new-token-0001") == SERVICE
    assert await authenticate("bearer the-old-token-0001 ") == SERVICE
    for wrong in ("", "Bearer the-old-token-000", "Bearer \u00fc", "Bearer the-new-token-0001,the-old-token-0001"):
        with pytest.raises(UnauthenticatedError, match="does not carry this deployment's service credential"):
            await authenticate(wrong)


def test_what_a_service_is_known_by_opens_no_workspace() -> None:
    with pytest.raises(PermissionDeniedError):
        resolve_scope(SERVICE, "main")


def test_nothing_is_served_without_a_credential() -> None:
    for settings in (LOOPBACK, PUBLIC):
        with pytest.raises(ConfigError, match="an inner service needs a credential: set MEMORYD_SERVICE_TOKENS"):
            service_authenticator(settings, ServiceCredentialSettings())


@pytest.mark.parametrize("address", ["127.0.0.1:7421", "localhost:1", "[::1]:7421", "unix:/run/memoryd.sock"])
async def test_insecure_on_loopback(address: str) -> None:
    authenticate = service_authenticator(ServerSettings(address=address), ServiceCredentialSettings(insecure=True))
    assert await authenticate("") == SERVICE


@pytest.mark.parametrize("address", ["0.0.0.0:7421", "[::]:7421", "10.0.0.7:7421", "127.example.com:7421"])
def test_insecure_is_for_loopback_alone(address: str) -> None:
    with pytest.raises(ConfigError, match="MEMORYD_SERVICE_INSECURE=1 is for loopback alone"):
        service_authenticator(ServerSettings(address=address), ServiceCredentialSettings(insecure=True))


async def test_insecure_does_not_switch_a_token_off() -> None:
    settings = CREDENTIALS.model_copy(update={"insecure": True})
    with pytest.raises(UnauthenticatedError):
        await service_authenticator(LOOPBACK, settings)("")


def test_a_token_without_tls_is_warned_of_where_others_can_listen() -> None:
    with structlog.testing.capture_logs() as logs:
        service_authenticator(PUBLIC, CREDENTIALS)
        service_authenticator(LOOPBACK, CREDENTIALS)
    assert [entry["event"] for entry in logs] == [
        "service tokens arrive unencrypted: use TLS where others share the network"
    ]


def test_tokens_come_from_the_environment_and_are_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_SERVICE_TOKENS", "the-new-token-0001, the-old-token-0001,")
    settings = ServiceCredentialSettings()
    assert [token.get_secret_value() for token in settings.tokens] == ["the-new-token-0001", "the-old-token-0001"]
    for shown in (repr(settings), str(settings.model_dump()), settings.model_dump_json()):
        assert "the-new" not in shown
    monkeypatch.setenv("MEMORYD_SERVICE_TOKENS", "")
    assert ServiceCredentialSettings().tokens == ()


@pytest.mark.parametrize("token", ["tooshort", "with a blank inside", "schlüssel-schlüssel", "two\nlines-of-a-token"])
def test_a_weak_token_is_refused_and_not_shown(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_SERVICE_TOKENS", token)
    with pytest.raises(ValidationError, match="a token has at least 16 characters") as caught:
        ServiceCredentialSettings()
    assert token not in str(caught.value)
