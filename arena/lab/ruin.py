"""How often a strategy turns a stake into a goal before it goes broke (T10).

Works for the games against the dealer. A trial is a match of its own with fresh cards that ends as soon as the cash is
at the goal: `Attempt` has a game that does, whether it knows a setting for that or not, so that a trial is the same wherever the
strategy is. `ruin` plays with objects in this process; `arena/lab/launched.py` has bots that are processes.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from typing import Any, Literal

import msgspec

from arena.engine.drive import drive
from arena.engine.match import MatchState
from arena.engine.rules import Game, Rules, Scoreboard, TellSeat
from arena.engine.shuffle import match_key, seed_from_int
from arena.games import game_named
from protocol import blackjack, three_card_poker
from protocol.errors import UsageError
from protocol.messages import Termination
from protocol.strategy import Strategy
from protocol.vocabulary import Settings

__all__ = ["Attempt", "Ruin", "Trials", "ruin"]


class _StakeSettings(msgspec.Struct, frozen=True):
    """What a game calls the stake and the length of a match, and the least cash that plays on."""

    stake: str
    length: str
    least: int


_PURSES = {
    "three_card_poker": _StakeSettings("stake", "rounds", three_card_poker.LEAST_CASH),
    "blackjack": _StakeSettings("bankroll", "hands", blackjack.MINIMUM),
}

_End = Literal["wins", "broke", "undecided", "offences"]

PATIENCE = 1_000_000
"""Rounds after which a trial is given up: eight times what an ante of 1 takes on average to lose 10,000 chips."""


class Ruin(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the trials.

    Attributes:
        game, stake, goal, trials: what was tried.
        wins: trials that reached the goal.
        broke: trials whose cash no longer sufficed for another round.
        undecided: trials given up before either.
        offences: trials that the strategy lost by an offence (J3).
        first_offence: the first of those, for its author; None if there was none.
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
        """The share of all trials that reached the goal."""
        return self.wins / self.trials

    @property
    def standard_error(self) -> float:
        """The standard error of `share`.

        Taken as if one trial more had reached the goal and one more had not: that none of a few did is no proof that
        none ever will.
        """
        smoothed = (self.wins + 1) / (self.trials + 2)
        return sqrt(smoothed * (1 - smoothed) / self.trials)


def ruin(
    game: str,
    strategy_factory: Callable[[], Strategy],
    *,
    stake: int,
    goal: int,
    trials: int,
    seed: int | None = None,
    rounds: int = PATIENCE,
    settings: Mapping[str, object] | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Ruin:
    """Let a strategy try to turn `stake` into `goal`, again and again (T10).

    Args:
        game: one against the dealer, by name or alias.
        strategy_factory: makes a strategy for every trial; it seeds those that draw random numbers themselves.
        stake: what every trial starts with.
        goal: the cash that ends a trial well, more than the stake.
        trials: how many there are.
        seed: what the cards of all trials are drawn from; None draws one.
        rounds: after so many a trial is given up as undecided; it stays among the trials that `share` is a share of.
        settings: further settings of the game.
        tick: called after every trial.

    Raises:
        ValueError: a game that is not against the dealer, or an argument out of its range.
    """
    attempt = Attempt.of(game_named(game), stake=stake, goal=goal, rounds=rounds, settings=settings)
    if type(trials) is not int or trials < 1:
        raise UsageError(f"expected at least 1 trial, got {trials!r}")
    base = secrets.token_bytes(32) if seed is None else seed_from_int(seed)
    done = Trials(attempt)
    for trial in range(trials):
        key = match_key(base, [str(trial)])
        match = MatchState(attempt.game, attempt.settings, seed=key)
        drive(match, [strategy_factory()])
        assert match.termination is not None, "it has been played out"
        done.add(match.scores[0], match.termination)
        tick()
    return done.ruin()


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried again and again.

    Attributes:
        game: by rules that end as soon as the goal is reached.
        settings: of every trial.
        stake: what it starts with.
        goal: the cash that ends it well.
        least: the least cash that plays on.
    """

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
        """The attempt to turn `stake` into `goal`; the arguments are those of `ruin`.

        Raises:
            UsageError: a game that is not against the dealer, or an argument out of its range.
        """
        purse = _PURSES.get(game.name)
        if purse is None:
            raise UsageError(
                f"{game.name} is not played against the dealer; expected one of: {', '.join(_PURSES)}"
            )
        given = {**(settings or {}), purse.stake: stake, purse.length: rounds}
        read = game.vocabulary.read_settings(given)
        if type(goal) is not int or goal <= stake:
            raise UsageError(f"expected a goal above the stake of {stake}, got {goal!r}")
        if "goal" in read.__struct_fields__:  # so that bots are told
            read = game.vocabulary.read_settings({**given, "goal": goal})
        return cls(
            game=_stopping(game, goal - stake),
            settings=read,
            stake=stake,
            goal=goal,
            least=purse.least,
        )

    def end_of(self, score: int, termination: Termination) -> _End:
        """What became of a trial."""
        cash = self.stake + score
        if termination.is_offence:
            return "offences"
        if cash >= self.goal:
            return "wins"
        return "broke" if cash < self.least else "undecided"


class Trials:
    """What the trials of an attempt come to, one after another."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._ends: Counter[_End] = Counter()
        self._first_offence: Termination | None = None

    def add(self, score: int, termination: Termination) -> None:
        """One more trial is over."""
        end = self._attempt.end_of(score, termination)
        self._ends[end] += 1
        if end == "offences" and self._first_offence is None:
            self._first_offence = termination

    def ruin(self) -> Ruin:
        """What they came to; there was one at least."""
        ends = self._ends
        return Ruin(
            game=self._attempt.game.name,
            stake=self._attempt.stake,
            goal=self._attempt.goal,
            trials=ends.total(),
            wins=ends["wins"],
            broke=ends["broke"],
            undecided=ends["undecided"],
            offences=ends["offences"],
            first_offence=self._first_offence,
        )


def _stopping(game: Game, score: int) -> Game:
    """The same game, whose matches are also over when the player would have to decide and has that score."""

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
