"""What a bid in high-low costs its seat, from what it could know (rulebook, section H).

The last speaker's answers have exact values, if a card that it cannot know is any card that it has
not seen in the shuffle, each as likely. Bots that stay have better cards than that; so a mistake is
called level where the cards that the same bots have shown after the same bids say otherwise.

Where others still have to bid, it depends on them. They are taken to answer as they have done in
this match, in rounds that are over, after the same highest bid and having swapped or kept as they
have now; their cards, and the hidden ones of those who have bid, are those that they showed when
they stayed. That is an estimate, with its standard error, and is made only from enough such rounds.

Swaps are not judged: what one brings depends on every bid that follows, the seat's own among them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import comb, sqrt
from random import Random
from statistics import fmean, variance
from typing import Any, NamedTuple, TypeAlias

from arena.games.analysis import Judgement
from protocol.cards import PACK, Card
from protocol.high_low import (
    SEATS,
    Bid,
    Bidding,
    BidMade,
    Dealt,
    HighLowSettings,
    RoundOver,
    Swapped,
    strength,
)
from protocol.vocabulary import News, Question

__all__ = ["HighLowJudge"]

_QUIT = 2  # what it costs to quit (H8)
_GRADES = (0.0, 1.0, 3.0)  # points, which grades 1, 2 and 3 cost more
_FEW = 10  # answers of a seat in a situation, of which less can be said
_DRAWS = 200
_SURE = 2.5  # standard errors, within which an estimate is level
_ROUNDING = 1e-9

_Rank: TypeAlias = int
_Draw: TypeAlias = tuple[list[_Rank], list[float]]
"""Cards of those who have bid, and chances that choose what those do who follow."""
_Habit: TypeAlias = list[tuple[Bidding, _Rank | None]]
"""What a seat has answered in a situation, and the card that it showed then."""


class _Worth(NamedTuple):
    """What an answer brings, by draw, from so many answers of others that were seen."""

    values: list[float]
    seen: int


class HighLowJudge:
    """Judges the bids of one seat (see `Judge`)."""

    def __init__(self, settings: HighLowSettings, seat: int) -> None:
        self._seat = seat
        self._decisions = 0
        self._random = Random(0)
        self._shuffle = 0
        self._unseen: set[Card] = set()
        self._dealer_card: Card | None = None
        self._known: list[Card | None] = [None] * SEATS  # of those who have swapped
        self._highest: int | None = None
        self._bids: list[tuple[int, bool, int | None, Bidding]] = []
        self._habits: defaultdict[tuple[int, bool, int | None], _Habit] = defaultdict(list)

    def heard(self, news: News) -> None:
        """Note which cards are seen, and what the others do."""
        match news:
            case Dealt():
                if news.shuffle != self._shuffle:
                    self._shuffle, self._unseen = news.shuffle, set(PACK)
                self._unseen -= {news.card, news.dealer_card}
                self._dealer_card = news.dealer_card
                self._known, self._highest = [None] * SEATS, None
                self._bids.clear()
            case Swapped(seat=seat, swapped=True):
                self._known[seat] = self._dealer_card
                self._dealer_card = news.dealer_card
                self._unseen.discard(news.dealer_card)
            case BidMade():
                swapped = self._known[news.seat] is not None
                self._bids.append((news.seat, swapped, self._highest, news.bid))
                if news.bid != "quit":
                    self._highest = news.bid
            case RoundOver():
                self._unseen.difference_update(card for card in news.cards if card is not None)
                for seat, swapped, highest, bid in self._bids:
                    card = news.cards[seat]
                    shown = None if card is None else strength(card)
                    self._habits[seat, swapped, highest].append((bid, shown))

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Count an answer."""
        self._decisions += 1

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        """What a bid costs; None if it cannot be said."""
        if type(question) is not Bid:
            return None
        self._random = Random(self._decisions)  # so that it is always judged alike
        waiting = [
            seat
            for seat in ((self._seat + after) % SEATS for after in range(1, SEATS))
            if question.bids[seat] is None
        ]
        if not waiting:
            return self._last(question, answer)
        drawn = self._drawn_worths(question, waiting)
        if answer not in drawn or len(drawn) == 1:
            return None
        means = {say: fmean(worth.values) for say, worth in drawn.items()}
        best = _best(means, answer)
        # The best answer's cost is as sure as what it is better than the next one.
        others = [say for say in means if say != best]
        other = max(others, key=means.__getitem__) if best == answer else answer
        error = _error(drawn[best], drawn[other])
        cost = means[best] - means[answer]
        return _judgement(max(cost, 0.0), best, best != answer and cost < _SURE * error, error)

    def _last(self, question: Bid, answer: Any) -> Judgement:
        """The last speaker: exact, and level where the cards that others showed say otherwise."""
        known, hidden = self._stayers(question)
        mine = strength(question.card)
        unseen = len(self._unseen)
        lower = sum(strength(card) < mine for card in self._unseen)
        halves = _chance(unseen, lower, len(hidden), all(rank < mine for rank in known))
        halves += _chance(unseen, unseen - lower, len(hidden), all(rank > mine for rank in known))
        stayers = 1 + len(known) + len(hidden)
        means = {say: _points(say, stayers, halves) for say in question.legal}
        best = _best(means, answer)
        cost = means[best] - means[answer]
        drawn = self._drawn_worths(question, ()) if hidden and best != answer else {}
        is_level = bool(drawn) and fmean(drawn[best].values) <= fmean(drawn[answer].values)
        return _judgement(max(cost, 0.0), best, is_level)

    def _stayers(self, question: Bid) -> tuple[list[_Rank], list[list[_Rank]]]:
        """The known cards of those who stay, and what the others showed when they bid so before."""
        known, hidden = [], []
        for seat, swapped, highest, bid in self._bids:
            if bid == "quit":
                continue
            if (card := self._known[seat]) is not None:
                known.append(strength(card))
            else:
                habit = self._habits[seat, swapped, highest]
                hidden.append([shown for say, shown in habit if say == bid and shown is not None])
        return known, hidden

    def _drawn_worths(self, question: Bid, waiting: Sequence[int]) -> dict[Bidding, _Worth]:
        """By answer, what it is worth if all others are as they were before in this match.

        Answers are left out after which too few others were seen.
        """
        known, hidden = self._stayers(question)
        fewest = min(map(len, hidden), default=_DRAWS)
        if fewest < _FEW:
            return {}
        draws = [
            (
                [*known, *(self._random.choice(shown) for shown in hidden)],
                [self._random.random() for _ in waiting],
            )
            for _ in range(_DRAWS)
        ]
        mine = strength(question.card)
        worths: dict[Bidding, _Worth] = {"quit": _Worth([float(-_QUIT)] * _DRAWS, fewest)}
        for say in question.legal[1:]:
            if (worth := self._drawn(say, mine, draws, waiting)) is not None:
                worths[say] = _Worth(worth.values, min(worth.seen, fewest))
        return worths

    def _drawn(
        self, say: Any, mine: _Rank, draws: Sequence[_Draw], waiting: Sequence[int]
    ) -> _Worth | None:
        """What a number is worth; None if those who follow were seen too seldom."""
        values, fewest = [], _DRAWS
        for ranks, chances in draws:
            last_bid, others = say, [*ranks]
            for seat, chance in zip(waiting, chances, strict=True):
                known = self._known[seat]
                habit = self._habits[seat, known is not None, last_bid]
                if len(habit) < _FEW:
                    return None
                fewest = min(fewest, len(habit))
                bid, shown = habit[int(chance * len(habit))]
                if shown is not None:  # it stays (H10)
                    last_bid = bid
                    others.append(shown if known is None else strength(known))
            halves = all(rank < mine for rank in others) + all(rank > mine for rank in others)
            values.append(_points(last_bid, 1 + len(others), halves))
        return _Worth(values, fewest)


def _points(last_bid: Any, stayers: int, halves: float) -> float:
    """What so many halves of the pot bring who stays (H7 to H9), or quitting (H8)."""
    if last_bid == "quit":
        return -_QUIT
    half = (_QUIT * (SEATS - stayers) + last_bid * stayers) / 2
    return float(halves * half - last_bid)


def _best(means: Mapping[Bidding, float], answer: Bidding) -> Bidding:
    """The best answer: the given one, if none is better by more than rounding."""
    best = max(means, key=means.__getitem__)
    return best if means[best] - means[answer] > _ROUNDING else answer


def _judgement(cost: float, best: Bidding, is_level: bool, error: float | None = None) -> Judgement:
    grade = 0 if is_level else sum(cost > least for least in _GRADES)
    return Judgement(
        cost=cost, best=best, unit="points", error=error, is_level=is_level, grade=grade
    )


def _chance(unseen: int, fitting: int, hidden: int, fits: bool) -> float:
    """How likely a card is the highest, or lowest, of those who stay.

    It must be so among the known cards, and all `hidden` ones must be among the `fitting`.
    """
    return comb(fitting, hidden) / comb(unseen, hidden) if fits else 0.0


def _error(one: _Worth, other: _Worth) -> float:
    """The standard error of a difference of means.

    It cannot be more than if all chance were in the answers of the seat of which the fewest are
    known (Hoeffding's decomposition), and in the draws. As if one more of those had brought no
    difference, it is never 0.
    """
    differences = [mine - others for mine, others in zip(one.values, other.values, strict=True)]
    seen = min(one.seen, other.seen)
    unseen = fmean(differences) / (seen + 1)
    return sqrt(variance(differences) * (1 / seen + 1 / _DRAWS) + unseen * unseen)
