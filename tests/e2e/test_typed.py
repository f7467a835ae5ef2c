"""Sub-queries that the caller's own model wrote, in both shapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment

NOTES = {
    "heating.md": "The boiler of the greenhouse was descaled; its thermostat now holds 21 degrees.\n",
    "ferry.md": "The ferry Halcyon leaves at noon.\n",
    "tea.md": "Marta likes her tea without milk.\n",
}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("lex", "boiler thermostat"),
        ("vec", "Which temperature does the heating of the greenhouse keep?"),
        ("hyde", "The thermostat in the greenhouse is set to 21 degrees."),
    ],
)
async def test_a_sub_query_finds_what_the_query_does_not_name(
    running: Deployment, folder: Path, kind: str, text: str
) -> None:
    for name, content in NOTES.items():
        (folder / name).write_text(content)
    query = "Is it cosy for the orchids?"
    before = await running.until(query, lambda found: len(found) == len(NOTES), min_score=0.0)
    after = await running.search(query, min_score=0.0, typed=[(kind, text)])
    assert after.results[0].path == "heating.md"
    scores = {result.path: result.score for result in before.results}
    assert after.results[0].score > scores["heating.md"]
    assert all(result.score >= scores[result.path] for result in after.results)
