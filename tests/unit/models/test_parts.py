import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryd.errors import InvalidInputError
from memoryd.models.parts import Limits
from memoryd.v1 import embedder_pb2

KIND, LANE = embedder_pb2.EmbedRequest.KIND_PASSAGE, embedder_pb2.EmbedRequest.LANE_BULK
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)


@given(st.lists(TEXT, max_size=40), st.integers(1, 7), st.integers(3000, 6000))
def test_parts_are_all_texts_in_order_and_within_the_limits(texts: list[str], most: int, size: int) -> None:
    parts = list(Limits(most, size).parts(texts))
    assert [text for _, part in parts for text in part] == texts
    assert [texts[first] for first, _ in parts] == [part[0] for _, part in parts]
    for _, part in parts:
        request = embedder_pb2.EmbedRequest(fingerprint="f" * 64, texts=part, kind=KIND, lane=LANE)
        assert len(part) <= most
        assert request.ByteSize() <= size


@given(st.lists(TEXT, min_size=1, max_size=20), TEXT)
def test_what_stands_beside_the_texts_counts(texts: list[str], query: str) -> None:
    for _, part in Limits(100, 5000).parts(texts, query):
        assert embedder_pb2.RerankRequest(query=query, texts=part).ByteSize() <= 5000


def test_no_more_parts_than_needed() -> None:
    assert [len(part) for _, part in Limits(256, 2**20).parts(["x"] * 600)] == [256, 256, 88]


def test_a_text_that_fits_into_no_request_is_named() -> None:
    with pytest.raises(InvalidInputError, match="text 1 has 8008 bytes: no model reads that much") as caught:
        list(Limits(10, 5000).parts(["a", "é" * 4000]))
    assert caught.value.details == {"index": "1"}


def test_a_text_that_is_not_unicode_is_named() -> None:
    with pytest.raises(InvalidInputError, match="text 2 is not Unicode: it has a lone surrogate at character 1"):
        list(Limits(10, 5000).parts(["a", "b", "c\ud800"]))


@pytest.mark.parametrize(("texts", "size"), [(0, 5000), (1, 1024)])
def test_limits_without_room_are_refused(texts: int, size: int) -> None:
    with pytest.raises(ValueError, match="no text fits into such a request"):
        Limits(texts, size)
