"""A series: all the matches that the same bots play at one table, and what they add up to.

Whoever has the bots plays the matches: `arena/lab/in_process.py` with objects, `arena/lab/launched.py` with processes. Scores are also taken
as a sample of what the game's *unit* brings, the smallest thing that is played over and over under the same conditions: a hand of
Ace-King-Queen, a game of gin, a whole match of the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations
from typing import Any

import msgspec

from arena.engine.match import MatchResult
from arena.engine.rules import Game, Rules, Scoreboard, TellSeat
from arena.engine.statistics import Sample
from protocol.errors import one_line
from protocol.messages import Ending, Termination, Verdict

__all__ = ["Offence", "Series", "Sitting", "seatings", "unit"]

_ERROR = re.compile(r"(Error|Exception)\b")


class Offence(msgspec.Struct, frozen=True):
    """Why a bot is out.

    Attributes:
        bot: its number among the entrants.
        place: which of the sitting's bots it was.
        kind: the word of J2.
        text: what happened, for people.
        match: in which match of the sitting, from 1.
        advice: what its author can do about it, in one line; nothing for a bot in this process.
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
        """Why a match ended, with what the bot's author needs to mend it if there is a verdict."""
        if verdict is None:
            return cls(bot, place, ended.kind, ended.text, match)
        stderr = (verdict.stderr or "").strip()
        text, advice = ended.text, verdict.advice
        if ended.kind is Ending.CRASH:  # its own last words say more than we can
            said = one_line(_telling_line(stderr))
            text, advice = text + (f"; it said: {said}" if said else ""), ""
        return cls(bot, place, ended.kind, text, match, advice, stderr)


class Sitting(msgspec.Struct, frozen=True):
    """What the bots at one table came to, each tuple in the order of `bots`.

    Attributes:
        bots: their numbers among the entrants.
        matches: how many were played, the one with the offence included.
        scores: the sum over the matches.
        points: gin's points beside its games, else zeros.
        won: matches won, in gin games won; against the dealer, matches that ended ahead.
        samples: of the score per unit.
        offence: what put an end to it before its time.
    """

    bots: tuple[int, ...]
    matches: int
    scores: tuple[int, ...]
    points: tuple[int, ...]
    won: tuple[int, ...]
    samples: tuple[Sample, ...]
    offence: Offence | None

    @property
    def leaders(self) -> tuple[int, ...]:
        """The places in `bots` that won, by matches won, then by score (K1); after an offence, everyone else at the table."""
        if self.offence is not None:
            out = self.offence.place
            return tuple(i for i in range(len(self.bots)) if i != out)
        ranks = list(zip(self.won, self.scores, strict=True))
        return tuple(i for i, rank in enumerate(ranks) if rank == max(ranks))


class _Unit(msgspec.Struct, frozen=True):
    """What a match is sampled by where that is less than a match: the news that ends one, and what it brought to each seat."""

    name: str
    over: str
    payoffs: Callable[[Any], Sequence[float]]


_UNITS = {
    "ace_king_queen": _Unit("hand", "hand_over", lambda news: news.payoffs),
    "gin_rummy": _Unit("game", "game_over", lambda news: (news.winner == 0, news.winner == 1)),
}


def unit(game: Game) -> str:
    """What the game's samples are of: `hand`, `game` or `match`."""
    return _UNITS[game.name].name if game.name in _UNITS else "match"


def seatings(seats: int) -> Iterator[tuple[int, ...]]:
    """Who sits where in match after match, as places by seat: `seats` rotations of one order, then of the next.

    After `seats!` matches everyone has sat everywhere, and behind everyone equally often (K1).
    """
    orders = [(0, *rest) for rest in permutations(range(1, seats))]
    while True:
        for order in orders:
            for turn in range(seats):
                yield order[turn:] + order[:turn]


class Series:
    """The matches of one table, and what they come to while they are played; the first offence ends them (J3).

    ::

        for seats in series:
            series.add(play(series.begin(), seats))

    It yields who sits where, as places in `bots` by seat. Where the bots are, and whether `play` has to wait for them, is up to the caller.

    Args:
        game: what is played.
        bots: who sits there, as in `Sitting`.
        matches: how many there are.
        tick: called after every unit.
    """

    def __init__(
        self, game: Game, bots: tuple[int, ...], matches: int, tick: Callable[[], None]
    ) -> None:
        self._game, self._bots, self._tick = game, bots, tick
        self._most = matches
        self._unit = _UNITS.get(game.name)
        self._over = self._unit and game.vocabulary.news[self._unit.over]
        self._seats: tuple[int, ...] = ()
        self._matches = 0
        self._offence: Offence | None = None
        self._scores, self._points, self._won = ([0] * len(bots) for _ in range(3))
        self._samples = tuple(Sample() for _ in bots)
        self._payoffs: list[Sequence[float]] = []

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        for seats in islice(seatings(len(self._bots)), self._most):
            self._seats = seats
            yield seats
            if self._offence is not None:
                return

    def begin(self) -> Game:
        """The game to play the next match by, which lets us hear what is told.

        Asked for once more, that match is played again (J5): nothing of the former one counts.
        """
        self._payoffs = []
        return self._game if self._unit is None else _overheard(self._game, self._hear)

    def add(self, result: MatchResult, verdict: Verdict | None = None) -> None:
        """Add what a match came to, with the evidence if there is any."""
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

    def sitting(self) -> Sitting:
        """What it came to."""
        return Sitting(
            self._bots,
            self._matches,
            tuple(self._scores),
            tuple(self._points),
            tuple(self._won),
            self._samples,
            self._offence,
        )

    def _hear(self, tell: TellSeat) -> None:
        """Count a unit where it ends before its match does."""
        if self._unit is not None and type(tell.news) is self._over:
            self._unit_over(self._unit.payoffs(tell.news))

    def _unit_over(self, payoffs: Sequence[float]) -> None:
        self._payoffs.append(payoffs)
        self._tick()


def _telling_line(stderr: str) -> str:
    """The line that says what went wrong: Python's last one, but above the places in Java, and above its version in node."""
    lines = stderr.splitlines()
    for line in reversed(lines):
        if _ERROR.search(line) and not line[0].isspace():
            return line
    return lines[-1] if lines else ""


def _overheard(game: Game, hear: Callable[[TellSeat], None]) -> Game:
    """The same game for one match, at which somebody hears all that is told, before the seats do and whatever they make of it.

    Only once: when a bot comes back to its match, the rules are run again to tell it what was before (`MatchState.history_for`).
    """
    is_heard = False

    def rules(settings: Any, deals: Iterator[Any], board: Scoreboard) -> Rules:
        nonlocal is_heard
        steps = game.rules(settings, deals, board)
        if is_heard:
            return steps
        is_heard = True
        return _heard(steps, hear)

    return msgspec.structs.replace(game, rules=rules)


def _heard(steps: Rules, hear: Callable[[TellSeat], None]) -> Rules:
    """All steps of some rules as they are; their news is heard on its way."""
    send = steps.send
    answer = None
    while True:
        try:
            step = send(answer)
        except StopIteration:
            return
        if type(step) is TellSeat:
            hear(step)
        answer = yield step


def _won(game: Game, result: MatchResult, seat: int) -> int:
    """How many of what `Sitting.won` counts a seat won in a match."""
    scores = result.scores
    if game.name == "gin_rummy":
        return scores[seat]
    if game.seats == 1:
        return int(scores[seat] > 0)
    if result.termination.is_offence:
        return int(result.winner == seat)
    return int(scores[seat] == max(scores) and scores.count(scores[seat]) == 1)
