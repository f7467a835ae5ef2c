"""One tenant's Tantivy index: its engine calls, all blocking, and what its errors mean."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tantivy import DocAddress, Document, Index, IndexWriter, Searcher

from memoryd.adapters.embedded.text_documents import (
    SCHEMA,
    chunk_key,
    named_query,
    scan_query,
    search_query,
    to_chunk,
    to_document,
    to_name,
    to_ref,
)
from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.names import Scope
from memoryd.errors import DAMAGED, DataError, MemorydError, ResourceExhaustedError, UnavailableError
from memoryd.ports import Filter, QueryTerm

# Tantivy's least for one thread. A larger one makes fewer segments in an import, and no commit faster.
_WRITER_BYTES = 15_000_000
# Documents of a tenant whose chunks' names are kept: some 6 MB.
_NAMES = 20_000


@dataclass(frozen=True, slots=True)
class Change:
    """A write: keys to remove (see `chunk_key`), then documents to add."""

    removed: Sequence[str]
    added: Sequence[Document] = ()

    @classmethod
    def upsert(cls, chunks: Sequence[Chunk]) -> Change:
        """Put chunks in place of those with the same id; of several with one id the last counts."""
        last = {chunk_key(chunk.key.scope.workspace, chunk.id): chunk for chunk in chunks}
        return cls(list(last), [to_document(chunk) for chunk in last.values()])


class View:
    """What searches see until the next commit; as long, the address of a document means the same.

    Its chunk's path and id are read once: that takes .02 ms, and gives the interpreter's lock up, so under many callers
    it took longest of all that a text leg does.
    """

    def __init__(self, searcher: Searcher) -> None:
        self.searcher = searcher
        self._names: dict[tuple[int, int], tuple[str, str]] = {}

    def name(self, address: DocAddress) -> tuple[str, str]:
        """Give the path and the id of a document's chunk."""
        place = address.segment_ord, address.doc
        if (name := self._names.get(place)) is None:
            if len(self._names) >= _NAMES:
                self._names.clear()
            name = self._names[place] = to_name(self.searcher.doc(address))
        return name


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Documents of one moment: later commits don't change what it reads."""

    searcher: Searcher
    addresses: Sequence[DocAddress]


class TextIndex:
    """The index in one folder, opened when it is first needed.

    Reads may run in several threads at once; writes and `close_writer` in one at a time.
    """

    def __init__(self, folder: Path, reserve: int) -> None:
        self._folder = folder
        self._reserve = reserve
        self._opening = threading.Lock()
        self._index: Index | None = None
        self._viewing = threading.Lock()
        self._view: View | None = None
        self._writer: IndexWriter | None = None

    def write(self, changes: Sequence[Change]) -> None:
        """Apply changes in order with one commit. On return they are on disk, and searches see them.

        Raises UnavailableError or ResourceExhaustedError where nothing of them was kept.
        """
        try:
            self._check_space()
            index = self._open() or self._create()
            if self._writer is None:
                self._writer = index.writer(heap_size=_WRITER_BYTES, num_threads=1)
            _apply(self._writer, changes)
            self._writer.commit()
        except MemorydError:
            raise
        except BaseException as error:
            self._drop_writer()
            raise self._write_error(error) from error
        with self._reading(), self._viewing:
            index.reload()
            self._view = None

    def close_writer(self) -> None:
        """Wait for merges and give the folder's lock back; the next write takes it again."""
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.wait_merging_threads()
            except BaseException as error:
                raise self._write_error(error) from error

    def search(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> list[tuple[str, float]]:
        """Rank chunks, equal scores by path and id: that order does not change when segments are merged."""
        with self._reading():
            view = self._seen()
            if view is None:
                return []
            found = view.searcher.search(search_query(terms, where), limit, count=False).hits
            ranked = sorted((-score, *view.name(address)) for score, address in found)
        return [(chunk_id, -score) for score, _, chunk_id in ranked]

    def chunks(self, scope: Scope, ids: Sequence[str]) -> dict[str, Chunk]:
        """Read chunks by id; those that are not there are left out."""
        with self._reading():
            view = self._seen()
            if view is None:
                return {}
            found = view.searcher.search(named_query(scope.workspace, ids), len(ids), count=False).hits
            read = [to_chunk(view.searcher.doc(address), scope) for _, address in found]
        return {chunk.id: chunk for chunk in read}

    def snapshot(self, scope: Scope, path: str | None) -> Snapshot | None:
        """Fix the documents of a workspace, or of one file; None where there are none."""
        with self._reading():
            index = self._open()
            searcher = index.searcher() if index else None
            if searcher is None or not searcher.num_docs:
                return None
            found = searcher.search(scan_query(scope.workspace, path), searcher.num_docs, count=False).hits
            return Snapshot(searcher, [address for _, address in found])

    def _seen(self) -> View | None:
        """Give the view of the last commit; None where there is no index yet."""
        index = self._open()
        if index is None:
            return None
        with self._viewing:  # else one of before a commit could be kept after it
            if self._view is None:
                self._view = View(index.searcher())
            return self._view

    def refs(self, snapshot: Snapshot, start: int, end: int) -> list[ChunkRef]:
        """Read a part of a snapshot."""
        with self._reading():
            return [to_ref(snapshot.searcher.doc(address)) for address in snapshot.addresses[start:end]]

    def _drop_writer(self) -> None:
        """Forget a writer that failed, with what it had not committed. It may be dead, and goes on holding the lock."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(BaseException):  # why it failed is known already
                writer.wait_merging_threads()

    def _open(self) -> Index | None:
        with self._opening:
            if self._index is None and (self._folder / "meta.json").exists():
                with self._reading():
                    self._index = _opened(self._folder)
            return self._index

    def _create(self) -> Index:
        with self._opening:
            if not self._folder.exists():
                self._folder.mkdir(mode=0o700, parents=True)
                # Tantivy syncs what is inside; the folder's own entry has to outlive a power cut too.
                parent = os.open(self._folder.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(parent)
                finally:
                    os.close(parent)
            self._index = _opened(self._folder)
            return self._index

    def _check_space(self) -> None:
        folder = next(folder for folder in (self._folder, *self._folder.parents) if folder.exists())
        if shutil.disk_usage(folder).free < self._reserve:
            raise ResourceExhaustedError(
                f"less than {self._reserve >> 20} MiB are free on the disk of {self._folder}: free some, try again",
                reason="DISK_FULL",
            )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Translate what Tantivy raises: ValueError for nearly all, and panics, which are no `Exception`."""
        try:
            yield
        except MemorydError:
            raise
        except BaseException as error:
            raise DataError(
                f"text index {self._folder} can't be read, it is damaged or of another version: stop memoryd, move "
                "the folder's generation away and let memoryd index anew",
                reason=DAMAGED,
            ) from error

    def _write_error(self, error: BaseException) -> UnavailableError:
        if "LockBusy" in str(error):
            return UnavailableError(
                f"another process writes to text index {self._folder}: end that process and try again"
            )
        return UnavailableError(
            f"can't write text index {self._folder}: check the disk, its free space and the folder's permissions, "
            "then try again; nothing of this write was kept"
        )


def _opened(folder: Path) -> Index:
    index = Index(SCHEMA, path=str(folder))
    # `write` reloads it after each commit; otherwise Tantivy starts a thread that watches the file.
    index.config_reader("manual", 0)
    return index


def _apply(writer: IndexWriter, changes: Sequence[Change]) -> None:
    for change in changes:
        for key in change.removed:
            writer.delete_documents_by_term("key", key)
        for document in change.added:
            writer.add_document(document)
