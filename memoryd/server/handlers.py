"""The handlers of a server's services, also of those that come while it runs: gRPC registers only before the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import grpc


class Handlers(grpc.GenericRpcHandler):
    """Finds the handler of a call.

    Attributes:
        coming: services that are not here yet. They have a handler that never runs: nobody has a credential for them.
    """

    def __init__(self, coming: Iterable[str]) -> None:
        self.coming = set(coming)
        self._added: list[grpc.GenericRpcHandler] = []

    @property
    def registry(self) -> grpc.aio.Server:
        """What the generated functions `add_…_to_server` take, for services to be added here."""
        return cast("grpc.aio.Server", _Registry(self._added))

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:  # noqa: ANN401  (of any request and response)
        """Find it; None where no such method is served."""
        if handler_call_details.method.split("/")[1] in self.coming:
            return grpc.unary_unary_rpc_method_handler(_never)
        found = (added.service(handler_call_details) for added in self._added)
        return next((handler for handler in found if handler is not None), None)


class _Registry:
    """As much of a server as the generated functions use."""

    def __init__(self, added: list[grpc.GenericRpcHandler]) -> None:
        self._added = added

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Take a service's handlers."""
        self._added.extend(handlers)

    def add_registered_method_handlers(self, service_name: str, handlers: Mapping[str, object]) -> None:
        """Leave the same handlers alone that came the other way."""


async def _never(_request: bytes, _context: object) -> bytes:
    raise AssertionError
