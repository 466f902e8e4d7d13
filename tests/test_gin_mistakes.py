"""Mistakes in gin rummy by the house bot that judges: what tests/tools/gin_mistakes.py measures."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from arena.records.mistakes import judged
from tests.arena.records.test_hidden_cards import stopped, with_other_cards
from tests.tools.gin_mistakes import JudgedGame, Measured, judged_games, measured, report


@pytest.fixture(scope="module")
def games() -> Measured:
    return measured(judged_games("simple", number, samples=100) for number in (1, 2))


def test_mistakes_of_simple_cost_something_looked_at_again(games: Measured) -> None:
    assert len(games.again) == round(games.shown.mean * games.shown.count) > 2  # type: ignore[operator]
    assert games.share_above(0) >= 0.6
    assert sum(games.again) / len(games.again) > 1.0


def test_cards_that_the_seat_does_not_know_change_no_judgement_of_the_house_bot() -> None:
    seen = 0
    for number in range(2):
        record, seat = stopped("gin_rummy", number, 12), number % 2
        other = with_other_cards(record, seat, Random(number))
        assert other.decks != record.decks
        first = list(islice(judged(record, seat), 4))
        assert first == list(islice(judged(other, seat), 4))
        seen += len(first)

    assert seen > 5


def total(*games: tuple[int, tuple[float, ...]]) -> Measured:
    return measured(JudgedGame(count, count, again, 1.0) for count, again in games)


@pytest.mark.parametrize(
    ("again", "master", "status"),
    [
        ((0.6,) * 8 + (0.1,) * 2, (0, 1), 0),
        ((0.6,) * 7 + (0.1,) * 3, (0, 1), 1),
        ((0.6,) * 8 + (-0.1,) * 2, (0, 1), 1),
        ((0.6,) * 10, (6, 6), 1),
    ],
)
def test_what_is_missed_sets_the_status(
    again: tuple[float, ...],
    master: tuple[int, ...],
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    simple = total((5, again[:5]), (5, again[5:]))

    assert report(simple, total(*((count, ()) for count in master))) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("simple, looked at again: 10 mistakes: ")
    assert lines[1].startswith("simple: 5.00 ± 0.00 mistakes a game, 5.00 shown, ")
    assert len(lines) == 3
