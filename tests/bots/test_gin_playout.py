"""Quick playouts of gin rummy, against the referee and the slow arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

import arena
from arena.games.gin_rummy import defend, score
from bots.gin_playout import (
    CARDS,
    MOST,
    VALUES,
    Manner,
    Table,
    after_drawing,
    cards_of,
    hand_of,
    least_after,
    outs_of,
    shares,
    showdown,
)
from bots.gin_rummy import PlayerStrategy
from protocol.cards import PACK, Card
from protocol.gin_melds import (
    CARD_BITS,
    arrange,
    card_mask,
    deadwood,
    deadwood_value,
    discard_deadwoods,
    is_meld,
)
from protocol.gin_rummy import KNOCK_LIMIT, RoundOver
from protocol.vocabulary import News

LOW = Manner(True, False, (10,))
GIN = Manner(False, False, (0,))
OUTS = Manner(False, True, (10, 10, 0))


def hands(count: int, size: int) -> list[list[Card]]:
    """Random hands, every second of few ranks and suits, so that they have melds."""
    rng = Random(7)
    few = [card for card in PACK if card[0] in "A23456" and card[1] in "shd"]
    return [rng.sample(few if number % 2 else PACK, size) for number in range(count)]


@pytest.mark.parametrize("hand", hands(60, 10), ids=" ".join)
def test_outs_are_the_cards_that_meld_with_two_of_the_hand(hand: list[Card]) -> None:
    outs = {
        card
        for card in set(PACK).difference(hand)
        if any(is_meld([card, *pair]) for pair in combinations(hand, 2))
    }

    assert {CARDS[bit] for bit in cards_of(outs_of(card_mask(hand)))} == outs
    assert hand_of(card_mask(hand)).deadwood == deadwood(hand)


@pytest.mark.parametrize("hand", hands(60, 11), ids=" ".join)
def test_the_discard_that_leaves_least_is_found_with_and_without_the_drawn_card_apart(
    hand: list[Card],
) -> None:
    lefts = discard_deadwoods(hand)
    dearest = max(
        deadwood_value(card) for card, left in zip(hand, lefts, strict=True) if left == min(lefts)
    )
    ten, drawn = card_mask(hand[:-1]), CARD_BITS[hand[-1]]

    for discard, left in (least_after(ten | drawn), after_drawing(ten, drawn)):
        assert (left, VALUES[discard]) == (min(lefts), dearest)
        assert lefts[hand.index(CARDS[discard])] == left


def test_a_knock_scores_what_the_referee_would_give() -> None:
    knocks = [hand for hand in hands(4000, 10) if deadwood(hand) <= KNOCK_LIMIT]
    rng = Random(3)

    same = 0
    for hand in knocks:
        defender = rng.sample([card for card in PACK if card not in hand], 10)
        melds, own = arrange(hand)
        _, _, left = defend(defender, None, melds if own else ())
        (won, lost), _ = score(own, left)
        points = showdown(card_mask(hand), own, card_mask(defender))
        assert points <= won - lost or own == 0
        same += points == won - lost
    assert len(knocks) > 100
    assert same > 0.98 * len(knocks)  # it melds as is best before laying off


class PlaysAManner(PlayerStrategy):
    """Plays as the playouts do, but asked by the referee."""

    def __init__(self, manner: Manner) -> None:
        self.manner = manner
        self.table = Table(0)
        super().__init__()

    def receive_initial_hand(self, hand: Sequence[Card]) -> None:
        self.turn = 0

    def will_take_top_discard(self, card: Card) -> bool:
        return self.table.takes(card_mask(self.hand), CARD_BITS[card], self.manner)

    def take_turn(self, drawn: Card) -> Card:
        ten = card_mask(self.hand) ^ CARD_BITS[drawn]
        discard, left = self.table.discard(ten, CARD_BITS[drawn], self.manner.counts_outs)
        self.knocks = left <= self.manner.knocks[min(self.turn, len(self.manner.knocks) - 1)]
        self.turn += 1
        return CARDS[discard]

    def knock(self) -> bool:
        return self.knocks

    def hear(self, news: News) -> None:
        super().hear(news)
        if isinstance(news, RoundOver):
            self.points = news.points


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("manners", [(LOW, GIN), (OUTS, LOW), (GIN, OUTS)])
def test_a_playout_ends_as_the_match_of_the_same_players(
    seed: int, manners: tuple[Manner, Manner]
) -> None:
    deck = Random(seed).sample(PACK, 52)
    bots = [PlaysAManner(manner) for manner in manners]
    settings = {"max_rounds": 1, "target": 1000, "starter": 0}
    arena.play("gin", bots, settings=settings, decks=[deck])
    mine, theirs = bots[0].points
    both = card_mask(deck[:10]), card_mask(deck[10:20])
    top, stock = CARD_BITS[deck[20]], [CARD_BITS[card] for card in deck[:20:-1]]
    table = Table(0)
    taker = next((s for s in (0, 1) if table.takes(both[s], top, manners[s])), None)

    mover, drawn = (0, 0) if taker is None else (taker, top)
    played = table.play(both, manners, stock, mover, top, (0, 0), drawn, True)

    assert played == mine - theirs


def test_a_game_is_won_by_the_points_that_were_missing() -> None:
    worth = shares(30, 49)

    assert worth[MOST] == pytest.approx(1 - shares(49, 30)[MOST])
    assert worth[MOST + 20] == 1
    assert worth[MOST - 1] == 0
    assert worth == sorted(worth)
