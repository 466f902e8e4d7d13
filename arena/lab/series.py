"""A series: all matches of the same bots at one table, and their sums.

`arena/lab/in_process.py` plays the matches with objects, `arena/lab/launched.py` with processes.
Scores are also sampled per *unit*, the smallest thing that is repeated under the same conditions:
what the game's description says, or a match. Intervals are made from *blocks* of units
(`Unit.block`), as those that follow one another may hang together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice, permutations
from typing import Any

import msgspec

from arena.engine.match import MatchResult
from arena.engine.rules import Game, Rules, Scoreboard, TellSeat
from arena.engine.statistics import Sample
from protocol.errors import error_line
from protocol.messages import Ending, Termination, Verdict
from protocol.vocabulary import Settings

__all__ = [
    "Offence",
    "Series",
    "Sitting",
    "reporting",
    "reporting_units",
    "seatings",
    "unit",
    "units_per_match",
]


class Offence(msgspec.Struct, frozen=True):
    """Why a bot is out.

    Attributes:
        bot: its number among the entrants.
        place: its index in `Sitting.bots`.
        kind: the word of J2.
        match: in which match of the sitting, from 1.
        advice: what its author can do, in one line; for a bot in this process it ends `text`.
        stderr: the end of what its process wrote there.
    """

    bot: int
    place: int
    kind: Ending
    text: str
    match: int
    advice: str = ""
    stderr: str = ""

    @classmethod
    def of(
        cls,
        ended: Termination,
        verdict: Verdict | None,
        bot: int = 0,
        place: int = 0,
        match: int = 1,
    ) -> Offence:
        """Why a match ended, with the evidence for the bot's author if there is a verdict."""
        if verdict is None:
            return cls(bot, place, ended.kind, ended.text, match)
        stderr = (verdict.stderr or "").strip()
        text, advice = ended.text, verdict.advice
        if ended.kind is Ending.CRASH:  # its own error message says more than our advice
            error = error_line(stderr)
            text, advice = text + (f"; it said: {error}" if error else ""), ""
        return cls(bot, place, ended.kind, text, match, advice, stderr)


class Sitting(msgspec.Struct, frozen=True):
    """The results of the bots at one table, each tuple in the order of `bots`.

    Attributes:
        bots: their numbers among the entrants.
        matches: how many were played, the one with the offence included.
        scores: the sum over the matches.
        points: what the game counts beside its scores, else zeros.
        won: matches won, or units if scores count those; alone, matches that ended ahead.
        samples: of the score per unit.
        blocks: of the score per block of units, or per match where a match has no whole block.
        gaps: of how far each is ahead of each behind it, per block, in the order of `combinations`.
        blocked: how many units are in all blocks together.
    """

    bots: tuple[int, ...]
    matches: int
    scores: tuple[int, ...]
    points: tuple[int, ...]
    won: tuple[int, ...]
    samples: tuple[Sample, ...]
    offence: Offence | None
    blocks: tuple[Sample, ...] = ()
    gaps: tuple[Sample, ...] = ()
    blocked: int = 0

    def followed_by(self, later: Sitting) -> Sitting:
        """These and later matches of the same bots at the same table."""
        offence = later.offence
        if offence is not None:
            match = self.matches + offence.match
            offence = msgspec.structs.replace(offence, match=match)
        for mine, added in zip(self._sampled, later._sampled, strict=True):
            mine.merge(added)
        return Sitting(
            self.bots,
            self.matches + later.matches,
            _sums(self.scores, later.scores),
            _sums(self.points, later.points),
            _sums(self.won, later.won),
            self.samples,
            offence,
            self.blocks,
            self.gaps,
            self.blocked + later.blocked,
        )

    @property
    def _sampled(self) -> tuple[Sample, ...]:
        return self.samples + self.blocks + self.gaps

    @property
    def leaders(self) -> tuple[int, ...]:
        """The winners as indices in `bots`: by matches, then score (K1); not the offender."""
        if self.offence is not None:
            out = self.offence.place
            return tuple(i for i in range(len(self.bots)) if i != out)
        ranks = list(zip(self.won, self.scores, strict=True))
        return tuple(i for i, rank in enumerate(ranks) if rank == max(ranks))


def _sums(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def unit(game: Game) -> str:
    """The name of the game's unit, such as `hand`; `match` if it has none."""
    return "match" if game.unit is None else game.unit.name


def units_per_match(game: Game, settings: Settings) -> int:
    """How many units a match has at most."""
    return 1 if game.unit is None else int(getattr(settings, game.unit.setting))


def seatings(seats: int) -> Iterator[tuple[int, ...]]:
    """Who sits where in match after match, as places by seat: all rotations of each order.

    After `seats!` matches every place has been in every seat, and behind every other place, equally
    often (K1).
    """
    while True:
        for rest in permutations(range(1, seats)):
            order = (0, *rest)
            for turn in range(seats):
                yield order[turn:] + order[:turn]


class Series:
    """The matches of one table, added up as they are played; the first offence ends them (J3).

    ::

        for seats in series:
            series.add(play(series.begin(), seats))

    It yields who sits where, as indices in `bots` by seat. How `play` reaches the bots is up to the
    caller. `tick` is called after every unit. `matches` are their numbers at this table, from 0.
    Each `duplicates` matches after one another have the same cards: their units are sampled
    together, as what one gains by the cards another has lost by them.
    """

    def __init__(
        self,
        game: Game,
        bots: tuple[int, ...],
        matches: range,
        tick: Callable[[], None],
        duplicates: int = 1,
    ) -> None:
        self._duplicates = duplicates
        self._same: list[list[list[float]]] = []  # by match with the same cards, unit and place
        self._game, self._bots, self._tick = game, bots, tick
        self._numbers = matches
        self._unit = game.unit
        self._over = None if game.unit is None else game.unit.closes
        self._block = 1 if game.unit is None else game.unit.block
        self._seats: tuple[int, ...] = ()
        self._matches = 0
        self._offence: Offence | None = None
        self._scores, self._points, self._won = ([0] * len(bots) for _ in range(3))
        self._samples, self._blocks = (tuple(Sample() for _ in bots) for _ in range(2))
        self._gaps = {pair: Sample() for pair in combinations(range(len(bots)), 2)}
        self._blocked = 0
        self._payoffs: list[Sequence[float]] = []

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        for seats in self._seatings():
            self._seats = seats
            yield seats
            if self._offence is not None:
                return

    def _seatings(self) -> Iterator[tuple[int, ...]]:
        return islice(seatings(len(self._bots)), self._numbers.start, self._numbers.stop)

    def begin(self) -> Game:
        """The game to play the next match with, which reports its units to us.

        A second call means that the match is played again (J5): units reported so far do not count.
        """
        self._payoffs = []
        return self._game if self._unit is None else reporting(self._game, self._on_tell)

    def add(self, result: MatchResult, verdict: Verdict | None = None) -> None:
        """Count a match that was played with `begin`."""
        self._matches += 1
        for seat, place in enumerate(self._seats):
            self._scores[place] += result.scores[seat]
            self._points[place] += result.points[seat]
            self._won[place] += _won(self._game, result, seat)
        if result.offender is not None:
            place = self._seats[result.offender]
            self._offence = Offence.of(
                result.termination, verdict, self._bots[place], place, self._matches
            )
        elif self._unit is None:
            self._unit_over(result.scores)
        for payoffs in self._payoffs:
            for place, payoff in zip(self._seats, payoffs, strict=True):
                self._samples[place].add(payoff)
        if len(self._payoffs) >= self._block or result.offender is None:
            self._add_blocks()

    def sitting(self) -> Sitting:
        return Sitting(
            self._bots,
            self._matches,
            tuple(self._scores),
            tuple(self._points),
            tuple(self._won),
            self._samples,
            self._offence,
            self._blocks,
            tuple(self._gaps.values()),
            self._blocked,
        )

    def _add_blocks(self) -> None:
        """Sample the whole blocks of a match, or the match if it is shorter than one.

        With duplicates they are those of all matches with the same cards.
        """
        places = sorted(range(len(self._seats)), key=lambda seat: self._seats[seat])
        self._same.append([[payoffs[seat] for seat in places] for payoffs in self._payoffs])
        if len(self._same) < self._duplicates:
            return
        units = [
            [sum(of_place) for of_place in zip(*alike, strict=True)]
            for alike in zip(*self._same, strict=False)
        ]
        self._same = []
        size = min(self._block, len(units)) or 1
        for end in range(size, len(units) + 1, size):
            self._blocked += size * self._duplicates
            values = [sum(of_place) for of_place in zip(*units[end - size : end], strict=True)]
            for value, sample in zip(values, self._blocks, strict=True):
                sample.add(value)
            for (first, second), gap in self._gaps.items():
                gap.add(values[first] - values[second])

    def _on_tell(self, tell: TellSeat) -> None:
        if self._unit is not None and type(tell.news) is self._over:
            self._unit_over(self._unit.payoffs(tell.news))

    def _unit_over(self, payoffs: Sequence[float]) -> None:
        self._payoffs.append(payoffs)
        self._tick()


def reporting(game: Game, on_tell: Callable[[TellSeat], None]) -> Game:
    """The same game for one match. It reports all news before the seats hear them.

    Only the first run of its rules reports: they run again to repeat the news to a bot that comes
    back (`MatchState.history_for`).
    """
    has_run = False

    def rules(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Rules:
        nonlocal has_run
        steps = game.rules(settings, deals, board)
        if has_run:
            return steps
        has_run = True
        return _reported(steps, on_tell)

    return msgspec.structs.replace(game, rules=rules)


def reporting_units(game: Game, payoffs: list[Sequence[float]]) -> Game:
    """The game for one match, which adds to a list what every unit brings."""
    unit = game.unit
    if unit is None:
        return game
    closes, brought = unit.closes, unit.payoffs

    def on_tell(tell: TellSeat) -> None:
        if type(tell.news) is closes:
            payoffs.append(brought(tell.news))

    return reporting(game, on_tell)


def _reported(steps: Rules, on_tell: Callable[[TellSeat], None]) -> Rules:
    send = steps.send
    answer = None
    while True:
        try:
            step = send(answer)
        except StopIteration:
            return
        if type(step) is TellSeat:
            on_tell(step)
        answer = yield step


def _won(game: Game, result: MatchResult, seat: int) -> int:
    """What a match adds to `Sitting.won` for a seat."""
    scores = result.scores
    if game.is_count:
        return scores[seat]
    if game.seats == 1:
        return int(scores[seat] > 0)
    if result.termination.is_offence:
        return int(result.winner == seat)
    return int(scores[seat] == max(scores) and scores.count(scores[seat]) == 1)
