"""What a decision in Ace-King-Queen gives away against the equilibrium.

Where the equilibrium mixes, both answers are level: they cost nothing against it. What they may
cost against one who knows how a bot plays, no single decision shows.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from arena.games.ace_king_queen.habits import ANSWERS, spot_of
from arena.games.ace_king_queen.luck import BETS
from arena.games.ace_king_queen.values import EQUILIBRIUM, gains
from arena.games.analysis import Judgement
from protocol.ace_king_queen import CARDS, AceKingQueenSettings
from protocol.vocabulary import News, Question

__all__ = ["AceKingQueenJudge"]

_GRADES = (0.0, 0.4, 0.9)  # chips, which grades 1, 2 and 3 cost more: a king bet is 1/2, a call 1


_DEAL = Fraction(1, 6)
# By spot, in what share of all hands it comes up: for a caller, only after an equilibrium's bet.
_ASKED = [2 * _DEAL / 2] * len(CARDS) + [
    sum((BETS[card] for card in CARDS if card != caller), Fraction()) * _DEAL / 2
    for caller in CARDS
]
_GAINS = [float(gain / asked) for gain, asked in zip(gains(EQUILIBRIUM), _ASKED, strict=True)]
"""By spot, what a bet or call brings more than a check or fold, each time, in chips."""


class AceKingQueenJudge:
    """Judges by the card alone (see `Judge`)."""

    def __init__(self, settings: AceKingQueenSettings, seat: int) -> None:
        """Any match and seat: a spot is the same everywhere."""

    def heard(self, news: News) -> None:
        """Nothing: the equilibrium does not learn."""

    def judged(self, question: Question[Any], answer: Any) -> Judgement:
        """What this answer costs against the equilibrium."""
        spot = spot_of(question)
        if 0 < EQUILIBRIUM[spot] < 1:
            return Judgement(cost=0.0, best=answer, unit="chips", is_level=True)
        best = ANSWERS[spot][_GAINS[spot] < 0]
        cost = 0.0 if answer == best else abs(_GAINS[spot])
        return Judgement(
            cost=cost, best=best, unit="chips", grade=sum(cost > least for least in _GRADES)
        )

    def decided(self, question: Question[Any], answer: Any) -> None:
        """Nothing: what it has played before makes no difference."""
