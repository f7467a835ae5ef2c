"""The connection to OpenSearch, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import orjson
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnectionError
from opensearchpy.exceptions import ConnectionTimeout, OpenSearchException, SerializationError, TransportError
from opensearchpy.serializer import JSONSerializer

from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.errors import STORE_LOST, UnavailableError

# Another try at once, for a kept connection that the server has closed meanwhile. Longer outages are the caller's.
_RETRIES = 1


class _Orjson(JSONSerializer):
    """Reads answers several times faster: those of a search are its largest part."""

    def loads(self, s: str) -> Any:  # noqa: ANN401  (whatever the server answers)
        """Parse an answer. Raises SerializationError."""
        try:
            return orjson.loads(s)
        except orjson.JSONDecodeError as error:
            raise SerializationError(s, error) from error


def connect(settings: OpenSearchSettings) -> AsyncOpenSearch:
    """Make a client; it connects with its first call, and again whenever it has lost the connection."""
    return AsyncOpenSearch(
        hosts=[settings.url],
        http_auth=(settings.username, settings.password.get_secret_value()) if settings.username else None,
        ca_certs=str(settings.ca) if settings.ca else None,
        timeout=settings.timeout,
        max_retries=_RETRIES,
        serializer=_Orjson(),
    )


@contextmanager
def translated(settings: OpenSearchSettings) -> Iterator[None]:
    """Turn what a call raises into UnavailableError."""
    try:
        yield
    except ConnectionTimeout as error:
        raise UnavailableError(
            f"OpenSearch at {settings.url} did not answer within {settings.timeout:g} s: try again later"
        ) from error
    except NoConnectionError as error:
        raise UnavailableError(
            f"OpenSearch at {settings.url} can't be reached: see that it runs, then try again"
        ) from error
    except TransportError as error:
        raise failure(settings, error.status_code) from error
    except OpenSearchException as error:
        raise UnavailableError(f"OpenSearch at {settings.url} gave no proper answer: see what listens there") from error


def failure(settings: OpenSearchSettings, status: int | str) -> UnavailableError:
    """Say what the HTTP status of an answer means."""
    if status == HTTPStatus.NOT_FOUND:
        return UnavailableError(
            f"OpenSearch at {settings.url} has lost an index: it is filled again from the file log", reason=STORE_LOST
        )
    match status:
        case HTTPStatus.UNAUTHORIZED:
            reason = "refuses our user: set MEMORYD_OPENSEARCH_USERNAME and _PASSWORD"
        case HTTPStatus.FORBIDDEN:
            reason = "does not let our user do this, or its disk is full: see the user's roles and the disk"
        case HTTPStatus.TOO_MANY_REQUESTS:
            reason = "is overloaded, or its disk is full: see its disk, or try again later"
        case HTTPStatus.SERVICE_UNAVAILABLE:
            reason = "is not ready: try again later"
        case _:
            reason = f"failed (HTTP {status}): its log says why"
    return UnavailableError(f"OpenSearch at {settings.url} {reason}")
