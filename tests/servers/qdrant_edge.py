"""The part of Qdrant's gRPC API that our adapter uses, on Qdrant's engine: python -m tests.servers.qdrant_edge.

No package registry carries the server itself. Several processes may share this one; it keeps its collections in a
folder, so it can be stopped, by any signal, and started again there.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

import grpc
import qdrant_edge as edge
from qdrant_client import grpc as wire

from tests.servers import qdrant_translation as translation

T = TypeVar("T")
Context = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_REQUEST = "create_collection.pb"


class Collections:
    """The collections in a folder: each a shard, and the request that it was made by. One call at a time."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root
        self.shards = {
            path.name: edge.EdgeShard.load(str(path)) for path in root.iterdir() if not path.name.endswith(".new")
        }

    def create(self, request: wire.CreateCollection) -> None:
        """Make a collection, whole or not at all."""
        name = request.collection_name
        if name in self.shards:
            raise FileExistsError(name)
        new = self.root / f"{name}.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        edge.EdgeShard.create(str(new), translation.shard_config(request)).close()
        (new / _REQUEST).write_bytes(request.SerializeToString())
        new.rename(self.root / name)
        self.shards[name] = edge.EdgeShard.load(str(self.root / name))

    def delete(self, name: str) -> bool:
        """Drop a collection; whether there was one."""
        found = self.shards.pop(name, None) is not None
        if found:
            shutil.rmtree(self.root / name)
        return found

    def info(self, name: str) -> wire.CollectionInfo:
        """Describe a collection."""
        request = wire.CreateCollection.FromString((self.root / name / _REQUEST).read_bytes())
        return translation.collection_info(request, self.shards[name])

    def update(self, name: str, operation: edge.UpdateOperation) -> wire.PointsOperationResponse:
        """Apply an operation. It is in the write-ahead log then, which outlives the process, if not the machine."""
        self.shards[name].update(operation)
        return wire.PointsOperationResponse(result=wire.UpdateResult(status=wire.UpdateStatus.Completed))

    def close(self) -> None:
        """Close all shards."""
        for shard in self.shards.values():
            shard.close()


class _Servicer:
    """Answers errors with the server's own codes."""

    def __init__(self, collections: Collections) -> None:
        self.collections = collections

    async def answer(self, context: Context, work: Callable[[], T]) -> T:
        """Run `work` on the event loop: one call at a time, and no thread to wake for it."""
        try:
            return work()
        except KeyError as error:
            await self._abort(context, grpc.StatusCode.NOT_FOUND, f"Collection {error} doesn't exist!")
        except FileExistsError as error:
            await self._abort(context, grpc.StatusCode.ALREADY_EXISTS, f"Collection `{error}` already exists!")
        except ValueError as error:
            await self._abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"Wrong input: {error}")
        except BaseException as error:  # noqa: BLE001  (a panic of the engine is no Exception)
            await self._abort(context, grpc.StatusCode.INTERNAL, f"Service internal error: {error}")

    async def _abort(self, context: Context, code: grpc.StatusCode, text: str) -> NoReturn:
        await context.abort(code, text)
        raise AssertionError  # abort always raises


class HealthService(wire.QdrantServicer):
    """Service qdrant.Qdrant."""

    async def HealthCheck(self, request: wire.HealthCheckRequest, context: Context) -> wire.HealthCheckReply:  # noqa: N802
        return wire.HealthCheckReply(title="qdrant-edge", version="1.20.0")


class CollectionsService(_Servicer, wire.CollectionsServicer):
    """Service qdrant.Collections."""

    async def Get(  # noqa: N802
        self, request: wire.GetCollectionInfoRequest, context: Context
    ) -> wire.GetCollectionInfoResponse:
        info = await self.answer(context, lambda: self.collections.info(request.collection_name))
        return wire.GetCollectionInfoResponse(result=info)

    async def List(self, request: wire.ListCollectionsRequest, context: Context) -> wire.ListCollectionsResponse:  # noqa: N802
        names = [wire.CollectionDescription(name=name) for name in sorted(self.collections.shards)]
        return wire.ListCollectionsResponse(collections=names)

    async def CollectionExists(  # noqa: N802
        self, request: wire.CollectionExistsRequest, context: Context
    ) -> wire.CollectionExistsResponse:
        exists = request.collection_name in self.collections.shards
        return wire.CollectionExistsResponse(result=wire.CollectionExists(exists=exists))

    async def Create(self, request: wire.CreateCollection, context: Context) -> wire.CollectionOperationResponse:  # noqa: N802
        await self.answer(context, lambda: self.collections.create(request))
        return wire.CollectionOperationResponse(result=True)

    async def Delete(self, request: wire.DeleteCollection, context: Context) -> wire.CollectionOperationResponse:  # noqa: N802
        found = await self.answer(context, lambda: self.collections.delete(request.collection_name))
        return wire.CollectionOperationResponse(result=found)


class PointsService(_Servicer, wire.PointsServicer):
    """Service qdrant.Points."""

    async def CreateFieldIndex(  # noqa: N802
        self, request: wire.CreateFieldIndexCollection, context: Context
    ) -> wire.PointsOperationResponse:
        def work() -> wire.PointsOperationResponse:
            params = translation.field_index(request.field_index_params)
            operation = edge.UpdateOperation.create_field_index(request.field_name, params)
            return self.collections.update(request.collection_name, operation)

        return await self.answer(context, work)

    async def Upsert(self, request: wire.UpsertPoints, context: Context) -> wire.PointsOperationResponse:  # noqa: N802
        def work() -> wire.PointsOperationResponse:
            operation = edge.UpdateOperation.upsert_points([translation.point(each) for each in request.points])
            return self.collections.update(request.collection_name, operation)

        return await self.answer(context, work)

    async def Delete(self, request: wire.DeletePoints, context: Context) -> wire.PointsOperationResponse:  # noqa: N802
        def work() -> wire.PointsOperationResponse:
            where = translation.condition(request.points.filter)
            operation = edge.UpdateOperation.delete_points_by_filter(where)
            return self.collections.update(request.collection_name, operation)

        return await self.answer(context, work)

    async def Query(self, request: wire.QueryPoints, context: Context) -> wire.QueryResponse:  # noqa: N802
        return await self.answer(context, lambda: wire.QueryResponse(result=self._found(request)))

    async def QueryBatch(self, request: wire.QueryBatchPoints, context: Context) -> wire.QueryBatchResponse:  # noqa: N802
        def work() -> wire.QueryBatchResponse:
            return wire.QueryBatchResponse(
                result=[wire.BatchResult(result=self._found(query)) for query in request.query_points]
            )

        return await self.answer(context, work)

    def _found(self, request: wire.QueryPoints) -> list[wire.ScoredPoint]:
        query = edge.QueryRequest(
            limit=request.limit,
            query=edge.Query.Nearest(list(request.query.nearest.dense.data)),
            filter=translation.condition(request.filter),
            with_payload=translation.with_payload(request.with_payload),
            params=edge.SearchParams(exact=request.params.exact),
        )
        return [translation.scored(hit) for hit in self.collections.shards[request.collection_name].query(query)]

    async def Scroll(self, request: wire.ScrollPoints, context: Context) -> wire.ScrollResponse:  # noqa: N802
        def work() -> wire.ScrollResponse:
            scroll = edge.ScrollRequest(
                offset=request.offset.uuid if request.HasField("offset") else None,
                limit=request.limit,
                filter=translation.condition(request.filter),
                with_payload=translation.with_payload(request.with_payload),
                with_vector=request.with_vectors.enable,
            )
            page, after = self.collections.shards[request.collection_name].scroll(scroll)
            return wire.ScrollResponse(
                result=[translation.retrieved(record) for record in page],
                next_page_offset=None if after is None else wire.PointId(uuid=str(after)),
            )

        return await self.answer(context, work)


class KeyCheck(grpc.aio.ServerInterceptor):
    """Refuses calls without the API key."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._refusal: Handler = grpc.unary_unary_rpc_method_handler(_refuse)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Let the call through, or not."""
        if ("api-key", self._key) in handler_call_details.invocation_metadata:
            return await continuation(handler_call_details)
        return self._refusal


async def _refuse(request: object, context: Context) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Must provide an API key or an Authorization bearer token")


async def serve(root: Path, port: int, api_key: str) -> None:
    """Serve until SIGTERM or SIGINT."""
    collections = Collections(root)
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    checks = [KeyCheck(api_key)] if api_key else []
    server = grpc.aio.server(interceptors=checks, options=[("grpc.so_reuseport", 0), *unlimited])
    wire.add_QdrantServicer_to_server(HealthService(), server)  # type: ignore[no-untyped-call]  # generated
    wire.add_CollectionsServicer_to_server(CollectionsService(collections), server)  # type: ignore[no-untyped-call]  # generated
    wire.add_PointsServicer_to_server(PointsService(collections), server)  # type: ignore[no-untyped-call]  # generated
    server.add_insecure_port(f"127.0.0.1:{port}")
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await server.start()
    await stopping.wait()
    await server.stop(grace=1)
    collections.close()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="the folder of the collections")
    parser.add_argument("--port", type=int, required=True, help="where to listen on 127.0.0.1")
    parser.add_argument("--api-key", default="", help="refuse calls without it")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.root, arguments.port, arguments.api_key))


if __name__ == "__main__":
    main()
