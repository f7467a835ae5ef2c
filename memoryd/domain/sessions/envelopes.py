"""Envelopes: what a channel or a runtime puts around the words of a person, and nobody wants to remember."""

from __future__ import annotations

import re

_CHANNELS = (
    "webchat|whatsapp|telegram|signal|slack|discord|google ?chat|imessage|bluebubbles|sms|teams|msteams|matrix|zalo|"
    "line|feishu|lark|wechat|mattermost|irc|email|cli|cron|heartbeat"
)
_TIME = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}"
# `[Telegram Alice id:123 2026-05-04 10:22 UTC] text`: a channel or a time in brackets at the very start.
_HEADER = re.compile(rf"\A\s*\[(?=(?:{_CHANNELS})\b|[^\]\n]{{0,200}}{_TIME})[^\]\n]{{1,400}}\]\s*", re.IGNORECASE)
_MESSAGE_ID = re.compile(r"^[ \t]*\[message[_ ]id:[^\]\n]{1,200}\][ \t]*$", re.IGNORECASE | re.MULTILINE)
# What runtimes insert into a person's turn; a block that is cut off goes on to the end.
_TAGS = (
    "system-reminder|command-name|command-message|command-args|local-command-stdout|local-command-caveat|"
    "relevant-memories|environment_context|user_instructions"
)
_BLOCK = re.compile(rf"<({_TAGS})\b[^>]{{0,200}}>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_METADATA = re.compile(
    r"^[ \t]*[\w ,()-]{1,80}\(untrusted[^)\n]{0,60}\)[^\n]{0,60}:[ \t]*\n```(?:json)?\n.*?(?:^```[ \t]*$|\Z)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


def strip_envelope(text: str) -> str:
    """Take the envelope off a message; nothing is left of one that is all envelope."""
    text = _METADATA.sub("", _BLOCK.sub("", text))
    return _MESSAGE_ID.sub("", _HEADER.sub("", text, count=1)).strip()
