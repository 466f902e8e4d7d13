"""What the bots of a competition won without luck, from the luck that is stored of its matches.

It stands below the standings, of the same bots and matches, and ranks nobody. Rounds are the
samples, or blocks of them; from ten matches on the interval is the wider of theirs and the
matches', and before that there is none where the match is the unit. How opponents differ is no
chance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from arena.games.statistics import Bounds, MeanPart, Sample, mean_of, wider
from arena.records.luck import LuckSums

__all__ = ["LuckLine", "LuckTable"]

_MATCHES = 10  # from here on the spread of the matches themselves is known well enough


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
    """One bot against the same others, while it is added up; `units` are of a round each."""

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
    """Adds up the luck of matches; of a bot that met itself it takes none.

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
        """Add a match, with the names by seat, unless no round of it was over."""
        if not luck.rounds or (len(players) > 1 and len(set(players)) == 1):
            return
        for seat, name in enumerate(players):
            others = tuple(sorted(players[:seat] + players[seat + 1 :]))
            meetings = self._meetings.setdefault(name, {})
            meetings.setdefault(others, _Meeting()).add(luck, seat)

    def lines(self) -> Mapping[str, LuckLine]:
        """Of each bot, over all that it met."""
        return {
            name: _line(meetings.values())
            for name, meetings in self._meetings.items()
            if name not in self._unranked
        }

    def against(self, name: str, *others: str) -> LuckLine | None:
        """Of a bot against these; None if they have not met."""
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
    # It is about the mean of all rounds, also of those that are in no whole block.
    half = (interval.high - interval.low) / 2
    return msgspec.structs.replace(
        line,
        interval=Bounds(mean - half, mean + half),
        level=interval.level,
        method=interval.method,
    )


def _part(sample: Sample, weight: float) -> MeanPart:
    return MeanPart(weight, sample.mean or 0.0, sample.variance, sample.count)
