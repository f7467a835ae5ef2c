"""Which deployment is asked for a model."""

from __future__ import annotations

from contextlib import AsyncExitStack

from memoryd.adapters.grpc.models import ServedEmbedder, ServedModels
from memoryd.ports import Lane, TextKind
from services.embedder.rpc import add_to
from tests.support.engine import FakeEngine
from tests.support.inner import remote, serving
from tests.unit.adapters.grpc.test_embedder import embedding


async def test_while_both_deployments_serve_the_coming_model_its_own_one_is_asked() -> None:
    async with embedding(FakeEngine()) as service, AsyncExitStack() as stays, AsyncExitStack() as changes:
        changing, own = [
            await stack.enter_async_context(serving(lambda server, known: add_to(server, service, known)))
            for stack in (changes, stays)
        ]
        models = ServedModels(
            [
                await stays.enter_async_context(remote("embedder", [changing.address])),
                await stays.enter_async_context(remote("next_embedder", [own.address])),
            ]
        )
        await models.refresh()
        await changes.aclose()  # its replicas are being replaced
        assert models.wanted is not None
        embedder = ServedEmbedder(models, models.wanted)
        embeddings = await embedder.embed(["ferry"], kind=TextKind.PASSAGE, lane=Lane.BULK, timeout=5.0)
        assert len(embeddings.vectors) == 1
