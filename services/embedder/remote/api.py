"""One request to /v1/embeddings: what is sent, what comes back, and what each failure means."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import numpy as np
import orjson
import structlog
from numpy.typing import NDArray

from memoryd.errors import MemorydError, ResourceExhaustedError, UnavailableError
from services.embedder.remote.settings import OpenAISettings
from services.embedder.stream import QUOTA

_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "access_terminated"})
_REFUSED_TEXTS = frozenset({400, 413, 422})
_PASSING = frozenset({408, 409, 425, 429})
_LONGEST_CODE = 40

_log = structlog.get_logger(__name__)


class TextsRefusedError(Exception):
    """The provider does not take these texts as they are."""


class PassingError(Exception):
    """Something that may be over at the next attempt.

    Attributes:
        error: what the caller is told where no attempt is left.
        wait: seconds the provider asks to wait; None where it asks nothing.
    """

    def __init__(self, error: MemorydError, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.wait = error, wait


class EmbeddingsApi:
    """A client of one provider. Its answers' texts never reach a caller or a log: they may quote a key or a text."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        headers = {"accept": "application/json", "content-type": "application/json"}
        if settings.api_key:
            headers["authorization"] = f"Bearer {settings.api_key.get_secret_value()}"
        self._client = httpx.AsyncClient(headers=headers, timeout=settings.timeout, follow_redirects=False)
        self._where = f"the embedding provider at {settings.host}"

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Send one request; vectors of shape (texts, dimensions), L2-normalised.

        Raises TextsRefusedError, PassingError, UnavailableError, ResourceExhaustedError.
        """
        body: dict[str, object] = {
            "model": self._settings.model,
            "input": list(texts),
            "encoding_format": self._settings.encoding,
        }
        if self._settings.dimensions:
            body["dimensions"] = self._settings.dimensions
        try:
            response = await self._client.post(f"{self._settings.url}/embeddings", content=orjson.dumps(body))
        except httpx.TimeoutException as error:
            raise PassingError(UnavailableError(f"{self._where} does not answer in time")) from error
        except httpx.HTTPError as error:  # its text may name the proxy with its password
            _log.warning("embedding provider can't be reached", host=self._settings.host, error=type(error).__name__)
            raise PassingError(UnavailableError(f"{self._where} can't be reached")) from error
        if response.status_code != httpx.codes.OK:
            self._refuse(response)
        try:
            return _vectors(response.content, len(texts))
        except (ValueError, TypeError, LookupError, binascii.Error) as error:
            raise UnavailableError(
                f"{self._where} answers what is no list of {len(texts)} embeddings: check that "
                "MEMORYD_EMBEDDER_OPENAI_URL is an OpenAI-compatible API and the model embeds"
            ) from error

    def _refuse(self, response: httpx.Response) -> None:
        status, code = response.status_code, _code(response)
        _log.warning("embedding provider refuses", host=self._settings.host, status=status, error=code)
        if code in _QUOTA:
            raise ResourceExhaustedError(
                f"the quota at {self._settings.host} is used up: raise it, or wait for the next period",
                reason=QUOTA,
            )
        if status in {401, 403}:
            raise UnavailableError(
                f"{self._where} refuses the key: check MEMORYD_EMBEDDER_OPENAI_API_KEY",
                reason="PROVIDER_CREDENTIAL_REFUSED",
            )
        if status in _REFUSED_TEXTS:
            raise TextsRefusedError
        if status == httpx.codes.TOO_MANY_REQUESTS:
            wait = retry_after(response.headers)
            raise PassingError(ResourceExhaustedError(f"{self._where} limits the rate", retry_after=wait or 1.0), wait)
        error = UnavailableError(f"{self._where} answers with status {status}: check URL and model")
        if status in _PASSING or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise PassingError(error, retry_after(response.headers))
        raise error


def retry_after(headers: httpx.Headers) -> float | None:
    """Read how many seconds to wait: `retry-after-ms` (OpenAI), or `Retry-After` (RFC 9110) in seconds or as a date."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        given = headers.get("retry-after", "")
        if given.replace(".", "", 1).isdecimal():
            return float(given)
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time()) if given else None
    except (ValueError, TypeError):
        return None


def _code(response: httpx.Response) -> str:
    """Give the error's code or type: an identifier, never its message."""
    try:
        error = orjson.loads(response.content)["error"]
        found = str(error.get("code") or error.get("type") or "")
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
    return found if found.replace("_", "").isalnum() and len(found) <= _LONGEST_CODE else ""


def _vectors(content: bytes, texts: int) -> NDArray[np.float32]:
    """Read an answer. Raises ValueError, TypeError, LookupError for what is none."""
    data = orjson.loads(content)["data"]
    rows: list[Any] = [None] * texts
    for entry in data:
        rows[entry["index"]] = _vector(entry["embedding"])
    matrix = np.stack(rows).astype(np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if len(data) != texts or not np.isfinite(matrix).all() or not lengths.all():
        raise ValueError("too many, or not finite")
    vectors: NDArray[np.float32] = (matrix / lengths).astype(np.float32)
    return vectors


def _vector(embedding: object) -> NDArray[np.float32]:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    return np.asarray(embedding, np.float32)
