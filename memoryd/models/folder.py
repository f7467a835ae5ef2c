"""The folder of a prepared model: a manifest with the checksum of every file, verified whenever it is opened."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from memoryd.errors import ModelError
from memoryd.models.encoder import ENCODER_VERSION, MODEL_FILE
from memoryd.models.progress import Progress, no_progress
from memoryd.models.spec import ModelSpec, Pooling, Variant
from memoryd.models.tokenizer import ModelTokenizer

MANIFEST_FILE = "memoryd-model.json"
TOKENIZER_FILE = "tokenizer.json"
SENTENCE_PIECE_FILE = "sentencepiece.model"
VERIFY = "verify"
_PART = 2**23  # bytes
PREPARE = "run `memoryd model prepare`"


class Checksum(BaseModel):
    """A file's size in bytes and its SHA-256, hex."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int
    sha256: str


class Manifest(BaseModel):
    """What a folder holds. It is written last, so a folder without it is not complete."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    name: str
    variant: Variant
    source: str
    encoder_version: int = ENCODER_VERSION
    dimensions: int
    window: int
    pooling: Pooling = Pooling.MEAN
    query_prompt: str
    passage_prompt: str
    unrelated: float
    related: float
    files: dict[str, Checksum]

    @property
    def fingerprint(self) -> str:
        """Hash what decides a vector: weights, tokenizer, prompts, pooling, dimensions, variant, graph.

        The graph counts by its version, not by its file, which a library's release may write otherwise.
        """
        kept = {name: file.sha256 for name, file in self.files.items() if name != MODEL_FILE}
        about = self.model_dump(
            mode="json",
            include={"variant", "encoder_version", "dimensions", "pooling", "query_prompt", "passage_prompt"},
        )
        return hashlib.sha256(json.dumps([about, kept], sort_keys=True).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class PreparedModel:
    """A folder whose files are those that its manifest lists."""

    folder: Path
    manifest: Manifest

    def tokenizer(self) -> ModelTokenizer:
        """Load the tokenizer with the model's prompts."""
        name = SENTENCE_PIECE_FILE if SENTENCE_PIECE_FILE in self.manifest.files else TOKENIZER_FILE
        file = (self.folder / name).read_bytes()
        return ModelTokenizer.parse(file, self.manifest.query_prompt, self.manifest.passage_prompt)


def write_manifest(folder: Path, spec: ModelSpec, variant: Variant, source: str, dimensions: int) -> None:
    """Complete a folder: list its files with their checksums."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = Manifest(
        name=spec.name,
        variant=variant,
        source=source,
        dimensions=dimensions,
        window=spec.window,
        pooling=spec.pooling,
        query_prompt=spec.query_prompt,
        passage_prompt=spec.passage_prompt,
        unrelated=spec.unrelated,
        related=spec.related,
        files={path.relative_to(folder).as_posix(): checksum(path) for path in files},
    )
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n")


def open_model(folder: Path, progress: Progress = no_progress) -> PreparedModel:
    """Open a folder and verify every file; progress is in bytes.

    Raises ModelError of one line: the file, and the command to run.
    """
    if not folder.is_dir():
        raise ModelError(f"no model in {folder}: {PREPARE}")
    path = folder / MANIFEST_FILE
    try:
        manifest = Manifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(f"{path} is missing, the model is half there: {PREPARE}") from None
    except (OSError, ValidationError) as error:
        raise ModelError(f"{path} can't be read as a model's manifest: {PREPARE}") from error
    if manifest.encoder_version != ENCODER_VERSION:
        raise ModelError(f"{folder} was prepared by another version of memoryd: {PREPARE}")
    total, done = sum(file.size for file in manifest.files.values()), 0

    def seen(count: int) -> None:
        nonlocal done
        done += count
        progress(VERIFY, done, total)

    for name, expected in manifest.files.items():
        _verify(folder / name, expected, seen)
    return PreparedModel(folder, manifest)


def checksum(path: Path, seen: Callable[[int], None] = lambda _: None) -> Checksum:
    """Compute a file's checksum; `seen` is called with the bytes that were read."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while part := file.read(_PART):
            digest.update(part)
            seen(len(part))
    return Checksum(size=path.stat().st_size, sha256=digest.hexdigest())


def _verify(path: Path, expected: Checksum, seen: Callable[[int], None]) -> None:
    try:
        size = path.stat().st_size
        if size != expected.size:
            raise ModelError(f"{path} has {size} bytes, not {expected.size}, the model is half there: {PREPARE}")
        found = checksum(path, seen)
    except FileNotFoundError:
        raise ModelError(f"{path} is missing, the model is half there: {PREPARE}") from None
    except OSError as error:
        raise ModelError(f"{path} can't be read ({error.strerror}): {PREPARE}") from error
    if found != expected:
        raise ModelError(f"{path} is damaged, its checksum is wrong: {PREPARE}")
