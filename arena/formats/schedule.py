"""Who plays whom: the schedules of round robins (K1) and leagues (K3).

An elimination's (K2) is in `arena/formats/elimination.py`; a ladder has none. A schedule is a
generator. It yields a stage, the pairings that may all be played at the same time, is sent their
outcomes in the same order, and returns when the competition is done:

    schedule = round_robin(("ann", "ben", "cem"))
    stage = next(schedule)
    while True:
        outcomes = tuple(Outcome(pairing, play(pairing)) for pairing in stage)
        stage = schedule.send(outcomes)  # StopIteration: done, its value is the ranking

Pure: no clock, no I/O, and chance only from the stream that is passed in. Void matches are played
again (J5) and never sent. The standings are in `arena/formats/standings.py`.
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


class Pairing(msgspec.Struct, frozen=True, gc=False):
    """One match to be played: its number in the competition, from 1, and the names by seat."""

    number: int
    players: tuple[str, ...]

    @property
    def is_alone(self) -> bool:
        """Whether a bot meets itself, which counts in no standings (A10)."""
        return len(self.players) > 1 and len(set(self.players)) == 1


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What came of a pairing."""

    pairing: Pairing
    result: Result | None  # None if it was not played, as one of them had been eliminated
    forgiven: tuple[int, ...] = ()  # seats whose offence ended it, but that are not out (J3)


class RankingPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the final ranking, and who shares it."""

    rank: int  # from 1; shared by equals (1, 1, 3)
    names: tuple[str, ...]
    stage: int  # the last that they were in, from 1
    offence: bool = False  # whether an offence ended it for them (J3)
    score: int | None = None  # in the final; None for those who were not in it, or offended


Stage: TypeAlias = tuple[Pairing, ...]
Outcomes: TypeAlias = tuple[Outcome, ...]
Ranking: TypeAlias = tuple[RankingPlace, ...]
"""Best first. Empty for round robins and leagues, where the standings rank."""

Schedule: TypeAlias = Generator[Stage, Outcomes, Ranking]


def round_robin(players: Sequence[str], matches: int = 1, with_itself: bool = False) -> Schedule:
    """Every bot meets every other `matches` times, changing seats from one time to the next (K1).

    With an odd number of matches one of each two sits in seat 0 once more than the other. That is
    fair where the roles alternate within a match (A2, G4); a game where they do not needs an even
    number. `with_itself` adds as many matches of each bot against another instance of itself (A10).
    Raises what `check_entry` raises.
    """
    check_entry(players, matches, at_least=1 if with_itself else 2)
    count = len(players)
    # The circle method: in turn t those meet whose numbers add up to t, so that nobody
    # sits at two tables of a turn and all are busy from the first turn to the last.
    seatings = [
        _seating(first, second, meeting)
        for meeting in range(matches)
        for turn in range(count)
        for first in range(count)
        if first < (second := (turn - first) % count) or (with_itself and first == second)
    ]
    return _one_stage([(players[first], players[second]) for first, second in seatings])


def league(players: Sequence[str], matches: int) -> Schedule:
    """Every bot plays the dealer `matches` times (K3); raises what `check_entry` raises."""
    check_entry(players, matches, at_least=1)
    return _one_stage([(player,) for _ in range(matches) for player in players])


def check_entry(players: Sequence[str], matches: int, *, at_least: int) -> None:
    """Raise UsageError for a name twice, fewer bots than `at_least`, or fewer than one match."""
    twice = [name for name, count in Counter(players).items() if count > 1]
    if twice:
        raise UsageError(f"expected every bot once, got {twice[0]!r} twice")
    if len(players) < at_least:
        raise UsageError(f"expected bots, at least {at_least} of them, got {len(players)}")
    if matches < 1:
        raise UsageError(f"expected at least 1 match, got {matches}")


def _seating(first: int, second: int, meeting: int) -> tuple[int, int]:
    """Seats 0 and 1: each two alternate, and over its first meetings every bot has each half the
    time, within one match if their number is odd.
    """
    return (first, second) if (second - first + meeting) % 2 else (second, first)


def _one_stage(seatings: Sequence[tuple[str, ...]]) -> Schedule:
    yield tuple(Pairing(number, players) for number, players in enumerate(seatings, start=1))
    return ()
