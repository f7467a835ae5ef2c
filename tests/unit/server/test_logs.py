import json
import subprocess
import sys

import pytest

from memoryd.logs import mask_secrets

# Logging is configured once a process, so each check has a process of its own.
PROGRAM = """
import logging
import structlog
from memoryd.logs import LogSettings, configure
configure(LogSettings({settings}))
structlog.contextvars.bind_contextvars(request_id="r-1")
log = structlog.get_logger("memoryd.test")
log.debug("quiet")
log.info("call", api_key="s3cret", key_id="k1", header="authorization: Bearer s3cret", text="字")
logging.getLogger("opensearch").info("a request that went well")
logging.getLogger("library").warning("careful: %s", "Bearer s3cret")
try:
    raise ValueError("Bearer s3cret")
except ValueError:
    log.exception("failed")
"""


def run(settings: str = "", **environment: str) -> str:
    program = [sys.executable, "-c", PROGRAM.format(settings=settings)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr


def test_lines_are_json_off_a_terminal_and_hold_no_secret() -> None:
    output = run()
    assert "s3cret" not in output
    call, library, failed = (json.loads(line) for line in output.splitlines())
    assert call.pop("timestamp").endswith("Z")
    assert call == {
        "event": "call",
        "level": "info",
        "logger": "memoryd.test",
        "request_id": "r-1",
        "api_key": "***",
        "key_id": "k1",
        "header": "authorization: Bearer ***",
        "text": "字",
    }
    assert (library["event"], library["logger"], library["level"]) == ("careful: Bearer ***", "library", "warning")
    assert "Traceback" in failed["exception"]


def test_the_level_is_a_setting() -> None:
    assert '"quiet"' in run('level="debug"')
    assert [json.loads(line)["level"] for line in run(MEMORYD_LOG_LEVEL="warning").splitlines()] == ["warning", "error"]


def test_console_lines_are_for_people() -> None:
    output = run(MEMORYD_LOG_FORMAT="console")
    assert "careful: Bearer ***" in output
    assert not output.startswith("{")
    assert "s3cret" not in output


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("key", "abc", "***"),
        ("api_key", "abc", "***"),
        ("Authorization", "abc", "***"),
        ("nats_password", "abc", "***"),
        ("key_id", "abc", "abc"),
        ("tokens", "12", "12"),
        ("keys", 3, 3),
        ("key", ("a", "tuple"), ("a", "tuple")),
        ("error", "got 'bearer abc.def', no", "got 'bearer ***', no"),
    ],
)
def test_masks_by_name_and_by_scheme(name: str, value: object, expected: object) -> None:
    assert mask_secrets(None, "info", {name: value}) == {name: expected}
