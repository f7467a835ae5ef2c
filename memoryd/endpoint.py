"""Where the local server is: a file that it leaves in its data directory for programs of the same user."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from memoryd.errors import ConfigError, InvalidInputError

_NAME = "endpoint.json"
_SCHEMES = {"https", "dns", "unix", "unix-abstract", "ipv4", "ipv6", "xds"}  # the first is ours, the others gRPC's
_LOOPBACK = re.compile(r"(?:127\.[0-9.]+|localhost|\[::1\]):[0-9]+|unix:.+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server's address, HOST:PORT or (with TLS) https://HOST:PORT, an API key for it, and its service credential.

    The credential is for the user whose server it is: it opens the maintenance calls, for all tenants.
    """

    address: str
    key: str = field(repr=False)
    operator: str = field(default="", repr=False)


def is_loopback(address: str) -> bool:
    """Whether an address, HOST:PORT or unix:PATH, is for this machine alone."""
    return _LOOPBACK.fullmatch(address) is not None


def check_address(address: str) -> None:
    """Refuse an address with a scheme that gRPC would take for a part of a name. Raises InvalidInputError."""
    scheme, separator, rest = address.partition("://")
    if separator and scheme not in _SCHEMES:
        raise InvalidInputError(
            f"address: {address!r} is no address of a server: leave the scheme out, {rest or 'HOST:PORT'} (with TLS: "
            f"https://{rest or 'HOST:PORT'})",
            field="address",
        )


def local_data_dir() -> Path:
    """MEMORYD_DATA_DIR, else ./.memoryd where it exists, else memoryd in the user's data home."""
    given = os.environ.get("MEMORYD_DATA_DIR")
    return Path(given) if given else _unnamed_data_dir()


def shell_prefix(data_dir: Path) -> str:
    """What a command needs before it to find the server of a data directory from a fresh shell in this folder."""
    found = data_dir.absolute() == _unnamed_data_dir().absolute()
    return "" if found else f"MEMORYD_DATA_DIR={shlex.quote(str(data_dir.absolute()))} "


def _unnamed_data_dir() -> Path:
    here = Path(".memoryd")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return here if here.is_dir() else Path(home) / "memoryd"


def write_endpoint(data_dir: Path, endpoint: Endpoint) -> None:
    """Leave the file, readable by its owner alone, whole or not at all."""
    descriptor, name = tempfile.mkstemp(dir=data_dir, prefix=_NAME)  # mode 0600
    with os.fdopen(descriptor, "w") as file:
        json.dump(asdict(endpoint), file)
    Path(name).replace(data_dir / _NAME)


def read_endpoint(data_dir: Path) -> Endpoint | None:
    """Read the file; None where there is none. Raises ConfigError where it is damaged or belongs to somebody else."""
    file = data_dir / _NAME
    try:
        fields = json.loads(file.read_text())
        return Endpoint(str(fields["address"]), str(fields["key"]), str(fields.get("operator", "")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{file} can't be used ({type(error).__name__}): restart the server, or delete the file", reason="NO_SERVER"
        ) from error


def discover(address: str | None = None) -> Endpoint:
    """Find a server: the address given, else MEMORYD_SERVER's, else the local one's; the key is MEMORYD_KEY's.

    The local server's key is used for no address but its own. Raises ConfigError that says what is missing,
    InvalidInputError for what is no address.
    """
    address = address or os.environ.get("MEMORYD_SERVER")
    if address:
        check_address(address)
    key = os.environ.get("MEMORYD_KEY")
    if address and key:
        return Endpoint(address, key)
    data_dir = local_data_dir()
    local = read_endpoint(data_dir)
    if address:
        if local is None or local.address != address:
            raise ConfigError(f"no API key for {address}: set MEMORYD_KEY", reason="NO_KEY")
        return local
    if local is None:
        raise ConfigError(
            f"no server is known: {data_dir / _NAME} does not exist. Start one with `memoryd serve`, or set "
            "MEMORYD_SERVER and MEMORYD_KEY, or MEMORYD_DATA_DIR to where the local server keeps its data.",
            reason="NO_SERVER",
        )
    return Endpoint(local.address, key or local.key)
