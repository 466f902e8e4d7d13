"""What it cost to hit or to stand, exactly, by the cards that the seat had seen since the shuffle.

How much to bet is not judged: there is no goal that a bet could miss.
"""

from __future__ import annotations

from typing import Any

from arena.games.analysis import Judgement
from arena.games.blackjack.values import FULL, Counts, best_play, counted
from protocol.blackjack import POINTS, Bet, BlackjackSettings, Draw, Exposed, Shuffled
from protocol.vocabulary import News, Question

__all__ = ["BlackjackJudge", "grade"]

_GRADES = 0.02, 0.1, 0.3  # of the bet: what the worst one, two and three of ten mistakes lose
_LEVEL = 1e-9  # of the bet; rounding is less


def grade(lost: float) -> int:
    """The mark of a decision that lost so much of the bet."""
    return sum(lost >= least for least in _GRADES)


class BlackjackJudge:
    """Judges one match."""

    def __init__(self, settings: BlackjackSettings, seat: int) -> None:
        self._unseen = list(FULL)
        self._bet = 0
        self._hand: tuple[str, ...] = ()
        self._worths: dict[Counts, tuple[float, float]] = {}

    def heard(self, news: News) -> None:
        """Note every card that is seen (B11)."""
        if type(news) is Exposed:
            self._unseen[POINTS[news.card] - 1] -= 1
        elif type(news) is Shuffled:
            self._unseen = list(FULL)

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Note a bet, with which a hand begins."""
        if type(question) is Bet:
            self._bet, self._worths = answer, {}

    def judged(self, question: Question[Any], answer: Any) -> Judgement | None:
        """Judge a hit or a stand."""
        if type(question) is Bet:
            return None
        assert type(question) is Draw, "rules B ask nothing else"
        if not self._worths:
            self._hand = question.hand
            upcard, hand = POINTS[question.upcard], counted(self._hand)
            self._worths = best_play(upcard, hand, tuple(self._unseen))
        stand, hit = self._worths[counted(question.hand[len(self._hand) :])]
        best = "hit" if hit > stand else "stand"
        lost = 0.0 if answer == best else abs(hit - stand)
        is_level = abs(hit - stand) < _LEVEL
        return Judgement(
            cost=0.0 if is_level else self._bet * lost,
            best=best,
            unit="chips",
            is_level=is_level,
            grade=grade(lost),
        )
