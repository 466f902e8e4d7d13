"""Who plays whom: round robin (K1) and league (K3); an elimination (K2) is in `arena/formats/elimination.py`, a ladder has no schedule.

A schedule is a generator. It yields a stage, the pairings that may all be played at the same time, is sent their outcomes in
the same order, and returns when the competition is done:

    schedule = round_robin(("ann", "ben", "cem"))
    stage = next(schedule)
    while True:
        outcomes = tuple(Outcome(pairing, play(pairing)) for pairing in stage)
        stage = schedule.send(outcomes)  # StopIteration: done, its value is the ranking

Pure: no clock, no I/O, and chance only from the stream that is handed in. A void match is the director's to play again (J5)
and is never sent. What the matches of round robins and leagues add up to is in `arena/formats/standings.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import TypeAlias

import msgspec

from arena.engine.match import Result
from protocol.errors import UsageError

__all__ = [
    "Outcome",
    "Outcomes",
    "Pairing",
    "Ranking",
    "RankingPlace",
    "Schedule",
    "Stage",
    "check_entry",
    "league",
    "round_robin",
]


class Pairing(msgspec.Struct, frozen=True):
    """One match to be played: its number in the competition, from 1, and the names by seat."""

    number: int
    players: tuple[str, ...]

    @property
    def is_alone(self) -> bool:
        """Whether a bot would meet itself, which counts for nobody (A10)."""
        return len(self.players) > 1 and len(set(self.players)) == 1


class Outcome(msgspec.Struct, frozen=True):
    """What came of a pairing.

    Attributes:
        pairing: who was to play.
        result: None if it was not played because one of them had been eliminated.
        forgiven: seats that are not out, though an offence of theirs ended it (J3).
    """

    pairing: Pairing
    result: Result | None
    forgiven: tuple[int, ...] = ()


class RankingPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Who shares a place in the final ranking.

    Attributes:
        rank: from 1; the next after a shared one is left out (1, 1, 3).
        names: one, or all who are level.
        stage: the last that they were in, from 1.
        offence: whether it was an offence that ended it (J3).
        score: in the final, by which they have their place; None for who was not in it, or is last in it by an offence.
    """

    rank: int
    names: tuple[str, ...]
    stage: int
    offence: bool = False
    score: int | None = None


Stage: TypeAlias = tuple[Pairing, ...]
Outcomes: TypeAlias = tuple[Outcome, ...]
Ranking: TypeAlias = tuple[RankingPlace, ...]
"""Best first. Empty for round robins and leagues, where the standings rank."""

Schedule: TypeAlias = Generator[Stage, Outcomes, Ranking]


def round_robin(players: Sequence[str], matches: int = 1, with_itself: bool = False) -> Schedule:
    """Every bot meets every other `matches` times, changing seats from one time to the next (K1).

    With an odd number of matches one of each two sits in seat 0 once more than the other, as often as not each bot. That is
    fair in Ace-King-Queen and gin, where the roles alternate within a match (A2, G4); a game where they do not needs an
    even number.

    Args:
        players: the bots, each once.
        matches: how often each two meet.
        with_itself: whether every bot also meets another instance of itself so often (A10).

    Raises:
        UsageError: a name twice, fewer than two bots, fewer than one match.
    """
    check_entry(players, matches, at_least=1 if with_itself else 2)
    count = len(players)
    # The circle method: in turn t those meet whose numbers add up to t, so that nobody
    # sits at two tables of a turn and all are busy from the first turn to the last.
    seatings = [
        _seating(one, other, meeting)
        for meeting in range(matches)
        for turn in range(count)
        for one in range(count)
        if one < (other := (turn - one) % count) or (with_itself and one == other)
    ]
    return _one_stage([(players[first], players[second]) for first, second in seatings])


def league(players: Sequence[str], matches: int) -> Schedule:
    """Every bot plays the dealer `matches` times (K3).

    Raises:
        UsageError: a name twice, no bot, fewer than one match.
    """
    check_entry(players, matches, at_least=1)
    return _one_stage([(player,) for _ in range(matches) for player in players])


def check_entry(players: Sequence[str], matches: int, *, at_least: int) -> None:
    """See that a schedule can be made.

    Raises:
        UsageError: a name twice, fewer bots than `at_least`, fewer than one match.
    """
    twice = [name for name, count in Counter(players).items() if count > 1]
    if twice:
        raise UsageError(f"expected every bot once, got {twice[0]!r} twice")
    if len(players) < at_least:
        raise UsageError(f"expected bots, at least {at_least} of them, got {len(players)}")
    if matches < 1:
        raise UsageError(f"expected at least 1 match, got {matches}")


def _seating(one: int, other: int, meeting: int) -> tuple[int, int]:
    """Who sits in seat 0: each two alternate, and at their first meeting every bot does so half the time, or within one of it."""
    return (one, other) if (other - one + meeting) % 2 else (other, one)


def _one_stage(seatings: Sequence[tuple[str, ...]]) -> Schedule:
    yield tuple(Pairing(number, players) for number, players in enumerate(seatings, start=1))
    return ()
