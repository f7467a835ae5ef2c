"""Encrypted connections, with an authority made for each test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
import trustme
from pydantic import SecretStr, ValidationError

from memoryd.adapters.grpc.searcher import GrpcSearcher
from memoryd.client import MemorydClient
from memoryd.domain.queries import SearchQuery
from memoryd.errors import ConfigError, UnavailableError
from memoryd.server.credentials import ServiceCredentialSettings
from memoryd.server.settings import ServerSettings
from memoryd.server.tls import Identity, channel_credentials, server_credentials
from services.search.rpc import add_to
from tests.support.gateway import ANSWER, SCOPE, FakeSearcher, Gateway
from tests.support.gateway_server import gateway_server
from tests.support.inner import CREDENTIALS, remote, serving


class Files(NamedTuple):
    """An authority's certificate, and what it has certified."""

    ca: Path
    cert: Path
    key: Path


def certify(folder: Path, name: str = "127.0.0.1") -> Files:
    """Make an authority and a certificate."""
    folder.mkdir()
    files = Files(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(files.ca)
    issued = authority.issue_cert(name)
    for blob in issued.cert_chain_pems:
        blob.write_to_path(files.cert, append=True)
    issued.private_key_pem.write_to_path(files.key)
    return files


@pytest.fixture
def ours(tmp_path: Path) -> Files:
    return certify(tmp_path / "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> Files:
    return certify(tmp_path / "theirs")


def listening(files: Files, client_ca: Path | None = None) -> ServerSettings:
    return ServerSettings(address="127.0.0.1:0", tls_cert=files.cert, tls_key=files.key, tls_client_ca=client_ca)


def calling(ca: Path | None, identity: Files | None = None, *, token: bool = True) -> ServiceCredentialSettings:
    return ServiceCredentialSettings(
        tokens=CREDENTIALS.tokens if token else (),
        ca=ca,
        cert=identity and identity.cert,
        key=identity and identity.key,
    )


async def search(service: FakeSearcher, server: ServerSettings, client: ServiceCredentialSettings) -> object:
    """Search once, on a server that knows callers as the client knows itself."""
    known = ServiceCredentialSettings(tokens=client.tokens)
    async with (
        serving(lambda raw, authenticate: add_to(raw, service, authenticate), server, known) as running,
        remote("search", [running.address], client) as way,
    ):
        return await GrpcSearcher(way).search(SCOPE, SearchQuery("boiler"), timeout=10.0)


async def test_tls_with_a_token(ours: Files) -> None:
    assert await search(FakeSearcher(), listening(ours), calling(ours.ca)) == ANSWER


async def test_mutual_tls_needs_no_token(ours: Files) -> None:
    assert await search(FakeSearcher(), listening(ours, ours.ca), calling(ours.ca, ours, token=False)) == ANSWER


async def test_mutual_tls_with_a_token_as_well(ours: Files) -> None:
    assert await search(FakeSearcher(), listening(ours, ours.ca), calling(ours.ca, ours)) == ANSWER


@pytest.mark.parametrize("case", ["no certificate", "another authority's", "no TLS"])
async def test_mutual_tls_lets_nobody_else_in(case: str, ours: Files, theirs: Files) -> None:
    client = {
        "no certificate": calling(ours.ca),
        "another authority's": calling(ours.ca, theirs),
        "no TLS": calling(None),
    }[case]
    service = FakeSearcher()
    with pytest.raises(UnavailableError, match=r"the search service at .* does not answer"):
        await search(service, listening(ours, ours.ca), client)
    assert service.asked == []


async def test_a_server_that_somebody_else_certified_is_not_talked_to(ours: Files, theirs: Files) -> None:
    service = FakeSearcher()
    with pytest.raises(UnavailableError):
        await search(service, listening(theirs), calling(ours.ca))
    assert service.asked == []


async def test_a_server_under_another_name_is_not_talked_to(tmp_path: Path) -> None:
    files = certify(tmp_path / "other", "search.example.org")
    service = FakeSearcher()
    with pytest.raises(UnavailableError):
        await search(service, listening(files), calling(files.ca))
    assert service.asked == []


async def test_the_token_is_wanted_over_tls_too(ours: Files) -> None:
    service = FakeSearcher()
    async with serving(lambda raw, known: add_to(raw, service, known), listening(ours)) as running:
        client = calling(ours.ca, token=False)
        async with remote("search", [running.address], client) as way:
            with pytest.raises(UnavailableError, match="refuses this process") as caught:
                await GrpcSearcher(way).search(SCOPE, SearchQuery("boiler"), timeout=10.0)
    assert caught.value.reason == "SERVICE_CREDENTIAL_REFUSED"
    assert service.asked == []


async def test_the_public_port_may_use_tls(ours: Files, theirs: Files) -> None:
    async with gateway_server(Gateway(), settings=listening(ours)) as server:
        address = f"https://{server.address}"
        async with MemorydClient(address, "one-workspace", ca=ours.ca) as client:
            assert len((await client.search("boiler")).results) == 1
        for place, ca in ((address, theirs.ca), (address, None), (server.address, None)):
            async with MemorydClient(place, "one-workspace", ca=ca) as client:
                with pytest.raises(UnavailableError):
                    await client.search("boiler")


def test_settings_that_are_half_there_are_refused(ours: Files) -> None:
    for fields in ({"tls_cert": ours.cert}, {"tls_key": ours.key}, {"tls_client_ca": ours.ca}):
        with pytest.raises(ValidationError, match="tls_cert and tls_key are set together"):
            ServerSettings.model_validate(fields)
    for fields in ({"cert": ours.cert, "ca": ours.ca}, {"key": ours.key}, {"cert": ours.cert, "key": ours.key}):
        with pytest.raises(ValidationError, match="cert and key are set together, and with ca"):
            ServiceCredentialSettings.model_validate(fields)


def encrypted(key: Path) -> Path:
    """Make of a key one for which OpenSSL asks for a passphrase."""
    begin, *rest = key.read_text().splitlines(keepends=True)
    header = f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,{'0' * 32}\n\n"
    target = key.with_name("encrypted.pem")
    target.write_text(begin + header + "".join(rest))
    return target


@pytest.mark.parametrize("case", ["missing", "no certificate", "another's key", "no key", "encrypted", "folder"])
def test_files_that_are_no_certificate_and_key_are_named(case: str, ours: Files, theirs: Files) -> None:
    cert, key = {
        "missing": (ours.cert.with_name("nothing.pem"), ours.key),
        "no certificate": (ours.key, ours.key),
        "another's key": (ours.cert, theirs.key),
        "no key": (ours.cert, ours.cert),
        "encrypted": (ours.cert, encrypted(ours.key)),
        "folder": (ours.cert.parent, ours.key),
    }[case]
    with pytest.raises(ConfigError, match=re.escape(f"{cert} and {key} can't be used")):
        server_credentials(Identity(cert, key), None)


@pytest.mark.parametrize("content", [None, b"", b"no certificate"], ids=["missing", "empty", "garbage"])
def test_a_file_that_holds_no_authority_is_named(content: bytes | None, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    if content is not None:
        ca.write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(f"{ca} can't be used")):
        channel_credentials(ca)


async def test_a_server_with_certificates_of_no_use_does_not_start(ours: Files, theirs: Files) -> None:
    settings = ServerSettings(address="127.0.0.1:0", tls_cert=ours.cert, tls_key=theirs.key)
    with pytest.raises(ConfigError, match="can't be used"):
        async with serving(lambda raw, known: add_to(raw, FakeSearcher(), known), settings):
            pass


async def test_a_token_alone_is_no_way_around_mutual_tls(ours: Files) -> None:
    async with serving(lambda raw, known: add_to(raw, FakeSearcher(), known), listening(ours, ours.ca)) as running:
        channel = grpc.aio.secure_channel(running.address, channel_credentials(ours.ca))
        async with channel:
            method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                "/memoryd.v1.SearchService/Search"
            )
            token = SecretStr("the-tests-own-token").get_secret_value()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await method(b"", metadata=(("authorization", f"Bearer {token}"),), timeout=10.0)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
