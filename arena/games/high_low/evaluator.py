"""Values bids and luck in high-low, and counts what a bot answers (rulebook, section H).

The last speaker's answers have exact values, if each hidden card is equally likely to be any card
that the seat has not seen in the shuffle. Bots that stay have better cards than that. So a mistake
is called level where the cards that the same bots have shown after the same bids say otherwise.

An earlier speaker's answers depend on the bots that bid after it. These are taken to bid as they
did in the finished rounds of this match, after the same highest bid and after swapping or not, as
now. The cards of these bots, and the hidden cards of those that have bid, are taken from what they
showed when they stayed. The values are then estimates with a standard error, and are made only from
enough such rounds. Swaps are not judged: their value depends on all later bids, the seat's own too.

Chance is only in the deal. Each of the four cards might as well have been the next seat's, and so
on round the table. So luck is what the cards would bring each seat if all bid by a simple table
(`TABLES`), minus its mean over these four rotations. With any tables and any bots luck is 0 on
average.

How closely a seat's gains follow a table depends on the bots. So each seat has a weight per table,
by least squares over the finished rounds of this match; these cannot know the next deal. A weight
starts at `_WEIGHT`, as if found in rounds whose squares sum to `_TRUST`. The gains of the four
seats sum to 0, so their luck is shifted to sum to 0, too.

Luck also decides when a match ends (H11), and a bot that loses in most rounds loses more in a
longer match. So each point that luck adds between the second and the third seat counts as a number
of rounds less, each with a seat's mean gain without luck. Both are estimated before the round.

The constants of luck were tuned on 300 matches of each of eight tables of house bots. These (seeds
7,000,000 to 7,079,999) must not be used for any measurement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from math import comb
from random import Random
from typing import Any, TypeAlias

from arena.games.analysis import Chart, drawn
from arena.games.evaluator import Answered, Cell, Evaluator, Tally, Worths
from arena.games.high_low.rules import QUIT, ROUNDS, SPEAKING, payoffs
from arena.games.rules import AskSeat, TellSeat
from protocol.cards import PACK, RANKS, Card
from protocol.high_low import (
    BIDS,
    SEATS,
    Bid,
    Bidding,
    BidMade,
    Dealt,
    HighLowSettings,
    Points,
    RoundOver,
    Swap,
    Swapped,
    legal_bids,
    strength,
)
from protocol.vocabulary import News, Question

__all__ = ["TABLES", "HighLowEvaluator", "deal_luck", "extremity"]

_GRADES = (0.0, 1.0, 3.0)  # points above which a mistake is `?!`, `?`, `??`
_FEW = 10  # the fewest answers of a seat in a situation for an estimate
_DRAWS = 200

_Rank: TypeAlias = int
_Situation: TypeAlias = tuple[int, bool, int | None]
"""The seat that bids, whether it has swapped, and the highest bid before."""
_Habit: TypeAlias = list[tuple[Bidding, _Rank | None]]
"""A seat's answers in a situation, and the card that it showed after each."""

_Bidder: TypeAlias = Callable[[int, int], Bidding]
"""Chooses a bid by the extremity of a card and the highest bid so far, 0 if there is none."""

_EXTREME = 37  # the least extremity of an ace, king, 2 or 3

TABLES: tuple[_Bidder, ...] = (
    lambda extremity, last_bid: 10,
    lambda extremity, last_bid: (
        legal_bids(last_bid or None)[1] if extremity >= _EXTREME else "quit"
    ),
)
"""How all four bid: nobody quits; or only aces, kings, 2s and 3s stay, with the lowest bid."""

_WEIGHT = 0.2
_TRUST = 500.0  # for comparison: a round of bold bots adds 100 for the first table
_GUESSED_ROUNDS = 500  # the weight of the guessed rates, in rounds
_RATE = 0.6  # the guessed growth of the gap (H11), in points a round
_LEAST_RATE = 0.1

_BY_RANK = {"10" if rank == "T" else rank: rank for rank in RANKS}


class HighLowEvaluator(Evaluator):
    """Evaluates a match of high-low."""

    def __init__(self, settings: HighLowSettings, seat: int | None = None) -> None:
        super().__init__(settings, seat)
        self._decisions = 0
        self._shuffle = 0
        self._unseen: set[Card] = set()
        self._dealer_card: Card | None = None
        self._known: list[Card | None] = [None] * SEATS  # of the seats that have swapped
        self._highest: int | None = None
        self._bids: list[tuple[_Situation, Bidding]] = []
        self._habits: defaultdict[_Situation, _Habit] = defaultdict(list)
        # For luck.
        self._fits = [_Fit() for _ in range(SEATS)]
        self._rounds = 0
        self._scores: Sequence[int] = (0,) * SEATS
        self._without = [0.0] * SEATS  # the gains without luck so far
        self._cards: list[Card] = []
        self._tables: list[tuple[float, ...]] = []
        self._luck: list[float] = []

    def heard(self, event: TellSeat | AskSeat | Answered) -> None:
        if type(event) is Answered:
            self._decisions += 1
        if type(event) is not TellSeat:
            return
        match event.news:
            case Dealt() as news:
                if news.shuffle != self._shuffle:
                    self._shuffle, self._unseen = news.shuffle, set(PACK)
                self._unseen -= {news.card, news.dealer_card}
                self._dealer_card = news.dealer_card
                self._known, self._highest = [None] * SEATS, None
                self._bids.clear()
                self._cards.append(news.card)
            case Swapped(seat=seat, swapped=True) as news:
                self._known[seat] = self._dealer_card
                self._dealer_card = news.dealer_card
                self._unseen.discard(news.dealer_card)
            case BidMade() as news:
                swapped = self._known[news.seat] is not None
                self._bids.append(((news.seat, swapped, self._highest), news.bid))
                if news.bid != "quit":
                    self._highest = news.bid
            case RoundOver() as news:
                self._unseen.difference_update(card for card in news.cards if card is not None)
                for situation, bid in self._bids:
                    card = news.cards[situation[0]]
                    shown = None if card is None else strength(card)
                    self._habits[situation].append((bid, shown))
                self._close(news)

    # ---- What a bid is worth

    def worths(self, question: Question[Any], answer: Any) -> Worths | None:
        if type(question) is not Bid:
            return None
        assert self.seat is not None, "it is a seat that bids"
        waiting = [seat for seat in SPEAKING[self.seat][1:] if question.bids[seat] is None]
        if waiting:
            worths = self._estimated(question, waiting)
            return worths if worths is not None and len(worths.values) > 1 else None
        known, hidden = self._stayers(question)
        mine, unseen = strength(question.card), len(self._unseen)
        lower = sum(strength(card) < mine for card in self._unseen)
        halves = _chance(unseen, lower, len(hidden), all(rank < mine for rank in known))
        halves += _chance(unseen, unseen - lower, len(hidden), all(rank > mine for rank in known))
        stayers = 1 + len(known) + len(hidden)
        return Worths(
            values={say: (_points(say, stayers, halves),) for say in question.legal},
            unit="points",
            grades=_GRADES,
            again=(lambda: self._estimated(question, ())) if hidden else None,
        )

    def _stayers(self, question: Bid) -> tuple[list[_Rank], list[list[_Rank]]]:
        """The known cards of stayers; for every other stayer, what it showed after such bids."""
        known, hidden = [], []
        for situation, bid in self._bids:
            if bid == "quit":
                continue
            if (card := self._known[situation[0]]) is not None:
                known.append(strength(card))
            else:
                habit = self._habits[situation]
                hidden.append([shown for say, shown in habit if say == bid and shown is not None])
        return known, hidden

    def _estimated(self, question: Bid, waiting: Sequence[int]) -> Worths | None:
        """The values of the answers if all other seats act as they did before in this match.

        An answer is left out if too few actions of the others after it were seen.
        """
        known, hidden = self._stayers(question)
        fewest = min(map(len, hidden), default=_DRAWS)
        if fewest < _FEW:
            return None
        random = Random(self._decisions)  # so that the judgement is always the same
        draws = [
            (
                [*known, *(random.choice(shown) for shown in hidden)],
                [random.random() for _ in waiting],
            )
            for _ in range(_DRAWS)
        ]
        mine = strength(question.card)
        seen: dict[Bidding, int] = {"quit": fewest}
        values: dict[Bidding, list[float]] = {"quit": [float(-QUIT)] * _DRAWS}
        for say in question.legal[1:]:
            followed = (self._followed(say, mine, *draw, waiting) for draw in draws)
            found = [*takewhile(lambda one: one[1] >= _FEW, followed)]
            if len(found) == _DRAWS:
                values[say] = [value for value, _ in found]
                seen[say] = min(fewest, *(few for _, few in found))
        return Worths(values=values, unit="points", grades=_GRADES, seen=seen)

    def _followed(
        self,
        say: Any,
        mine: _Rank,
        ranks: Sequence[_Rank],
        chances: Sequence[float],
        waiting: Sequence[int],
    ) -> tuple[float, int]:
        """The points of a bid in one draw, and the fewest answers seen of any later speaker."""
        last_bid, others, fewest = say, [*ranks], _DRAWS
        for seat, chance in zip(waiting, chances, strict=True):
            known = self._known[seat]
            habit = self._habits[seat, known is not None, last_bid]
            fewest = min(fewest, len(habit))
            if fewest < _FEW:
                break
            bid, shown = habit[int(chance * len(habit))]
            if shown is not None:  # it stays (H10)
                last_bid = bid
                others.append(shown if known is None else strength(known))
        halves = all(rank < mine for rank in others) + all(rank > mine for rank in others)
        return _points(last_bid, 1 + len(others), halves), fewest

    # ---- What a deal is worth

    def luck(self, event: TellSeat | AskSeat) -> Sequence[float] | None:
        if type(event) is not TellSeat or type(news := event.news) is not Dealt:
            return None
        if len(self._cards) < SEATS - 1:
            return None
        self._tables = deal_luck([*self._cards, news.card], news.dealer_card, news.starter)
        raw = [fit.value(table) for fit, table in zip(self._fits, self._tables, strict=True)]
        mean = sum(raw) / SEATS
        self._luck = [value - mean for value in raw]
        length, over = self._rounds_more(self._luck), self._rounds + _GUESSED_ROUNDS
        return [
            luck + length * without / over
            for luck, without in zip(self._luck, self._without, strict=True)
        ]

    def gains(self, news: News) -> Sequence[float] | None:
        return tuple(map(float, news.payoffs)) if type(news) is RoundOver else None

    def _close(self, news: RoundOver) -> None:
        """Update what luck is computed from at the end of a round, and forget its cards.

        That is each seat's weights of `TABLES`, its gains without luck, and the scores.
        """
        for seat, (table, luck) in enumerate(zip(self._tables, self._luck, strict=True)):
            self._fits[seat].learn(table, news.payoffs[seat])
            self._without[seat] += news.payoffs[seat] - luck
        self._scores, self._rounds = news.scores, self._rounds + 1
        self._cards.clear()

    def _rounds_more(self, luck: Sequence[float]) -> float:
        """By how many rounds this luck makes the match longer."""
        over, scores = self._rounds, self._scores
        _, second, third, _ = sorted(range(SEATS), key=lambda seat: -scores[seat])
        grown = self._without[second] - self._without[third] + _RATE * _GUESSED_ROUNDS
        rate = max(grown / (over + _GUESSED_ROUNDS), _LEAST_RATE)
        left = self.settings.max_shuffles * ROUNDS - over
        if rate * left <= self.settings.gap - scores[second] + scores[third]:
            return 0.0  # it will probably last to its limit
        return (luck[third] - luck[second]) / rate

    # ---- Charts

    def cells(self, event: TellSeat | Answered) -> Iterable[tuple[Cell, bool]]:
        if type(event) is not Answered:
            return ()
        question, answer = event.question, event.answer
        if type(question) is Swap:
            nearer = extremity(question.dealer_card) > extremity(question.card)
            return [((question.card[0], nearer), answer == "swap")]
        assert type(question) is Bid, "rules H ask nothing else"
        return [((question.card[0], str(bid)), answer == bid) for bid in BIDS]

    @staticmethod
    def charts(tally: Tally) -> tuple[Chart, ...]:
        return (
            drawn(
                "Swaps",
                "how often it swaps",
                _BY_RANK,
                {"for a card nearer to an end": True, "for another": False},
                lambda rank, nearer: tally.cell((rank, nearer)),
                note="An end is the two of clubs or the ace of spades.",
            ),
            drawn(
                "Bids",
                "how often it answers so",
                _BY_RANK,
                {str(bid): str(bid) for bid in BIDS},
                lambda rank, bid: tally.cell((rank, bid)),
                note="A number must be at least every number before it, so that low ones are "
                "rarer.",
            ),
        )


def _points(last_bid: Any, stayers: int, halves: float) -> float:
    """The points for staying and winning `halves` of the pot (H7 to H9), or for quitting (H8)."""
    if last_bid == "quit":
        return -QUIT
    half = (QUIT * (SEATS - stayers) + last_bid * stayers) / 2
    return float(halves * half - last_bid)


def _chance(unseen: int, fitting: int, hidden: int, fits: bool) -> float:
    """The probability that a card is the highest, or lowest, of those who stay.

    `fits` says that it is so among the known cards; all `hidden` ones must be among the `fitting`.
    """
    return comb(fitting, hidden) / comb(unseen, hidden) if fits else 0.0


class _Fit:
    """How closely a seat's gains follow the two tables: least squares, starting from a guess."""

    def __init__(self) -> None:
        self._squares = [_TRUST, _TRUST]
        self._product = 0.0
        self._with_gains = [_TRUST * _WEIGHT, _TRUST * _WEIGHT]

    def value(self, tables: Sequence[float]) -> float:
        """The weighted sum of what the two tables give."""
        (one, two), both, (first, second) = self._squares, self._product, self._with_gains
        weights = two * first - both * second, one * second - both * first
        return (weights[0] * tables[0] + weights[1] * tables[1]) / (one * two - both * both)

    def learn(self, tables: Sequence[float], gain: float) -> None:
        for place, table in enumerate(tables):
            self._squares[place] += table * table
            self._with_gains[place] += table * gain
        self._product += tables[0] * tables[1]


def deal_luck(cards: Sequence[Card], dealer_card: Card, starter: int) -> list[tuple[float, ...]]:
    """By seat, what each table gives for this deal, minus its mean over the four rotations."""
    rotations = [[*cards[by:], *cards[:by]] for by in range(SEATS)]
    columns = []
    for bidder in TABLES:
        paid = [_play(held, dealer_card, starter, bidder) for held in rotations]
        columns.append(
            [here - sum(all_here) / SEATS for here, *all_here in zip(paid[0], *paid, strict=True)]
        )
    return list(zip(*columns, strict=True))


def _play(cards: Sequence[Card], dealer_card: Card, starter: int, bidder: _Bidder) -> Points:
    """By seat, the points of a deal if all swap for the more extreme card and use this bidder."""
    held = list(cards)
    for seat in SPEAKING[starter]:
        if extremity(dealer_card) > extremity(held[seat]):
            held[seat], dealer_card = dealer_card, held[seat]
    last_bid = 0
    shown: list[Card | None] = [None] * SEATS
    for seat in SPEAKING[starter]:
        bid = bidder(extremity(held[seat]), last_bid)
        if bid != "quit":
            last_bid, shown[seat] = bid, held[seat]
    one, two, three, four = shown
    return payoffs((one, two, three, four), last_bid or None)


def extremity(card: Card) -> int:
    """A card's distance from the middle of the order: an odd number, 1 to 51 at either end."""
    return abs(2 * strength(card) - 51)
