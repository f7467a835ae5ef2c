"""Token sketches, compared with what they estimate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from memoryd.domain.sketches import QueryTokens, centre, is_kept, make_sketch, match_sketches

DIMENSIONS = 384
MEAN = np.full(DIMENSIONS, 0.5, np.float32)


def vectors(seed: int, tokens: int, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((tokens, dimensions)).astype(np.float32)


def query(tokens: NDArray[np.float32], *rarity: float) -> QueryTokens:
    return QueryTokens(centre(tokens, MEAN[: tokens.shape[1]]), np.array(rarity))


@pytest.mark.parametrize(
    ("piece", "kept"),
    [
        ("▁tea", True),
        ("日", True),
        ("-00", True),
        ("½", True),
        ("▁", False),
        ("...", False),
        ("▁—", False),
        ("🙂", False),
    ],
)
def test_pieces_with_a_letter_or_a_digit_are_kept(piece: str, kept: bool) -> None:
    assert is_kept(piece) is kept


def test_a_centred_vector_has_length_one_and_a_zero_one_stays() -> None:
    centred = centre(np.stack([MEAN + 3, MEAN]), MEAN)
    assert np.linalg.norm(centred, axis=1) == pytest.approx([1, 0])


def test_a_sketch_has_a_bit_a_dimension_in_whole_bytes_a_token() -> None:
    assert make_sketch(np.array([[1, 0, 1, 0, 0, 0, 0, 0, 1, 0]], np.float32), MEAN[:10]) == bytes(
        [0b10100000, 0b10000000]
    )
    assert len(make_sketch(vectors(0, 7), MEAN)) == 7 * 48
    assert make_sketch(vectors(0, 0), MEAN) == b""


def test_the_match_is_near_that_of_full_precision() -> None:
    asked, chunks = vectors(0, 4), [vectors(seed, 30) for seed in range(1, 6)]
    chunks[2][7] = asked[1] + vectors(9, 1)[0]  # a token near one of the query's
    chunks[4][:4] = asked
    tokens = query(asked, 5.0, 9.0, 2.0, 0.0)
    found = match_sketches(tokens, [make_sketch(chunk, MEAN) for chunk in chunks])
    best = np.stack([(centre(chunk, MEAN) @ tokens.vectors.T).max(0) for chunk in chunks])
    assert found.match == pytest.approx(best @ (tokens.rarity / tokens.rarity.sum()), abs=0.06)
    assert found.rare_match == pytest.approx(best @ (tokens.rarity**2 / (tokens.rarity**2).sum()), abs=0.06)
    assert found.match.argmax() == 4
    assert found.tokens.tolist() == [30] * 5


def test_rare_tokens_count_more() -> None:
    asked = vectors(0, 2)
    chunks = [make_sketch(asked[:1], MEAN), make_sketch(asked[1:], MEAN)]
    common_first = match_sketches(query(asked, 1.0, 9.0), chunks)
    assert common_first.match[0] < common_first.match[1]
    assert common_first.rare_match[1] > common_first.match[1]


def test_a_token_that_many_chunks_match_counts_less() -> None:
    asked = vectors(0, 2)
    only_common, only_telling = make_sketch(asked[:1], MEAN), make_sketch(asked[1:], MEAN)
    tokens = query(asked, 5.0, 5.0)
    found = match_sketches(tokens, [only_telling, *[only_common] * 20])
    assert found.match[0] > 2 * found.match[1]
    assert found.rare_match[0] > 2 * found.rare_match[1]
    two = match_sketches(tokens, [only_telling, only_common])  # too few to say what is common
    assert two.match[0] == pytest.approx(two.match[1], rel=0.1)


def test_an_empty_sketch_matches_nothing_and_changes_no_other() -> None:
    asked = query(vectors(0, 3), 1.0, 1.0, 1.0)
    some = [make_sketch(vectors(seed, seed), MEAN) for seed in (1, 2)]
    found = match_sketches(asked, [b"", some[0], b"", some[1], b""])
    assert np.isnan(found.match).tolist() == [True, False, True, False, True]
    assert found.match[[1, 3]] == pytest.approx(match_sketches(asked, some).match)
    assert np.isnan(match_sketches(asked, [b""]).match).all()
    assert match_sketches(asked, []).match.shape == (0,)


def test_the_best_chunk_of_a_file_matches_what_all_of_it_does() -> None:
    asked = vectors(0, 2)
    first, second, both = (make_sketch(rows, MEAN) for rows in (asked[:1], asked[1:], asked))
    chunks, files = [second, both, b"", first, b""], ["a", "b", "a", "a", "c"]
    tokens = query(asked, 9.0, 5.0)
    found, alone = match_sketches(tokens, chunks, files), match_sketches(tokens, chunks)
    assert found.match == pytest.approx(alone.match, nan_ok=True)
    assert alone.file_match == pytest.approx(alone.match, nan_ok=True)
    assert found.match[3] > found.match[0]
    assert found.file_match[3] == pytest.approx(found.match[1])
    assert found.file_match[[0, 1]] == pytest.approx(found.match[[0, 1]])
    assert np.isnan(found.file_match).tolist() == [False, False, True, False, True]
    assert match_sketches(tokens, [], []).file_match.shape == (0,)


@pytest.mark.parametrize("tokens", [1, 50, 5_000], ids=["one", "some", "many blocks"])
def test_any_number_of_tokens_and_dimensions(tokens: int) -> None:
    asked, chunk = vectors(0, 9, 20), vectors(1, tokens, 20)
    found = match_sketches(query(asked, *[1.0] * 9), [make_sketch(chunk, MEAN[:20])])
    signs = np.where(chunk > MEAN[:20], 1, -1) / np.sqrt(20)
    cosines = query(asked, *[1.0] * 9).vectors @ signs.T * np.sqrt(np.pi / 2)
    told = (1 - (cosines.max(1) >= 0.6) / 11) ** 2
    assert found.match == pytest.approx(np.average(cosines.max(1), weights=told), abs=1e-5)


def test_a_sketch_of_half_a_token_is_refused() -> None:
    with pytest.raises(ValueError, match=r"384 dimensions has 48 bytes a token; got \[48, 49\]"):
        match_sketches(query(vectors(0, 1), 1.0), [b"a" * 48, b"a" * 49])
