import stat
from pathlib import Path

import pytest

from memoryd.client import connect
from memoryd.endpoint import Endpoint, discover, local_data_dir, read_endpoint, shell_prefix, write_endpoint
from memoryd.errors import ConfigError, InvalidInputError
from tests.support.gateway import Gateway
from tests.support.gateway_server import gateway_server

LOCAL = Endpoint("127.0.0.1:7420", "local-key")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has set nothing, in an empty folder."""
    for name in ("MEMORYD_SERVER", "MEMORYD_KEY", "MEMORYD_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.fixture
def local(home: Path) -> Path:
    """The data directory of a local server."""
    data_dir = home / "here" / ".memoryd"
    data_dir.mkdir()
    write_endpoint(data_dir, LOCAL)
    return data_dir


def test_where_the_data_directory_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert local_data_dir() == home / "share" / "memoryd"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(home))
    assert local_data_dir() == home / ".local" / "share" / "memoryd"
    (home / "here" / ".memoryd").mkdir()
    assert local_data_dir().resolve() == home / "here" / ".memoryd"
    monkeypatch.setenv("MEMORYD_DATA_DIR", "/srv/memoryd")
    assert local_data_dir() == Path("/srv/memoryd")


def test_a_command_is_told_of_a_data_directory_that_it_would_not_find(
    home: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell_prefix(local) == shell_prefix(Path(".memoryd")) == ""
    assert shell_prefix(Path("other dir")) == f"MEMORYD_DATA_DIR='{home}/here/other dir' "
    # Another shell does not have this one's variables.
    monkeypatch.setenv("MEMORYD_DATA_DIR", "/srv/memoryd")
    assert shell_prefix(Path("/srv/memoryd")) == "MEMORYD_DATA_DIR=/srv/memoryd "
    assert shell_prefix(local) == ""


def test_the_local_server_is_found_and_its_file_is_private(local: Path) -> None:
    assert discover() == LOCAL
    (file,) = local.iterdir()
    assert file.name == "endpoint.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    write_endpoint(local, Endpoint("127.0.0.1:7421", "next-key"))
    assert discover().address == "127.0.0.1:7421"
    assert "next-key" not in repr(discover())


def test_the_environment_comes_before_the_file(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORYD_KEY", "my-key")
    assert discover() == Endpoint(LOCAL.address, "my-key")
    monkeypatch.setenv("MEMORYD_SERVER", "memory.example:443")
    assert discover() == Endpoint("memory.example:443", "my-key")
    assert discover("other.example:443").address == "other.example:443"


def test_the_local_key_goes_to_no_other_server(local: Path) -> None:
    assert discover(LOCAL.address) == LOCAL
    with pytest.raises(ConfigError, match=r"no API key for memory\.example:443: set MEMORYD_KEY"):
        discover("memory.example:443")


def test_nothing_is_known(home: Path) -> None:
    assert read_endpoint(home / "nowhere") is None
    with pytest.raises(ConfigError, match=r"no server is known: .*endpoint\.json does not exist\. Start one"):
        connect()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"address": "x"}', "\x00"])
def test_a_damaged_file_is_named(local: Path, content: str) -> None:
    (local / "endpoint.json").write_text(content)
    with pytest.raises(ConfigError, match=r"endpoint\.json can't be used"):
        discover()


async def test_connect_uses_what_was_found(local: Path) -> None:
    async with gateway_server(Gateway()) as server:
        write_endpoint(local, Endpoint(server.address, "one-workspace"))
        async with connect() as client:
            assert (await client.status()).workspaces[0].workspace == "main"


@pytest.mark.parametrize("address", ["http://127.0.0.1:7420", "grpc://memory.example:443"])
def test_a_scheme_is_left_out_of_an_address(address: str) -> None:
    with pytest.raises(InvalidInputError, match=f"leave the scheme out, {address.partition('://')[2]} "):
        discover(address)
