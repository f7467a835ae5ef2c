"""`memoryd eval`: on its own, against a running server, and over six processes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memoryd.client import MemorydClient
from memoryd.domain.names import Scope
from memoryd.domain.queries import Mode
from memoryd.evaluation.comparison import load as load_run
from memoryd.evaluation.comparison import values_of, with_saved
from memoryd.evaluation.evaluate import evaluate
from memoryd.evaluation.known_items import make
from memoryd.evaluation.product import ServedProduct
from memoryd.evaluation.report import report
from memoryd.evaluation.run import run_set
from memoryd.evaluation.sets import RetrievalSet, load, write
from tests.e2e.conftest import EXAMPLE
from tests.e2e.deployment import Deployment, Shape
from tests.e2e.processes import command, serve
from tests.e2e.shapes import SHAPES
from tests.support.sets import write_odd_set, write_set

# Written by `memoryd eval examples/workspace --mode hybrid --save tests/e2e/example_run.json`.
EXAMPLE_RUN = Path(__file__).with_name("example_run.json")
MODES = (Mode.TEXT, Mode.VECTOR, Mode.HYBRID)


async def test_a_set_with_what_no_agent_would_write(tmp_path: Path) -> None:
    folder, data, saved = write_odd_set(tmp_path / "odd"), tmp_path / "data", tmp_path / "run.json"
    ended = await command(data, "eval", folder, "--json", "--save", saved)
    assert ended.code == 0, ended.err
    assert "broken.md" in ended.err
    figures = json.loads(ended.out)
    for mode in MODES:
        of_mode = figures["sets"]["odd"][mode]
        assert [of_mode[name] for name in ("recall@5", "ndcg@10", "mrr@10", "n")] == [1.0, 1.0, 1.0, 3]
        assert of_mode["degraded_answers"] == 0
        assert set(of_mode["abstention"]["auroc"]) == {"unanswerable", "gibberish"}
    better = json.loads(saved.read_text())
    assert better["ndcg@10"]["odd"]["hybrid"] == {"q1": 1.0, "q2": 1.0, "q4": 1.0}
    absent = await command(data, "eval", tmp_path / "absent")
    assert (absent.code, "absent does not exist" in absent.err) == (2, True), absent.err
    other = await command(data, "eval", folder, "--gate", folder / "qrels.tsv")
    assert (other.code, "qrels.tsv is no run" in other.err) == (2, True), other.err


async def test_the_gate_and_a_server_that_holds_the_set(tmp_path: Path) -> None:
    corpus = [{"id": name, "text": f"The {name} was repaired by Ambrose."} for name in ("kiln", "loom", "ferry")]
    queries = [{"id": f"q{n}", "text": "who repaired the kiln?"} for n in range(8)]
    wrong = "".join(f"q{n}\tloom\t1\n" for n in range(8))
    folder = write_set(tmp_path / "tiny", corpus, queries, wrong)
    data, saved, notes = tmp_path / "data", tmp_path / "run.json", tmp_path / "notes"
    saved.write_text(json.dumps({"ndcg@10": {"tiny": {"hybrid": {f"q{n}": 1.0 for n in range(8)}}}}))
    assert (await command(data, "eval", folder, "--write", notes)).code == 0
    async with serve(data, notes / "tiny") as served:
        arguments = ("eval", folder, "--mode", "hybrid", "--server", served.address)
        passed = await command(data, *arguments, "--compare", saved)
        assert (passed.code, "loss" in passed.out) == (0, True), passed.err
        failed = await command(data, *arguments, "--gate", saved)
        assert (failed.code, "nDCG@10 fell from 1.000 to" in failed.err) == (1, True), failed.err
        absent = await command(data, *arguments, "--workspace", "other")
        assert (absent.code, "no workspace 'other'" in absent.err) == (2, True), absent.err


async def test_both_shapes_measure_the_same(tmp_path: Path) -> None:
    data = load(write_odd_set(tmp_path / "odd"))
    write(data, tmp_path / "files")
    folders = {Scope("acme", group): tmp_path / "files" / group for group in data.groups}

    async def figures(name: str, shape: Shape) -> object:
        async with shape(tmp_path / name, folders) as deployment:
            product = await ServedProduct.find(deployment.client, data)
            await product.indexed(data, lambda *_: None)
            outcomes = await run_set(product, data, MODES, lambda *_: None)
        return {mode: report(data, outcomes[mode], [], []).values for mode in MODES}

    standalone, distributed = [await figures(name, shape) for name, shape in SHAPES.items()]
    assert standalone == distributed


async def test_retrieval_on_the_example_workspace_is_no_worse_than_it_was(example: Deployment) -> None:
    @asynccontextmanager
    async def serving(_: RetrievalSet) -> AsyncIterator[MemorydClient]:
        yield example.client

    reports = await evaluate([make(EXAMPLE)], serving, [Mode.HYBRID], lambda *_: None)
    compared = with_saved(load_run(EXAMPLE_RUN), values_of(reports))
    assert [item for item in compared if item.verdict == "loss"] == []
    assert compared[0].n >= 50
    figures = reports["workspace"][Mode.HYBRID]
    assert (figures.degraded, figures.line_hits) == (0, 1.0)
