"""What may come to nothing per second, and what becomes of who goes beyond it."""

from __future__ import annotations

import pytest

from arena.referee.budget import ON_END, Budget, Flood, Share

NOW = 1_000.0


def budget() -> Budget:
    return Budget(100, cpu_s=0.02)


SPENT: dict[str, list[tuple[float, int, float, float | None]]] = {
    "within the budget": [(0, 60, 0, None), (0.9, 40, 0, None)],
    "beyond it, not read until the next second": [(0, 100, 0, None), (0.25, 1, 0, 1)],
    "a second begins with a message": [(0, 100, 0, None), (7.5, 100, 0, None), (8.4, 1, 0, 8.5)],
    "at once, paid by the seconds after": [(0, 350, 0, 3), (3, 50, 0, None), (3.5, 1, 0, 4)],
    "CPU time like messages": [(0, 1, 0.02, None), (0, 1, 0.001, 1), (1, 1, 0.05, 3)],
    "no flood in one moment": [(0, 10**6, 1000.0, ON_END)],
}
"""When, how many messages, what CPU time, and until when nothing is read then."""


@pytest.mark.parametrize("spent", SPENT.values(), ids=SPENT)
def test_what_is_spent(spent: list[tuple[float, int, float, float | None]]) -> None:
    ours = budget()

    for at, messages, cpu_s, until in spent:
        expected = None if until is None else NOW + until
        assert ours.spend(NOW + at, messages, cpu_s) == expected


def test_seconds_on_end_beyond_it_are_a_flood() -> None:
    ours = budget()
    for second in range(ON_END - 1):
        assert ours.spend(NOW + second, 101) is not None

    with pytest.raises(Flood, match="100 messages a second"):
        ours.spend(NOW + ON_END - 1, 101)


@pytest.mark.parametrize("in_the_last", [50, 0])
def test_a_second_within_it_ends_the_count(in_the_last: int) -> None:
    """A second without a word is one, too."""
    ours = budget()
    seconds = range(3 * ON_END)
    messages = [in_the_last if second % ON_END == ON_END - 1 else 105 for second in seconds]

    rests = [ours.spend(NOW + second + 0.01, n) for second, n in enumerate(messages) if n]

    assert len([rest for rest in rests if rest is not None]) == 3 * (ON_END - 1)


def test_who_goes_on_after_ten_seconds_of_rest_is_a_flood() -> None:
    ours = budget()
    until = ours.spend(NOW, 10**6)
    assert until is not None

    with pytest.raises(Flood):
        ours.spend(until, 101)


# --- a share of the arena's time ---


def test_who_spends_more_than_its_share_waits_until_it_is_paid() -> None:
    share = Share(0.1, saved_s=0.05)

    assert share.spend(NOW, 0.05) is None
    assert share.is_spent(NOW)
    assert share.spend(NOW, 0.02) == pytest.approx(NOW + 0.2)
    assert share.is_spent(NOW + 0.19)
    assert not share.is_spent(NOW + 0.21)


def test_in_the_long_run_no_more_is_spent_than_the_share() -> None:
    share = Share(0.1, saved_s=0.05)
    now, spent = NOW, 0.0
    while now < NOW + 100:
        now = share.spend(now, 0.003) or now
        spent += 0.003

    assert spent == pytest.approx(10.0, abs=0.1)


def test_what_is_not_spent_does_not_gather() -> None:
    share = Share(0.1, saved_s=0.05)
    share.spend(NOW, 0.01)

    assert share.spend(NOW + 3600, 0.06) == pytest.approx(NOW + 3600.1)


def test_a_share_within_another_is_spent_with_it() -> None:
    everybodys = Share(0.1, saved_s=0.1)
    one = Share(0.02, saved_s=0.05, within=everybodys)
    other = Share(0.02, saved_s=0.05, within=everybodys)

    assert one.spend(NOW, 0.06) == pytest.approx(NOW + 0.5)
    assert not everybodys.is_spent(NOW), "one alone does not use it up"
    assert other.spend(NOW, 0.05) == pytest.approx(NOW + 0.1)
