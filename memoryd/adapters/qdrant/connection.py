"""The connection to Qdrant, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import orjson
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException

from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.errors import STORE_LOST, UnavailableError

# Every call of ours may be sent twice. gRPC adds the jitter (its "gRPC Retry Design", A6).
_RETRY = {
    "maxAttempts": 3,
    "initialBackoff": "0.1s",
    "maxBackoff": "1s",
    "backoffMultiplier": 3,
    "retryableStatusCodes": ["UNAVAILABLE"],
}
_OPTIONS = {
    "grpc.service_config": orjson.dumps(
        {"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [{"name": [{}], "retryPolicy": _RETRY}]}
    ).decode(),
    # A server that comes back is found again within seconds; gRPC's own limit is two minutes.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2_000,
    # Or a new client would begin with the back-off of an older one that had lost the same server.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 10_000,
}


def connect(settings: QdrantSettings) -> AsyncQdrantClient:
    """Make a client; it connects with its first call, and again whenever it has lost the connection."""
    return AsyncQdrantClient(
        host=settings.host,
        grpc_port=settings.port,
        https=settings.tls,
        # As a header: the parameter warns of a key without TLS, which a mesh may add where we can't see it.
        headers={"api-key": settings.api_key.get_secret_value()} if settings.api_key else None,
        prefer_grpc=True,
        timeout=settings.timeout,
        # One connection: of several, each finds a server that is back in its own time, and calls go to them in turn.
        pool_size=1,
        grpc_options=dict(_OPTIONS),  # the client writes into it
        check_compatibility=False,  # it asks over REST, which need not be reachable
    )


@contextmanager
def translated(settings: QdrantSettings) -> Iterator[None]:
    """Turn what a call raises into UnavailableError."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        reason = STORE_LOST if error.code() is grpc.StatusCode.NOT_FOUND else None
        raise UnavailableError(_message(settings, error.code()), reason=reason) from error
    except QdrantException as error:
        raise UnavailableError(f"Qdrant at {settings.url} is overloaded: try again later") from error
    except grpc.aio.UsageError as error:
        raise UnavailableError(f"the connection to Qdrant at {settings.url} is closed") from error


def _message(settings: QdrantSettings, code: grpc.StatusCode) -> str:
    match code:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return f"Qdrant at {settings.url} can't be reached: see that it runs, then try again"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"Qdrant at {settings.url} did not answer within {settings.timeout} s: try again later"
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return f"Qdrant at {settings.url} refuses our API key: set MEMORYD_QDRANT_API_KEY to one that may write"
        case grpc.StatusCode.NOT_FOUND:
            return f"Qdrant at {settings.url} has lost the collection: it is filled again from the file log"
        case _:
            return f"Qdrant at {settings.url} failed ({code.name}): its log says why"
