"""The six frequencies of a bot in Ace-King-Queen, counted from a match."""

from __future__ import annotations

import pytest

import arena
from arena.games.ace_king_queen.habits import frequencies
from arena.games.analysis import heard_by
from arena.games.catalogue import GAMES
from arena.records.seat_document import seat_match
from bots.ace_king_queen import Bluffer, Honest

DECKS = ["QK", "AQ", "QA", "KQ", "AK", "QK"]


def test_bets_and_calls_are_counted_by_card() -> None:
    result = arena.play(
        "ace_king_queen", [Honest(), Bluffer()], settings={"hands": 6}, decks=map(list, DECKS)
    )
    make = GAMES["ace_king_queen"].habits
    assert make is not None
    counted = []
    for seat in 0, 1:
        meter = make()
        heard_by(seat_match(result.record, seat), meter)
        counted.append([[(c.count, c.of) for c in row if c] for row in meter.charts()[0].cells])

    # In hands 1, 3 and 5 the honest bot is the betting player.
    assert counted[0] == [[(1, 1), (1, 1)], [(0, 0), (0, 1)], [(0, 2), (0, 0)]]
    assert counted[1] == [[(0, 0), (0, 0)], [(0, 1), (1, 1)], [(2, 2), (0, 0)]]


def test_the_equilibrium_is_marked_and_an_unseen_spot_has_no_share() -> None:
    chart = frequencies([(1, 2), (0, 0), (0, 4), (3, 3), (1, 4), (0, 5)])

    shares = [[cell.share for cell in row if cell] for row in chart.cells]
    marks = [[cell.mark for cell in row if cell] for row in chart.cells]
    assert shares == [[0.5, 1.0], [None, 0.25], [0.0, 0.0]]
    assert marks == [[1, 1], [0, pytest.approx(1 / 3)], [pytest.approx(1 / 3), 0]]
    assert chart.cost_unit == ""


def test_costs_and_intervals_stand_where_something_was_seen() -> None:
    chart = frequencies([(1, 2), (0, 0), (0, 4), (3, 3), (1, 4), (0, 5)], [0.25] * 6)

    seen, unseen = chart.cells[0][0], chart.cells[1][0]
    assert seen is not None
    assert seen.cost == 0.25
    assert seen.low is not None
    assert seen.high is not None
    assert 0 < seen.low < 0.5 < seen.high < 1
    assert unseen is not None
    assert (unseen.low, unseen.high, unseen.cost) == (None, None, None)
    assert chart.cost_unit == "chips a hand"
