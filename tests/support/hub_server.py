"""A small hub: serves folders as repositories of Hugging Face's are served."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


class HubServer(ThreadingHTTPServer):
    """Serves `root`/owner/name/file as /owner/name/resolve/main/file.

    Attributes:
        requests: methods and paths asked for.
        cut: a file that is cut off in the middle.
        forged: a file that is served with the checksum of another one.
    """

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.requests: list[tuple[str, str]] = []
        self.cut = self.forged = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: HubServer
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base's name)
        pass

    def _answer(self, *, body: bool) -> None:
        self.server.requests.append((self.command, self.path))
        repository, _, name = self.path.lstrip("/").partition("/resolve/main/")
        path = self.server.root / repository / name
        if not name or not path.is_file():
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = path.read_bytes()
        summed = b"another file" if name == self.server.forged else content
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha256(summed).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content[: len(content) // 2] if name == self.server.cut else content)
            if name == self.server.cut:
                self.close_connection = True


@contextmanager
def serve_hub(root: Path) -> Iterator[HubServer]:
    """Serve until the context ends."""
    with HubServer(root) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
