"""Replays a history of commits: after each one both stores are compared with the files that are checked out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from memoryd.adapters.embedded.filelog import SqliteFileLog
from memoryd.adapters.embedded.manifest import SqliteManifest
from memoryd.adapters.embedded.text import TantivyTextStore
from memoryd.adapters.embedded.vectors import EdgeVectorStore
from memoryd.domain.names import Scope
from services.indexer.service import Indexer
from services.indexer.settings import IndexerSettings
from services.workspace.service import WorkspaceService
from services.workspace.settings import WorkspaceServiceSettings
from tests.chaos.check import Counts, compare
from tests.chaos.run import Tell
from tests.chaos.stream import section
from tests.support.fakes import DIMENSIONS, FakeEmbedder

_SCOPE = Scope("history", "notes")
_CHUNK_TOKENS = 48
_WITHIN = 60.0
_FOLDERS = ("", "memory/", "memory/topics/", "projects/")

Tree = dict[str, str]


@dataclass(frozen=True)
class Engines:
    """The embedded engines, with a constant-time embedder."""

    log: SqliteFileLog
    manifest: SqliteManifest
    vectors: EdgeVectorStore
    texts: TantivyTextStore
    embedder: FakeEmbedder


def history(commits: int, files: int, seed: int) -> Iterator[Tree]:
    """Give the tree of each commit: edits, renames, moved folders, splits, joins, copies, deletions, reverts."""
    rng = random.Random(seed)  # noqa: S311  (repeatable, no secret)
    trees: list[Tree] = [{_name(rng): _text(rng) for _ in range(files)}]
    kinds = (_edit, _edit, _edit, _edit, _create, _rename, _move, _split, _join, _copy, _delete)
    for _ in range(commits):
        tree = dict(trees[-1])
        for _ in range(rng.randint(1, 4)):
            change = rng.choice(kinds) if len(tree) > files // 2 else _create
            change(tree, rng)
        if rng.random() < 0.05:
            tree = dict(rng.choice(trees))
        trees.append(tree)
        yield tree


async def replay(commits: int, files: int, seed: int, place: Path, tell: Tell) -> Counts:
    """Check out each commit in a folder and compare; the counts of all comparisons together."""
    folder, total = place / "notes", Counts()
    folder.mkdir()
    settings = IndexerSettings(chunk_tokens=_CHUNK_TOKENS, grace=0.0)
    async with AsyncExitStack() as stack:
        engines = await _open(stack, place)
        workspace = WorkspaceService({_SCOPE: folder}, engines.log, WorkspaceServiceSettings())
        indexer = Indexer(**vars(engines), settings=settings)
        await indexer.start()
        stack.push_async_callback(indexer.stop, _WITHIN)
        for number, tree in enumerate(history(commits, files, seed), 1):
            _check_out(tree, folder)
            await workspace.sync(_SCOPE, _WITHIN)
            status = await indexer.wait_idle(_SCOPE, _WITHIN)
            await indexer.sweeper.look_over()
            await indexer.sweeper.sweep()
            counts = await compare(engines, _SCOPE, folder, _CHUNK_TOKENS)
            counts.lost += status.pending
            total.add(counts)
            if counts.total or number % 50 == 0:
                tell(f"commit {number} of {commits}, {len(tree)} files: {counts}")
    return total


async def _open(stack: AsyncExitStack, place: Path) -> Engines:
    log = await SqliteFileLog.open(place / "log.db")
    stack.push_async_callback(log.close)
    manifest = await SqliteManifest.open(place / "manifest.db")
    stack.push_async_callback(manifest.close)
    vectors = await EdgeVectorStore.open(place / "vectors", DIMENSIONS)
    stack.push_async_callback(vectors.close)
    texts = await TantivyTextStore.open(place / "text")
    stack.push_async_callback(texts.close)
    return Engines(log, manifest, vectors, texts, FakeEmbedder())


def _check_out(tree: Tree, folder: Path) -> None:
    """Make a folder hold a tree as git does: what differs is removed, then written anew."""
    present = {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*.md")}
    for path, text in present.items():
        if tree.get(path) != text:
            (folder / path).unlink()
    for path, text in tree.items():
        if present.get(path) != text:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)


def _name(rng: random.Random) -> str:
    return f"{rng.choice(_FOLDERS)}note-{rng.randrange(10**4)}.md"


def _text(rng: random.Random) -> str:
    return "\n".join(section(rng) for _ in range(rng.randint(1, 6)))


def _any(tree: Tree, rng: random.Random) -> str:
    return rng.choice(sorted(tree))


def _edit(tree: Tree, rng: random.Random) -> None:
    path = _any(tree, rng)
    lines = tree[path].split("\n")
    at = rng.randrange(len(lines))
    lines[at : at + rng.randint(0, 2)] = section(rng).split("\n")[: rng.randint(0, 4)]
    tree[path] = "\n".join(lines)


def _create(tree: Tree, rng: random.Random) -> None:
    tree[_name(rng)] = _text(rng)


def _rename(tree: Tree, rng: random.Random) -> None:
    path, new = _any(tree, rng), _name(rng)
    tree[new] = tree.pop(path)


def _move(tree: Tree, rng: random.Random) -> None:
    """Move a whole folder."""
    old, new = rng.sample(_FOLDERS[1:], 2)
    for path in [path for path in tree if path.startswith(old)][:10]:
        tree[new + path.removeprefix(old)] = tree.pop(path)


def _split(tree: Tree, rng: random.Random) -> None:
    path = _any(tree, rng)
    lines = tree[path].split("\n")
    half = len(lines) // 2
    tree[path], tree[_name(rng)] = "\n".join(lines[:half]), "\n".join(lines[half:])


def _join(tree: Tree, rng: random.Random) -> None:
    one, other = _any(tree, rng), _any(tree, rng)
    if one != other and len(tree[one]) < 4_000:
        tree[one] += "\n" + tree.pop(other)


def _copy(tree: Tree, rng: random.Random) -> None:
    tree[_name(rng)] = tree[_any(tree, rng)]


def _delete(tree: Tree, rng: random.Random) -> None:
    del tree[_any(tree, rng)]
