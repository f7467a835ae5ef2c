from __future__ import annotations

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from memoryd.evaluation.metrics import ndcg, recall, reciprocal_rank

DOCUMENTS = st.lists(st.sampled_from([f"d{n}" for n in range(20)]), unique=True, min_size=1)


@given(ranking=DOCUMENTS, relevant=DOCUMENTS)
def test_as_trec_eval_computes_them(ranking: list[str], relevant: list[str]) -> None:
    run = {"q": {document: float(-rank) for rank, document in enumerate(ranking)}}
    measures = {"recall.5", "ndcg_cut.10", "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(relevant, 1)}, measures).evaluate(run)["q"]
    assert recall(ranking, set(relevant), 5) == pytest.approx(theirs["recall_5"])
    assert ndcg(ranking, set(relevant), 10) == pytest.approx(theirs["ndcg_cut_10"])
    assert reciprocal_rank(ranking, set(relevant), len(ranking)) == pytest.approx(theirs["recip_rank"])


def test_what_comes_after_the_cut_does_not_count() -> None:
    assert reciprocal_rank(["a", "b", "c"], {"c"}, 2) == 0
    assert ndcg(["a", "b"], {"b"}, 1) == 0
    assert recall(["a", "b", "c"], {"a", "c"}, 2) == 0.5
