"""What a process takes."""

from __future__ import annotations

from pathlib import Path


def resident(pid: int, *, peak: bool = False) -> float:
    """Give the resident memory of a process now, or its peak, in MiB."""
    field = "VmHWM:" if peak else "VmRSS:"
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    (value,) = [line.split()[1] for line in lines if line.startswith(field)]
    return int(value) / 1024
