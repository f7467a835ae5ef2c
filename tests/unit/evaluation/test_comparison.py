from __future__ import annotations

from pathlib import Path

import pytest

from memoryd.errors import InvalidInputError
from memoryd.evaluation.comparison import POOLED, load, of_modes, save, with_saved


def run(text: float, hybrid: float, queries: int = 30) -> dict[str, dict[str, dict[str, float]]]:
    return {
        "a": {
            "text": {f"q{n}": text for n in range(queries)},
            "hybrid": {f"q{n}": hybrid - n % 2 / 10 for n in range(queries)},
        }
    }


def test_only_a_loss_that_chance_does_not_explain_is_one() -> None:
    (hybrid, _, text, pooled) = with_saved(run(0.5, 0.8), run(0.4, 0.8))
    assert (hybrid.after, hybrid.verdict) == ("hybrid", "same")
    assert (text.what, text.verdict, pooled.what, pooled.verdict) == ("a", "loss", POOLED, "loss")
    assert {item.verdict for item in with_saved(run(0.5, 0.8), run(0.5, 0.8))} == {"same"}
    noisy = {"a": {"text": {f"q{n}": 0.5 + (0.4 if n % 2 else -0.39) for n in range(30)}}}
    assert with_saved({"a": {"text": run(0.5, 0.8)["a"]["text"]}}, noisy)[0].verdict == "same"


def test_all_sets_count_by_their_queries() -> None:
    before = {"a": {"text": {"q": 0.5}}, "b": {"text": {f"q{n}": 0.5 for n in range(9)}}, "c": {"text": {"q": 1.0}}}
    after = {"a": {"text": {"q": 1.0}}, "b": {"text": {f"q{n}": 0.5 for n in range(8)}}}
    (_, _, pooled) = with_saved(before, after)
    assert (pooled.n, pooled.missing) == (9, 1)
    assert pooled.mean_after - pooled.mean_before == pytest.approx(0.5 / 9)


def test_hybrid_is_compared_with_its_legs() -> None:
    (leg,) = of_modes(run(0.5, 0.8))
    assert (leg.before, leg.after, leg.verdict) == ("text", "hybrid", "gain")
    assert of_modes({"a": {"text": {"q": 0.5}}}) == []


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    save(run(0.5, 0.8), tmp_path / "run.json")
    assert load(tmp_path / "run.json") == run(0.5, 0.8)
    with pytest.raises(InvalidInputError, match="no query of this one"):
        with_saved({"z": {}}, run(0.5, 0.8))
    (tmp_path / "other.json").write_text("[1]")
    for name in ("other.json", "absent.json"):
        with pytest.raises(InvalidInputError, match=name):
            load(tmp_path / name)
