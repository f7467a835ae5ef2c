"""Constants that were fitted for a model: their file, and how they reach whoever searches."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from memoryd.domain.queries import Calibrated, ModelInfo
from memoryd.domain.scoring import COMMITTED, Scoring
from memoryd.errors import ConfigError, ModelError
from memoryd.models.scoring_file import SCORING_FILE, Fitted, read_scoring, write_scoring
from services.embedder.compose import open_embedder
from services.embedder.scoring import own_scoring, scoring_place
from services.embedder.settings import EmbedderSettings
from tests.support.inner import grpc_embedder
from tests.support.model import model_dir

MODEL = ModelInfo("tiny", "f1", 4, 128, unrelated=0.1, related=0.7, engine="sentence-transformers")
OWN = replace(COMMITTED, text=replace(COMMITTED.text, order=7.5))


def fitted(scoring: Scoring = OWN, fingerprint: str = "f1") -> Fitted:
    return Fitted(model="tiny", fingerprint=fingerprint, fitted_on=("notes",), **asdict(scoring))


def at(place: Path) -> EmbedderSettings:
    return EmbedderSettings(calibration=place)


def test_the_file_comes_back_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "new" / "calibration.json"
    assert own_scoring(at(place), MODEL) is None
    write_scoring(place, fitted())
    assert read_scoring(place) == fitted()
    assert own_scoring(at(place), MODEL) == OWN
    assert [each.name for each in place.parent.iterdir()] == ["calibration.json"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"text": {"order": -1.0, "intercept": 0.0, "unfound": 0.0}}, "text: Value error, weights must be finite"),
        ({"format": 1}, "format: Input should be 2"),
        ({"other": 1}, "other: Extra inputs are not permitted"),
        ({"weights": {"text": "much"}}, "weights.text: Input should be a valid number"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    place = tmp_path / "calibration.json"
    place.write_bytes(orjson.dumps(orjson.loads(fitted().model_dump_json()) | change))
    with pytest.raises(ModelError) as caught:
        own_scoring(at(place), MODEL)
    line = str(caught.value)
    assert line.startswith(f"{place} is no calibration of a model: {what}")
    assert "\n" not in line
    assert "memoryd model calibrate" in line


def test_a_file_that_can_not_be_read_or_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"can't be read \(Is a directory\)"):
        read_scoring(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"can't be written \(File exists\): set MEMORYD_EMBEDDER_CALIBRATION"):
        write_scoring(tmp_path / "file" / "calibration.json", fitted())


def test_another_models_constants_are_not_used(tmp_path: Path) -> None:
    place = tmp_path / "calibration.json"
    write_scoring(place, fitted(fingerprint="f2"))
    with structlog.testing.capture_logs() as logs:
        assert own_scoring(at(place), MODEL) is None
    assert [(entry["log_level"], entry["file"]) for entry in logs] == [("warning", str(place))]


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORYD_MODEL_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    models = tmp_path / "memoryd" / "models"
    torch = EmbedderSettings(engine="sentence-transformers", model="some/model")
    assert scoring_place(EmbedderSettings(), MODEL) == models / "multilingual-e5-small-int8" / SCORING_FILE
    assert scoring_place(EmbedderSettings(model_dir=tmp_path), MODEL) == tmp_path / SCORING_FILE
    assert scoring_place(torch, MODEL) == models / f"f1.{SCORING_FILE}"
    assert scoring_place(EmbedderSettings(), replace(MODEL, engine="openai")) == models / f"f1.{SCORING_FILE}"


async def test_a_search_service_learns_of_them(tmp_path: Path) -> None:
    settings = EmbedderSettings(model_dir=model_dir(), calibration=tmp_path / "calibration.json")
    async with grpc_embedder(open_embedder(settings)) as embedder:
        model = await embedder.info()
        assert (model.scoring, model.calibration) == (None, Calibrated.BUILT_IN)
    write_scoring(tmp_path / "calibration.json", fitted(fingerprint=model.fingerprint))
    async with grpc_embedder(open_embedder(settings)) as embedder:
        model = await embedder.info()
        assert (model.scoring, model.calibration) == (OWN, Calibrated.OWN)
