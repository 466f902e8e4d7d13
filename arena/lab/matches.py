"""What an experiment plays, match by match, wherever its bots are.

An experiment comes in *parts*: matches that one table plays one after another. It says what each
match of a part is, and sums a part up. `arena/lab/in_process.py` plays parts with objects,
`arena/lab/launched.py` with processes, and both hand on the sums in the order of the parts.
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
    """Why a bot is out.

    Attributes:
        bot: its number among the entrants.
        place: its number at the table, as in `MatchSpec.numbers`.
        kind: the word of J2.
        match: in which match of the table, from 1.
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


class MatchSpec(msgspec.Struct, frozen=True):
    """A match that is to be played.

    Processes are told no seeds: their cards come from fresh seeds and the seats' nonces (J6).

    Attributes:
        bots: by seat, their numbers among the entrants.
        numbers: by seat, their numbers at the table.
        cards: the seed of the cards.
        instances: the seed of the objects, each with its number. Those of the match before play on
            if they are the same.
        module: what the module `random` is seeded with first, for bots that draw from it.
    """

    bots: tuple[int, ...]
    numbers: tuple[int, ...]
    cards: bytes
    instances: int
    module: int | str | None = None

    @property
    def by_number(self) -> list[tuple[int, int]]:
        """The bots' numbers at the table, in their order, and among the entrants."""
        return sorted(zip(self.numbers, self.bots, strict=True))


class SeatedRecord(msgspec.Struct, frozen=True):
    """A match that was played: which bot sat in each seat, and its record."""

    seats: tuple[int, ...]
    record: Record


class PlayedMatch(msgspec.Struct, frozen=True):
    """How a match ended, and what every unit brought by seat; without units the match is one."""

    spec: MatchSpec
    result: MatchResult
    payoffs: list[Sequence[float]]
    verdict: Verdict | None = None

    @property
    def by_number(self) -> list[list[float]]:
        """What every unit brought, by the numbers at the table."""
        seats = sorted(range(len(self.spec.numbers)), key=self.spec.numbers.__getitem__)
        return [[payoffs[seat] for seat in seats] for payoffs in self.payoffs]

    @property
    def seated(self) -> SeatedRecord:
        return SeatedRecord(self.spec.bots, self.result.record)

    def offence(self, match: int = 1) -> Offence | None:
        """What ended the match of this number, if it was an offence."""
        seat = self.result.offender
        if seat is None:
            return None
        bot, number = self.spec.bots[seat], self.spec.numbers[seat]
        return Offence.of(self.result.termination, self.verdict, bot, number, match)


class Summed(Protocol):
    """The sums of a part."""

    @property
    def offence(self) -> Offence | None: ...


Part = TypeVar("Part")
Sums = TypeVar("Sums", bound=Summed)


class Experiment(ABC, Generic[Part, Sums]):
    """What is played in each part, and how a part is summed up.

    It is pickled for other processes; they look up the game by its name.

    Attributes:
        plays_on: whether an object that offends goes on with the next match, as it is made anew.
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
        """Who is needed for a part; a bot that takes two seats at once comes twice."""

    @abstractmethod
    def specs(self, part: Part) -> Iterator[MatchSpec]:
        """The matches of a part; an offence ends it early."""

    @abstractmethod
    def summed(self, part: Part, played: Sequence[PlayedMatch]) -> Sums:
        """Sum up a part, in the process that has played it."""


def unit(game: Game) -> str:
    """The name of the game's unit, such as `hand`; `match` if it has none."""
    return "match" if game.unit is None else game.unit.name


def units_per_match(game: Game, settings: Settings) -> int:
    """How many units a match has at most."""
    return 1 if game.unit is None else int(getattr(settings, game.unit.setting))


class SampledGame:
    """A game for one match, which notes what each unit brings, and calls `tick` after it.

    Only the first run of the rules counts: they run again to repeat the news to a bot that comes
    back (`MatchState.history_for`).
    """

    def __init__(self, game: Game, tick: Callable[[], None]) -> None:
        self.payoffs: list[Sequence[float]] = []
        self._unit, self._tick = game.unit, tick
        self._board: Scoreboard | None = None
        self.game = game if game.unit is None else watched(game, self._on_step)

    def played(
        self, spec: MatchSpec, result: MatchResult, verdict: Verdict | None = None
    ) -> PlayedMatch:
        """The match, once it is over."""
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
    """The same game, whose steps are shown before anybody hears of them; True ends the match."""

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
