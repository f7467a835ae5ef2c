"""How many threads a query alone is best run by: with the machine to itself, and beside a process that takes a core."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import onnxruntime

from bench.figures import Figure, percentile
from memoryd.models.encoder import MODEL_FILE
from memoryd.models.spec import DEFAULT_MODEL, Variant, default_folder, find_spec

_WAYS = {"1 thread": (1, "0"), "2 threads": (2, "0"), "2 threads that spin": (2, "1")}
_SHORTEST, _LONGEST = 8, 20  # tokens
_PAUSE = 0.01  # seconds: threads that spin have given up by then
_MS = 1000


def run(queries: int) -> list[Figure]:
    """Time queries of 8 to 20 tokens on sessions in turn, so that all see the same machine."""
    sessions = {name: _session(*way) for name, way in _WAYS.items()}
    figures = []
    for beside in ("alone", "beside a busy process"):
        with _busy(beside != "alone"):
            times = _time(sessions, queries)
        for name, each in times.items():
            for share in (0.5, 0.95):
                value = percentile(each, share)
                figures.append(Figure(f"query by {name}, {beside}, p{share * 100:.0f}", value, "ms"))
    return figures


def _session(threads: int, spin: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", spin)
    options.enable_mem_pattern = False
    path = default_folder(find_spec(DEFAULT_MODEL), Variant.INT8) / MODEL_FILE
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _time(sessions: dict[str, onnxruntime.InferenceSession], queries: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in sessions}
    rng = np.random.default_rng(7)
    for number in range(-3, queries):  # the first ones warm up
        ids = rng.integers(10, 200_000, (1, int(rng.integers(_SHORTEST, _LONGEST + 1))))
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        for name in random.sample(list(sessions), len(sessions)):
            time.sleep(_PAUSE)
            began = time.perf_counter()
            sessions[name].run(["pooled"], inputs)
            if number >= 0:
                times[name].append((time.perf_counter() - began) * _MS)
    return times


@contextmanager
def _busy(wanted: bool) -> Iterator[None]:  # noqa: FBT001  (a private switch)
    if not wanted:
        yield
        return
    process = multiprocessing.get_context("spawn").Process(target=_work, daemon=True)
    process.start()
    time.sleep(1)
    try:
        yield
    finally:
        process.kill()
        process.join()


def _work() -> None:
    while True:
        sum(range(10_000))
