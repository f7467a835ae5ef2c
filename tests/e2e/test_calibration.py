"""`memoryd model calibrate` and `memoryd eval --tune`, on a tiny set, and the server that uses what they found."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.processes import command, serve
from tests.support.sets import write_set

TRADES = [
    "kiln",
    "loom",
    "ferry",
    "anvil",
    "orchard",
    "lantern",
    "granary",
    "chapel",
    "quarry",
    "bakery",
    "forge",
    "mill",
]
WORKS = ["was repaired by Ambrose", "is closed in March"]


def tiny_set(folder: Path) -> Path:
    corpus = [{"id": trade, "text": "\n\n".join(f"The {trade} {work}." for work in WORKS)} for trade in TRADES]
    asked = ["Who repaired the {}?", "When is the {} closed?"]
    queries = [
        {"id": f"{trade} {number}", "text": text.format(trade)} for trade in TRADES for number, text in enumerate(asked)
    ]
    qrels = "".join(f"{trade} {number}\t{trade}\t1\n" for trade in TRADES for number in range(len(asked)))
    return write_set(folder, corpus, queries, qrels)


async def test_a_model_is_calibrated_and_searches_use_it(tmp_path: Path) -> None:
    folder, data, keep = tiny_set(tmp_path / "tiny"), tmp_path / "data", tmp_path / "keep"
    own = {"MEMORYD_EMBEDDER_CALIBRATION": str(tmp_path / "calibration.json")}
    done = await command(data, "model", "calibrate", folder, "--tune", "--keep", keep, "--json", **own)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    written = json.loads((tmp_path / "calibration.json").read_text())
    assert (written["model"], written["fitted_on"]) == ("multilingual-e5-small", ["tiny"])
    assert all(written[name] == found["scoring"][name] for name in ("weights", "hybrid_sketches", "text"))
    assert found["ways"]["hybrid_sketches"]["held_out"]["answered"]["gibberish"] <= 0.1
    assert len(found["tuned"]["choices"]) == 2

    tuned = await command(data, "eval", folder, "--tune", "--keep", keep, **own)
    assert (tuned.code, "held-out folds" in tuned.out) == (0, True), tuned.err
    wrong = await command(data, "eval", folder, "--tune", "--save", tmp_path / "run.json")
    assert (wrong.code, "--tune goes with --keep" in wrong.err) == (2, True), wrong.err

    notes = keep / "tiny" / "files" / "tiny"
    written["hybrid_sketches"] = {"order": 1.0, "intercept": 40.0, "unfound": 0.0}
    (tmp_path / "calibration.json").write_text(json.dumps(written))
    async with serve(data, notes, variables=own) as served:
        await served.client.sync()
        reply = await served.client.search("Who repaired the kiln?")
        assert reply.results[0].score == 1.0
        assert (await served.client.status()).calibration == "own"
        status = await command(data, "status")
        assert "calibration: own" in status.out
    (tmp_path / "calibration.json").write_text("{}")
    broken = await command(data, "serve", notes, **own)
    assert broken.code != 0
    assert f"{tmp_path / 'calibration.json'} is no calibration of a model: model: Field required" in broken.err
