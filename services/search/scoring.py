"""The constants of a model's scores."""

from __future__ import annotations

import structlog

from memoryd.domain.queries import Calibrated, ModelInfo
from memoryd.domain.scoring import COMMITTED, FITTED_FOR, Scoring

_log = structlog.get_logger(__name__)


class Scorings:
    """Chooses them, and says once of each model that it has none of its own."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._told: set[str] = set()

    def of(self, model: ModelInfo) -> Scoring:
        """Give a model's own constants, or else the committed ones."""
        if model.calibration is Calibrated.BORROWED and model.fingerprint not in self._told:
            self._told.add(model.fingerprint)
            _log.warning(
                "scores and min_score are not calibrated for this model: run `memoryd model calibrate`",
                model=model.name,
                calibrated_for=FITTED_FOR,
            )
        return model.scoring or COMMITTED
