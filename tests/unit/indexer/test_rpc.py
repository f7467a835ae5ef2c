from memoryd.domain.names import Scope
from memoryd.errors import UnavailableError
from memoryd.v1 import indexer_pb2, indexer_pb2_grpc
from services.indexer.rpc import add_to
from tests.support.inner import FakeIndexer, reached

NAMES = {"tenant": "acme", "workspace": "main"}


async def test_sync_tells_what_it_found_before_the_deadline() -> None:
    indexer = FakeIndexer()
    async with reached("indexer", lambda server, known: add_to(server, indexer, known)) as way:
        stub = indexer_pb2_grpc.IndexerServiceStub(way.channel)
        response = await way.call(stub.Sync, indexer_pb2.SyncRequest(**NAMES), 5.0)
        await way.call(stub.Sync, indexer_pb2.SyncRequest(**NAMES), 0.3)
    assert (response.changed, response.pending) == (3, 1)
    (scope, long), (_, short) = indexer.synced
    assert scope == Scope("acme", "main")
    assert 0 < long <= 4.81  # gRPC rounds a deadline up
    assert 0 < short <= 0.16


async def test_reindex() -> None:
    async with reached("indexer", lambda server, known: add_to(server, FakeIndexer(), known)) as way:
        stub = indexer_pb2_grpc.IndexerServiceStub(way.channel)
        assert (await way.call(stub.Reindex, indexer_pb2.ReindexRequest(**NAMES))).files == 7


async def test_a_status_without_names_is_of_the_disk_alone() -> None:
    indexer = FakeIndexer(error=UnavailableError("no status is asked for"))
    async with reached("indexer", lambda server, known: add_to(server, indexer, known)) as way:
        stub = indexer_pb2_grpc.IndexerServiceStub(way.channel)
        response = await way.call(stub.Status, indexer_pb2.IndexerServiceStatusRequest())
    assert response.disk_bytes == 4096
    assert not response.HasField("status")
