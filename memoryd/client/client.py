"""The client: memory_search, memory_get and status as methods."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Self, TypeVar

import grpc
from grpc_status import rpc_status

from memoryd.client import messages
from memoryd.client.replies import GetReply, SearchReply, StatusReply
from memoryd.endpoint import discover
from memoryd.errors import MemorydError, UnauthenticatedError
from memoryd.server.status import REQUEST_ID, error_info, to_error
from memoryd.v1 import memory_pb2, memory_pb2_grpc

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

# Within the call's deadline; gRPC adds jitter of a fifth. All calls of the service only read, so they can be repeated.
_RETRY = {
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
    ]
}
_LOOPBACK = re.compile(r"(?:127\.[0-9.]+|localhost|\[::1\]):[0-9]+")


def connect(server: str | None = None, *, timeout: float = 10.0) -> MemorydClient:
    """Make a client for a server found by `memoryd.endpoint.discover`; raises ConfigError where there is none."""
    endpoint = discover(server)
    return MemorydClient(endpoint.address, endpoint.key, timeout=timeout)


class MemorydClient:
    """A connection to a memoryd server, made on first use: `async with MemorydClient(address, key) as memory: …`.

    Arguments that are left out take the server's defaults. Every method raises `memoryd.errors` errors; their `details`
    hold the call's `request_id`, which the server's log lines carry too. Calls that find the server unavailable are
    repeated within `timeout` seconds.
    """

    def __init__(self, address: str, key: str, *, timeout: float = 10.0) -> None:
        """Take the server's address, HOST:PORT, an API key, and the deadline of each call in seconds."""
        self._address = address
        self._timeout = timeout
        key = key.strip()
        if not (key.isascii() and key.isprintable()):
            raise UnauthenticatedError("the API key has characters that no key has; copy it again")
        self._metadata = (("authorization", f"Bearer {key}"),)
        options: list[tuple[str, str | int]] = [
            ("grpc.service_config", json.dumps(_RETRY)),
            ("grpc.initial_reconnect_backoff_ms", 100),
            # gRPC would ask the proxy of the http_proxy variable for a server on this machine, too.
            ("grpc.enable_http_proxy", 0 if _LOOPBACK.fullmatch(address) else 1),
        ]
        self._channel = grpc.aio.insecure_channel(address, options=options)
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

    async def status(self, *, workspace: str = "") -> StatusReply:
        """Report on one workspace, or on all that the key covers."""
        request = messages.fill(memory_pb2.MemoryServiceStatusRequest(), workspace=workspace)
        return messages.status_reply(await self._call(self._stub.Status, request))

    async def _call(
        self, method: grpc.aio.UnaryUnaryMultiCallable[_Request, _Response], request: _Request
    ) -> _Response:
        try:
            return await method(request, timeout=self._timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise self._translate(error) from error

    def _translate(self, error: grpc.aio.AioRpcError) -> MemorydError:
        # from_call reads metadata, code and details, which AioRpcError has; the stubs know grpc.Call alone.
        info = error_info(rpc_status.from_call(error))  # type: ignore[arg-type]  # see above
        message = error.details() or error.code().name
        code = error.code()
        if info is None and code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
            code = grpc.StatusCode.UNAVAILABLE
            message = f"nothing answers at {self._address}; is the server running? `memoryd serve` starts one"
        elif info is None and code is grpc.StatusCode.DEADLINE_EXCEEDED:
            message = f"{self._address} did not answer within {self._timeout:g} s; allow more time or ask for less"
        translated = to_error(code, message, info)
        request_id = (error.trailing_metadata() or grpc.aio.Metadata()).get(REQUEST_ID)
        if isinstance(request_id, str):
            translated.details["request_id"] = request_id
        return translated
