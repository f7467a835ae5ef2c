"""Recording what the queries of sets find, each once, so that constants can be fitted offline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memoryd.domain.names import Scope
from memoryd.domain.queries import MAX_QUERY, Mode, ModelInfo, SearchQuery
from memoryd.evaluation import probes
from memoryd.evaluation.observations import Kind, Recorded
from memoryd.evaluation.product import ServedProduct
from memoryd.evaluation.sets import Query, RetrievalSet
from services.search.observing import Observer
from services.standalone.evaluate import hosted
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import LOCAL_TENANT


@dataclass(frozen=True, slots=True)
class Recording:
    """What all queries found, and the model that they were asked with."""

    model: ModelInfo
    queries: tuple[Recorded, ...]


async def record(
    sets: Sequence[RetrievalSet],
    home: Path,
    settings: StandaloneSettings,
    progress: Callable[[str, int, int], None],
) -> Recording:
    """Index each set below `home`, unless it is there already, and ask it its own queries and such without an answer.

    At least one set is needed. With one there are no other sets' queries: its own stand in for them, their right
    documents taken away.
    """
    recorded: list[Recorded] = []
    models: list[ModelInfo] = []
    for data in sets:
        here = settings.model_copy(update={"data_dir": home / data.name / "data"})
        async with hosted(data, home / data.name / "files", here) as (standalone, client):
            await (await ServedProduct.find(client, data)).indexed(data, progress)
            parts = standalone.live.current.parts
            observer = Observer(parts, standalone.log, settings.search)
            models.append(await parts.embedder.info())
            asked = list(_asked(data, sets))
            for done, (kind, query) in enumerate(asked, 1):
                recorded.append(await _record(observer, data, kind, query))
                progress(f"search {data.name}", done, len(asked))
    if len(sets) == 1:
        recorded += [each.withheld() for each in recorded if each.kind is Kind.ANSWERABLE]
    return Recording(models[-1], tuple(recorded))


def _asked(data: RetrievalSet, sets: Sequence[RetrievalSet]) -> Iterator[tuple[Kind, Query]]:
    for query in data.queries:
        if not query.answerable:
            yield Kind.UNANSWERABLE, query
        elif query.id in data.relevant:
            yield Kind.ANSWERABLE, query
    for kind, queries in ((Kind.FOREIGN, probes.foreign(data, sets)), (Kind.GIBBERISH, probes.gibberish(data))):
        for query in queries:
            yield kind, query


async def _record(observer: Observer, data: RetrievalSet, kind: Kind, query: Query) -> Recorded:
    documents = {document.path: document.id for document in data.documents if document.group == query.group}
    both, text = [
        await observer.observe(
            Scope(LOCAL_TENANT, query.group),
            SearchQuery(query.text[:MAX_QUERY], mode=mode, explain=True),
            documents,
        )
        for mode in (Mode.HYBRID, Mode.TEXT)
    ]
    return Recorded(
        name=data.name,
        query=query.id,
        kind=kind,
        relevant=data.relevant.get(query.id, frozenset()) if kind is Kind.ANSWERABLE else frozenset(),
        ignored=data.ignored.get(query.id, frozenset()),
        both=both,
        text=text,
    )
