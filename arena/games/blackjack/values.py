"""The exact value of every blackjack hand, given how many cards of each count are left.

All unseen cards are equally likely to come next, the hole card too (B7). Hands with the same number
of cards of each count are treated as one hand; an ace counts 1, and a natural pays exactly three
for two. Values are per chip of the bet. This module needs numpy, so import it only where needed.

Arrays are indexed by upcard, then by hand, then by card; the index of a card is its points less 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arena.games.analysis import ChartCell
from arena.games.blackjack.rules import DEALER_STANDS, outcome, payoff
from arena.games.evaluator import Cell, Tally
from arena.games.statistics import LEVEL, clopper_pearson
from protocol.blackjack import NEW_DECK, POINTS

__all__ = [
    "COST_NOTE",
    "COST_UNIT",
    "FULL",
    "UPCARDS",
    "Counts",
    "Floats",
    "FreshDeck",
    "FreshPlay",
    "Hands",
    "Place",
    "best_play",
    "counted",
    "fresh_deck",
]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = tuple[int, ...]
"""How many cards of each count, 1 to 10."""

Place: TypeAlias = tuple[int, int]
"""The points of an upcard, and the number of a hand in `Hands`."""

UPCARDS = range(1, 11)
FULL: Counts = tuple(sum(POINTS[card] == points for card in NEW_DECK) for points in UPCARDS)

COST_UNIT = "% of the bet"
COST_NOTE = (
    "Costs are in % of the bet for every hand that is dealt, from a fresh deck; they sum to the "
    "distance from the best play."
)
_PER_CENT = 100.0
_BUST = 22
_NATURAL = payoff("natural", 2) / 2
_NEVER = -2.0  # lower than any value: forces a hit
_TOTALS = range(DEALER_STANDS, _BUST + 1)
_PAID = np.array(
    [[payoff(outcome(total, dealer), 1) for dealer in _TOTALS] for total in range(_BUST)], float
)


def counted(cards: Sequence[str]) -> Counts:
    """How many of the cards have each count."""
    points = [POINTS[card] for card in cards]
    return tuple(points.count(each) for each in UPCARDS)


def _total(points: int, has_ace: bool) -> int:
    return points + 10 if has_ace and points <= 11 else points


class Hands:
    """All hands that can be reached from a hand by hits, with that hand first, by number of cards.

    `added` has the cards drawn to reach each hand, and `index` finds a hand by these cards. `after`
    has the number of the hand after each further card; a bust has the number after the last.
    """

    def __init__(self, points: int, has_ace: bool) -> None:
        level: list[Counts] = [(0,) * 10]
        hands: list[Counts] = []
        self.levels: list[slice] = []
        while level:
            self.levels.append(slice(len(hands), len(hands) + len(level)))
            hands += level
            more = {_with(hand, card): None for hand in level for card in UPCARDS}
            level = [hand for hand in more if points + _points(hand) <= 21]
        self.index = {hand: number for number, hand in enumerate(hands)}
        self.added = np.array(hands)
        self.after = np.array(
            [[self.index.get(_with(hand, card), len(hands)) for card in UPCARDS] for hand in hands]
        )
        self.points = [points + _points(hand) for hand in hands]
        aces = [has_ace or hand[0] > 0 for hand in hands]
        self.totals = list(map(_total, self.points, aces))
        self.soft = [total > low for total, low in zip(self.totals, self.points, strict=True)]
        self.cards = self.added.sum(axis=1)

    def cards_of(self, number: int) -> tuple[int, ...]:
        """The points of the cards that were drawn to reach this hand, the lowest first."""
        counts = zip(UPCARDS, self.added[number].tolist(), strict=True)
        return tuple(points for points, count in counts for _ in range(count))


def _with(hand: Counts, card: int) -> Counts:
    return (*hand[: card - 1], hand[card - 1] + 1, *hand[card:])


def _points(hand: Counts) -> int:
    return sum(points * count for points, count in enumerate(hand, 1))


@cache
def _hands(points: int, has_ace: bool) -> Hands:
    return Hands(points, has_ace)


class _Draw:
    """What one card does to the dealer's hands of some length: which it ends, and what it makes."""

    def __init__(self, upcard: int, card: int, hands: Sequence[Counts], more: list[Counts]) -> None:
        self.taken = np.array([hand[card - 1] for hand in hands], float)[:, None]
        goes_on: list[int] = []
        ended: dict[int, list[int]] = {}
        following: list[int] = []
        for number, hand in enumerate(hands):
            drawn = _with(hand, card)
            total = _total(upcard + _points(drawn), upcard == 1 or drawn[0] > 0)
            if total >= DEALER_STANDS:
                ended.setdefault(min(total, _BUST) - DEALER_STANDS, []).append(number)
                continue
            if drawn not in more:
                more.append(drawn)
            goes_on.append(number)
            following.append(more.index(drawn))
        self.goes_on, self.following, self.ended = goes_on, following, ended


@cache
def _dealers(upcard: int) -> list[tuple[list[_Draw], int]]:
    """By the number of cards, what each card does to the dealer's hands, and how many go on."""
    hands: list[Counts] = [(0,) * 10]
    levels = []
    while hands:
        more: list[Counts] = []
        draws = [_Draw(upcard, card, hands, more) for card in UPCARDS]
        levels.append((draws, len(more)))
        hands = more
    return levels


def _stands(upcard: int, unseen: Counts, hands: Hands) -> Floats:
    """The value of standing, for every hand (B10)."""
    left = (np.array(unseen) - hands.added).T.astype(float)
    number = sum(unseen) - hands.cards
    ends = np.zeros((len(_TOTALS), len(number)))
    likely = np.ones((1, len(number)))
    for dealt, (draws, following) in enumerate(_dealers(upcard)):
        # With no card left every probability is 0; the maximum only avoids dividing 0 by 0.
        likely /= np.maximum(number - dealt, 1)
        after = np.zeros((following, len(number)))
        for draw, cards in zip(draws, left, strict=True):
            ways = likely * (cards - draw.taken)
            after[draw.following] += ways[draw.goes_on]
            for total, ended in draw.ended.items():
                ends[total] += ways[ended].sum(axis=0)
        likely = after
    worth: Floats = (_PAID[hands.totals] * ends.T).sum(axis=1)
    return worth


def _chances(unseen: Counts, hands: Hands) -> Floats:
    """By hand, the probability of each card to come next."""
    left = np.maximum(np.array(unseen) - hands.added, 0)
    chances: Floats = left / np.maximum(sum(unseen) - hands.cards, 1)[:, None]
    return chances


_Choose: TypeAlias = Callable[[slice, Floats, Floats], Floats]
"""Returns how often hands hit, given the values of standing and of hitting."""


def _best(_: slice, stand: Floats, hit: Floats) -> Floats:
    return np.asarray(hit > stand, float)


def _hits(hands: Hands, chances: Floats, stand: Floats, choose: _Choose) -> Floats:
    """The value of hitting, for every hand, if all later hands are played as `choose` says."""
    hit = np.zeros_like(stand)
    worth = np.full((len(stand), stand.shape[1] + 1), -1.0)  # the last entry is a bust (B9)
    for level in reversed(hands.levels):
        hit[:, level] = (chances[:, level] * worth[:, hands.after[level]]).sum(axis=2)
        now, then = stand[:, level], hit[:, level]
        worth[:, level] = now + choose(level, now, then) * (then - now)
    return hit


def best_play(upcard: int, hand: Counts, unseen: Counts) -> dict[Counts, tuple[float, float]]:
    """The values of standing and of hitting, with the best play afterwards.

    They are given for a hand and for all hands that hits make of it, by the cards that were drawn.
    `unseen` has all cards that were unseen before these draws.
    """
    hands = _hands(_points(hand), hand[0] > 0)
    stand = _stands(upcard, unseen, hands)[None]
    hit = _hits(hands, _chances(unseen, hands)[None], stand, _best)
    worths = zip(stand[0].tolist(), hit[0].tolist(), strict=True)
    return dict(zip(hands.index, worths, strict=True))


class FreshPlay(NamedTuple):
    """How a player plays from a fresh deck, by upcard and hand.

    Attributes:
        shares: how often it hits.
        reached: the probability that a dealt hand becomes this one.
        losses: the loss against the best play, per dealt hand; the losses sum to the distance from
            the best play.
    """

    shares: Floats
    reached: Floats
    losses: Floats


class FreshDeck:
    """All hands from a fresh deck, by upcard.

    `shares` say how often a player hits, by upcard and hand. A hand with fewer than two cards is
    always hit, and a natural always stands.

    Attributes:
        best: the shares of the best play.
        regret: the loss of the worse answer.
        is_asked: which hands a player is asked about at all.
        likely: the probability of each hand if a player always hits where it may.
        naturals: the probability of a natural.
        rows: by whether the hand is soft and by its total, the numbers of the hands that are asked.
            A row and an upcard make a cell of a chart.

    The loss of a cell is how often this player reaches its hands, times what the play there loses
    against the best. So the losses of all cells sum to the distance from the best play. Deeper in
    the deck, a bot that counts cards may rightly deviate from the best play.
    """

    def __init__(self) -> None:
        self.hands = _hands(0, False)
        unseen = [_without(card) for card in UPCARDS]
        self._upcards = np.array(FULL)[:, None] / len(NEW_DECK)
        self._chances = np.array([_chances(cards, self.hands) for cards in unseen])
        self._stand = np.array(
            [_stands(card, cards, self.hands) for card, cards in zip(UPCARDS, unseen, strict=True)]
        )
        self.natural = self.hands.index[_with(_with((0,) * 10, 1), 10)]
        self._stand[:, self.natural] = _NATURAL
        self._stand[:, self.hands.cards < 2] = _NEVER
        self._hit = _hits(self.hands, self._chances, self._stand, _best)
        self.best = _best(slice(None), self._stand, self._hit)
        self.regret: Floats = np.abs(self._hit - self._stand)
        self.is_asked = np.full(self.best.shape, True)
        self.is_asked[:, self.natural] = self.is_asked[:, self.hands.cards < 2] = False
        self.likely = self.reached(np.where(self.is_asked, 1.0, self.best))
        self.naturals = float(self.likely[:, self.natural].sum())
        self.rows: dict[tuple[bool, int], list[int]] = {}
        for number, row in enumerate(zip(self.hands.soft, self.hands.totals, strict=True)):
            if self.is_asked[0, number]:
                self.rows.setdefault(row, []).append(number)

    def value(self, shares: Floats) -> float:
        """The mean payoff per chip of the bet."""
        return self._value(lambda level, stand, hit: shares[:, level])

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """The least and the greatest value over all shares between `low` and `high`."""
        return (
            self._value(lambda at, stand, hit: np.where(hit > stand, low[:, at], high[:, at])),
            self._value(lambda at, stand, hit: np.where(hit > stand, high[:, at], low[:, at])),
        )

    def _value(self, choose: _Choose) -> float:
        hit = _hits(self.hands, self._chances, self._stand, choose)
        return float((self._upcards[:, 0] * hit[:, 0]).sum())

    def reached(self, shares: Floats) -> Floats:
        reach = np.zeros((len(shares), shares.shape[1] + 1))
        reach[:, 0] = self._upcards[:, 0]
        for level in self.hands.levels:
            ways = (reach[:, level] * shares[:, level])[:, :, None] * self._chances[:, level]
            for card in range(10):
                reach[:, self.hands.after[level, card]] += ways[:, :, card]
        return reach[:, :-1]

    def played(self, shares: Floats) -> FreshPlay:
        """The play of a player with these shares."""
        reached = self.reached(shares)
        return FreshPlay(shares, reached, reached * np.abs(shares - self.best) * self.regret)

    # ---- The cells of a chart

    def spread(self, cells: Mapping[Any, float]) -> Floats:
        """The shares by hand, given the shares of some cells; other cells have the best play's."""
        shares = self.best.copy()
        for (is_soft, total, upcard), share in cells.items():
            shares[upcard - 1, self.rows[is_soft, total]] = share
        return shares

    def seen(self, tally: Tally) -> Floats:
        """The shares by hand of a bot with these counts; the best play's where there are none."""
        return self.spread({cell: tally.done[cell] / of for cell, of in tally.asked.items()})

    def reachable(self, play: FreshPlay) -> set[Cell]:
        """The cells that a player with this play can reach."""
        return {
            (*row, upcard)
            for row, hands in self.rows.items()
            for upcard in UPCARDS
            if play.reached[upcard - 1, hands].sum() > 0
        }

    def band(self, tally: Tally) -> tuple[float, float]:
        """The 95 % interval of a bot's value, from what it was seen to do."""
        cells = [(*row, upcard) for row in self.rows for upcard in UPCARDS]
        level = 1 - (1 - LEVEL) / len(tally.asked)
        bounds = {
            cell: clopper_pearson(*tally.count(cell), level) if cell in tally.asked else (0.0, 1.0)
            for cell in cells
        }
        low, high = (
            self.spread({cell: both[side] for cell, both in bounds.items()}) for side in (0, 1)
        )
        return self.bounds(low, high)

    def cells(
        self, play: FreshPlay, tally: Tally, *, is_exact: bool = False
    ) -> Callable[[tuple[bool, int, int]], ChartCell]:
        """The cells of a bot's charts, as far as it was asked.

        `is_exact` says that its answer to every hand is known. Shares are then weighted by how
        likely the hands of a cell are, instead of how often each was asked, and have no interval.
        """
        shares, reached, losses = play
        likely, best = self.likely, self.best

        def cell(place: tuple[bool, int, int]) -> ChartCell:
            is_soft, total, upcard = place
            at = np.ix_([upcard - 1], self.rows[is_soft, total])
            mark = float((likely[at] * best[at]).sum() / likely[at].sum())
            hits, of = tally.count(place)
            if not of:
                return ChartCell(mark=mark)
            cost = _PER_CENT * float(losses[at].sum())
            if is_exact:
                share = float((reached[at] * shares[at]).sum() / reached[at].sum())
                return ChartCell(share=share, count=hits, of=of, mark=mark, cost=cost)
            return tally.cell(place, mark=mark, cost=cost)

        return cell


def _without(card: int) -> Counts:
    return (*FULL[: card - 1], FULL[card - 1] - 1, *FULL[card:])


@cache
def fresh_deck() -> FreshDeck:
    """The hands of a fresh deck; computed at the first call."""
    return FreshDeck()
