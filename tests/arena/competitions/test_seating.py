"""In which order matches get their seats, and those that never fit; `competition.cases` has the rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from arena.competitions.process_pool import SeatBot
from arena.competitions.seating import WantedSeats
from arena.formats.spec import Take
from tests.support.fake_bots import ANY_GAME
from tests.support.fake_host import FakeHost, until

pytestmark = pytest.mark.virtual_time

SUBMITTED: dict[str, Any] = {
    "take": Take.SUBMITTED,
    "versions": {"ann": 11, "ben": 21, "cem": 31, "dora": 41},
}


FOUR = tuple(SUBMITTED["versions"])


class SeatsInOrder:
    """Asks for the seats of matches, and notes in which order they are there; each is short.

    Attributes:
        told: the numbers of the matches that were seated.
    """

    def __init__(self, host: FakeHost, most: int) -> None:
        host.takes_submissions(100)
        host.pool.most = most
        self.told: list[int] = []
        self.wanted: list[WantedSeats] = []
        self._seating = host.seating

    def want(self, *names: str, lasts: int = 4) -> None:
        number = len(self.wanted)

        def seated(sessions: object) -> None:
            self.told.append(number)
            asyncio.get_running_loop().call_later(lasts / 1000, self._seating.give_back, wanted)

        bots = [SeatBot(name, SUBMITTED["versions"][name], ANY_GAME) for name in names]
        wanted = WantedSeats(
            f"m{number}",
            bots,
            is_portable=False,
            is_limited=True,
            seated=seated,
            refused=_never,
            failed=_never,
        )
        self.wanted.append(wanted)
        self._seating.want(wanted)


def _never(*_: object) -> None:
    raise AssertionError("nothing fails here")


async def test_a_large_match_is_overtaken_by_small_ones_but_not_for_ever(host: FakeHost) -> None:
    order = SeatsInOrder(host, most=5)
    for number in range(60):  # there is always one of these, with which four others do not fit
        if number == 2:
            order.want(*FOUR)
        order.want("ann", "ben", lasts=4 + number % 3)
    await until(lambda: len(order.told) == 61)

    assert 2 < order.told.index(2) < 30


async def test_matches_whose_processes_are_warm_come_first_but_not_for_ever(host: FakeHost) -> None:
    order = SeatsInOrder(host, most=100)
    host.pool.at_once = 1
    order.want(*FOUR[2:])
    for _ in range(120):
        order.want(*FOUR[:2])
    host.pool.idle = set(order.wanted[1].bots)
    await until(lambda: len(order.told) == 121)

    assert 100 <= order.told.index(0) < 120


async def test_a_small_match_does_not_wait_for_a_large_one_that_never_fits(host: FakeHost) -> None:
    order = SeatsInOrder(host, most=2)
    order.want(*FOUR)
    for _ in range(40):
        order.want("ann", "ben")
    await until(lambda: len(order.told) == 40)

    assert 0 not in order.told
