"""Values of small games that are known, and what answers are worth in them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

from arena.games.catalogue import GAMES
from arena.games.equilibrium import Equilibrium
from arena.games.game_tree import GameTree, Views
from arena.games.rules import AskSeat, Game, TellSeat
from tests.support.small_games import LEDUC, Payoffs, ask, tell, unit_game

Unit = Generator[AskSeat | TellSeat, Any, Payoffs | None]
Deal = Callable[[], Any]


def solved(game: Game, seat: int = 0) -> Equilibrium:
    return Equilibrium(GameTree(game, game.vocabulary.read_settings(None), (), Views()), seat)


def matching(number: int, deal: Deal) -> Unit:
    """Seat 1 wins 1 if it matches the word, which it was not told; 3 for `b`."""
    word = yield ask(0, "", "a b")
    guess = yield ask(1, "", "a b")
    gain = 0 if guess != word else 3 if word == "b" else 1
    return -gain, gain


def dealer(number: int, deal: Deal) -> Unit:
    """The player may take the second card for its first one; an `a` is worth 6."""
    first, second = deal()[:2]
    yield tell(first)
    answer = yield ask(0, first, "keep swap")
    yield tell("nothing else is asked")
    return (6 if (first, second)[answer == "swap"] == "a" else 0,)


def threat(number: int, deal: Deal) -> Unit:
    """Seat 1 is asked only if seat 0 gives away 5."""
    if (yield ask(0, "", "stop go")) == "stop":
        return 0, 0
    yield ask(1, "", "x y")
    return -5, 5


def test_leduc_costs_who_speaks_first_what_it_is_known_to() -> None:
    assert solved(LEDUC).value == pytest.approx(-0.085606424, abs=1e-9)
    assert solved(LEDUC, 1).value == pytest.approx(0.085606424, abs=1e-9)


def test_ace_king_queen_is_worth_an_eighteenth_to_the_bettor() -> None:
    assert solved(GAMES["ace_king_queen"]).value == pytest.approx(1 / 18, abs=1e-12)


def test_an_opponent_mixes_so_that_both_answers_are_worth_the_same() -> None:
    for seat, value in (0, -0.75), (1, 0.75):
        found = solved(unit_game(matching), seat)

        [spot] = found.spots.values()
        assert spot.worths == pytest.approx((value, value))
        assert found.value == pytest.approx(value)


def test_against_the_dealer_a_worth_is_a_mean_over_the_cards() -> None:
    found = solved(unit_game(dealer, "aabb", seats=1))

    assert sorted(spot.worths or () for spot in found.spots.values()) == [
        pytest.approx((0, 4)),
        pytest.approx((6, 2)),
    ]
    assert found.value == pytest.approx(5)


def test_what_an_opponent_never_lets_happen_has_no_worth() -> None:
    [spot] = solved(unit_game(threat), 1).spots.values()

    assert spot.answers == ("x", "y")
    assert spot.worths is None
