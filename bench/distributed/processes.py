"""The memory of each process, and how long each takes from its start to SERVING."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.distributed.deployment import Six, Workspaces
from bench.figures import Figure
from tests.servers.process import ServerProcess


def memory(six: Six, running: Workspaces) -> list[Figure]:
    """Read the resident memory of each process now, and at its peak."""
    figures = []
    for name, process in _processes(six, running):
        for what, field in (("now", "VmRSS:"), ("peak", "VmHWM:")):
            figures.append(Figure(f"memory of {name}, {what}", _status(process, field) / 1024, "MiB"))
    return figures


def starts(six: Six, running: Workspaces) -> list[Figure]:
    """Stop and start each service's process alone, with what it depends on there. Blocks."""
    figures = []
    for name, process in _processes(six, running):
        if name not in six.servers:
            process.stop()
            began = time.perf_counter()
            process.start()
            figures.append(Figure(f"start of {name} to SERVING", time.perf_counter() - began, "s"))
    return figures


def _processes(six: Six, running: Workspaces) -> Iterator[tuple[str, ServerProcess]]:
    for name, processes in six.cluster.processes.items():
        yield name, processes[0]
    yield "workspace", running.process
    yield from six.servers.items()


def _status(process: ServerProcess, field: str) -> int:
    """A value of /proc/PID/status, in KiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(field)]
    return int(value)
