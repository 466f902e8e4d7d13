"""What is put to a bot of three card poker, and how it is found that it adapts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from random import Random

import msgspec
import pytest

from arena.games.analysis import ProbedMatch
from arena.games.three_card_poker.asking import MOST_CASHES, Asking, dependence, differing
from arena.games.three_card_poker.luck import HANDS
from protocol.cards import PACK
from protocol.three_card_poker import (
    FOLDED,
    Hand,
    ThreeCardPokerSettings,
    outcome_of_play,
    strength,
)

SETTINGS = ThreeCardPokerSettings(stake=40, goal=60)
LINE = strength(("Qs", "6h", "4d"))


class AskedHand(msgspec.Struct, frozen=True):
    """What a bot knows when it decides; `last` is the outcome of the round before."""

    asking: int
    round: int
    hand: Hand
    cash: int
    last: int

    @property
    def is_good(self) -> bool:
        return strength(self.hand) >= LINE


Decider = Callable[[AskedHand], bool]


def asked(decides: Decider, seed: int = 1) -> tuple[Asking, Asking]:
    """Two askings that a bot has answered."""
    askings = Asking(SETTINGS, 1, seed), Asking(SETTINGS, 2, seed)
    for number, asking in enumerate(askings, start=1):
        answers: list[object] = []
        last = 0
        for place, (cash, deck) in enumerate(zip(asking.cashes, asking.decks, strict=True), 1):
            hand, dealer = (deck[0], deck[1], deck[2]), deck[3:]
            plays = decides(AskedHand(number, place, hand, cash, last))
            answers += [1, "play" if plays else "fold"]
            last = outcome_of_play(hand, dealer) if plays else FOLDED
        asking.note(ProbedMatch([], answers, (0,)))
    return askings


@pytest.mark.stats
def test_every_hand_is_asked_once_in_an_order_of_its_own() -> None:
    first, second = (Asking(SETTINGS, number, 7) for number in (1, 2))
    hands = [[deck[:3] for deck in asking.decks] for asking in (first, second)]

    for some in hands:
        assert sorted(map(sorted, some)) == sorted(map(sorted, combinations(PACK, 3)))
    assert hands[0] != hands[1]
    assert all(len({*deck}) == 6 for deck in first.decks)
    assert first.decks == Asking(SETTINGS, 1, 7).decks
    assert first.decks != Asking(SETTINGS, 1, 8).decks


def test_the_stake_is_asked_first_and_then_every_cash_below_the_goal() -> None:
    first, second = (Asking(SETTINGS, number, 7).cashes for number in (1, 2))

    assert first[0] == second[0] == 40
    assert first != second
    for cashes in first, second:
        assert len(cashes) == HANDS
        assert {*cashes[1:59]} == {*cashes} == {*range(2, 60)}


def test_of_many_cashes_some_are_asked() -> None:
    settings = ThreeCardPokerSettings(stake=10**9, goal=2 * 10**9)
    cashes = Asking(settings, 1, 1).cashes

    assert cashes[0] == 10**9
    assert MOST_CASHES - 1 <= len({*cashes}) <= MOST_CASHES + 1
    assert max(cashes) > 1.9 * 10**9


def test_a_bot_that_decides_by_its_hand_alone_answers_the_same() -> None:
    first, second = asked(lambda case: case.is_good)

    assert differing(first, second) == []
    assert dependence(first, second) == ""
    assert 0.6 < sum(first.plays.values()) / HANDS < 0.7


@pytest.mark.stats
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_bot_that_draws_lots_is_not_said_to_adapt(seed: int) -> None:
    random = Random(seed)
    first, second = asked(lambda case: random.random() < (0.9 if case.is_good else 0.3), seed)

    assert len(differing(first, second)) > 1000
    assert dependence(first, second) == ""


@pytest.mark.stats
@pytest.mark.parametrize(
    ("decides", "what"),
    [
        (lambda case: case.round > 15, "late in a match"),
        (lambda case: case.is_good or case.round < 100, "early in a match"),
        (lambda case: case.is_good or case.cash > 55, "with more cash"),
        (lambda case: case.is_good or case.cash < 5, "with less cash"),
        (lambda case: case.is_good or case.last < 0, "after a worse round"),
        (lambda case: case.is_good or case.asking == 2, "when it is asked again"),
    ],
)
def test_a_bot_that_adapts_is_found(decides: Decider, what: str) -> None:
    sentence = dependence(*asked(decides))

    assert "hands differently when asked again: it plays more" in sentence
    assert sentence.endswith(what)
