"""Text analysis: the one way from a text, a heading or a query to terms, for documents and queries in both shapes."""

from memoryd.domain.text.analysis import ANALYZER_VERSION, analyze, heading_terms
from memoryd.domain.text.feedback import HITS as EXPANDING_HITS
from memoryd.domain.text.feedback import expansion
from memoryd.domain.text.phrases import folded, holds, quoted_phrases
from memoryd.domain.text.query import (
    MAX_QUERY_WORDS,
    QueryWord,
    analyze_query,
    coverage,
    has_subject,
    nats_per_byte,
    surplus_words,
    term_weights,
)
from memoryd.domain.text.weights import FIELD_BOOSTS

__all__ = [
    "ANALYZER_VERSION",
    "EXPANDING_HITS",
    "FIELD_BOOSTS",
    "MAX_QUERY_WORDS",
    "QueryWord",
    "analyze",
    "analyze_query",
    "coverage",
    "expansion",
    "folded",
    "has_subject",
    "heading_terms",
    "holds",
    "nats_per_byte",
    "quoted_phrases",
    "surplus_words",
    "term_weights",
]
