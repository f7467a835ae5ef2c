"""The typed, asynchronous client that agent runtimes import."""

from memoryd.client.client import MemorydClient, connect
from memoryd.client.replies import (
    Degraded,
    FileWarning,
    GenerationStatus,
    GetReply,
    IndexFailure,
    Model,
    PartProbe,
    QuarantinedFile,
    SearchReply,
    SearchResult,
    StatusReply,
    SyncReply,
    WorkspaceStatus,
)
from memoryd.endpoint import Endpoint, discover

__all__ = [
    "Degraded",
    "Endpoint",
    "FileWarning",
    "GenerationStatus",
    "GetReply",
    "IndexFailure",
    "MemorydClient",
    "Model",
    "PartProbe",
    "QuarantinedFile",
    "SearchReply",
    "SearchResult",
    "StatusReply",
    "SyncReply",
    "WorkspaceStatus",
    "connect",
    "discover",
]
