"""Every bot against every bot, in this process: who sits with whom, what they score, and how sure that is (A10, G16).

A *sitting* is all that the same bots play at one table: one match or several, the seats rotating so that after
`seats!` matches everyone has sat everywhere and behind everyone equally often (K1). Its scores are also taken as a sample of
what the game's *unit* brings, the smallest thing that is played over and over under the same conditions: a hand of
Ace-King-Queen, a game of gin, a whole match of the others. The sample's spread gives the standard errors.

A bot that offends is out: its sittings stay in the table and count for nobody (J3).

How a match is played is one thing, what it adds up to another: a `Tally` hears what the rules tell and takes the results, wherever
the bots are. Here they are objects (`play_sitting`); `arena/outside.py` has bots that are processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, islice, permutations
from math import factorial
from random import Random
from typing import Any

import msgspec

from arena.chance import seed_from_int
from arena.local import drive
from arena.match import Match, MatchResult
from arena.rules import Game, Rules, Scoreboard, Tell
from arena.statistics import Sample, error_of_sum
from protocol.errors import one_line
from protocol.messages import Ending, Verdict
from protocol.strategy import Strategy
from protocol.vocabulary import Settings

__all__ = [
    "CrossTable",
    "Entrant",
    "Offence",
    "Sitting",
    "Standing",
    "Tally",
    "cross",
    "derived_seed",
    "play_sitting",
    "seatings",
    "tables",
    "unit",
]

AGAINST_ITSELF = frozenset({"ace_king_queen"})
"""The games in which a bot also meets another instance of itself (A10)."""


class Entrant(msgspec.Struct, frozen=True):
    """A bot that takes part: what people call it, and what makes an instance from a seed."""

    name: str
    make: Callable[[str], Strategy]


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


class Standing(msgspec.Struct, frozen=True):
    """What one bot came to over all its sittings that count.

    Attributes:
        bot: its number among the entrants.
        units: how many hands, games or matches, of which `won` are counted as in `Sitting`.
        total: the score over all of them, with its standard error.
        mean: the score per unit, with its standard error.
        offence: why it is out; then nothing counts.
    """

    bot: int
    units: int
    won: int
    total: int
    total_error: float | None
    mean: float | None
    mean_error: float | None
    offence: Offence | None


class CrossTable(msgspec.Struct, frozen=True):
    """All sittings that were played, and what follows from them."""

    names: tuple[str, ...]
    sittings: tuple[Sitting, ...]

    @property
    def offences(self) -> dict[int, Offence]:
        """The offence of every bot that is out, by its number."""
        found = (sitting.offence for sitting in self.sittings)
        return {offence.bot: offence for offence in found if offence is not None}

    def counting(self) -> Iterator[Sitting]:
        """The sittings that no offender sat at (J3)."""
        out = self.offences.keys()
        return (sitting for sitting in self.sittings if not out & set(sitting.bots))

    def standings(self) -> list[Standing]:
        """Every bot, best total first, those that are out last.

        A sitting of instances of one bot alone says nothing about it: what one wins the other loses.
        """
        counted = [
            sitting
            for sitting in self.counting()
            if len(sitting.bots) == 1 or len(set(sitting.bots)) > 1
        ]
        offences = self.offences
        standings = [
            _standing(bot, counted, offences.get(bot)) for bot in range(len(self.names))
        ]
        return sorted(standings, key=lambda s: (s.offence is not None, -s.total))


def cross(
    game: Game,
    entrants: Sequence[Entrant],
    *,
    matches: int,
    settings: Settings,
    seed: int,
    tick: Callable[[], None],
) -> CrossTable:
    """Play the whole table, without those that have offended from then on.

    Args:
        game: what is played.
        entrants: the bots, all of different names.
        matches: per sitting.
        settings: of every match.
        seed: what all cards and all instances' seeds are derived from.
        tick: called after every unit.
    """
    sittings: list[Sitting] = []
    out: set[int] = set()
    itself = game.name in AGAINST_ITSELF
    for table in tables(game.seats, len(entrants), itself=itself):
        if out & set(table):
            continue
        sitting = play_sitting(
            game,
            entrants,
            table,
            matches=matches,
            settings=settings,
            seed=derived_seed(seed, "table", *table),
            tick=tick,
        )
        sittings.append(sitting)
        if sitting.offence is not None:
            out.add(sitting.offence.bot)
    return CrossTable(tuple(entrant.name for entrant in entrants), tuple(sittings))


def tables(seats: int, bots: int, *, itself: bool) -> list[tuple[int, ...]]:
    """Who sits with whom: all different tables of as many different bots as there are seats or bots.

    With fewer bots than seats some sit twice, in every way there is. `itself` adds every bot with itself.
    """
    fewest = 1 if itself else min(seats, bots)
    return [
        table
        for table in combinations_with_replacement(range(bots), seats)
        if len(set(table)) >= fewest
    ]


def play_sitting(
    game: Game,
    entrants: Sequence[Entrant],
    bots: tuple[int, ...],
    *,
    matches: int,
    settings: Settings,
    seed: int,
    tick: Callable[[], None],
) -> Sitting:
    """Play what the same bots play at one table; the first offence ends it.

    One instance per chair plays all the matches. `bots` are numbers in `entrants`, the other arguments as in `cross`.
    """
    strategies = [
        entrants[bot].make(f"{seed}:{place}") for place, bot in enumerate(bots)
    ]
    tally = Tally(game, bots, tick)
    for number, chairs in enumerate(islice(seatings(len(bots)), matches)):
        match = Match(
            tally.sit_down(chairs),
            settings,
            seed=seed_from_int(derived_seed(seed, "match", number) if number else seed),
        )
        drive(match, [strategies[place] for place in chairs])
        tally.match_over(match.result())
        if tally.offence is not None:
            break
    return tally.sitting()


def seatings(seats: int) -> Iterator[tuple[int, ...]]:
    """Who sits where in match after match, as places by seat: `seats` rotations of one order, then of the next."""
    orders = [(0, *rest) for rest in permutations(range(1, seats))]
    assert len(orders) == factorial(seats - 1), "the rotations of these are all orders"
    while True:
        for order in orders:
            for turn in range(seats):
                yield order[turn:] + order[:turn]


def unit(game: Game) -> str:
    """What the game's samples are of: `hand`, `game` or `match`."""
    return _UNITS[game.name].name if game.name in _UNITS else "match"


def derived_seed(seed: int, *parts: object) -> int:
    """A seed of its own for a part of what one seed stands for."""
    return Random(":".join(map(str, (seed, *parts)))).getrandbits(63)


class _Unit(msgspec.Struct, frozen=True):
    """What a match is sampled by where that is less than a match: the news that ends one, and what it brought to each seat."""

    name: str
    over: str
    payoffs: Callable[[Any], Sequence[float]]


_UNITS = {
    "ace_king_queen": _Unit("hand", "hand_over", lambda news: news.payoffs),
    "gin_rummy": _Unit(
        "game", "game_over", lambda news: (news.winner == 0, news.winner == 1)
    ),
}


class Tally:
    """What a sitting comes to while it is played, by place.

    For every match `sit_down`, and `match_over` with its result. Whoever sits down again without a result plays the match again
    (J5): nothing of the former one counts.

    Args:
        game: what is played.
        bots: who sits there, as in `Sitting`.
        tick: called after every unit.
    """

    def __init__(
        self, game: Game, bots: tuple[int, ...], tick: Callable[[], None]
    ) -> None:
        self.offence: Offence | None = None
        self._game, self._bots, self._tick = game, bots, tick
        self._unit = _UNITS.get(game.name)
        self._over = self._unit and game.vocabulary.news[self._unit.over]
        self._chairs = tuple(range(len(bots)))
        self._matches = 0
        self._scores, self._points, self._won = ([0] * len(bots) for _ in range(3))
        self._samples = tuple(Sample() for _ in bots)
        self._payoffs: list[Sequence[float]] = []

    def sit_down(self, chairs: tuple[int, ...]) -> Game:
        """The next match begins, with these places by seat: the game to play it by, which lets us hear what is told."""
        self._chairs = chairs
        self._payoffs = []
        return self._game if self._unit is None else _overheard(self._game, self._hear)

    def match_over(self, result: MatchResult, verdict: Verdict | None = None) -> None:
        """Add what a match came to, with the evidence if there is any."""
        self._matches += 1
        for seat, place in enumerate(self._chairs):
            self._scores[place] += result.scores[seat]
            self._points[place] += result.points[seat]
            self._won[place] += _won(self._game, result, seat)
        if result.termination.is_offence:
            self.offence = self._offence(result, verdict)
        elif self._unit is None:
            self._unit_over(result.scores)
        for payoffs in self._payoffs:
            for place, payoff in zip(self._chairs, payoffs, strict=True):
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
            self.offence,
        )

    def _hear(self, tell: Tell) -> None:
        """Count a unit where it ends before its match does."""
        if self._unit is not None and type(tell.news) is self._over:
            self._unit_over(self._unit.payoffs(tell.news))

    def _unit_over(self, payoffs: Sequence[float]) -> None:
        self._payoffs.append(payoffs)
        self._tick()

    def _offence(self, result: MatchResult, verdict: Verdict | None) -> Offence:
        ended = result.termination
        assert ended.seat is not None, "an offence has an offender"
        place = self._chairs[ended.seat]
        offence = Offence(
            self._bots[place], place, ended.kind, ended.text, self._matches
        )
        return offence if verdict is None else _with_evidence(offence, verdict)


def _overheard(game: Game, hear: Callable[[Tell], None]) -> Game:
    """The same game for one match, at which somebody hears all that is told, before the seats do and whatever they make of it.

    Only once: when a bot comes back to its match, the rules are run again to tell it what was before (`Match.past`).
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


def _heard(steps: Rules, hear: Callable[[Tell], None]) -> Rules:
    """All steps of some rules as they are; their news is heard on its way."""
    send = steps.send
    answer = None
    while True:
        try:
            step = send(answer)
        except StopIteration:
            return
        if type(step) is Tell:
            hear(step)
        answer = yield step


def _with_evidence(offence: Offence, verdict: Verdict) -> Offence:
    """An offence with what its bot's author needs to mend it."""
    stderr = (verdict.stderr or "").strip()
    last = stderr.rpartition("\n")[2]
    if offence.kind is not Ending.CRASH:
        return msgspec.structs.replace(offence, advice=verdict.advice, stderr=stderr)
    said = f"; it said: {one_line(last)}" if last else ""
    return msgspec.structs.replace(offence, text=offence.text + said, stderr=stderr)


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


def _standing(
    bot: int, sittings: Sequence[Sitting], offence: Offence | None
) -> Standing:
    """What a bot came to at these tables."""
    mine = [
        (sitting, place)
        for sitting in sittings
        for place, sitter in enumerate(sitting.bots)
        if sitter == bot
    ]
    samples = [sitting.samples[place] for sitting, place in mine]
    units = sum(sample.count for sample in samples)
    total = sum(sitting.scores[place] for sitting, place in mine)
    error = error_of_sum(sample.error_of_total for sample in samples)
    return Standing(
        bot=bot,
        units=units,
        won=sum(sitting.won[place] for sitting, place in mine),
        total=total,
        total_error=error,
        mean=total / units if units else None,
        mean_error=None if error is None or not units else error / units,
        offence=offence,
    )
