"""The default model in every form that the sections use, prepared before anything is measured."""

from __future__ import annotations

import sys
from collections.abc import Collection

from memoryd.models.prepare import prepare
from memoryd.models.spec import E5_SMALL, Variant, default_folder


def ready(sections: Collection[str], engines: Collection[str]) -> None:
    """Make what is not there yet: a run of minutes must not end for want of a model in its last section."""
    wanted = {Variant.INT8} if "onnx" in engines else set()
    if "sentence-transformers" in engines or "compare" in sections:
        wanted.add(Variant.TORCH)
    if "compare" in sections:
        wanted |= {Variant.FP32, Variant.INT8}
    for variant in sorted(wanted):
        print(f"{E5_SMALL.name}, {variant}: prepare …", file=sys.stderr)
        prepare(E5_SMALL, default_folder(E5_SMALL, variant), variant=variant)
