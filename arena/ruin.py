"""How often a strategy turns a stake into a goal before it goes broke (T10).

Works for the games against the dealer. A trial is a match of its own with fresh cards, stopped as soon as the cash is
at the goal: the rules need no goal of their own for that.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping
from math import sqrt
from typing import Literal

import msgspec

from arena.chance import match_key, seed_from_int
from arena.games import game_named
from arena.local import drive
from arena.match import Match
from protocol import blackjack, three_card_poker
from protocol.errors import UsageError
from protocol.messages import Termination
from protocol.strategy import Strategy

__all__ = ["Ruin", "ruin"]


class _Purse(msgspec.Struct, frozen=True):
    """What a game calls the stake and the length of a match, and the least cash that plays on."""

    stake: str
    length: str
    least: int


_PURSES = {
    "three_card_poker": _Purse("stake", "rounds", three_card_poker.LEAST_CASH),
    "blackjack": _Purse("bankroll", "hands", blackjack.MINIMUM),
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
    rules = game_named(game)
    if rules.name not in _PURSES:
        raise UsageError(
            f"{rules.name} is not played against the dealer; expected one of: {', '.join(_PURSES)}"
        )
    purse = _PURSES[rules.name]
    given = {**(settings or {}), purse.stake: stake, purse.length: rounds}
    read = rules.vocabulary.read_settings(given)
    if type(goal) is not int or goal <= stake:
        raise UsageError(f"expected a goal above the stake of {stake}, got {goal!r}")
    if type(trials) is not int or trials < 1:
        raise UsageError(f"expected at least 1 trial, got {trials!r}")
    base = secrets.token_bytes(32) if seed is None else seed_from_int(seed)

    ends: Counter[str] = Counter()
    first_offence: Termination | None = None
    for trial in range(trials):
        match = Match(rules, read, seed=match_key(base, [str(trial)]))
        end = _end_of(match, strategy_factory(), purse, stake, goal)
        ends[end] += 1
        if end == "offences" and first_offence is None:
            first_offence = match.termination
        tick()
    return Ruin(
        game=rules.name,
        stake=stake,
        goal=goal,
        trials=trials,
        wins=ends["wins"],
        broke=ends["broke"],
        undecided=ends["undecided"],
        offences=ends["offences"],
        first_offence=first_offence,
    )


def _end_of(
    match: Match, strategy: Strategy, purse: _Purse, stake: int, goal: int
) -> _End:
    """Play one trial and say what became of it."""

    def cash() -> int:
        return stake + match.scores[0]

    drive(match, [strategy], until=lambda: cash() >= goal)
    if match.termination is not None and match.termination.is_offence:
        return "offences"
    if cash() >= goal:
        return "wins"
    return "broke" if cash() < purse.least else "undecided"
