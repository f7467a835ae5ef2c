"""Ask this machine's server for its health: `python -m memoryd.server.probe [SERVICE]`; exit status 0 is SERVING."""

from __future__ import annotations

import socket
import ssl
import sys

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from memoryd.server.settings import ServerSettings
from memoryd.server.tls import Identity, channel_credentials

_TIMEOUT = 3.0
# A server on all addresses is asked on the loopback one.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104  (nothing listens here)


def health(settings: ServerSettings, service: str = "") -> str:
    """Give the status's name, or the name of the gRPC status where there was no answer. Raises ConfigError."""
    try:
        with _channel(settings) as channel:
            check: grpc.UnaryUnaryMultiCallable[HealthCheckRequest, HealthCheckResponse] = channel.unary_unary(
                "/grpc.health.v1.Health/Check", HealthCheckRequest.SerializeToString, HealthCheckResponse.FromString
            )
            answer = check(HealthCheckRequest(service=service), timeout=_TIMEOUT)
    except grpc.RpcError as error:
        return str(error.code().name)
    except OSError:
        return grpc.StatusCode.UNAVAILABLE.name
    return str(HealthCheckResponse.ServingStatus.Name(answer.status))


def _channel(settings: ServerSettings) -> grpc.Channel:
    host, colon, port = settings.address.rpartition(":")
    host = _LOOPBACK.get(host, host)
    if settings.identity is None:
        return grpc.insecure_channel(f"{host}{colon}{port}")
    # The server's own certificate is what is trusted, and shown where it wants one; its name is not "127.0.0.1".
    name = _certified_name((host.strip("[]"), int(port)), settings.identity)
    credentials = channel_credentials(settings.identity.cert, settings.identity)
    return grpc.secure_channel(f"{host}:{port}", credentials, [("grpc.ssl_target_name_override", name)])


def _certified_name(address: tuple[str, int], identity: Identity) -> str:
    context = ssl.create_default_context(cafile=identity.cert)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    context.load_cert_chain(*identity)
    with (
        socket.create_connection(address, _TIMEOUT) as connection,
        context.wrap_socket(connection) as encrypted,
    ):
        names = dict(encrypted.getpeercert() or {}).get("subjectAltName", ())
    return str(names[0][1]).replace("*", "any") if names else ""


def main() -> None:
    """Exit with 0 where the server says SERVING; else with 1, and say what it is instead."""
    status = health(ServerSettings(), *sys.argv[1:2])
    if status != "SERVING":
        sys.exit(f"{' '.join(sys.argv[1:2]) or 'server'}: {status}")


if __name__ == "__main__":
    main()
