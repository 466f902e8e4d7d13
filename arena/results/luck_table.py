"""Computes what the bots of a competition won without luck, from the stored luck of its matches.

The table stands below the standings, covers the same bots and matches, and ranks nobody. The
samples are rounds, or blocks of rounds. From ten matches on, the interval is the wider one of the
samples' and the matches'. Before that, there is none if the match is the unit. Differences between
opponents do not count as chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from arena.games.statistics import Bounds, MeanPart, Sample, mean_of, wider
from arena.records.luck import LuckSums

__all__ = ["LuckLine", "LuckTable"]

_MATCHES = 10  # with these, the spread of the matches themselves is known well enough


class LuckLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a bot won per match.

    Attributes:
        matches, rounds: how many were measured.
        gain: what it won per match, in the unit of the game's `Luck`.
        mean: the same without luck.
        interval: of `mean`, at a `level` by a `method`; None if too few were played.
    """

    matches: int
    rounds: int
    gain: float
    mean: float
    interval: Bounds | None = None
    level: float | None = None
    method: str | None = None


class _Meeting(msgspec.Struct):
    """The sums of one bot against the same opponents; each sample in `units` is for one round."""

    rounds: int = 0
    gain: float = 0
    units: Sample = msgspec.field(default_factory=Sample)
    matches: Sample = msgspec.field(default_factory=Sample)

    def add(self, luck: LuckSums, seat: int) -> None:
        self.rounds += luck.rounds
        self.gain += luck.gains[seat]
        self.matches.add(luck.gains[seat] - luck.luck[seat])
        if (units := luck.units) is not None:
            total, squares = units.sums[seat], units.squares[seat]
            self.units.add_sums(units.count, total / luck.block, squares / luck.block**2)


class LuckTable:
    """Adds up the luck of matches, except those of a bot against itself.

    The `unranked` bots have no line.
    """

    def __init__(
        self,
        matches: Iterable[tuple[tuple[str, ...], LuckSums]] = (),
        unranked: Collection[str] = (),
    ) -> None:
        self._unranked = unranked
        self._meetings: dict[str, dict[tuple[str, ...], _Meeting]] = {}
        for players, luck in matches:
            self.add(players, luck)

    def add(self, players: tuple[str, ...], luck: LuckSums) -> None:
        """Add a match, with the names by seat; ignored if no round of it was completed."""
        if not luck.rounds or (len(players) > 1 and len(set(players)) == 1):
            return
        for seat, name in enumerate(players):
            others = tuple(sorted(players[:seat] + players[seat + 1 :]))
            meetings = self._meetings.setdefault(name, {})
            meetings.setdefault(others, _Meeting()).add(luck, seat)

    def lines(self) -> Mapping[str, LuckLine]:
        """Return each bot's line, over all opponents that it met."""
        return {
            name: _line(meetings.values())
            for name, meetings in self._meetings.items()
            if name not in self._unranked
        }

    def against(self, name: str, *others: str) -> LuckLine | None:
        """Return a bot's line against these opponents; None if they have not met."""
        meeting = self._meetings.get(name, {}).get(tuple(sorted(others)))
        return None if meeting is None else _line([meeting])


def _line(meetings: Iterable[_Meeting]) -> LuckLine:
    met = list(meetings)
    matches = sum(meeting.matches.count for meeting in met)
    rounds = sum(meeting.rounds for meeting in met)
    gain = sum(meeting.gain for meeting in met) / matches
    mean = sum(meeting.matches.total for meeting in met) / matches
    interval = mean_of(_part(each.units, each.rounds / matches) for each in met)
    if matches >= _MATCHES:
        interval = wider(
            interval, mean_of(_part(each.matches, each.matches.count / matches) for each in met)
        )
    line = LuckLine(matches=matches, rounds=rounds, gain=gain, mean=mean)
    if interval is None:
        return line
    # Centre the interval on the mean of all rounds, as some rounds may be in no whole block.
    half = (interval.high - interval.low) / 2
    return msgspec.structs.replace(
        line,
        interval=Bounds(mean - half, mean + half),
        level=interval.level,
        method=interval.method,
    )


def _part(sample: Sample, weight: float) -> MeanPart:
    return MeanPart(weight, sample.mean or 0.0, sample.variance, sample.count)
