"""How often a strategy turns a stake into a goal before it goes broke (T10).

A trial is a match against the dealer that ends as soon as the cash reaches the goal. `ruin` plays
with objects in this process, `arena/lab/launched.py` with launched bots. Both play by the game of
an `Attempt`, which ends at the goal whether the game has a setting for that or not.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import sqrt
from typing import Any, Literal, get_args

import msgspec

from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.engine.rules import Game, Rules, Scoreboard, TellSeat
from arena.engine.shuffle import match_key, seed_from_int
from arena.games import GAMES, game_named
from arena.sandbox.worker_pool import work_through
from arena.strength.interval import Interval, wilson
from protocol.errors import UsageError
from protocol.messages import Termination
from protocol.strategy import Strategy
from protocol.vocabulary import Settings

__all__ = ["Attempt", "Ruin", "Trials", "ruin"]


_End = Literal["wins", "broke", "undecided", "offences"]

PATIENCE = 1_000_000
"""Rounds after which a trial is given up: eight times what an ante of 1 needs to lose 10,000."""


class Ruin(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of trials by how they ended.

    Attributes:
        wins: trials that reached the goal.
        broke: trials whose cash no longer sufficed for another round.
        undecided: trials given up before either.
        offences: trials that the strategy lost by an offence (J3).
        first_offence: of these, for the author.
    """

    game: str
    stake: int
    goal: int
    trials: int
    wins: int
    broke: int
    undecided: int
    offences: int
    first_offence: Termination | None

    @property
    def share(self) -> float:
        return self.wins / self.trials

    @property
    def interval(self) -> Interval:
        return wilson(self.share, self.trials)

    @property
    def standard_error(self) -> float:
        """The standard error of `share`, as if one trial more had won and one more had not.

        Else it would be 0 when none of a few trials won, which proves little.
        """
        smoothed = (self.wins + 1) / (self.trials + 2)
        return sqrt(smoothed * (1 - smoothed) / self.trials)


def ruin(
    game: str,
    makers: Sequence[Callable[[str], Strategy]],
    *,
    stake: int,
    goal: int,
    trials: int,
    seed: int | None = None,
    rounds: int = PATIENCE,
    settings: Mapping[str, object] | None = None,
    report: Callable[[int], None] = lambda trials: None,
    jobs: int = 1,
) -> list[Ruin]:
    """Let strategies try to turn `stake` into `goal`, again and again, each alone (T10).

    It raises `ValueError` if the game has no purse, or an argument is out of its range.

    Args:
        game: a game with a purse, by name or alias.
        makers: each makes a new strategy for every trial, from a seed, and gets a result.
        stake: the cash at the start of a trial.
        goal: the cash that wins a trial, more than the stake.
        seed: what cards and strategies of a trial are drawn from, the same for all makers; None
            draws one.
        rounds: how many a trial lasts at most. One that is given up then counts in `share`.
        settings: further settings of the game.
        report: gets the number of trials made since its last call.
        jobs: how many processes there are at most; the results do not depend on it.
    """
    attempt = Attempt.of(game_named(game), stake=stake, goal=goal, rounds=rounds, settings=settings)
    if type(trials) is not int or trials < 1:
        raise UsageError(f"expected at least 1 trial, got {trials!r}")
    done = [Trials(attempt) for _ in makers]

    def add(part: tuple[int, range], ended: list[tuple[int, Termination]]) -> None:
        for score, termination in ended:
            done[part[0]].add(score, termination)

    # Some milliseconds, and much less than all: the last part may be one process's alone.
    size = min(100, 1 + trials // 100)
    work_through(
        partial(
            _try,
            game,
            makers,
            secrets.randbits(63) if seed is None else seed,
            {"stake": stake, "goal": goal, "rounds": rounds, "settings": settings},
        ),
        [
            (number, range(first, min(first + size, trials)))
            for number in range(len(makers))
            for first in range(0, trials, size)
        ],
        add,
        jobs=jobs,
        units=trials * len(makers),
        report=report,
    )
    return [trials.ruin() for trials in done]


def _try(
    game: str,
    makers: Sequence[Callable[[str], Strategy]],
    seed: int,
    arguments: Mapping[str, Any],
    part: tuple[int, range],
    tick: Callable[[], None],
) -> list[tuple[int, Termination]]:
    """How some of the trials of one of the strategies end."""
    attempt, base = Attempt.of(game_named(game), **arguments), seed_from_int(seed)
    ended = []
    for trial in part[1]:
        match = MatchState(attempt.game, attempt.settings, seed=match_key(base, [str(trial)]))
        own = f"{seed}:{trial + 1}"
        random.seed(own)  # for bots that draw from the module instead of a generator of their own
        drive(match, [makers[part[0]](own)])
        assert match.termination is not None, "`drive` plays to the end"
        ended.append((match.scores[0], match.termination))
        tick()
    return ended


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt to turn a stake into a goal; a match of its `game` ends at the goal."""

    game: Game
    settings: Settings
    stake: int
    goal: int
    least: int

    @classmethod
    def of(
        cls,
        game: Game,
        *,
        stake: int,
        goal: int,
        rounds: int = PATIENCE,
        settings: Mapping[str, object] | None = None,
    ) -> Attempt:
        """The attempt to turn `stake` into `goal`; arguments and errors are those of `ruin`."""
        purse = game.purse
        if purse is None:
            games = ", ".join(name for name, other in GAMES.items() if other.purse is not None)
            raise UsageError(
                f"{game.name} is not played for chips against the dealer; expected one of: {games}"
            )
        given = {**(settings or {}), purse.stake: stake, purse.length: rounds}
        read = game.vocabulary.read_settings(given)
        if type(goal) is not int or goal <= stake:
            raise UsageError(f"expected a goal above the stake of {stake}, got {goal!r}")
        if purse.goal is not None:  # so that bots are told
            read = game.vocabulary.read_settings({**given, purse.goal: goal})
        stopping = _stopping(game, goal - stake)
        return cls(game=stopping, settings=read, stake=stake, goal=goal, least=purse.least)

    def end_of(self, score: int, termination: Termination) -> _End:
        """How a trial counts that ended in this way."""
        cash = self.stake + score
        if termination.is_offence:
            return "offences"
        if cash >= self.goal:
            return "wins"
        return "broke" if cash < self.least else "undecided"


class Trials:
    """Counts the trials of an attempt by how they ended."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._ends: Counter[_End] = Counter()
        self._first_offence: Termination | None = None

    def add(self, score: int, termination: Termination) -> None:
        end = self._attempt.end_of(score, termination)
        self._ends[end] += 1
        if end == "offences" and self._first_offence is None:
            self._first_offence = termination

    def ruin(self) -> Ruin:
        """The counts so far, of at least one trial."""
        return Ruin(
            game=self._attempt.game.name,
            stake=self._attempt.stake,
            goal=self._attempt.goal,
            trials=self._ends.total(),
            **{end: self._ends[end] for end in get_args(_End)},
            first_offence=self._first_offence,
        )


def _stopping(game: Game, score: int) -> Game:
    """The same game, but a match also ends at a decision of a player who has that score."""

    def rules(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Rules:
        send = game.rules(settings, deals, board).send
        answer = None
        while True:
            try:
                step = send(answer)
            except StopIteration:
                return
            if type(step) is not TellSeat and board.scores[0] >= score:
                return
            answer = yield step

    return msgspec.structs.replace(game, rules=rules)
