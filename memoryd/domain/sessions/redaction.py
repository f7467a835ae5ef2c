"""Redaction: secrets are replaced before a text leaves the machine that holds it.

A fixed list of patterns: the formats that providers document for their keys, and words that announce a secret. What has
neither form nor announcement is found only where it looks random (see `_random`). It errs on the side of redacting.
Every repetition has a bound, so that no text takes more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

REDACTION_VERSION = "1"
"""Part of a generation's name: a better list makes the texts new, so they are indexed again."""

REDACTED = "[REDACTED]"

_Replacement = str | Callable[[re.Match[str]], str]

# Prefix and alphabet as the providers document them, or as GitHub's and GitLab's secret scanning lists them.
_KEYS = (
    r"(?:sk|rk|pk)[-_](?=[\w-]{0,200}\d)[\w-]{14,400}",  # OpenAI, Anthropic, Stripe and many that follow them
    r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{16}",  # AWS
    r"gh[pousr]_[A-Za-z0-9]{20,300}|github_pat_\w{20,300}",  # GitHub
    r"gl(?:pat|dt|rt|soat|cbt|ptt|ft|imt|agent)-[\w-]{16,100}",  # GitLab
    r"xox[abeoprs]-[\w-]{8,300}|xapp-[\w-]{8,300}",  # Slack
    r"AIza[\w-]{30,50}|ya29\.[\w-]{20,500}|GOCSPX-[\w-]{20,60}",  # Google
    r"hf_[A-Za-z0-9]{20,60}|gsk_[A-Za-z0-9]{20,100}|xai-[A-Za-z0-9]{20,200}|pplx-[A-Za-z0-9]{20,100}|r8_[A-Za-z0-9]{20,60}",
    r"npm_[A-Za-z0-9]{20,60}|pypi-[\w-]{20,400}|dckr_pat_[\w-]{20,60}|rubygems_[a-f0-9]{40,60}",
    r"SG\.[\w-]{16,40}\.[\w-]{16,80}|key-[a-f0-9]{32}",  # SendGrid, Mailgun
    r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|sq0(?:atp|csp)-[\w-]{20,60}",
    r"(?:AC|SK)[a-f0-9]{32}",  # Twilio
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,70}",
    r"\d{8,10}:AA[\w-]{30,40}",  # Telegram bots
    r"[MNO][\w-]{22,28}\.[\w-]{6}\.[\w-]{25,45}",  # Discord bots
    r"eyJ[\w-]{8,4000}\.eyJ[\w-]{2,8000}(?:\.[\w-]{0,2000})?",  # JSON Web Tokens
)
_WORDS = (
    r"pass(?:word|wd|phrase|code)s?|pwd|secrets?|secret[-_ ]?(?:access[-_ ]?)?keys?|api[-_ ]?keys?|access[-_ ]?keys?|"
    r"private[-_ ]?keys?|account[-_ ]?keys?|client[-_ ]?secrets?|"
    r"(?:auth|access|refresh|bearer|bot|api|id)[-_ ]?tokens?|credentials?"
)
# What stands for a secret is none: ${NAME}, $NAME, <token>, {{ token }}; nor is what may follow on the next line.
_NO_SLOT = r"(?![\"'`]?(?:\$\{?[A-Za-z_]{3,60}\b\}?|<|\{\{)|```|[-*+] )"
_PATTERNS: tuple[tuple[re.Pattern[str], _Replacement], ...] = (
    # A key block that is cut off is one, too.
    (
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        REDACTED,
    ),
    (re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_KEYS)})(?![A-Za-z0-9])"), REDACTED),
    (re.compile(r"(hooks\.slack\.com/(?:services|workflows)/)[\w/-]{10,200}"), rf"\1{REDACTED}"),
    (re.compile(r"(discord(?:app)?\.com/api/webhooks/)[\w/-]{10,200}"), rf"\1{REDACTED}"),
    # The password in scheme://user:password@host; it may itself contain an @.
    (re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:@/]{0,200}:)[^\s/]{1,400}(?=@)"), rf"\1{REDACTED}"),
    (
        re.compile(
            r"([?&;](?:token|key|api_?key|access_?token|auth|secret|pass(?:word)?|pwd|sig(?:nature)?|code|"
            r"x-amz-(?:signature|credential|security-token))=)[^&\s\"'<>]{4,2000}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            r"(authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z]{3,10}\s{1,3})?)[^\s\"',]{8,4000}", re.IGNORECASE
        ),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(?<!\w)(bearer\s{1,3})(?=[^\s]{0,200}\d)[\w.~+/=-]{12,4000}", re.IGNORECASE), rf"\1{REDACTED}"),
    (
        re.compile(
            rf"((?:{_WORDS})[\"'`*]{{0,3}}\s{{0,3}}(?:=|:|=>|:=)\s{{0,3}}{_NO_SLOT}[\"'`]?)[^\s\"'`,;]{{4,4000}}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    # In a sentence, only what is no ordinary word: with a digit or a sign in it.
    (
        re.compile(
            rf"((?<![A-Za-z])(?:{_WORDS})\s{{1,3}}(?:is|was|are|will be|to)\s{{1,3}}{_NO_SLOT}[\"'`]?)"
            r"(?=[^\s\"'`]{0,100}[\d!#$%&*+/=?@^_|~])[^\s\"'`,;]{4,400}",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(rf"((?:密码|口令|密钥|秘钥|令牌)\s{{0,3}}(?:是|为|[:：=])\s{{0,3}}{_NO_SLOT}[\"'`]?)[!-~]{{4,400}}"),
        rf"\1{REDACTED}",
    ),
    (re.compile(r"(?<![\w+/-])[A-Za-z0-9+/_-]{40,4000}={0,2}(?![\w+/=-])"), lambda match: _random(match[0])),
)
# Most messages announce no secret, and these patterns take longest.
_HINTS = ("pass", "pwd", "secret", "key", "token", "credential")
_ANNOUNCED = frozenset(pattern for pattern, _ in _PATTERNS if _WORDS in pattern.pattern)
# Of two neighbours in Base64 62 of 100 are of different kinds (upper case, lower case, digit); in words that are joined
# by signs or by capitals a quarter is.
_MIXED = 0.35
_KINDS = 3


def redact(text: str) -> str:
    """Replace what looks like a secret."""
    lower = text.lower()
    announced = any(hint in lower for hint in _HINTS)
    for pattern, replacement in _PATTERNS:
        if announced or pattern not in _ANNOUNCED:
            text = pattern.sub(replacement, text)
    return text


def _random(text: str) -> str:
    """Redact a long run in which upper case, lower case and digits are as mixed as only random bytes are."""
    kinds = [_kind(character) for character in text if character.isalnum()]
    changes = sum(a != b for a, b in pairwise(kinds))
    return REDACTED if len(set(kinds)) == _KINDS and changes >= _MIXED * len(kinds) else text


def _kind(character: str) -> int:
    return 0 if character.isdigit() else 1 if character.isupper() else 2
