"""The memory of each process, and how long each takes from its start to SERVING."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from bench.distributed.deployment import Six, Workspaces
from bench.figures import Figure
from bench.processes import cpu_seconds, resident
from tests.servers.process import ServerProcess


def memory(six: Six, running: Workspaces) -> list[Figure]:
    """Read the resident memory of each process now, and at its peak."""
    figures = []
    for name, process in _processes(six, running):
        for what in ("now", "peak"):
            held = resident(process.pid or 0, peak=what == "peak")
            figures.append(Figure(f"memory of {name}, {what}", held, "MiB"))
    return figures


def peaks(six: Six) -> Mapping[str, float]:
    """Read the peak memory of each service's process, in MiB."""
    return {name: resident(each[0].pid or 0, peak=True) for name, each in six.cluster.processes.items()}


def cpu(six: Six, running: Workspaces) -> Mapping[str, float]:
    """Read the processor time of each process so far, in seconds."""
    return {name: cpu_seconds(process.pid or 0) for name, process in _processes(six, running)}


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
