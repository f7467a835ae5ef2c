"""A provider of embeddings: a real HTTP server with the OpenAI API before a real, tiny model."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

import numpy as np

from memoryd.models import prepare
from memoryd.models.folder import TOKENIZER_FILE
from memoryd.models.spec import Variant
from memoryd.ports import TextKind
from services.embedder.engines.onnx import OnnxEngine
from tests.support.tiny_model import TINY, tiny_checkpoint

KEY = "sk-a-key-that-nobody-may-see"
Refusal = tuple[int, Mapping[str, str], object]
"""Status, headers, body."""


class OpenAIServer(ThreadingHTTPServer):
    """Serves /v1/embeddings.

    Attributes:
        requests: bodies that were answered or refused.
        refusals: what the next requests are answered, before any is served.
        tokenizer_file: of the model.
        evil: a request with this text is refused with status 400.
        change: applied to each answer before it is sent.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.engine, self.lock = tiny_engine(folder), Lock()
        self.tokenizer_file = folder / TOKENIZER_FILE
        self.requests: list[dict[str, Any]] = []
        self.refusals: list[Refusal] = []
        self.evil: str | None = None
        self.change: Callable[[dict[str, Any]], object] = lambda answer: answer

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: callers that leave early are part of the tests."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: OpenAIServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._send(*self._answer(body))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base's name)
        pass

    def _answer(self, body: dict[str, Any]) -> Refusal:
        with self.server.lock:
            self.server.requests.append(body)
            if self.server.refusals:
                return self.server.refusals.pop(0)
        if self.path != "/v1/embeddings":
            return 404, {}, {"error": {"message": "no such path"}}
        if self.headers["authorization"] != f"Bearer {KEY}":
            message = f"Incorrect API key provided: {self.headers['authorization']}"
            return 401, {}, {"error": {"message": message, "code": "invalid_api_key"}}
        if self.server.evil in body["input"]:
            return 400, {}, {"error": {"message": f"bad input {self.server.evil}", "code": None}}
        ids = self.server.engine.tokenizer.ids(body["input"], TextKind.QUERY)
        vectors = [self.server.engine.encode([each])[0] * 3 for each in ids]  # providers need not normalise
        data = [
            {"object": "embedding", "index": index, "embedding": _encoded(vector, body["encoding_format"])}
            for index, vector in enumerate(vectors)
        ]
        return 200, {}, self.server.change({"object": "list", "data": data[::-1], "model": body["model"]})

    def _send(self, status: int, headers: Mapping[str, str], body: object) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _encoded(vector: np.ndarray[Any, Any], encoding: str) -> object:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if encoding == "base64" else vector.tolist()


def tiny_engine(folder: Path) -> OnnxEngine:
    """Prepare the tiny model in a folder and load it."""
    prepare._write(tiny_checkpoint(), folder, TINY, Variant.FP32, lambda *_: None)  # noqa: SLF001  (no hub has it)
    return OnnxEngine.load(folder)


@contextmanager
def serve_openai() -> Iterator[OpenAIServer]:
    """Serve until the context ends."""
    with TemporaryDirectory() as temporary, OpenAIServer(Path(temporary, "tiny")) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
