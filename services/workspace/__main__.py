"""The workspace service as a process, beside the folders: `python -m services.workspace`."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

from pydantic import Field

from memoryd.adapters.embedded.folder import FolderWorkspace
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.adapters.nats.opening import open_nats
from memoryd.adapters.nats.responder import serve_workspace
from memoryd.adapters.nats.settings import NatsSettings
from memoryd.process.run import run
from memoryd.process.settings import ProcessSettings
from memoryd.process.waiting import until_available
from memoryd.server.lifecycle import Server
from services.workspace.service import WorkspaceService
from services.workspace.settings import Workspaces, WorkspaceServiceSettings


class Settings(ProcessSettings):
    """Settings of the process. Its gRPC server answers health checks alone."""

    workspaces: Workspaces = Field(
        min_length=1, description='The folders, in JSON: [{"path": "/notes", "name": "notes", "tenant": "acme"}].'
    )
    nats: NatsSettings = Field(default_factory=NatsSettings)
    workspace: WorkspaceServiceSettings = Field(default_factory=WorkspaceServiceSettings)


async def serve(settings: Settings) -> None:
    """Bring the file log in line with the folders, go on watching, and answer for them."""
    roots = {workspace.scope: workspace.path for workspace in settings.workspaces}
    rules = {workspace.scope: workspace.rules(settings.workspace.rules) for workspace in settings.workspaces}
    async with Server(settings.grpc) as server, AsyncExitStack() as stack:
        connection = await open_nats(settings.nats, "workspace", server, stack)
        jetstream = f"NATS at {settings.nats.where}"
        log = await until_available(
            server,
            jetstream,
            partial(NatsFileLog.open, connection, settings.namespace, replicas=settings.nats.replicas),
        )
        stack.push_async_callback(log.close)

        async def watch() -> WorkspaceService:
            service = WorkspaceService(roots, log, settings.workspace, rules)
            await service.start()
            return service

        service = await until_available(server, jetstream, watch)
        stack.push_async_callback(service.close)
        folder = FolderWorkspace(roots, rules, service, log)
        responder = await until_available(
            server, jetstream, partial(serve_workspace, connection, settings.namespace, folder, roots)
        )
        stack.push_async_callback(responder.close)
        await server.serve()


if __name__ == "__main__":
    run("workspace", Settings, serve)
