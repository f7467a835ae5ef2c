"""The default model in every form that the sections use, prepared before anything is measured."""

from __future__ import annotations

import sys
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path

from memoryd.models.prepare import prepare
from memoryd.models.spec import E5_SMALL, Variant, default_folder


def ready(sections: Collection[str], engines: Collection[str], infinity: Path | None) -> None:
    """Make what is not there yet: a run of minutes must not end for want of a model in its last section.

    `infinity` is as in `compare`: it and sentence-transformers load the torch variant, where they are installed.
    """
    wanted = {Variant.INT8} if "onnx" in engines else set()
    if "compare" in sections:
        wanted.add(Variant.FP32)
    if "sentence-transformers" in engines or ("compare" in sections and (infinity or find_spec("torch"))):
        wanted.add(Variant.TORCH)
    for variant in sorted(wanted):
        print(f"{E5_SMALL.name}, {variant}: prepare …", file=sys.stderr)
        prepare(E5_SMALL, default_folder(E5_SMALL, variant), variant=variant)
