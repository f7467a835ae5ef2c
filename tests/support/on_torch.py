"""What tests of the engines on torch share."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from services.embedder.settings import EmbedderSettings


def need_torch() -> None:
    """Skip the test where the extra `torch` is missing; CI must have it."""
    if find_spec("sentence_transformers") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must install the extra `torch`: its engines are not tested without")
        pytest.skip("NOT TESTED: the engines on torch. Install the extra: make test TORCH=1")


def on_torch(**changes: object) -> EmbedderSettings:
    """Make the settings of that engine."""
    return EmbedderSettings.model_validate({"engine": "sentence-transformers"} | changes)
