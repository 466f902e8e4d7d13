"""Who plays whom: the schedules of round robins (K1) and leagues (K3).

An elimination's (K2) is in `arena/formats/elimination.py`; a ladder has none. A schedule is a
generator. It yields a stage, the pairings that may all be played at the same time, is sent their
outcomes in the same order, and returns when the competition is done:

    schedule = round_robin(("ann", "ben", "cem"))
    stage = next(schedule)
    while True:
        outcomes = tuple(Outcome(pairing, play(pairing)) for pairing in stage)
        stage = schedule.send(outcomes)  # StopIteration: done, its value is the ranking

A schedule may draw a stage while the one before is still being played: it is sent no outcomes `()`
for the stage that it draws ahead, and from then on those of the oldest stage that it has not heard
of. `OpenStages` runs any schedule.

Pure: no clock, no I/O, and chance only from the stream that is passed in. Void matches are played
again (J5) and never sent. The standings are in `arena/formats/standings.py`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from arena.games.match import Result
from arena.games.statistics import UnitSums
from protocol.errors import UsageError

__all__ = [
    "OpenStages",
    "Outcome",
    "Outcomes",
    "Pairing",
    "Ranking",
    "RankingPlace",
    "Schedule",
    "Stage",
    "check_entry",
    "circle",
    "league",
    "round_robin",
]


class Pairing(msgspec.Struct, frozen=True, gc=False):
    """One match to be played: its number in the competition, from 1, and the names by seat."""

    number: int
    players: tuple[str, ...]

    @property
    def is_alone(self) -> bool:
        """Whether a bot meets itself; such a match counts in no standings (A10)."""
        return len(self.players) > 1 and len(set(self.players)) == 1


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a pairing."""

    pairing: Pairing
    result: Result | None  # None if it was not played, as a bot had been eliminated
    forgiven: tuple[int, ...] = ()  # seats whose offence ended it and was forgiven (J3)
    units: UnitSums | None = None  # of the match, if they were added up


class RankingPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the final ranking, and who shares it."""

    rank: int  # from 1; shared by equals (1, 1, 3)
    names: tuple[str, ...]
    stage: int  # the last that they played, from 1
    offence: bool = False  # whether an offence put them out (J3)
    score: int | None = None  # in the final; None for bots that did not play it or offended


Stage: TypeAlias = tuple[Pairing, ...]
Outcomes: TypeAlias = tuple[Outcome, ...]
Ranking: TypeAlias = tuple[RankingPlace, ...]
"""Places, best first. Empty for round robins and leagues, which are ranked by standings."""

Schedule: TypeAlias = Generator[Stage, Outcomes, Ranking]


class OpenStages:
    """Runs a schedule: holds the stages whose pairings may be played now, the oldest first.

    `ahead` says how many stages are drawn before the outcomes of the oldest are known.

    Attributes:
        ranking: the value that the schedule returned; None before its end.
    """

    def __init__(self, schedule: Schedule, ahead: int = 0) -> None:
        self.ranking: Ranking | None = None
        self._schedule = schedule
        self._looked = 0  # pairings of the oldest stage known to have outcomes
        self._open = deque([next(schedule)])
        for _ in range(ahead):
            if stage := schedule.send(()):
                self._open.append(stage)

    @property
    def open(self) -> tuple[Stage, ...]:
        return tuple(self._open)

    @property
    def oldest(self) -> Stage:
        """The stage whose outcomes come next; empty at the end."""
        return self._open[0] if self._open else ()

    def hear(self, outcomes: Outcomes) -> Stage:
        """Send the schedule the outcomes of the oldest stage; returns the next one, empty if none.

        At the end `ranking` is set.
        """
        self._open.popleft()
        try:
            stage = self._schedule.send(outcomes)
        except StopIteration as end:
            self.ranking = end.value
            return ()
        if stage:
            self._open.append(stage)
        return stage

    def follow(self, outcomes: Mapping[int, Outcome]) -> list[Pairing]:
        """Send the outcomes, by number, of each complete oldest stage; returns new pairings."""
        drawn: list[Pairing] = []
        while (stage := self.oldest) and self._is_whole(stage, outcomes):
            self._looked = 0
            drawn += self.hear(tuple(outcomes[pairing.number] for pairing in stage))
        return drawn

    def _is_whole(self, stage: Stage, outcomes: Mapping[int, Outcome]) -> bool:
        while self._looked < len(stage) and stage[self._looked].number in outcomes:
            self._looked += 1
        if self._looked < len(stage):
            return False
        # An outcome may have been withdrawn since.
        missing = (at for at, pairing in enumerate(stage) if pairing.number not in outcomes)
        self._looked = next(missing, len(stage))
        return self._looked == len(stage)


def round_robin(players: Sequence[str], matches: int = 1, with_itself: bool = False) -> Schedule:
    """Every bot meets every other `matches` times, with the seats swapped each time (K1).

    With an odd number of matches, one of the two sits in seat 0 once more than the other. That is
    fair where the roles alternate within a match (A2, G4); other games need an even number.
    `with_itself` adds as many matches of each bot against another instance of itself (A10). Raises
    what `check_entry` raises.
    """
    check_entry(players, matches, at_least=1 if with_itself else 2)
    seatings = circle(len(players), matches, with_itself)
    return _one_stage([(players[first], players[second]) for first, second in seatings])


def circle(count: int, matches: int, with_itself: bool = False) -> list[tuple[int, int]]:
    """The matches of a round robin, as the indices of the bots in seats 0 and 1."""
    # The circle method: in turn t those meet whose numbers add up to t. So nobody sits at two
    # tables of a turn, and all are busy from the first turn to the last.
    return [
        _seating(first, second, meeting)
        for meeting in range(matches)
        for turn in range(count)
        for first in range(count)
        if first < (second := (turn - first) % count) or (with_itself and first == second)
    ]


def league(players: Sequence[str], matches: int) -> Schedule:
    """Every bot plays the dealer `matches` times (K3); raises what `check_entry` raises."""
    check_entry(players, matches, at_least=1)
    return _one_stage([(player,) for _ in range(matches) for player in players])


def check_entry(players: Sequence[str], matches: int, *, at_least: int) -> None:
    """Raise UsageError for a name entered twice, too few bots, or fewer than one match."""
    twice = [name for name, count in Counter(players).items() if count > 1]
    if twice:
        raise UsageError(f"expected every bot once, got {twice[0]!r} twice")
    if len(players) < at_least:
        raise UsageError(f"expected bots, at least {at_least} of them, got {len(players)}")
    if matches < 1:
        raise UsageError(f"expected at least 1 match, got {matches}")


def _seating(first: int, second: int, meeting: int) -> tuple[int, int]:
    """Seats 0 and 1 in a meeting: the two alternate. Over its first meetings every bot has each
    seat half of the time, or one match more if their number is odd.
    """
    return (first, second) if (second - first + meeting) % 2 else (second, first)


def _one_stage(seatings: Sequence[tuple[str, ...]]) -> Schedule:
    yield tuple(Pairing(number, players) for number, players in enumerate(seatings, start=1))
    return ()
