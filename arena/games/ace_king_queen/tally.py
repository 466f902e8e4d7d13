"""A bot's answers in several matches of Ace-King-Queen, and whether they show that it adapts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from arena.games.ace_king_queen.bands import differs, halves_differ
from arena.games.ace_king_queen.habits import AceKingQueenHabits, Count
from arena.games.ace_king_queen.values import EQUILIBRIUM, SPOTS
from arena.games.analysis import SeatDecision

__all__ = ["Tally", "shares_of", "spot_in_words"]

_FLAGGED = 0.01  # so rarely a bot that does not adapt is taken for one that does
_HALVES = ("in the first halves of matches", "in the second halves")
_CARDS = {"A": "the ace", "K": "the king", "Q": "the queen"}


def spot_in_words(spot: int, ending: str = "") -> str:
    """Such as `bet with the queen`; an ending goes to the verb."""
    act, card = SPOTS[spot]
    return f"{act}{ending} with {_CARDS[card]}"


class Tally:
    """Counts answers by spot, by match and by half of a match.

    Attributes:
        titles: of the matches, such as `against the equilibrium`.
    """

    def __init__(self) -> None:
        self.titles: list[str] = []
        self._halves: list[tuple[list[Count], list[Count]]] = []

    def add(self, title: str, decisions: Sequence[SeatDecision]) -> None:
        """Count a match."""
        halves = AceKingQueenHabits(), AceKingQueenHabits()
        for number, decision in enumerate(decisions):
            half = halves[2 * number >= len(decisions)]
            half.decided(decision.question, decision.answer)
        self.note(title, halves[0].counts(), halves[1].counts())

    def note(self, title: str, first: list[Count], second: list[Count]) -> None:
        """Take a match into account that was counted by its halves."""
        self.titles.append(title)
        self._halves.append((first, second))

    @property
    def by_match(self) -> list[list[Count]]:
        return [_summed(halves) for halves in self._halves]

    @property
    def counts(self) -> list[Count]:
        return _summed(self.by_match)

    @property
    def shares(self) -> list[Fraction]:
        return shares_of(self.counts)

    def adapts(self) -> str:
        """How it was found that the bot adapts, a sentence; empty if it was not.

        Each spot is tried twice, so that a chance must be as many times smaller (Bonferroni).
        """
        by_match = self.by_match
        by_half = [_summed(half[late] for half in self._halves) for late in (0, 1)]
        found: list[tuple[float, int, list[Count], Sequence[str]]] = []
        for spot in range(len(SPOTS)):
            matches = [counts[spot] for counts in by_match]
            first, second = (counts[spot] for counts in by_half)
            found.append((differs(matches), spot, matches, self.titles))
            found.append((halves_differ(first, second), spot, [first, second], _HALVES))
        chance, spot, counts, titles = min(found, key=lambda test: test[0])
        chance *= len(found)
        return _adapting(spot, counts, titles, chance) if chance < _FLAGGED else ""


def shares_of(counts: Sequence[Count]) -> list[Fraction]:
    """The shares; that of a spot which was never seen is the equilibrium's."""
    return [
        Fraction(done, asked) if asked else best
        for (done, asked), best in zip(counts, EQUILIBRIUM, strict=True)
    ]


def _summed(parts: Iterable[Sequence[Count]]) -> list[Count]:
    total = [(0, 0)] * len(SPOTS)
    for part in parts:
        total = [
            (done + more, asked + asked_more)
            for (done, asked), (more, asked_more) in zip(total, part, strict=True)
        ]
    return total


def _adapting(spot: int, counts: Sequence[Count], titles: Sequence[str], chance: float) -> str:
    seen = [
        (done / asked, title) for (done, asked), title in zip(counts, titles, strict=True) if asked
    ]
    (low, where_low), (high, where_high) = min(seen), max(seen)
    how_likely = "< 0.0001" if chance < 0.0001 else f"= {chance:.4f}"
    return (
        f"It {spot_in_words(spot, 's')} {100 * high:.0f} % of the time {where_high}, "
        f"and {100 * low:.0f} % {where_low} (p {how_likely})."
    )
