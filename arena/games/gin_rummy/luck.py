"""How much of a game of gin rummy is luck: `GAME.luck` (rulebook, section G).

Three things are chance. Of 20 cards dealt any ten may be a seat's, so that the value of a hand is
compared with the other's. Then any card that neither seat has may be the up-card. And whatever both
seats know and do, any card that is left in the stock may be drawn next. What a card is worth is
guessed from few numbers (`TERMS`), of which each is taken minus its mean over all cards that might
have come. So the mean of luck is 0 with any weights and any bots; the weights only make it say
more. They are in games won, from the seat's view, and in proportion to what a round may change at
this score.

`python -m tests.tools.luck_tables --fit` found the weights by least squares, over 2,000 games of
each pair of `simple`, `patient` and `expert`. Nothing may be measured on those games (their seeds
are in the tool).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import exp, sqrt
from operator import mul, or_
from typing import Any

from arena.games.rules import AskSeat, Luck, LuckRound, TellSeat
from protocol.cards import PACK
from protocol.gin_melds import CARD_BITS, card_mask, deadwood_value, is_meld, mask_deadwood
from protocol.gin_rummy import KNOCK_LIMIT, Dealt, GameOver, GinRummySettings, RoundOver, Turn

__all__ = [
    "LUCK",
    "TERMS",
    "GinRummyMeter",
    "deadwoods_with",
    "deal_terms",
    "draw_terms",
    "upcard_terms",
    "win_chance",
]

TERMS = {
    # The deal: of a seat's hand minus the other's.
    "deadwood dealt": 0.0265,
    "mean deadwood with one card more": -0.0351,
    "pairs that are near": 0.0215,
    "their square": 0.0183,
    # The up-card.
    "deadwood with the up-card, for the starter": -0.0108,
    # A card from the stock.
    "deadwood": -0.0099,
    "deadwood up to 20": -0.0137,
    "knock": 0.234,
    "gin": 0.564,
    "left to the other seat, late": -0.0331,
    "points of the card": 0.0053,
    "near two cards": 0.0385,
}
"""What is added up in a game, and the weight of each.

Deadwood is what is left after the best discard. Two cards are near if a third can make a meld of
them. A knock and gin count as what they would change in the chance to win, if it were now.
"""

_WEIGHTS = tuple(TERMS.values())
_UPCARD, _DRAW = 4, 5  # where their terms begin

_BONUS = 25  # G11
_TYPICAL = 25  # points of a round that is won, for what is at stake in one
_LOW = 20  # deadwood from which a knock is near
_STOCK = 31  # cards at first

_PACK = (1 << 52) - 1
_BITS = tuple(sorted(CARD_BITS.values()))
_VALUES = {CARD_BITS[card]: deadwood_value(card) for card in PACK}
_DEAREST_FIRST = tuple(sorted(_BITS, key=lambda bit: -_VALUES[bit]))


def _pairs_by_card() -> dict[int, tuple[int, ...]]:
    """By card, the pairs of other cards that make a meld of three with it."""
    names = {bit: card for card, bit in CARD_BITS.items()}
    pairs: dict[int, tuple[int, ...]] = {}
    for place, bit in enumerate(_BITS):
        suit, rank = divmod(place, 13)
        near = [at for at in range(13) if 0 < abs(at - rank) <= 2]
        others = [1 << 13 * suit + at for at in near]
        others += [1 << 13 * other + rank for other in range(4) if other != suit]
        pairs[bit] = tuple(
            one | two
            for at, one in enumerate(others)
            for two in others[at + 1 :]
            if is_meld((names[bit], names[one], names[two]))
        )
    return pairs


_PAIRS = _pairs_by_card()
_NEAR = {bit: reduce(or_, pairs) for bit, pairs in _PAIRS.items()}


def win_chance(needs: int, other_needs: int) -> float:
    """The chance to win a game in which the seats still need so many points.

    It is a curve close to what equal bots win whose rounds bring what those of house bots do.
    """
    if needs <= 0 or other_needs <= 0:
        return float(needs <= 0)
    return 1 / (1 + exp((needs - other_needs) / sqrt(554 + 8.65 * (needs + other_needs))))


def at_stake(needs: int, other_needs: int) -> float:
    """Half of what a round that is won changes in the chance to win, against one that is lost."""
    won = win_chance(needs - _TYPICAL, other_needs)
    return (won - win_chance(needs, other_needs - _TYPICAL)) / 2


def deadwoods_with(hand: int, cards: Sequence[int]) -> list[int]:
    """The least deadwood that ten cards and each of the others leave after the best discard.

    `hand` is a mask of `card_mask`, and every card is one, too.
    """
    held = [bit for bit in _DEAREST_FIRST if hand & bit]
    now = mask_deadwood(hand)
    # A card that makes no meld is discarded, or stays in the place of the one that costs most.
    least = _after_discard(hand, held, now)
    return [
        _after_discard(hand | card, held, now)
        if any(pair & hand == pair for pair in _PAIRS[card])
        else min(now, least + _VALUES[card])
        for card in cards
    ]


def _after_discard(mask: int, discards: Sequence[int], least: int) -> int:
    """The least deadwood after any of the discards, the dearest first; `least` if none has less."""
    whole = mask_deadwood(mask)
    for bit in discards:
        if whole - _VALUES[bit] >= least:
            break  # a discard takes no more off the deadwood than its points
        left = mask_deadwood(mask ^ bit)
        if left < least:
            least = left
    return least


def hand_terms(hand: int) -> list[float]:
    """What is compared of two hands that have been dealt."""
    with_one = deadwoods_with(hand, _cards(_PACK ^ hand))
    near = sum([(hand & _NEAR[card]).bit_count() for card in _cards(hand)]) / 2
    return [mask_deadwood(hand), sum(with_one) / len(with_one), near, near * near / 10]


def deal_terms(hands: Sequence[int], stake: float) -> list[float]:
    """The terms of a deal, for seat 0: their mean over both ways to give out the hands is 0."""
    mine, theirs = map(hand_terms, hands)
    return [stake * (one - other) for one, other in zip(mine, theirs, strict=True)]


def upcard_terms(hand: int, cards: Sequence[int], stake: float) -> list[tuple[float, ...]]:
    """By card that may be the up-card, the terms for the seat that is offered it first."""
    return [(stake * left,) for left in deadwoods_with(hand, cards)]


def draw_terms(
    hand: int, other: int, stock: Sequence[int], needs: tuple[int, int]
) -> list[tuple[float, ...]]:
    """By card of the stock, the terms for the seat that draws.

    Args:
        hand: its ten cards.
        other: the other seat's.
        stock: the cards that are left, in any order.
        needs: the points that it needs to win the game, and that the other seat needs.
    """
    stake, level = at_stake(*needs), win_chance(*needs)
    late = (_STOCK - len(stock)) / _STOCK
    now, others = mask_deadwood(hand), mask_deadwood(other)
    gin = win_chance(needs[0] - _BONUS - others, needs[1]) - level
    knocks = [
        win_chance(*_needs_after(needs, others - own)) - level for own in range(KNOCK_LIMIT + 1)
    ]
    terms: list[tuple[float, ...]] = []
    lefts, other_lefts = deadwoods_with(hand, stock), deadwoods_with(other, stock)
    for card, left, other_left in zip(stock, lefts, other_lefts, strict=True):
        terms.append(
            (
                stake * left,
                stake * min(left, _LOW),
                knocks[left] if 0 < left <= KNOCK_LIMIT else 0.0,
                gin if left == 0 else 0.0,
                stake * late * (others - other_left) if left == now else 0.0,
                stake * _VALUES[card],
                stake * ((hand & _NEAR[card]).bit_count() >= 2),
            )
        )
    return terms


def _needs_after(needs: tuple[int, int], difference: int) -> tuple[int, int]:
    """What the seats need after a knock with so much less deadwood than the other seat (G11)."""
    if difference > 0:
        return needs[0] - difference, needs[1]
    if difference == 0:
        return needs
    return needs[0], needs[1] - _BONUS + difference


def _cards(mask: int) -> list[int]:
    return [bit for bit in _BITS if mask & bit]


class GinRummyMeter:
    """The luck of a match, a game at a time (see `LuckMeter`).

    Attributes:
        terms: of each game that is over, the sums of `TERMS` for seat 0.
    """

    def __init__(self, settings: GinRummySettings) -> None:
        self.rounds: list[LuckRound] = []
        self.terms: list[tuple[float, ...]] = []
        self._target = settings.target
        self._hands = [0, 0]
        self._stock = 0
        self._begin()

    def dealt(self, deal: Any) -> None:
        """Nothing: the seats are told all that has to be known of a deal."""

    def told(self, told: TellSeat) -> None:
        match told.news:
            case Dealt() as news:
                self._hands[told.seat] = card_mask(news.hand)
                if told.seat == 1:
                    self._deal(news.starter, CARD_BITS[news.upcard])
            case RoundOver() as news:
                self._needs = self._target - news.scores[0], self._target - news.scores[1]
            case GameOver() as news:
                luck = sum(map(mul, _WEIGHTS, self._sums))
                gains = float(news.winner == 0), float(news.winner == 1)
                self.rounds.append(LuckRound(gains, (luck, -luck)))
                self.terms.append(tuple(self._sums))
                self._begin()

    def asked(self, asked: AskSeat) -> None:
        if type(asked.question) is Turn:
            drawn = CARD_BITS[asked.question.drawn]
            if drawn & self._stock:
                self._draw(asked.seat, drawn)

    def answered(self, asked: AskSeat, answer: Any) -> None:
        if type(asked.question) is Turn:
            self._hands[asked.seat] = card_mask(asked.question.hand) ^ CARD_BITS[answer.discard]

    def _begin(self) -> None:
        """Begin a game."""
        self._needs = self._target, self._target
        self._sums = [0.0] * len(TERMS)

    def _deal(self, starter: int, upcard: int) -> None:
        hands, stake = self._hands, at_stake(*self._needs)
        self._add(0, 0, deal_terms(hands, stake))
        unseen = _cards(_PACK ^ hands[0] ^ hands[1])
        terms = upcard_terms(hands[starter], unseen, stake)
        self._add(starter, _UPCARD, _beyond_mean(terms, unseen.index(upcard)))
        self._stock = _PACK ^ hands[0] ^ hands[1] ^ upcard

    def _draw(self, seat: int, drawn: int) -> None:
        stock = _cards(self._stock)
        needs = self._needs[seat], self._needs[1 - seat]
        terms = draw_terms(self._hands[seat], self._hands[1 - seat], stock, needs)
        self._add(seat, _DRAW, _beyond_mean(terms, stock.index(drawn)))
        self._stock ^= drawn

    def _add(self, seat: int, first: int, terms: Sequence[float]) -> None:
        """Add terms from the view of a seat to the sums, which are seat 0's."""
        for place, term in enumerate(terms, start=first):
            self._sums[place] += -term if seat else term


def _beyond_mean(terms: Sequence[Sequence[float]], came: int) -> list[float]:
    """The terms of the card that came, minus their means over all that might have come."""
    return [column[came] - sum(column) / len(column) for column in zip(*terms, strict=True)]


LUCK = Luck(unit="game", meter=GinRummyMeter)
