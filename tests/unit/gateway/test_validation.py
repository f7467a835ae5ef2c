import math
import re
from dataclasses import replace
from typing import Any

import pytest

from memoryd.domain.files import Revision
from memoryd.domain.queries import Freshness, SearchQuery, TypedKind, TypedQuery
from memoryd.errors import InvalidInputError
from services.gateway.validation import checked_query

REVISION = Revision(1, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"text": " \n\t"}, r"query: ' \n\t' is blank; say what to look for", id="query-blank"),
        pytest.param(
            {"text": "x" * 8001},
            "query: 8001 characters are too many; at most 8000 are allowed",
            id="query-long",
        ),
        pytest.param({"max_results": 0}, "max_results: 0 is out of range; it must be from 1 to 50", id="results-0"),
        pytest.param({"max_results": 1000}, "max_results: 1000 is out of range; it must be from 1 to 50", id="results"),
        pytest.param({"min_score": 2.0}, "min_score: 2.0 is out of range; it must be from 0 to 1", id="score-2"),
        pytest.param({"min_score": -0.1}, "min_score: -0.1 is out of range; it must be from 0 to 1", id="score-low"),
        pytest.param({"min_score": math.nan}, "min_score: nan is out of range; it must be from 0 to 1", id="score-nan"),
        pytest.param({"mmr_lambda": 1.5}, "mmr_lambda: 1.5 is out of range; it must be from 0 to 1", id="mmr"),
        pytest.param({"mmr_lambda": math.nan}, "mmr_lambda: nan is out of range", id="mmr-nan"),
        pytest.param({"decay_half_life_days": -3.0}, "decay_half_life_days: -3.0 must be", id="decay-negative"),
        pytest.param({"decay_half_life_days": math.inf}, "decay_half_life_days: inf must be", id="decay-inf"),
        pytest.param({"decay_half_life_days": math.nan}, "decay_half_life_days: nan must be", id="decay-nan"),
        pytest.param({"since": "2026-02-30"}, "since: '2026-02-30' is not a date; write YYYY-MM-DD", id="since"),
        pytest.param({"until": "20260305"}, "until: '20260305' is not a date; write YYYY-MM-DD", id="until-compact"),
        pytest.param({"until": "2026-W10-4"}, "until: '2026-W10-4' is not a date", id="until-week"),
        pytest.param(
            {"since": "2026-03-02", "until": "2026-03-01"},
            "since: '2026-03-02' is after until, '2026-03-01'; nothing can lie between them",
            id="since-after-until",
        ),
        pytest.param({"path_prefix": "memory/../x"}, "path_prefix: 'memory/../x' contains '..'", id="prefix-parent"),
        pytest.param({"path_prefix": "/memory"}, "path_prefix: '/memory' is absolute", id="prefix-absolute"),
        pytest.param({"path_prefix": "memory\\x"}, "contains a backslash", id="prefix-backslash"),
        pytest.param({"path_prefix": "a\0"}, "contains a NUL character", id="prefix-nul"),
        pytest.param({"glob": "../**"}, "glob: '../**' contains '..'", id="glob-parent"),
        pytest.param({"glob": "*" * 1001}, "glob: 1001 characters are too many", id="glob-long"),
        pytest.param({"tags": ("plan", "# ")}, "tags: '# ' is blank", id="tag-blank"),
        pytest.param({"tags": ("plan",) * 17}, "tags: 17 are too many; at most 16 are allowed", id="tags"),
        pytest.param(
            {"freshness": Freshness("a.md", REVISION, 30.001)},
            "freshness.wait_ms: 30001 is out of range; it must be from 0 to 30000",
            id="wait",
        ),
        pytest.param({"freshness": Freshness("../a.md", REVISION)}, "freshness.path: the path", id="freshness-path"),
        pytest.param({"typed": (TypedQuery(TypedKind.VEC, " "),)}, "typed[0].text: ' ' is blank", id="typed-blank"),
        pytest.param(
            {"typed": (TypedQuery(TypedKind.LEX, "x" * 2001),)},
            "typed[0].text: 2001 characters are too many; at most 2000 are allowed",
            id="typed-long",
        ),
        pytest.param(
            {"typed": (TypedQuery(TypedKind.VEC, "x"),) * 17},
            "typed: 17 sub-queries are too many; at most 16 are allowed",
            id="typed",
        ),
    ],
)
def test_refuses_what_is_out_of_bounds(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)) as caught:
        checked_query(SearchQuery(**{"text": "boiler", **fields}))
    assert caught.value.details["field"]


@pytest.mark.parametrize(
    "fields",
    [
        {"text": "x" * 8000},
        {"text": 'NOT a "syntax* OR (error'},
        {"max_results": 1},
        {"max_results": 50},
        {"min_score": 0.0},
        {"min_score": 1.0},
        {"mmr_lambda": 0.0},
        {"decay_half_life_days": 0.001},
        {"decay_half_life_days": 0.0},
        {"since": "2026-03-01", "until": "2026-03-01"},
        {"path_prefix": "memory/a..b"},
        {"glob": "memory/**/*.md"},
        {"tags": ("plan", "x y")},
        {"freshness": Freshness("a.md", REVISION, 30.0)},
    ],
)
def test_lets_the_bounds_themselves_pass(fields: dict[str, Any]) -> None:
    query = SearchQuery(**{"text": "boiler", **fields})
    assert checked_query(query) == query


def test_brings_paths_into_normal_form() -> None:
    query = SearchQuery(text="x", path_prefix="./cafe\u0301/", freshness=Freshness("./cafe\u0301.md", REVISION))
    query = replace(query, glob="./cafe\u0301/*", tags=("#Plan", "Cafe\u0301", "plan"))
    checked = checked_query(query)
    assert (checked.glob, checked.tags) == ("caf\u00e9/*", ("caf\u00e9", "plan"))
    assert checked.path_prefix == "caf\u00e9/"
    assert checked.freshness == Freshness("caf\u00e9.md", REVISION)


def test_repeats_only_the_start_of_a_long_value() -> None:
    with pytest.raises(InvalidInputError) as caught:
        checked_query(SearchQuery(text="x", since="9" * 5000))
    assert len(str(caught.value)) < 200
