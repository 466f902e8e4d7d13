"""Describes experiments: which matches they play, and how the results are summed up.

An experiment consists of *parts*: matches that one table plays one after another. It specifies each
match of a part, and sums a part up. `arena/lab/in_process.py` plays parts with objects,
`arena/lab/launched.py` with processes; both return the sums in the order of the parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from arena.games.catalogue import game_named
from arena.games.match import MatchResult, Record
from arena.games.rules import AskSeat, Game, Rules, Scoreboard, TellSeat
from protocol.errors import error_line
from protocol.messages import Ending, Termination, Verdict
from protocol.vocabulary import Settings

__all__ = [
    "Experiment",
    "MatchSpec",
    "Offence",
    "PlayedMatch",
    "SampledGame",
    "SeatedRecord",
    "Summed",
    "unit",
    "units_per_match",
    "watched",
]


class Offence(msgspec.Struct, frozen=True):
    """The offence for which a bot is out.

    Attributes:
        bot: its number among the entrants.
        place: its number at the table, as in `MatchSpec.numbers`.
        kind: the kind of offence, in the words of J2.
        match: the number of the match at the table, from 1.
        advice: what its author can do, in one line; part of `text` for a bot in this process.
        stderr: the end of its process's standard error.
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
        """Make the offence that ended a match, with the evidence of the verdict if there is one."""
        if verdict is None:
            return cls(bot, place, ended.kind, ended.text, match)
        stderr = (verdict.stderr or "").strip()
        text, advice = ended.text, verdict.advice
        if ended.kind is Ending.CRASH:  # the bot's error message says more than our advice
            error = error_line(stderr)
            text, advice = text + (f"; it said: {error}" if error else ""), ""
        return cls(bot, place, ended.kind, text, match, advice, stderr)


class MatchSpec(msgspec.Struct, frozen=True):
    """A match to be played.

    The seeds are for objects only: matches of processes use fresh seeds and the seats' nonces (J6).

    Attributes:
        bots: by seat, their numbers among the entrants.
        numbers: by seat, their numbers at the table.
        cards: the seed of the cards.
        instances: the seed of the objects, combined with each one's number. If it is unchanged, the
            objects of the previous match play on.
        module: the seed of the module `random`, for bots that draw from it.
    """

    bots: tuple[int, ...]
    numbers: tuple[int, ...]
    cards: bytes
    instances: int
    module: int | str | None = None

    @property
    def by_number(self) -> list[tuple[int, int]]:
        """Pairs of a bot's numbers at the table and among the entrants, in table order."""
        return sorted(zip(self.numbers, self.bots, strict=True))


class SeatedRecord(msgspec.Struct, frozen=True):
    """A played match: the bot in each seat, and the record."""

    seats: tuple[int, ...]
    record: Record


class PlayedMatch(msgspec.Struct, frozen=True):
    """How a match ended, and the payoffs by seat of each unit of the game, such as a hand.

    In a game without units, the match is the only one.
    """

    spec: MatchSpec
    result: MatchResult
    payoffs: list[Sequence[float]]
    verdict: Verdict | None = None

    @property
    def by_number(self) -> list[list[float]]:
        """Every unit's payoffs, by the numbers at the table."""
        seats = sorted(range(len(self.spec.numbers)), key=self.spec.numbers.__getitem__)
        return [[payoffs[seat] for seat in seats] for payoffs in self.payoffs]

    @property
    def seated(self) -> SeatedRecord:
        return SeatedRecord(self.spec.bots, self.result.record)

    def offence(self, match: int = 1) -> Offence | None:
        """Return the offence that ended this match, number `match` at its table, or None."""
        seat = self.result.offender
        if seat is None:
            return None
        bot, number = self.spec.bots[seat], self.spec.numbers[seat]
        return Offence.of(self.result.termination, self.verdict, bot, number, match)


class Summed(Protocol):
    """The sums of a part; `offence` is the one that ended it, or None."""

    @property
    def offence(self) -> Offence | None: ...


Part = TypeVar("Part")
Sums = TypeVar("Sums", bound=Summed)


class Experiment(ABC, Generic[Part, Sums]):
    """Specifies the matches of each part, and sums a part up.

    It is pickled for other processes, which look up the game by its name.

    Attributes:
        plays_on: whether a bot that offends is made anew for the next match instead of being out.
    """

    plays_on = False

    def __init__(self, game: Game, settings: Settings) -> None:
        self.game, self.settings = game, settings

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "game": self.game.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, game=game_named(state["game"]))

    @abstractmethod
    def bots(self, part: Part) -> tuple[int, ...]:
        """Return the bots that a part needs; a bot that takes two seats at once occurs twice."""

    @abstractmethod
    def specs(self, part: Part) -> Iterator[MatchSpec]:
        """Yield the matches of a part; an offence ends the part early."""

    @abstractmethod
    def summed(self, part: Part, played: Sequence[PlayedMatch]) -> Sums:
        """Sum up a part; called in the process that played it."""


def unit(game: Game) -> str:
    """Return the name of the game's unit, such as `hand`; `match` if it has none."""
    return "match" if game.unit is None else game.unit.name


def units_per_match(game: Game, settings: Settings) -> int:
    """Return the largest number of units in a match."""
    return 1 if game.unit is None else int(getattr(settings, game.unit.setting))


class SampledGame:
    """A game for one match, which records each unit's payoffs and then calls `tick`.

    Only the first run of the rules counts: they run again to repeat the news to a bot that
    reconnects (`MatchState.history_for`).
    """

    def __init__(self, game: Game, tick: Callable[[], None]) -> None:
        self.payoffs: list[Sequence[float]] = []
        self._unit, self._tick = game.unit, tick
        self._board: Scoreboard | None = None
        self.game = game if game.unit is None else watched(game, self._on_step)

    def played(
        self, spec: MatchSpec, result: MatchResult, verdict: Verdict | None = None
    ) -> PlayedMatch:
        """Return the played match, once it is over."""
        if self._unit is None:
            self._tick()
            if result.offender is None:
                self.payoffs.append(result.scores)
        return PlayedMatch(spec, result, self.payoffs, verdict)

    def _on_step(self, step: AskSeat | TellSeat, board: Scoreboard) -> bool:
        self._board = self._board or board
        unit = self._unit
        assert unit is not None, "else nothing is watched"
        if type(step) is TellSeat and type(step.news) is unit.closes and board is self._board:
            self.payoffs.append(unit.payoffs(step.news))
            self._tick()
        return False


def watched(game: Game, on_step: Callable[[AskSeat | TellSeat, Scoreboard], bool]) -> Game:
    """Return the same game, calling `on_step` before each step; a True result ends the match."""

    def rules(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Rules:
        send = game.rules(settings, deals, board).send
        answer = None
        while True:
            try:
                step = send(answer)
            except StopIteration:
                return
            if on_step(step, board):
                return
            answer = yield step

    return msgspec.structs.replace(game, rules=rules)
