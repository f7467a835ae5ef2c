"""The file of constants that were fitted for a model. `memoryd model calibrate` writes it, embedders read.

It is no part of the model's fingerprint, as it changes nothing that is stored.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from memoryd.domain.scoring import Calibration, Scoring, Weights
from memoryd.errors import ConfigError, ModelError

SCORING_FILE = "calibration.json"


class Fitted(BaseModel):
    """What the file holds.

    Attributes:
        model: the model's name, for people.
        fingerprint: of the model: the constants are of no use for another one.
        fitted_on: the sets.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = 2
    model: str
    fingerprint: str
    fitted_on: tuple[str, ...]
    weights: Weights
    hybrid_sketches: Calibration
    vector_sketches: Calibration
    hybrid: Calibration
    vector: Calibration
    text: Calibration

    @property
    def scoring(self) -> Scoring:
        """The constants."""
        return Scoring(
            weights=self.weights,
            hybrid_sketches=self.hybrid_sketches,
            vector_sketches=self.vector_sketches,
            hybrid=self.hybrid,
            vector=self.vector,
            text=self.text,
        )


def read_scoring(place: Path) -> Fitted | None:
    """Read a file; None where there is none. Raises ModelError of one line: the file, what is wrong, what to do."""
    what_to_do = "delete it, then run `memoryd model calibrate`"
    try:
        return Fitted.model_validate_json(place.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ModelError(f"{place} can't be read ({error.strerror}): {what_to_do}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ModelError(f"{place} is no calibration of a model: {where}: {first['msg']}: {what_to_do}") from error


def write_scoring(place: Path, fitted: Fitted) -> None:
    """Put the file in place in one step. Raises ConfigError where it can't be written."""
    body = fitted.model_dump_json(indent=2) + "\n"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{place.name}-", dir=place.parent)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(body)
            Path(name).chmod(0o644)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(f"{place} can't be written ({error.strerror}): set MEMORYD_EMBEDDER_CALIBRATION") from error
