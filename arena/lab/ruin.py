"""Counts how often a strategy turns a stake into a goal before it goes broke (T10).

A trial is a match against the dealer that ends as soon as the cash reaches the goal, even if the
game has no setting for that.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any, Literal, get_args

import msgspec

from arena.games.catalogue import GAMES, game_named
from arena.games.rules import AskSeat, Game, Scoreboard, TellSeat
from arena.games.shuffle import match_key, seed_from_int
from arena.games.statistics import Interval, wilson
from arena.lab.matches import Experiment, MatchSpec, Offence, PlayedMatch, watched
from protocol.errors import UsageError
from protocol.messages import Termination

__all__ = ["Attempt", "Ruin", "Trials", "TrialsPart"]


_End = Literal["wins", "broke", "undecided", "offences"]

PATIENCE = 1_000_000
"""Rounds after which a trial is given up: eight times what losing 10,000 at an ante of 1 takes."""

_AT_ONCE = 100  # trials: they take milliseconds, so that no process is left long with the last part


class Ruin(msgspec.Struct, frozen=True, kw_only=True):
    """Counts a bot's trials by how they ended.

    Attributes:
        bot: its number among the bots that try.
        wins: trials that reached the goal.
        broke: trials whose cash no longer sufficed for another round.
        undecided: trials given up before either.
        offences: trials that the strategy lost by an offence (J3).
        offence: the first offence, for the author.
    """

    bot: int
    game: str
    stake: int
    goal: int
    wins: int = 0
    broke: int = 0
    undecided: int = 0
    offences: int = 0
    offence: Offence | None = None

    def followed_by(self, later: Ruin) -> Ruin:
        """Return the sum of these trials and later ones of the same bot."""
        return msgspec.structs.replace(
            self,
            **{end: getattr(self, end) + getattr(later, end) for end in get_args(_End)},
            offence=self.offence or later.offence,
        )

    @property
    def trials(self) -> int:
        return self.wins + self.broke + self.undecided + self.offences

    @property
    def share(self) -> float:
        return self.wins / self.trials

    @property
    def interval(self) -> Interval:
        return wilson(self.share, self.trials)

    @property
    def standard_error(self) -> float:
        """The standard error of `share`, computed with one additional win and one additional loss.

        Otherwise it would be 0 after a few trials without a win, although these prove little.
        """
        smoothed = (self.wins + 1) / (self.trials + 2)
        return sqrt(smoothed * (1 - smoothed) / self.trials)


class Trials(dict[int, Ruin]):
    """The trials so far of several bots, by their numbers."""

    def add(self, ruin: Ruin) -> None:
        before = self.get(ruin.bot)
        self[ruin.bot] = ruin if before is None else before.followed_by(ruin)


class TrialsPart(msgspec.Struct, frozen=True):
    """Some of a bot's trials, which are numbered from 0."""

    bot: int
    trials: range


class Attempt(Experiment[TrialsPart, Ruin]):
    """The attempt to turn a stake into a goal; a match of its `game` ends at the goal.

    Every trial has a new strategy. Its cards and the strategy's seed are derived from `seed`, and
    are the same for all bots.

    Args:
        game: a game with a purse.
        stake: the cash at the start of a trial.
        goal: the cash that wins a trial, more than the stake.
        rounds: how many a trial lasts at most. A trial given up then counts in `Ruin.share`.
        settings: further settings of the game.
        seed: None draws one.

    Raises:
        ValueError: the game has no purse, or an argument is out of its range.
    """

    plays_on = True

    def __init__(
        self,
        game: Game,
        *,
        stake: int,
        goal: int,
        rounds: int = PATIENCE,
        settings: Mapping[str, object] | None = None,
        seed: int | None = None,
    ) -> None:
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
        if purse.goal is not None:  # so that bots are told the goal
            read = game.vocabulary.read_settings({**given, purse.goal: goal})
        super().__init__(_stopping(game, goal - stake), read)
        self.stake, self.goal, self.least = stake, goal, purse.least
        self._seed = secrets.randbits(63) if seed is None else seed
        self._base = seed_from_int(self._seed)

    def __setstate__(self, state: dict[str, Any]) -> None:
        game = _stopping(game_named(state["game"]), state["goal"] - state["stake"])
        vars(self).update(state, game=game)

    def parts(self, bots: int, trials: int, at_once: int | None = None) -> list[TrialsPart]:
        """Return all trials of `bots` bots, `at_once` in a part.

        Raises `UsageError` if there are no trials.
        """
        if type(trials) is not int or trials < 1:
            raise UsageError(f"expected at least 1 trial, got {trials!r}")
        size = at_once or min(_AT_ONCE, 1 + trials // 100)
        return [
            TrialsPart(bot, range(first, min(first + size, trials)))
            for bot in range(bots)
            for first in range(0, trials, size)
        ]

    def bots(self, part: TrialsPart) -> tuple[int, ...]:
        return (part.bot,)

    def specs(self, part: TrialsPart) -> Iterator[MatchSpec]:
        for trial in part.trials:
            yield MatchSpec(
                bots=(part.bot,),
                numbers=(trial + 1,),
                cards=match_key(self._base, [str(trial)]),
                instances=self._seed,
                module=f"{self._seed}:{trial + 1}",
            )

    def summed(self, part: TrialsPart, played: Sequence[PlayedMatch]) -> Ruin:
        ended = (self.end_of(each.result.scores[0], each.result.termination) for each in played)
        ends: Counter[str] = Counter(ended)
        offences = (
            each.offence(number) for number, each in enumerate(played, part.trials.start + 1)
        )
        return Ruin(
            bot=part.bot,
            game=self.game.name,
            stake=self.stake,
            goal=self.goal,
            **ends,
            offence=next(filter(None, offences), None),
        )

    def end_of(self, score: int, termination: Termination) -> _End:
        """Classify a trial by its final score and termination."""
        cash = self.stake + score
        if termination.is_offence:
            return "offences"
        if cash >= self.goal:
            return "wins"
        return "broke" if cash < self.least else "undecided"


def _stopping(game: Game, score: int) -> Game:
    """Return the same game, but a match also ends when the player must decide and has `score`.

    The game has no units: a trial counts as a whole.
    """

    def on_step(step: AskSeat | TellSeat, board: Scoreboard) -> bool:
        return type(step) is not TellSeat and board.scores[0] >= score

    return msgspec.structs.replace(watched(game, on_step), unit=None)
