"""What may overtake an import."""

from __future__ import annotations

import pytest

from services.workspace.budget import LiveBudget

LIMIT = 100


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(clock: Clock) -> LiveBudget:
    return LiveBudget(LIMIT, clock)


@pytest.mark.parametrize(
    ("edits", "others", "granted"),
    [
        (1, 0, (True, True)),
        (100, 0, (True, False)),
        (101, 0, (False, True)),
        (0, 50, (True, True)),
        (0, 51, (True, False)),
        (1, 2000, (True, False)),
        (50, 1, (True, False)),
    ],
)
def test_few_changes_are_live(budget: LiveBudget, edits: int, others: int, granted: tuple[bool, bool]) -> None:
    assert budget.grant(edits, others) == granted


@pytest.mark.parametrize("batch", [1, 7, 40, 99, 500])
def test_a_bulk_of_new_files_is_live_in_part_and_leaves_room_for_an_edit(
    budget: LiveBudget, clock: Clock, batch: int
) -> None:
    live = 0
    for _ in range(2000 // batch):
        live += budget.grant(0, batch)[1] * batch
        clock.now += 0.01 * batch  # 100 files a second
    assert live <= LIMIT / 2 + 20
    assert budget.grant(1, 0)[0]


@pytest.mark.parametrize("batch", [1, 7, 40, 99, 500])
def test_after_a_bulk_of_edits_an_edit_is_live(budget: LiveBudget, clock: Clock, batch: int) -> None:
    live = 0
    for _ in range(2000 // batch):
        live += budget.grant(batch, 0)[0] * batch
        clock.now += 0.01 * batch
    assert live <= LIMIT + 20
    clock.now += 1.0
    assert budget.grant(1, 0)[0]


def test_steady_edits_are_live(budget: LiveBudget, clock: Clock) -> None:
    for _ in range(1000):
        assert budget.grant(1, 0)[0]
        clock.now += 1.0


def test_without_a_budget_nothing_is_live() -> None:
    assert LiveBudget(0).grant(1, 1) == (False, False)
