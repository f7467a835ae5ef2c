"""Secrets that people paste into conversations. None here opens anything; they are put together for scanners' sake."""

from __future__ import annotations

import json

import pytest

from memoryd.domain.sessions.redaction import REDACTED, redact
from memoryd.domain.sessions.transcripts import render

R20, R36 = "a1B2c3D4e5F6g7H8i9J0", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
HEX32 = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "secret",
    [
        "sk-live-51H8xEXAMPLEEXAMPLE",
        "sk" + "_live_51H8xEXAMPLEEXAMPLE",
        "sk-" + "ant-api03-" + R36 + "-" + R20,
        "sk-" + "proj-" + R36,
        "AKIA" + "IOSFODNN7EXAMPLE",
        "ghp" + "_" + R36,
        "github" + "_pat_" + R36,
        "glpat" + "-" + R20,
        "xoxb" + "-1234567890-" + R20,
        "AIza" + "Sy" + R36[:33],
        "hf" + "_" + R36,
        "npm" + "_" + R36,
        "SG." + R20 + "." + R36,
        "AC" + HEX32,
        "123456789:" + "AA" + R36[:33],
        "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0." + R36,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY9",
    ],
)
@pytest.mark.parametrize("around", ["{}", "my key is {}", "({}), please", "KEY={}", "`{}`", "see\n{}\nthere"])
def test_keys_are_redacted_wherever_they_stand(secret: str, around: str) -> None:
    redacted = redact(around.format(secret))
    assert REDACTED in redacted
    assert not any(part in redacted for part in secret.split("\n"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("postgres://rod:hunter2@db.internal:5432/x", f"postgres://rod:{REDACTED}@db.internal:5432/x"),
        ("redis://:p@ss@cache/0", f"redis://:{REDACTED}@cache/0"),
        ("https://x.io/a?b=1&token=abcdef&c=2", f"https://x.io/a?b=1&token={REDACTED}&c=2"),
        ("curl -H 'Authorization: Bearer opaque-value' x", f"curl -H 'Authorization: Bearer {REDACTED}' x"),
        ("Authorization: Basic cm9kOmh1bnRlcjI=", f"Authorization: Basic {REDACTED}"),
        ("send Bearer abc123def456ghi now", f"send Bearer {REDACTED} now"),
        ("DB_PASSWORD=correcthorse next", f"DB_PASSWORD={REDACTED} next"),
        ('{"client_secret": "correct-horse"}', f'{{"client_secret": "{REDACTED}"}}'),
        ("the api key: 12345678", f"the api key: {REDACTED}"),
        ("my password is hunter2, ok", f"my password is {REDACTED}, ok"),
        ("wifi 密码是hunter22。", f"wifi 密码是{REDACTED}。"),
        ("https://hooks.slack.com/services/T000/B000/XXXX", f"https://hooks.slack.com/services/{REDACTED}"),
    ],
)
def test_what_announces_a_secret_stays(text: str, kept: str) -> None:
    assert redact(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "The password is important, don't forget it.",
        "Use sk-learn-contrib-estimators for this; the task-force-meeting-on-monday is off.",
        "commit 4f2a9c1d8e7b6a5f4e3d2c1b0a9f8e7d6c5b4a39 in src/lib/i18n/messages/en-GB/settings.ts",
        "id 3f0c1a52-9d0b-4c59-8a57-6d656d6f7279, DEC-0054, 2026-03-31T10:00:00Z, v2026.4.10",
        "see https://example.com/a/b?page=2&sort=asc#L10 and rod@example.com",
        "a_very_long_snake_case_identifier_with_many_words_in_it_2",
        "The basic responsibilities of a token bucket; bearer of good news.",
        "/srv/agents/Rod/Projects/Memoryd/services/Workspace/Reconcile/test2.py",
        "我们周末玩成语接龙，密码学很有趣。",
        "see https://support.example.com/hc/en-us/articles/204849977-How-do-I-create-a-server",
        'curl -H "x-api-key: $API_KEY" with the password: <your password>, or api_key = "${KEY_OF_MINE}"',
        "tokens and secrets:\n- one\n```\nx = 1\n```",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text", ["sk-" * 100_000, "eyJ" * 100_000, "a.a-" * 100_000, "-----BEGIN PRIVATE KEY" * 20_000]
)
def test_no_text_takes_long(text: str) -> None:
    """Time that grows with the square of the length would end the test run's patience."""
    assert redact(text)


@pytest.mark.parametrize("case", [pytest.param("session-secret", id="session-secret")])
def test_a_message_is_redacted(case: str) -> None:
    line = '{"type":"message","message":{"role":"user","content":"my key is sk-live-51H8xEXAMPLEEXAMPLE"}}'
    assert render([line.encode()]).text == f"User: my key is {REDACTED}\n"
    escaped = json.dumps(
        {"role": "user", "content": "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nok"}
    )
    assert render([escaped.encode()]).text == f"User: {REDACTED} ok\n"
