"""Competitions that go on until they are settled (K6): their schedule and their standings.

The schedule draws blocks. Block k + 1 depends on the outcomes of blocks up to k − 1 alone, so it
can begin while block k is played; and on nothing else, so an audit can draw the same blocks again.
The standings run the same schedule over the results so far, and make claims only from whole blocks:
within a block short matches end first, and these may be the ones that one bot wins. The statistics
are in `arena/games/settle.py`. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import msgspec

from arena.formats.intervals import unit_kind
from arena.formats.schedule import (
    OpenStages,
    Outcome,
    Outcomes,
    Pairing,
    Schedule,
    Stage,
    check_entry,
    circle,
)
from arena.formats.spec import Form, Plan, Settling
from arena.formats.standings import (
    Cell,
    League,
    LeagueRow,
    RoundRobin,
    Row,
    RunningStandings,
    league_value,
    ranked,
)
from arena.games.match import Result
from arena.games.settle import LeagueRace, Mark, Meeting, PairRace, block_size
from arena.games.statistics import SharePart, share_of

__all__ = [
    "MARKS_NOTE",
    "RANGES_NOTE",
    "SettledCell",
    "SettledLeague",
    "SettledLeagueRow",
    "SettledRoundRobin",
    "SettledRow",
    "settled_note",
    "settled_schedule",
]

RANGES_NOTE = "All rank ranges together are right in 95 of 100 competitions."
MARKS_NOTE = "Each mark (> better, < worse, = level, ? open) is wrong at most once in 20."
"""The note below a table with rank ranges and marks."""

_POINTS = 100  # `level` is in points, of which a match has this many


class SettledCell(Cell, frozen=True, kw_only=True):
    """How one bot has done against another, and the mark of the pair: `>`, `<`, `=` or `?`."""

    mark: Mark = Mark.OPEN


class SettledRow(Row, frozen=True, kw_only=True):
    """A bot's line in a round robin that is settled.

    `share` ranks: the mean, over its opponents, of the share that it won, with a draw as half; None
    if it has met nobody. Its 95 % interval is from `share_low` to `share_high`. Its rank is surely
    from `rank_low` to `rank_high`.
    """

    share: float | None = None
    share_low: float | None = None
    share_high: float | None = None
    rank_low: int | None = None
    rank_high: int | None = None


class SettledLeagueRow(LeagueRow, frozen=True, kw_only=True):
    """A bot's line in a league that is settled; its rank is from `rank_low` to `rank_high`."""

    rank_low: int | None = None
    rank_high: int | None = None


def settled_note(rows: Sequence[object]) -> str:
    """The note that explains the rank ranges and marks of these standings; "" if they have none."""
    if any(isinstance(row, SettledRow) for row in rows):
        return f"{RANGES_NOTE} {MARKS_NOTE}"
    return RANGES_NOTE if any(isinstance(row, SettledLeagueRow) for row in rows) else ""


def settled_schedule(plan: Plan) -> Schedule:
    """The blocks of a competition with `settle`; run it with one stage ahead.

    Raises UsageError for a bot entered twice, too few bots, or fewer than one match.
    """
    assert plan.settle, "only such a competition has blocks"
    check_entry(plan.players, plan.matches, at_least=1 if plan.form is Form.LEAGUE else 2)
    blocks = _blocks_of(plan)
    done = drawn = 0

    def draw(open_: Collection[tuple[str, ...]]) -> Stage:
        nonlocal done, drawn
        assert plan.settle, "looked above"
        size = block_size(done, plan.matches, plan.settle.most)
        seatings = list(blocks.seatings(open_, size))
        stage = tuple(Pairing(drawn + at, names) for at, names in enumerate(seatings, start=1))
        done, drawn = done + size, drawn + len(stage)
        return stage

    outcomes: Outcomes = yield draw(blocks.everybody())
    while stage := draw(blocks.open()):
        outcomes = yield stage
        blocks.add(outcomes)
        blocks.race.strike(_gone(outcomes))
    yield ()  # nothing more is drawn, but the last block may still be played
    return ()


def _gone(outcomes: Outcomes) -> frozenset[str]:
    """The fewest bots whose absence explains which pairings of a block were not played."""
    played = {
        name
        for outcome in outcomes
        if outcome.result is not None
        for name in outcome.pairing.players
    }
    left = [
        frozenset(outcome.pairing.players) - played
        for outcome in outcomes
        if outcome.result is None
    ]
    gone = {name for names in left if len(names) == 1 for name in names}
    # If neither of a pair has played here, the one is out that is missing in more pairings.
    while left := [names for names in left if names and gone.isdisjoint(names)]:
        waits = Counter(name for names in set(left) for name in names)
        gone |= {name for name, many in waits.items() if many == max(waits.values())}
    return frozenset(gone)


class _PairBlocks:
    """Draws the blocks of a round robin."""

    def __init__(self, players: Sequence[str], settle: Settling) -> None:
        self._players = tuple(players)
        self.race = PairRace(players, settle.goal, settle.level / _POINTS)

    def everybody(self) -> frozenset[tuple[str, ...]]:
        return frozenset(combinations(self._players, 2))

    def open(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self.race.open_pairs())

    def seatings(self, open_: Collection[tuple[str, ...]], size: int) -> Iterator[tuple[str, ...]]:
        """The pairings of a block, so that nobody plays two at once and seats change each time."""
        for first, second in circle(len(self._players), size) if open_ else ():
            names = self._players[first], self._players[second]
            if names in open_ or names[::-1] in open_:
                yield names

    def add(self, outcomes: Outcomes) -> None:
        self.race.add(
            Meeting(outcome.pairing.players[0], outcome.pairing.players[1], _won(outcome.result))
            for outcome in outcomes
            if outcome.result is not None
        )


class _LeagueBlocks:
    """Draws the blocks of a league."""

    def __init__(self, plan: Plan, settle: Settling) -> None:
        game, settings = plan.rules, plan.read_settings()
        stake = None if game.purse is None else getattr(settings, game.purse.stake)
        self._value = partial(league_value, game.measure, settings)
        is_share = game.measure.is_share
        scale = 1.0 if is_share or stake is None else float(stake)
        level = settle.level / _POINTS * scale
        self._players = plan.players
        self.race = LeagueRace(plan.players, settle.goal, level, is_share=is_share)

    def everybody(self) -> frozenset[tuple[str, ...]]:
        return frozenset((name,) for name in self._players)

    def open(self) -> frozenset[tuple[str, ...]]:
        return frozenset((name,) for name in self.race.open_bots())

    def seatings(self, open_: Collection[tuple[str, ...]], size: int) -> Iterator[tuple[str, ...]]:
        for _ in range(size):
            yield from ((name,) for name in self._players if (name,) in open_)

    def add(self, outcomes: Outcomes) -> None:
        self.race.add([(outcome.pairing.players[0], self._of(outcome)) for outcome in outcomes])

    def _of(self, outcome: Outcome) -> float | None:
        return None if outcome.result is None else self._value(outcome.result)


def _won(result: Result) -> float:
    """What the first seat of a match won: 1, 0.5 or 0; 0.5 if both offended."""
    if result.out:
        return 0.5 if len(result.out) > 1 else float(result.out[0] != 0)
    return 0.5 if result.winner is None else float(result.winner == 0)


def _blocks_of(plan: Plan) -> _PairBlocks | _LeagueBlocks:
    assert plan.settle, "only such a competition has blocks"
    if plan.form is Form.LEAGUE:
        return _LeagueBlocks(plan, plan.settle)
    return _PairBlocks(plan.players, plan.settle)


class _Settled(RunningStandings):
    """Standings with the possible ranks, computed by running the schedule over the results so far.

    The schedule is run when the standings are read, not when results come: by then it is known
    which bots were removed.
    """

    def _run(self, plan: Plan) -> None:
        self._stages = OpenStages(settled_schedule(plan), ahead=1)
        self._blocks = _blocks_of(plan)
        self._results: dict[int, Result] = {}  # by pairing number, of the open blocks

    def add(self, outcome: Outcome) -> None:
        super().add(outcome)
        if outcome.result is not None:
            self._results[outcome.pairing.number] = outcome.result

    def rows(self) -> tuple[Any, ...]:
        """The rows as without `settle`, with rank ranges from the whole blocks."""
        self._ranges = self._race().ranges()
        return super().rows()

    def _placed(self, line: Any, rank: int) -> Any:
        """A row with the possible ranks; they always include the rank that was found."""
        possible = self._ranges.get(line.name)
        if possible is not None:
            low, high = min(rank, possible.low), max(rank, possible.high)
            line = msgspec.structs.replace(line, rank_low=low, rank_high=high)
        return super()._placed(line, rank)

    def _race(self) -> PairRace | LeagueRace:
        """The race over the whole blocks so far, without the bots that are out."""
        gone = self._eliminated.keys()
        while stage := self._stages.oldest:
            if any(
                pairing.number not in self._results and gone.isdisjoint(pairing.players)
                for pairing in stage
            ):
                break
            outcomes = tuple(
                Outcome(pairing, self._results.pop(pairing.number, None)) for pairing in stage
            )
            self._stages.hear(outcomes)
            self._blocks.add(outcomes)
        self._blocks.race.strike(gone)
        return self._blocks.race


class SettledRoundRobin(_Settled, RoundRobin):
    """The standings of a round robin with `settle` (K6): by the mean share over opponents.

    Bots with equal shares are ranked by mean score. The share counts all matches.
    """

    line = SettledRow

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.players, plan.not_there, unit_kind(plan))
        self._run(plan)

    def _line(self, name: str, remaining: Collection[str]) -> Any:
        met = [tally for tally in self._met(name, remaining) if tally.played]
        line = super()._line(name, remaining)
        if not met:
            return line
        parts = [  # of equal weight
            SharePart(1 / len(met), tally.wins + tally.draws / 2, tally.played) for tally in met
        ]
        share = sum(part.won / part.count for part in parts) / len(parts)
        found = share_of(parts)
        low, high = (None, None) if found is None else found.bounds
        return msgspec.structs.replace(line, share=share, share_low=low, share_high=high)

    def _ranked(self, played: list[str], lines: Mapping[str, Any]) -> list[tuple[int, str]]:
        in_order = [name for _, name in super()._ranked(played, lines)]
        return ranked(in_order, lambda name: (lines[name].share, lines[name].mean or 0.0))

    def cross_table(self) -> dict[str, dict[str, Cell]]:
        race = self._race()
        assert isinstance(race, PairRace), "of a round robin"
        return {
            name: {
                other: SettledCell(**msgspec.structs.asdict(cell), mark=race.mark(name, other))
                for other, cell in cells.items()
            }
            for name, cells in super().cross_table().items()
        }


class SettledLeague(_Settled, League):
    """The standings of a league with `settle`: by its measure, with rank ranges."""

    line = SettledLeagueRow

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.players, plan.rules.measure, plan.read_settings(), plan.not_there)
        self._run(plan)
