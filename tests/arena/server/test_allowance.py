"""How many requests an address may send."""

from __future__ import annotations

import pytest

from arena.server.allowance import Allowance


class Clock:
    """A time that tests set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def spent(allowance: Allowance, address: str = "10.0.0.1") -> int:
    """How many there are left, all of which are spent."""
    count = 0
    while allowance.spend(address):
        count += 1
    return count


def test_so_many_at_once_and_then_so_many_a_second(clock: Clock) -> None:
    allowance = Allowance(5, 2, clock)

    assert spent(allowance) == 5
    clock.now += 1
    assert spent(allowance) == 2
    clock.now += 0.75
    assert spent(allowance) == 1
    clock.now += 0.25
    assert spent(allowance) == 1, "what was left of one is not lost"


def test_who_was_quiet_for_long_has_no_more_than_at_once(clock: Clock) -> None:
    allowance = Allowance(5, 2, clock)
    allowance.spend("10.0.0.1")
    clock.now += 3_600

    assert spent(allowance) == 5


def test_every_address_has_its_own(clock: Clock) -> None:
    allowance = Allowance(5, 2, clock)
    spent(allowance)

    assert spent(allowance, "10.0.0.2") == 5


def test_the_address_that_was_quiet_longest_is_forgotten(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.server.allowance._MOST", 2)
    allowance = Allowance(5, 2, clock)
    for address in ("first", "second", "first", "third"):
        spent(allowance, address)

    assert spent(allowance, "first") == 0
    assert spent(allowance, "third") == 0
    assert spent(allowance, "second") == 5
