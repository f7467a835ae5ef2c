"""Another model under a running product: searches go on, and no vector is compared with one of another model."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import pytest

from memoryd.domain.generations import VERSIONS
from memoryd.domain.queries import ModelInfo, SearchAnswer, SearchQuery
from memoryd.errors import PreconditionFailedError
from memoryd.generations.admin import GenerationStatus, drop, statuses, use
from memoryd.ports import Embedder, Embeddings, Lane, TextKind, Tokenizer
from services.embedder.compose import open_embedder
from services.embedder.settings import EmbedderSettings
from services.search.current import OLDER_GENERATION
from services.standalone.app import Standalone, open_standalone
from services.standalone.settings import StandaloneSettings, load
from tests.e2e.conftest import ROD
from tests.e2e.processes import Served, command, serve
from tests.support.eventually import eventually
from tests.support.tiny_model import prepare_tiny

SMALL, LARGE = "tiny-32", "tiny-64"
NOTES = {"kiln.md": "The kiln is hot.\n", "loom.md": "The loom is old.\n", "ferry.md": "The ferry is late.\n"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two models whose vectors differ in length."""
    place = tmp_path_factory.mktemp("models")
    return {f"tiny-{hidden}": prepare_tiny(place / str(hidden), hidden) for hidden in (32, 64)}


class Held(Embedder):
    """A model that indexes nothing before it is let go, and counts what it indexes; queries are answered."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.let_go = asyncio.Event()
        self.indexed = 0

    async def info(self) -> ModelInfo:
        return await self._model.info()

    async def tokenizer(self) -> Tokenizer:
        return await self._model.tokenizer()

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> Embeddings:
        if lane is Lane.BULK:
            await self.let_go.wait()
            self.indexed += len(texts)
        return await self._model.embed(texts, kind=kind, lane=lane, timeout=timeout, sketches=sketches, tenant=tenant)

    async def rerank(self, query: str, texts: Sequence[str], *, timeout: float) -> Sequence[float]:
        return await self._model.rerank(query, texts, timeout=timeout)


def settings(place: Path, folder: Path, model_dir: Path) -> StandaloneSettings:
    return load(
        data_dir=place / "data",
        workspaces=[{"path": folder, "name": ROD.workspace, "tenant": ROD.tenant}],
        embedder={"model_dir": model_dir},
        generations={"interval": 0.05},
    )


async def search(standalone: Standalone, text: str) -> SearchAnswer:
    query = SearchQuery(text, min_score=0.0)
    return (await standalone.gateway.search(ROD, query, timeout=20.0)).answer


def told(answer: SearchAnswer) -> tuple[str, bool]:
    """Which model answered, if one did, and whether the answer says that it is about to be replaced."""
    return answer.model.name if answer.model else "", any(entry.reason == OLDER_GENERATION for entry in answer.degraded)


async def found(standalone: Standalone, text: str) -> tuple[str, str]:
    """Which model answered, and what it found first by words."""
    answer = await search(standalone, text)
    (name, _), best = told(answer), max(answer.results, key=lambda each: each.text_score or 0.0)
    return name, best.path


async def listed(standalone: Standalone) -> list[tuple[str, str, bool]]:
    """Every generation's model and state, and whether it answers."""
    return [
        (each.generation.model.name, each.generation.state.value, each.current)
        for each in await statuses(standalone.generations)
    ]


async def of(standalone: Standalone, model: str) -> GenerationStatus:
    (status,) = [each for each in await statuses(standalone.generations) if each.generation.model.name == model]
    return status


def write(folder: Path, notes: dict[str, str]) -> None:
    for name, text in notes.items():
        (folder / name).write_text(text)


async def index(configured: StandaloneSettings, model: str) -> None:
    """Run until one generation is complete and answers."""
    async with open_standalone(configured) as standalone:

        async def state() -> list[tuple[str, str, bool]]:
            return [each for each in await listed(standalone) if each[0] == model]

        await eventually(state, [(model, "ready", True)])


class Searching:
    """Searches all the time and keeps every answer."""

    def __init__(self, standalone: Standalone) -> None:
        self._standalone = standalone
        self.answers: list[SearchAnswer] = []

    async def run(self) -> None:
        while True:
            self.answers.append(await search(self._standalone, "the kiln"))
            await asyncio.sleep(0.005)  # the loop is the services', too: without a pause a look at four files took 5 s

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task.done():
            self._task.result()
        self._task.cancel()
        await asyncio.wait({self._task})


@asynccontextmanager
async def changed(place: Path, folder: Path, models: dict[str, Path]) -> AsyncIterator[tuple[Standalone, Held]]:
    """Index with the small model, then start with the large one, which is held."""
    write(folder, NOTES)
    await index(settings(place, folder, models[SMALL]), SMALL)
    configured = settings(place, folder, models[LARGE])
    async with open_embedder(EmbedderSettings(model_dir=models[LARGE])) as model:
        held = Held(model)
        async with open_standalone(configured, embedder=held) as standalone:
            yield standalone, held
            held.let_go.set()


async def test_model_change(tmp_path: Path, folder: Path, models: dict[str, Path]) -> None:
    """Case `model-change`: the old generation answers and says so, then the new one does, and back, in one process."""
    async with changed(tmp_path, folder, models) as (standalone, held), Searching(standalone) as searching:
        assert told(await search(standalone, "the loom")) == (SMALL, True)
        write(folder, {"barge.md": "The barge is new.\n"})
        await eventually(lambda: found(standalone, "barge"), (SMALL, "barge.md"))
        assert await listed(standalone) == [(SMALL, "ready", True), (LARGE, "building", False)]
        await eventually(lambda: pending(standalone, LARGE), 4)
        held.let_go.set()
        # A held call that reaches its deadline is paid for by rests of the throttle.
        await eventually(lambda: listed(standalone), [(SMALL, "ready", False), (LARGE, "ready", True)], within=90.0)
        await eventually(lambda: told_of(standalone, "the loom"), (LARGE, False))
        assert await found(standalone, "barge") == (LARGE, "barge.md")

        await back_and_forth(standalone, folder, SMALL)
        await back_and_forth(standalone, folder, LARGE)
    names = [told(answer)[0] for answer in searching.answers]
    assert [name for n, name in enumerate(names) if names[n - 1 : n] != [name]] == [SMALL, LARGE, SMALL, LARGE]
    assert all(len(answer.results) >= len(NOTES) for answer in searching.answers)
    reasons = {entry.reason for answer in searching.answers for entry in answer.degraded}
    assert reasons == {OLDER_GENERATION}


async def back_and_forth(standalone: Standalone, folder: Path, model: str) -> None:
    """Let a model's generation answer, and see that it still takes in what is written."""
    await use(standalone.generations, (await of(standalone, model)).generation.id)
    await eventually(lambda: told_of(standalone, "the loom"), (model, False))
    write(folder, {f"{model}.md": f"Written under {model}.\n"})
    await eventually(lambda: found(standalone, f"written under {model}"), (model, f"{model}.md"))


async def pending(standalone: Standalone, model: str) -> int:
    progress = (await of(standalone, model)).progress
    return progress.pending if progress else -1


async def problem(standalone: Standalone, model: str) -> str:
    progress = (await of(standalone, model)).progress
    return progress.problem if progress else ""


async def told_of(standalone: Standalone, text: str) -> tuple[str, bool]:
    return told(await search(standalone, text))


async def test_where_the_old_model_is_gone_words_alone_find_until_the_new_one_is_ready(
    tmp_path: Path, folder: Path, models: dict[str, Path]
) -> None:
    old = tmp_path / "model"
    shutil.copytree(models[SMALL], old)
    async with changed(tmp_path, folder, models | {SMALL: old}) as (_, held):
        held.let_go.set()
    shutil.rmtree(old)
    async with changed_again(tmp_path, folder, models) as standalone:
        await use(standalone.generations, (await of(standalone, SMALL)).generation.id)
        await eventually(lambda: mode_of(standalone), "text, by no model: MODEL_ABSENT, MODEL_ABSENT")
        write(folder, {"barge.md": "The barge is new.\n"})
        # Nothing can be taken in without a model, and that is no secret.
        await eventually(lambda: pending(standalone, SMALL), 1)
        assert "does not answer" in await problem(standalone, SMALL)
        assert (await search(standalone, "the kiln")).stale


@asynccontextmanager
async def changed_again(place: Path, folder: Path, models: dict[str, Path]) -> AsyncIterator[Standalone]:
    """Start with the large model, as configured."""
    async with open_standalone(settings(place, folder, models[LARGE])) as standalone:
        await eventually(lambda: told_of(standalone, "the loom"), (LARGE, False))
        yield standalone


async def mode_of(standalone: Standalone) -> str:
    answer = await search(standalone, "the kiln")
    assert answer.results
    model = answer.model.name if answer.model else "no model"
    return f"{answer.mode}, by {model}: {', '.join(entry.reason for entry in answer.degraded)}"


async def test_a_start_with_the_former_model_lets_its_generation_answer_again(
    tmp_path: Path, folder: Path, models: dict[str, Path]
) -> None:
    write(folder, NOTES)
    await index(settings(tmp_path, folder, models[SMALL]), SMALL)
    await index(settings(tmp_path, folder, models[LARGE]), LARGE)
    async with open_standalone(settings(tmp_path, folder, models[SMALL])) as standalone:
        await eventually(lambda: told_of(standalone, "the loom"), (SMALL, False))
        await use(standalone.generations, (await of(standalone, LARGE)).generation.id)
        await eventually(lambda: told_of(standalone, "the loom"), (LARGE, False))
    # What somebody has chosen since outlives a start that changes nothing.
    async with open_standalone(settings(tmp_path, folder, models[SMALL])) as standalone:
        assert await told_of(standalone, "the loom") == (LARGE, False)


async def test_a_dropped_generation_leaves_nothing_and_can_be_built_again(
    tmp_path: Path, folder: Path, models: dict[str, Path]
) -> None:
    write(folder, NOTES)
    await index(settings(tmp_path, folder, models[SMALL]), SMALL)
    async with open_standalone(settings(tmp_path, folder, models[LARGE])) as standalone:
        small = (await of(standalone, SMALL)).generation.id
        await eventually(lambda: listed(standalone), [(SMALL, "ready", False), (LARGE, "ready", True)])
        with pytest.raises(PreconditionFailedError, match="answers searches"):
            await drop(standalone.generations, (await of(standalone, LARGE)).generation.id)
        await eventually(lambda: retired(standalone, SMALL), wanted=True)
        await drop(standalone.generations, small)
        await eventually(lambda: listed(standalone), [(LARGE, "ready", True)])
        assert not (tmp_path / "data" / "generations" / small).exists()
    await index(settings(tmp_path, folder, models[SMALL]), SMALL)
    async with open_standalone(settings(tmp_path, folder, models[SMALL])) as standalone:
        assert await found(standalone, "kiln") == (SMALL, "kiln.md")


async def test_a_generation_that_nobody_wants_is_dropped_after_the_keep_time(
    tmp_path: Path, folder: Path, models: dict[str, Path]
) -> None:
    write(folder, NOTES)
    await index(settings(tmp_path, folder, models[SMALL]), SMALL)
    configured = settings(tmp_path, folder, models[LARGE])
    soon = configured.generations.model_copy(update={"keep_days": 1e-9, "drop_grace": 0.0})
    async with open_standalone(configured.model_copy(update={"generations": soon})) as standalone:
        await eventually(lambda: listed(standalone), [(LARGE, "ready", True)])


async def test_another_chunker_is_another_generation_of_the_same_model(
    tmp_path: Path, folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, NOTES)
    await index(settings(tmp_path, folder, models[SMALL]), SMALL)
    monkeypatch.setattr("memoryd.domain.generations.VERSIONS", {**VERSIONS, "chunker": "the next one"})
    async with open_standalone(settings(tmp_path, folder, models[SMALL])) as standalone:
        await eventually(lambda: listed(standalone), [(SMALL, "ready", False), (SMALL, "ready", True)])
        assert standalone.parts.generation.id == standalone.configured
        assert await found(standalone, "kiln") == (SMALL, "kiln.md")


@pytest.mark.parametrize(("part", "embedded"), [("chunker", 0), ("analyzer", 0), ("sketch", len(NOTES))])
async def test_texts_that_another_generation_of_the_model_holds_are_not_embedded_again(
    tmp_path: Path, folder: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, part: str, embedded: int
) -> None:
    write(folder, NOTES)
    await index(settings(tmp_path, folder, models[SMALL]), SMALL)
    monkeypatch.setattr("memoryd.domain.generations.VERSIONS", {**VERSIONS, part: "the next one"})
    async with open_embedder(EmbedderSettings(model_dir=models[SMALL])) as model:
        small = Held(model)
        small.let_go.set()
        async with open_standalone(settings(tmp_path, folder, models[SMALL]), embedder=small) as standalone:
            await eventually(lambda: listed(standalone), [(SMALL, "ready", False), (SMALL, "ready", True)])
            assert await found(standalone, "kiln") == (SMALL, "kiln.md")
            (status,) = (await standalone.gateway.status([ROD])).workspaces
            assert (status.index.chunks, small.indexed) == (len(NOTES), embedded)


async def retired(standalone: Standalone, model: str) -> bool:
    return (await of(standalone, model)).generation.retired is not None


async def test_a_build_that_was_killed_goes_on(tmp_path: Path, models: dict[str, Path]) -> None:
    data, folder = tmp_path / "data", tmp_path / "notes"
    folder.mkdir()
    write(folder, {f"{n}.md": f"The ferry {n} is late.\n" for n in range(100)})
    slow = {"MEMORYD_GENERATIONS_SHARE": "0.02", "MEMORYD_INDEXER_GROUP_FILES": "4"}
    small, large = ({"MEMORYD_EMBEDDER_MODEL_DIR": str(models[name])} for name in (SMALL, LARGE))
    assert (await command(data, "index", folder, **small)).code == 0
    async with serve(data, folder, variables=large | slow) as served:
        while not 0 < (await progress_of(served, LARGE)) < 1:
            await asyncio.sleep(0.01)
        await served.end(signal.SIGKILL)
    before = json.loads((await command(data, "generations", "list", "--json")).out)
    assert [(each["model"], each["state"], each["current"]) for each in before] == [
        (SMALL, "ready", True),
        (LARGE, "building", False),
    ]
    assert 0 < before[1]["pending"] < 100
    async with serve(data, folder, variables=large | slow) as served:
        reply = await served.client.search("The ferry 7", min_score=0.0)
        assert reply.model is not None
        assert reply.model.name == SMALL
        assert (await progress_of(served, LARGE)) < 1
    assert (await command(data, "index", folder, **large)).code == 0
    after = json.loads((await command(data, "generations", "list", "--json")).out)
    assert [(each["state"], each["current"], each["pending"]) for each in after] == [
        ("ready", False, 0),
        ("ready", True, 0),
    ]
    assert {each["chunks"] for each in after} == {100}


async def progress_of(served: Served, model: str) -> float:
    return sum(each.progress for each in (await served.client.status()).generations if each.model == model)
