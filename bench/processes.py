"""What a process takes."""

from __future__ import annotations

import os
from pathlib import Path


def resident(pid: int, *, peak: bool = False) -> float:
    """Give the resident memory of a process now, or its peak, in MiB."""
    return _status(pid, "VmHWM:" if peak else "VmRSS:")


def anonymous(pid: int) -> float:
    """Give the resident memory that is no mapped file, which the system can't take back, in MiB."""
    return _status(pid, "RssAnon:")


def _status(pid: int, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(field)]
    return int(value) / 1024


def cpu_seconds(pid: int) -> float:
    """Give the processor time of a process so far, of all its threads, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
