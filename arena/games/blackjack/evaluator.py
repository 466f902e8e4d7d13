"""Values hits, stands and the luck of the cards in blackjack (rulebook, section B).

A decision is judged exactly, by the cards that the seat has seen since the shuffle. Bets are not
judged: no goal makes one bet better than another.

A card's luck is the value of the hand with it, minus the mean of that value over all unseen cards.
The values come from a table for an endless deck, but the mean is over the unseen cards of the real
deck, so luck is 0 on average whatever the table says. The hole card is unseen until it is turned
over. After a natural or a bust it is never turned over, and counts as unseen until the next
shuffle: each unseen card is then equally likely to come next.

Points count an ace as 1; a hand is its points and whether it has an ace (B4). Values are per chip
of the bet. Luck is in chips; the bet is made before the cards come, so the luck of a match is 0 on
average even where a match may end broke. This module needs no numpy; `values` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import mul
from typing import Any, TypeAlias

from arena.games.analysis import Chart, ChartCell, drawn, has_analysis, need_analysis
from arena.games.blackjack.rules import DEALER_STANDS, outcome, payoff
from arena.games.evaluator import Answered, Evaluator, Tally, Worths
from arena.games.rules import AskSeat, TellSeat
from protocol.blackjack import (
    NEW_DECK,
    POINTS,
    Bet,
    BlackjackSettings,
    Draw,
    Exposed,
    HandOver,
    Shuffled,
)
from protocol.vocabulary import News, Question

__all__ = [
    "COLUMNS",
    "BlackjackEvaluator",
    "ChartPlace",
    "dealers_row",
    "hit_row",
    "laid_out",
    "played_worth",
]

ChartPlace: TypeAlias = tuple[bool, int, int]
"""A cell of the charts: whether the hand is soft, its total, the points of the upcard."""

COLUMNS = {"A" if card == 1 else str(card): card for card in (*range(2, 11), 1)}
"""The points of the upcards by their labels, in the order of the charts."""
_HARD, _SOFT = range(4, 22), range(12, 22)

_GRADES = 0.02, 0.1, 0.3  # of the bet: 30 %, 20 % and 10 % of mistakes cost more
_LEVEL = 1e-9  # of the bet; smaller differences are rounding

_ACE, _TEN = 1, 10
_POINTS = range(_ACE, _TEN + 1)
_FULL = [sum(POINTS[card] == points for card in NEW_DECK) for points in range(11)]
_CHANCES = [count / len(NEW_DECK) for count in _FULL]
_NEVER = 0.0  # stands at index 0, as no card has 0 points

Row: TypeAlias = tuple[float, ...]
"""By the points of the next card, 1 to 10, the value of the hand with it; index 0 is unused."""


def _row(worth: Callable[[int], float]) -> Row:
    return (_NEVER, *(worth(card) for card in _POINTS))


def _mean(row: Row) -> float:
    return sum(worth * chance for worth, chance in zip(row, _CHANCES, strict=True))


def _total(points: int, has_ace: bool) -> int:
    return points + 10 if has_ace and points <= 11 else points


# The value of a hand at each stage, with the best play and an endless deck. Naturals are left out,
# as their payoff depends on the bet (B8): before the second card, add the chance of a natural times
# its payoff.


@cache
def played_worth(upcard: int, points: int, has_ace: bool) -> float:
    """The value of the better of hitting and standing; -1 after a bust (B9)."""
    if points > 21:
        return -1.0
    stand = _mean(dealers_row(_total(points, has_ace), upcard, upcard == _ACE))
    return max(stand, _mean(hit_row(upcard, points, has_ace)))


@cache
def hit_row(upcard: int, points: int, has_ace: bool) -> Row:
    """The values after a hit, by the player's next card."""
    return _row(lambda card: played_worth(upcard, points + card, has_ace or card == _ACE))


@cache
def dealers_row(total: int, points: int, has_ace: bool) -> Row:
    """The values for a player who stands on `total`, by the dealer's next card (B10)."""

    def stood(card: int) -> float:
        now, ace = points + card, has_ace or card == _ACE
        dealers = _total(now, ace)
        if dealers >= DEALER_STANDS:
            return float(payoff(outcome(total, dealers), 1))
        return _mean(dealers_row(total, now, ace))

    return _row(stood)


@cache
def _second_row(first: int, upcard: int) -> Row:
    """The values by the player's second card."""
    return _row(
        lambda second: (
            0.0
            if {first, second} == {_ACE, _TEN}
            else played_worth(upcard, first + second, _ACE in (first, second))
        )
    )


@cache
def _upcard_row(first: int) -> Row:
    return _row(lambda upcard: _mean(_second_row(first, upcard)))


@cache
def _first_row() -> Row:
    return _row(lambda first: _mean(_upcard_row(first)))


_NATURALS = _row(lambda card: _CHANCES[11 - card] if card in (_ACE, _TEN) else 0.0)
"""By the player's first card, the chance of a natural."""


class BlackjackEvaluator(Evaluator):
    """Evaluates a match of blackjack."""

    def __init__(self, settings: BlackjackSettings, seat: int | None = None) -> None:
        super().__init__(settings, seat)
        self._unseen = list(_FULL)
        self._begin(0)

    def _begin(self, bet: int) -> None:
        self._bet = bet
        self._natural = payoff("natural", bet) / bet if bet else 0.0
        self._player: list[int] = []
        self._dealer: list[int] = []
        self._judged: tuple[str, ...] = ()  # the hand at its first judgement
        self._worths: dict[tuple[int, ...], tuple[float, float]] = {}  # by the cards drawn since

    def prepare(self) -> None:
        need_analysis()

    def heard(self, event: TellSeat | AskSeat | Answered) -> None:
        if type(event) is Answered and type(event.question) is Bet:
            self._begin(event.answer)
        elif type(event) is TellSeat and type(news := event.news) is Exposed:
            points = POINTS[news.card]
            self._unseen[points] -= 1  # every card that is seen (B11)
            (self._player if news.to == "player" else self._dealer).append(points)
        elif type(event) is TellSeat and type(event.news) is Shuffled:
            self._unseen = list(_FULL)

    def worths(self, question: Question[Any], answer: Any) -> Worths | None:
        if type(question) is Bet:
            return None
        assert type(question) is Draw, "rules B ask nothing else"
        from arena.games.blackjack.values import best_play, counted

        if not self._worths:
            self._judged = question.hand
            upcard, unseen = POINTS[question.upcard], tuple(self._unseen[1:])
            self._worths = best_play(upcard, counted(question.hand), unseen)
        stand, hit = self._worths[counted(question.hand[len(self._judged) :])]
        return Worths(
            values={"stand": (self._bet * stand,), "hit": (self._bet * hit,)},
            unit="chips",
            grades=_GRADES,
            scale=self._bet,
            least=self._bet * _LEVEL if abs(hit - stand) < _LEVEL else None,
        )

    def luck(self, event: TellSeat | AskSeat) -> Sequence[float] | None:
        if type(event) is not TellSeat or type(news := event.news) is not Exposed:
            return None
        row = self._players_row() if news.to == "player" else self._dealers_row()
        mean = sum(map(mul, row, self._unseen)) / sum(self._unseen)
        return (self._bet * (row[POINTS[news.card]] - mean),)

    def gains(self, news: News) -> Sequence[float] | None:
        return (news.payoff,) if type(news) is HandOver else None

    def _players_row(self) -> Row:
        player, pay = self._player, self._natural
        if not player:
            return tuple(
                worth + chance * pay for worth, chance in zip(_first_row(), _NATURALS, strict=True)
            )
        upcard = self._dealer[0]
        if len(player) > 1:
            return hit_row(upcard, sum(player), _ACE in player)
        row = _second_row(player[0], upcard)
        if player[0] not in (_ACE, _TEN):
            return row
        other = 11 - player[0]
        return (*row[:other], pay, *row[other + 1 :])

    def _dealers_row(self) -> Row:
        player, dealer = self._player, self._dealer
        if not dealer:
            return _upcard_row(player[0])
        total = _total(sum(player), _ACE in player)
        return dealers_row(total, sum(dealer), _ACE in dealer)

    def cells(self, event: TellSeat | Answered) -> Iterable[tuple[ChartPlace, bool]]:
        if type(event) is Answered and type(draw := event.question) is Draw:
            return [((draw.soft, draw.total, POINTS[draw.upcard]), event.answer == "hit")]
        return ()

    @staticmethod
    def charts(tally: Tally) -> tuple[Chart, ...]:
        """The charts of hard and soft hands; a cell that was not seen counts as played best.
        Without numpy and scipy the cells have no costs.
        """
        if not has_analysis():
            return laid_out(tally.cell)
        from arena.games.blackjack.values import COST_NOTE, COST_UNIT, fresh_deck

        fresh = fresh_deck()
        cell = fresh.cells(fresh.played(fresh.seen(tally)), tally)
        return laid_out(cell, COST_UNIT, COST_NOTE)


def laid_out(
    cell: Callable[[ChartPlace], ChartCell], cost_unit: str = "", note: str = ""
) -> tuple[Chart, ...]:
    """Arrange cells as the charts of hard and soft hands."""
    return tuple(
        drawn(
            title,
            "hits",
            {str(total): total for total in totals},
            COLUMNS,
            lambda total, upcard, is_soft=is_soft: cell((is_soft, total, upcard)),  # type: ignore[misc]
            cost_unit=cost_unit,
            note=note,
        )
        for title, is_soft, totals in (("Hard hands", False, _HARD), ("Soft hands", True, _SOFT))
    )
