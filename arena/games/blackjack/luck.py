"""How lucky a hand of blackjack is: every card that is shown, against those that could have come.

A card's luck is what the hand is worth with it, less the mean of that over all unseen cards. What a
hand is worth stands in a table for a deck without end; the mean is over the unseen cards of the
real one, so it is exact and the luck is fair whatever the table says. The hole card is unseen until
it is turned over. After a natural or a bust it never is, and stays among the unseen until the next
shuffle: of these, each is as likely as any other to come next.

Points count an ace as 1; a hand is its points and whether it has an ace (B4). Values are per chip
of the bet, and luck is in chips: the bet is a decision like any other. It is made before the cards
come, so the luck of a match is 0 on average also where that may end broke.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from operator import mul
from typing import TypeAlias

from arena.games.blackjack.rules import DEALER_STANDS, outcome, payoff
from arena.games.rules import AskSeat, LuckMeter, LuckRound, TellSeat
from protocol.blackjack import NEW_DECK, POINTS, Bet, BlackjackSettings, Exposed, HandOver, Shuffled

__all__ = ["BlackjackLuckMeter", "HandValues", "hand_values"]

_ACE, _TEN = 1, 10
_POINTS = range(_ACE, _TEN + 1)
_FULL = [sum(POINTS[card] == points for card in NEW_DECK) for points in range(11)]
_CHANCES = [count / len(NEW_DECK) for count in _FULL]
_NEVER = 0.0  # of the points that no card has

Row: TypeAlias = tuple[float, ...]
"""What a hand is worth with one more card, by the card's points, 1 to 10; index 0 is no card."""


def _row(worth: Callable[[int], float]) -> Row:
    return (_NEVER, *(worth(card) for card in _POINTS))


def _mean(row: Row) -> float:
    return sum(worth * chance for worth, chance in zip(row, _CHANCES, strict=True))


def _total(points: int, has_ace: bool) -> int:
    return points + 10 if has_ace and points <= 11 else points


class HandValues:
    """What a hand is worth to who plays it best with a deck without end, at every stage.

    A natural is left out, as what it pays depends on the bet (B8): before the second card the value
    is to be added to the chance of one times its pay.
    """

    def __init__(self) -> None:
        self._dealers: dict[tuple[int, int, bool], Row] = {}
        self._play: dict[tuple[int, int, bool], float] = {}
        self._players: dict[tuple[int, int, bool], Row] = {}
        both = [*product(_POINTS, _POINTS)]
        self.seconds = {(a, b): _row(partial(self._two, a, b)) for a, b in both}
        """By the player's first card and the up-card: the row of the second card."""
        means = {key: _mean(row) for key, row in self.seconds.items()}
        self.upcards = {a: (_NEVER, *(means[a, b] for b in _POINTS)) for a in _POINTS}
        """By the player's first card: the row of the up-card."""
        self.first = _row(lambda card: _mean(self.upcards[card]))
        self.naturals = _row(lambda card: _CHANCES[11 - card] if card in (_ACE, _TEN) else 0.0)
        """By the player's first card: the chance of a natural."""

    def hit(self, upcard: int, points: int, has_ace: bool) -> Row:
        """The row of the player's next card after a hit."""
        key = upcard, points, has_ace
        if key not in self._players:
            self._players[key] = _row(
                lambda card: self.play(upcard, points + card, has_ace or card == _ACE)
            )
        return self._players[key]

    def play(self, upcard: int, points: int, has_ace: bool) -> float:
        """The better of hitting and standing; a bust is lost (B9)."""
        key = upcard, points, has_ace
        if points > 21:
            return -1.0
        if key not in self._play:
            stand = _mean(self.dealt(_total(points, has_ace), upcard, upcard == _ACE))
            self._play[key] = max(stand, _mean(self.hit(upcard, points, has_ace)))
        return self._play[key]

    def dealt(self, total: int, points: int, has_ace: bool) -> Row:
        """The row of the dealer's next card, when the player stands on a total."""
        key = total, points, has_ace
        if key not in self._dealers:
            self._dealers[key] = _row(
                lambda card: self._stood(total, points + card, has_ace or card == _ACE)
            )
        return self._dealers[key]

    def _stood(self, total: int, points: int, has_ace: bool) -> float:
        """What the player has who stood on a total, against this hand of the dealer (B10)."""
        dealers = _total(points, has_ace)
        if dealers >= DEALER_STANDS:
            return float(payoff(outcome(total, dealers), 1))
        return _mean(self.dealt(total, points, has_ace))

    def _two(self, first: int, upcard: int, second: int) -> float:
        if {first, second} == {_ACE, _TEN}:
            return 0.0
        return self.play(upcard, first + second, _ACE in (first, second))


hand_values = cache(HandValues)
"""The table, made at the first use."""


class BlackjackLuckMeter(LuckMeter):
    """Adds up a match, a hand at a time, in chips."""

    def __init__(self, settings: BlackjackSettings) -> None:
        self.rounds: list[LuckRound] = []
        self._values = hand_values()
        self._unseen = list(_FULL)
        self._bet(0)

    def answered(self, asked: AskSeat, answer: int) -> None:
        if type(asked.question) is Bet:
            self._bet(answer)

    def told(self, told: TellSeat) -> None:
        news = told.news
        if type(news) is Exposed:
            points = POINTS[news.card]
            row = self._players_row() if news.to == "player" else self._dealers_row()
            unseen = self._unseen
            self._luck += row[points] - sum(map(mul, row, unseen)) / sum(unseen)
            unseen[points] -= 1
            (self._player if news.to == "player" else self._dealer).append(points)
        elif type(news) is HandOver:
            self.rounds.append(LuckRound((news.payoff,), (news.bet * self._luck,)))
        else:
            assert type(news) is Shuffled, "rules B tell nothing else"
            self._unseen = list(_FULL)

    def _bet(self, chips: int) -> None:
        """Begin a hand."""
        self._player: list[int] = []
        self._dealer: list[int] = []
        self._luck = 0.0
        self._natural = payoff("natural", chips) / chips if chips else 0.0

    def _players_row(self) -> Row:
        player, values = self._player, self._values
        if not player:
            pay = self._natural
            return tuple(
                map(lambda worth, chance: worth + chance * pay, values.first, values.naturals)
            )
        upcard = self._dealer[0]
        if len(player) > 1:
            return values.hit(upcard, sum(player), _ACE in player)
        row = values.seconds[player[0], upcard]
        if player[0] in (_ACE, _TEN):
            other = 11 - player[0]
            return (*row[:other], self._natural, *row[other + 1 :])
        return row

    def _dealers_row(self) -> Row:
        player, dealer = self._player, self._dealer
        if not dealer:
            return self._values.upcards[player[0]]
        total = _total(sum(player), _ACE in player)
        return self._values.dealt(total, sum(dealer), _ACE in dealer)
