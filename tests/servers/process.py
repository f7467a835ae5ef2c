"""A server as a process that a test can stop and start again."""

from __future__ import annotations

import atexit
import itertools
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_START_SECONDS = 180.0
_STOP_SECONDS = 20.0
_ROOM = 1 << 30


class ServerProcess:
    """A program that serves on a port of this machine. What it keeps, and its port, outlive a stop.

    Args:
        command: the program and its arguments.
        log: where its output goes.
        ready: whether it answers now.
        environment: its environment variables; None for those of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self._ready = ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id; None where it does not run."""
        return self._process.pid if self._process else None

    @property
    def ended(self) -> int | None:
        """Its exit status, where it has ended by itself."""
        return self._process.poll() if self._process else None

    def start(self, ready: Callable[[], bool] | None = None) -> None:
        """Start it, where it does not run, and wait until it is ready, in this sense if one is given."""
        ready = ready or self._ready
        if self._process is not None:
            return
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )
        end = time.monotonic() + _START_SECONDS
        while not ready():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                message = f"{self._command[0]} did not start:\n{self._log.read_text(errors='replace')[-4_000:]}"
                raise RuntimeError(message)
            time.sleep(0.05)

    def stop(self) -> int | None:
        """End it; it gets a while to do so in order. Returns its exit status; None where it did not run."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.terminate()
        try:
            return process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def pause(self) -> None:
        """Keep it from running: connections stay, nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it run on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


def once(make: Callable[[], T]) -> Callable[[], T]:
    """Make something when it is first asked for; what fails then is not tried again for each test."""
    made: list[Future[T]] = []

    def get() -> T:
        if not made:
            made.append(Future())
            try:
                made[0].set_result(make())
            except BaseException as error:  # noqa: BLE001  (pytest's outcomes are no Exception)
                made[0].set_exception(error)
        return made[0].result()

    return get


def server_folder(name: str) -> Path:
    """Make a folder for what a server keeps, removed with this process; in memory where that has room.

    Engines sync with every small write: on a busy disk that is most of what a test waits for.
    """
    memory = Path("/dev/shm")  # noqa: S108  (the folder made there is nobody else's)
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > _ROOM
    folder = Path(tempfile.mkdtemp(prefix=f"memoryd-{name}-", dir=memory if roomy else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


# Below those that Linux gives to connections by default: none of them takes a port between the look and the server's
# start. From a random one on, since several processes run tests at a time.
_PORTS = range(12_000, 32_000)
_ports = itertools.islice(itertools.cycle(_PORTS), secrets.randbelow(len(_PORTS)), None)


def free_port() -> int:
    """Find a port that nobody listens on; another one each time."""
    while True:
        port = next(_ports)
        with socket.socket() as held, suppress(OSError):
            held.bind(("127.0.0.1", port))
            return port


def accepts(port: int) -> bool:
    """Whether a server listens on a port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
