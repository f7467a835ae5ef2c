"""Where the constants are that were fitted for a model, and whether there are any."""

from __future__ import annotations

from pathlib import Path

import structlog

from memoryd.domain.queries import ModelInfo
from memoryd.domain.scoring import Scoring
from memoryd.models.scoring_file import SCORING_FILE, read_scoring
from memoryd.models.spec import MODELS, Variant, default_folder, models_folder
from services.embedder.settings import EmbedderSettings

_log = structlog.get_logger(__name__)


def scoring_place(settings: EmbedderSettings, model: ModelInfo) -> Path:
    """Name the file: the configured one, else in the model's folder; of a model without one, in the user's cache."""
    if settings.calibration:
        return settings.calibration
    if model.engine != "openai":
        variant = Variant.TORCH if settings.engine == "sentence-transformers" else settings.variant
        spec = MODELS.get(settings.model)
        folder = settings.model_dir or (default_folder(spec, variant) if spec else None)
        if folder:
            return folder / SCORING_FILE
    return models_folder() / f"{model.fingerprint}.{SCORING_FILE}"


def own_scoring(settings: EmbedderSettings, model: ModelInfo) -> Scoring | None:
    """Read a model's own constants; None where there are none for it. Raises ModelError where the file is broken."""
    place = scoring_place(settings, model)
    fitted = read_scoring(place)
    if fitted is None:
        return None
    if fitted.fingerprint != model.fingerprint:
        _log.warning(
            "this calibration is of another model, and is not used: run `memoryd model calibrate`",
            file=str(place),
            fitted_for=fitted.model,
            fingerprint=fitted.fingerprint,
            model=model.name,
        )
        return None
    return fitted.scoring
