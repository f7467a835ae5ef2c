"""Tags: words by which a person groups files, compared without regard to case or Unicode form."""

from __future__ import annotations

import unicodedata

MAX_CHARS = 100


def normal_tag(text: str) -> str:
    """Bring a tag into the form that is stored and compared: without `#`, NFC, folded case; it may be empty then.

    NFKC is not used: `x²` and `x2` may well be two tags.
    """
    return unicodedata.normalize("NFC", text.strip().removeprefix("#").strip().casefold())
