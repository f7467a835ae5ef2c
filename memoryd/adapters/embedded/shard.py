"""The folder of a qdrant-edge shard: made, checked, opened, synced."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import orjson
import qdrant_edge as edge

from memoryd.adapters.embedded.datadir import bytes_on_disk
from memoryd.adapters.embedded.points import INDEXES
from memoryd.errors import DAMAGED, DataError, ResourceExhaustedError

_CONFIG = "edge_config.json"
_LOG = "wal"
_SEGMENTS = "segments"
# What a compaction does (the engine does nothing by itself): it drops removed points and keeps the vectors of a segment
# of so many KB as bytes, too. It builds no graph.
_OPTIMIZERS = edge.EdgeOptimizersConfig(indexing_threshold=20_000, vacuum_min_vector_number=100)
_NO_GRAPH = edge.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=1 << 40)
_BYTES = edge.ScalarQuantizationConfig(type=edge.ScalarType.Int8, memory=edge.Memory.Cached)
_AT_ONCE = 128 << 10  # bytes: what Linux reads ahead for one request, by default
_READ_AHEAD = 0.25  # of the machine's memory

# A new shard takes 47 MB, through memory maps: a full disk would kill the process. One that exists can't be opened on
# a full disk, and that must not be taken for damage.
_TO_CREATE = 64 << 20
_TO_OPEN = 8 << 20


def advice(root: Path) -> str:
    """Say what helps where a store is broken. Its parts belong together, so they go together."""
    return f"stop memoryd, delete {root.parent} and start it; that generation is indexed again from the file log"


def open_shard(root: Path, dimensions: int) -> edge.EdgeShard:
    """Open a shard, or make one where there is no folder. What its write-ahead log holds is applied and flushed.

    Raises DataError where the folder is damaged, half there, or holds vectors of another length, and
    ResourceExhaustedError where the disk is full.
    """
    created = not root.exists()
    root.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    needed = _TO_CREATE if created else _TO_OPEN
    if shutil.disk_usage(root.parent).free < needed:
        raise ResourceExhaustedError(
            f"less than {needed >> 20} MiB are free on the disk of {root}: free some, try again; nothing is lost",
            reason="DISK_FULL",
        )
    if created:
        _create(root, dimensions)
    try:
        stored = orjson.loads((root / _CONFIG).read_bytes())["vectors"][""]["size"]
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"vector store {root} is damaged: {advice(root)}", reason=DAMAGED) from None
    if stored != dimensions:
        raise DataError(
            f"vector store {root} holds vectors of {stored} numbers, the model gives {dimensions}: {advice(root)}"
        )
    # The engine would take their absence for an empty store.
    if not all((root / folder).is_dir() and any((root / folder).iterdir()) for folder in (_LOG, _SEGMENTS)):
        raise DataError(f"vector store {root} is half there: {advice(root)}", reason=DAMAGED)
    try:
        shard = edge.EdgeShard.load(str(root), _config(dimensions))
        if not created:
            shard.flush()
    except BaseException as error:  # a panic of the engine is no Exception
        raise DataError(f"vector store {root} is damaged: {advice(root)}", reason=DAMAGED) from error
    return shard


def sync_log(root: Path) -> None:
    """Bring the write-ahead log to the disk, as `fsync` does with all pages of a file, memory-mapped ones included."""
    log = root / _LOG
    for path in [*log.iterdir(), log]:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # the engine prepares the log's next file in the background, under a name that passes
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_ahead(root: Path) -> None:
    """Ask the system to read the files into its cache, if they take no more than a quarter of the memory.

    The engine takes its files out of that cache when it closes them. At 197,000 points a search read a hundred sketches
    in 12 ms after a restart, and in 1 from the cache.
    """
    segments = root / _SEGMENTS
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if bytes_on_disk(segments) > memory * _READ_AHEAD:
        return
    for path in filter(Path.is_file, segments.rglob("*")):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            for start in range(0, path.stat().st_size, _AT_ONCE):
                os.posix_fadvise(descriptor, start, _AT_ONCE, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(descriptor)


def _config(dimensions: int) -> edge.EdgeConfig:
    # Memory-mapped: what is used lies in the page cache, which the system takes back when it must, not on our heap.
    vectors = edge.EdgeVectorParams(
        size=dimensions,
        distance=edge.Distance.Cosine,
        memory=edge.Memory.Cached,
        hnsw_config=_NO_GRAPH,
        quantization_config=_BYTES,
    )
    return edge.EdgeConfig(
        vectors=vectors,
        payload_memory=edge.Memory.Cold,
        optimizers=_OPTIMIZERS,
        # Threads share a search by segments, and there is one, or a large one and what came after it. Those without
        # work look for some all the time: of eight, the engine's default, 200 times a search, which costs what works
        # beside them.
        max_search_threads=1,
    )


def _create(root: Path, dimensions: int) -> None:
    """Make an empty shard beside its place and move it there, so that a folder that exists is whole."""
    new = root.with_name(f"{root.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700, parents=True)
    shard = edge.EdgeShard.create(str(new), _config(dimensions))
    for field, schema in INDEXES.items():
        shard.update(edge.UpdateOperation.create_field_index(field, schema))
    shard.close()
    new.rename(root)
