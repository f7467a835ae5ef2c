"""Certificates as gRPC takes them: read from PEM files, and checked, since gRPC takes anything and fails later."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NamedTuple

import grpc

from memoryd.errors import ConfigError


class Identity(NamedTuple):
    """A certificate, with the chain that leads to its authority, and its private key: PEM files."""

    cert: Path
    key: Path


def server_credentials(identity: Identity, client_ca: Path | None) -> grpc.ServerCredentials:
    """Serve over TLS; with `client_ca` only to clients whose certificate it signed. Raises ConfigError."""
    pair = _read_identity(identity)
    if client_ca is None:
        return grpc.ssl_server_credentials([pair])
    return grpc.ssl_server_credentials([pair], root_certificates=_read_ca(client_ca), require_client_auth=True)


def channel_credentials(ca: Path | None, identity: Identity | None = None) -> grpc.ChannelCredentials:
    """Call over TLS servers whose certificates `ca` signed, showing `identity`. Raises ConfigError.

    Without `ca` gRPC's own roots are trusted; GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names others.
    """
    key, cert = _read_identity(identity) if identity else (None, None)
    return grpc.ssl_channel_credentials(_read_ca(ca) if ca else None, key, cert)


def _read_identity(identity: Identity) -> tuple[bytes, bytes]:
    try:
        # A key that is encrypted would otherwise be asked for on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*identity, password=lambda: "")
        return identity.key.read_bytes(), identity.cert.read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{identity.cert} and {identity.key} can't be used ({_reason(error)}): give a certificate and its private "
            "key, both PEM, the key without a passphrase"
        ) from error


def _read_ca(ca: Path) -> bytes:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(ca)
        return ca.read_bytes()
    except OSError as error:
        raise ConfigError(f"{ca} can't be used ({_reason(error)}): give certificates of authorities, PEM") from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or type(error).__name__)
