"""The client: memory_search, memory_get and status as methods."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import grpc

from memoryd import tracing
from memoryd.client import messages
from memoryd.client.replies import GetReply, PartProbe, SearchReply, StatusReply, SyncReply
from memoryd.endpoint import check_address, discover, is_loopback
from memoryd.errors import DeadlineExceededError, MemorydError, UnauthenticatedError, UnavailableError
from memoryd.server.status import method_name, read_error, to_error
from memoryd.server.tls import channel_credentials
from memoryd.v1 import memory_pb2, memory_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

# Within the call's deadline; gRPC adds jitter of a fifth. All calls of the service only read, so they can be repeated.
_SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{"service": memory_pb2.DESCRIPTOR.services_by_name["MemoryService"].full_name}],
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 3,
                # A server that is being stopped cancels what it no longer takes up.
                "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],
            },
        }
    ],
}
_TLS = "https://"


def connect(server: str | None = None, *, timeout: float = 10.0) -> MemorydClient:
    """Make a client for a server found by `memoryd.endpoint.discover`; raises ConfigError where there is none.

    MEMORYD_CA names a PEM file of authorities that a server with TLS is trusted by.
    """
    endpoint = discover(server)
    ca = os.environ.get("MEMORYD_CA")
    return MemorydClient(endpoint.address, endpoint.key, timeout=timeout, ca=Path(ca) if ca else None)


class MemorydClient:
    """A connection to a memoryd server, made on first use: `async with MemorydClient(address, key) as memory: …`.

    Arguments that are left out take the server's defaults. Every method raises `memoryd.errors` errors; their `details`
    hold the call's `request_id`, which the server's log lines carry too. Calls that find the server unavailable are
    repeated within `timeout` seconds.
    """

    def __init__(self, address: str, key: str, *, timeout: float = 10.0, ca: Path | None = None) -> None:
        """Prepare a connection.

        Args:
            address: HOST:PORT, or https://HOST:PORT for TLS. All addresses of the name are used in turn.
            key: an API key.
            timeout: deadline of each call, in seconds.
            ca: PEM file of the authorities that certify the server; default: those that gRPC trusts.

        Raises InvalidInputError for what is no address, UnauthenticatedError for what is no key.
        """
        check_address(address)
        self._address = address
        self._timeout = timeout
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise UnauthenticatedError("the API key has characters that no key has; copy it again")
        self._metadata = (("authorization", f"Bearer {key}"),)
        target = address.removeprefix(_TLS)
        options: list[tuple[str, str | int]] = [
            ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 5000),
            # gRPC would ask the proxy of the http_proxy variable for a server on this machine, too.
            ("grpc.enable_http_proxy", 0 if is_loopback(target) else 1),
        ]
        self._channel = (
            grpc.aio.secure_channel(target, channel_credentials(ca), options=options)
            if address.startswith(_TLS)
            else grpc.aio.insecure_channel(target, options=options)
        )
        self._stub = memory_pb2_grpc.MemoryServiceStub(self._channel)

    async def __aenter__(self) -> Self:
        """Give the client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._channel.close()

    async def search(  # noqa: PLR0913  (the contract's arguments)
        self,
        query: str,
        *,
        workspace: str = "",
        max_results: int | None = None,
        min_score: float | None = None,
        source: str = "",
        path_prefix: str = "",
        since: str = "",
        until: str = "",
        mode: str = "",
        rerank: str = "",
        mmr: float | None = None,
        decay: float | None = None,
        freshness: tuple[str, str] | None = None,
        freshness_wait: float | None = None,
        explain: bool = False,
        chat: str = "",
        typed: Sequence[tuple[str, str]] = (),
        citations: str = "",
        tags: Sequence[str] = (),
        glob: str = "",
    ) -> SearchReply:
        """Find the chunks that answer a query.

        `freshness` is a path and the revision of it to wait for, at most `freshness_wait` seconds; `typed` holds pairs
        of a kind ("lex", "vec", "hyde") and a text.
        """
        request = messages.fill(
            memory_pb2.MemorySearchRequest(),
            workspace=workspace,
            query=query,
            max_results=max_results,
            min_score=min_score,
            source=messages.number("source", source, messages.SOURCE),
            path_prefix=path_prefix,
            since=since,
            until=until,
            mode=messages.number("mode", mode, messages.MODE),
            rerank=messages.number("rerank", rerank, messages.RERANK),
            mmr_lambda=mmr,
            decay_half_life_days=decay,
            explain=explain,
            chat=messages.number("chat", chat, messages.CHAT),
            citations=messages.number("citations", citations, messages.CITATIONS),
            tags=tuple(tags),
            glob=glob,
        )
        if freshness is not None:
            path, revision = freshness
            wait_ms = None if freshness_wait is None else round(freshness_wait * 1000)
            messages.fill(request.freshness, path=path, at_least_revision=revision, wait_ms=wait_ms)
        for kind, text in typed:
            messages.fill(request.typed.add(), kind=messages.number("typed", kind, messages.KIND), text=text)
        return messages.search_reply(await self._call(self._stub.MemorySearch, request))

    async def get(
        self,
        path: str,
        *,
        workspace: str = "",
        start: int | None = None,
        lines: int | None = None,
        expected_hash: str = "",
        chat: str = "",
    ) -> GetReply:
        """Read lines of a file, from line `start` (the contract's `from`)."""
        # `from` is a keyword of Python's: it can be passed in a mapping only.
        request = messages.fill(
            memory_pb2.MemoryGetRequest(),
            workspace=workspace,
            path=path,
            lines=lines,
            expected_hash=expected_hash,
            chat=messages.number("chat", chat, messages.CHAT),
            **{"from": start},
        )
        return messages.get_reply(await self._call(self._stub.MemoryGet, request))

    async def sync(self, *, workspace: str = "", timeout: float | None = None) -> SyncReply:
        """Have a workspace's folders compared with what is indexed, and wait until what differs is searchable.

        Runtimes call it at the start of a session and after a compaction. `timeout` is this call's own deadline, in
        seconds; what is not searchable when it comes near is told in `pending`, and goes on by itself.
        """
        request = messages.fill(memory_pb2.MemoryServiceSyncRequest(), workspace=workspace)
        response = await self._call(self._stub.Sync, request, timeout)
        return SyncReply(response.changed, response.pending)

    async def status(self, *, workspace: str = "") -> StatusReply:
        """Report on one workspace, or on all that the key covers."""
        request = messages.fill(memory_pb2.MemoryServiceStatusRequest(), workspace=workspace)
        return messages.status_reply(await self._call(self._stub.Status, request))

    async def probe(self, *, workspace: str = "") -> tuple[PartProbe, ...]:
        """Have each part that a search needs asked something small, and tell how long it took."""
        request = messages.fill(memory_pb2.MemoryServiceProbeRequest(), workspace=workspace)
        response = await self._call(self._stub.Probe, request)
        return tuple(PartProbe(part.part, part.milliseconds, part.reason) for part in response.parts)

    async def _call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response],
        request: _Request,
        timeout: float | None = None,
    ) -> _Response:
        with tracing.from_program("grpc", method_name(method)) as span:
            metadata = (*self._metadata, *span.metadata)
            try:
                return await method(request, timeout=timeout or self._timeout, metadata=metadata)
            except grpc.aio.AioRpcError as error:
                span.answered(error.code().value[0])
                raise self._translate(error) from error

    def _translate(self, error: grpc.aio.AioRpcError) -> MemorydError:
        code = error.code()
        if sent := read_error(error):
            return sent
        if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
            return UnavailableError(
                f"nothing answers at {self._address}; is the server running? `memoryd serve` starts one"
            )
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineExceededError(
                f"{self._address} did not answer within {self._timeout:g} s; allow more time or ask for less"
            )
        return to_error(code, error.details() or code.name, None)
