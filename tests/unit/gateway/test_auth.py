import pytest

from memoryd.auth import authenticate, resolve_scope
from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError, PermissionDeniedError, UnauthenticatedError
from memoryd.ports import Principal
from tests.support.gateway import FakeKeys

ANNA = Principal("k1", "acme", frozenset({"main"}))
BOTH = Principal("k2", "acme", frozenset({"main", "side"}))
KEYS = FakeKeys({"s3cret": ANNA})


@pytest.mark.parametrize("value", ["Bearer s3cret", "bearer s3cret", "  Bearer   s3cret "])
async def test_finds_who_a_key_belongs_to(value: str) -> None:
    assert await authenticate(KEYS, value) is ANNA


@pytest.mark.parametrize("value", ["", "s3cret", "Bearer", "Bearer ", "Basic s3cret", "Bearer wrong", "Bearer S3CRET"])
async def test_refuses_other_credentials_without_repeating_them(value: str) -> None:
    with pytest.raises(UnauthenticatedError) as caught:
        await authenticate(KEYS, value)
    assert "s3cret" not in str(caught.value).lower()
    assert "wrong" not in str(caught.value)


def test_an_empty_workspace_means_the_only_one() -> None:
    assert resolve_scope(ANNA, "") == Scope("acme", "main")
    assert resolve_scope(BOTH, "side") == Scope("acme", "side")


def test_an_empty_workspace_is_refused_where_there_are_several() -> None:
    with pytest.raises(InvalidInputError, match=r"key covers 2; name one of them: main, side$"):
        resolve_scope(BOTH, "")


def test_a_workspace_not_covered_can_not_be_told_from_one_that_does_not_exist() -> None:
    messages = set()
    for name in ("side", "nowhere", "rival/main", "../main", "MAIN"):
        with pytest.raises(PermissionDeniedError) as caught:
            resolve_scope(ANNA, name)
        told = str(caught.value)
        assert told == f"workspace: the key does not cover {name!r}; it covers main"
        messages.add((told.replace(repr(name), "NAME"), *caught.value.details.items()))
    assert len(messages) == 1
