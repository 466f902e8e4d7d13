"""Matches with strategies as objects, here or in worker processes, and without time limits."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

import msgspec

from arena.engine.drive import drive
from arena.engine.match import MatchResult, MatchState, Record
from arena.engine.rules import Game
from arena.engine.shuffle import seed_from_int
from arena.games import game_named
from arena.lab.series import Series, Sitting, units_per_match
from arena.sandbox.worker_pool import work_through
from protocol.errors import UsageError
from protocol.strategy import Strategy, blaming, find
from protocol.vocabulary import Settings

__all__ = [
    "MATCHES_AT_ONCE",
    "Entrant",
    "derived_seed",
    "entrant",
    "play",
    "seeded",
    "sittings",
    "table_seeds",
]

MATCHES_AT_ONCE = 24  # all seatings of up to four bots, equally often (K1)


def play(
    game: str,
    strategies: Iterable[Strategy],
    *,
    settings: Mapping[str, object] | None = None,
    decks: Iterable[Any] | None = None,
    seed: int | None = None,
) -> MatchResult:
    """Play one match between `strategies`, one per seat.

    An illegal answer ends it with `illegal`, an exception in a strategy with `crash`; the seat is
    in the termination. A strategy that fails at the news after the last decision changes nothing,
    as the match is over by then (J2).

    Args:
        game: its name or alias.
        strategies: a separate object for each seat; each is reset first.
        settings: by the rulebook's names; what is missing has its default.
        decks: stacked decks, one per deal, as the game's `stacked` takes them: most are lists of
            cards in dealing order.
        seed: what the cards are drawn from without `decks`; the same seed and answers give the same
            result, byte for byte. None draws a seed.

    Raises:
        ValueError: unknown game, bad settings, the wrong number of strategies, an invalid deck, too
            few decks, a seed that is no whole number.
    """
    rules = game_named(game)
    strategies = tuple(strategies)
    if len(strategies) != rules.seats:
        raise UsageError(f"{rules.name} needs {rules.seats} strategies, got {len(strategies)}")
    for strategy in strategies:
        if isinstance(strategy, str | type):  # as other functions of `arena` take
            raise UsageError(f"expected an object of a bot's class for each seat, got {strategy!r}")
    if len({id(strategy) for strategy in strategies}) < len(strategies):
        raise UsageError("a bot against itself is two instances (A9): got one object twice")
    read = rules.vocabulary.read_settings(settings)
    if decks is None:
        seed_bytes = secrets.token_bytes(32) if seed is None else seed_from_int(seed)
        match = MatchState(rules, read, seed=seed_bytes)
    elif isinstance(decks, Iterable):
        match = MatchState(rules, read, decks=decks)
    else:
        raise UsageError(f"expected a list of decks, got {decks!r}")
    drive(match, strategies)
    return match.result()


class Entrant(msgspec.Struct, frozen=True):
    """A bot that takes part: its name, and what makes an instance from a seed."""

    name: str
    make: Callable[[str], Strategy]


def entrant(game: Game, bot: str, arguments: Mapping[str, object] | None = None) -> Entrant:
    """A bot by house name or file, whose class is constructed with these arguments. It raises
    `UnknownBot` if it cannot be loaded, as does `make` if it cannot be constructed.
    """
    return Entrant(bot, _Maker(game.name, bot, arguments or {}))


class _Maker:
    """Makes instances of a bot; another process, which gets it pickled, loads the bot again."""

    def __init__(
        self, game: str, bot: str, arguments: Mapping[str, object], where: str | None = None
    ) -> None:
        self._game, self._bot, self._arguments = game, bot, arguments
        self._where = where or bot
        # The file may change the directory when it is run.
        if bot.endswith(".py") and os.path.isfile(self._where):
            self._where = os.path.abspath(self._where)
        self._class = find(game, where or bot)

    def __reduce__(self) -> tuple[type[_Maker], tuple[object, ...]]:
        return _Maker, (self._game, self._bot, self._arguments, self._where)

    def __call__(self, seed: str) -> Strategy:
        with blaming(f"{self._bot} cannot be started"):
            return seeded(self._class(**self._arguments), seed)


def seeded(strategy: Strategy, seed: str) -> Strategy:
    """The strategy, whose random numbers come from a seed if it can do that."""
    if callable(seeding := getattr(strategy, "seed", None)):
        seeding(seed)
    return strategy


def sittings(
    game: Game,
    entrants: Sequence[Entrant],
    tables: Sequence[tuple[int, ...]],
    *,
    seeds: Iterable[int],
    matches: int,
    settings: Settings,
    report: Callable[[int], None],
    jobs: int = 1,
    on_match: Callable[[tuple[int, ...], Record], None] | None = None,
    duplicate: bool = False,
) -> tuple[Sitting, ...]:
    """Play all tables, without those of bots that have offended at a table before (J3).

    A table is a tuple of indices in `entrants`. Each plays `matches` matches, and has a seed in
    `seeds` for its cards and its instances. `report` gets the number of units played since its last
    call. The result does not depend on `jobs`, the number of processes: a process is given
    `MATCHES_AT_ONCE` matches of one table, and makes new instances for them. With one job
    `on_match` gets the record of every match, and who sat where, as indices in `entrants` by seat.

    With `duplicate` the same cards are dealt once for each seat, so that every bot has the cards of
    every seat, each time with new instances. `matches` must be a multiple of the number of seats.
    """
    duplicates = game.seats if duplicate else 1
    assert matches % duplicates == 0, "the caller has seen to that"
    at_once = MATCHES_AT_ONCE - MATCHES_AT_ONCE % duplicates
    assert jobs == 1 or on_match is None, "another process would call a copy of it"
    played: dict[int, Sitting] = {}
    out: set[int] = set()

    def add(part: _Part, sitting: Sitting) -> None:
        before = played.get(part.number)
        played[part.number] = sitting if before is None else before.followed_by(sitting)
        if sitting.offence is not None:
            out.add(sitting.offence.bot)

    parts = [
        _Part(number, table, seed, range(first, min(first + at_once, matches)))
        for number, (table, seed) in enumerate(zip(tables, seeds, strict=True))
        for first in range(0, matches, at_once)
    ]
    work_through(
        partial(_play_part, game.name, entrants, settings, on_match, duplicates),
        parts,
        add,
        jobs=jobs,
        units=len(tables) * matches * units_per_match(game, settings),
        report=report,
        wanted=lambda part: out.isdisjoint(part.table),
    )
    return tuple(played[number] for number in sorted(played))


def _instances(entrants: Sequence[Entrant], table: Sequence[int], seed: int) -> list[Strategy]:
    return [entrants[bot].make(f"{seed}:{place}") for place, bot in enumerate(table)]


def derived_seed(seed: int, *parts: object) -> int:
    """A seed for one part of an experiment that has a single seed."""
    return Random(":".join(map(str, (seed, *parts)))).getrandbits(63)


def table_seeds(
    game: Game, tables: Sequence[tuple[int, ...]], seed: int, *, duplicate: bool
) -> dict[tuple[int, ...], int]:
    """The seed of every table of a cross table; against the dealer duplicates are the same."""
    alone = duplicate and game.seats == 1
    return {table: derived_seed(seed, "table", *(() if alone else table)) for table in tables}


class _Part(msgspec.Struct, frozen=True):
    """Some of the matches of a table: the table's number, its bots and seed, and which matches."""

    number: int
    table: tuple[int, ...]
    seed: int
    matches: range


def _play_part(
    game: str,
    entrants: Sequence[Entrant],
    settings: Settings,
    on_match: Callable[[tuple[int, ...], Record], None] | None,
    duplicates: int,
    part: _Part,
    tick: Callable[[], None],
) -> Sitting:
    rules, first = game_named(game), part.matches.start
    seed = derived_seed(part.seed, "part", first) if first else part.seed
    random.seed(seed)  # for bots that draw from the module instead of a generator of their own
    strategies = _instances(entrants, part.table, seed)
    series = Series(rules, part.table, part.matches, tick, duplicates)
    for number, seats in zip(part.matches, series, strict=False):
        deal = number - number % duplicates
        match_seed = derived_seed(part.seed, "match", deal) if deal else part.seed
        if number > deal:  # nobody may remember these cards
            strategies = _instances(entrants, part.table, derived_seed(seed, "again", number))
        match = MatchState(series.begin(), settings, seed=seed_from_int(match_seed))
        drive(match, [strategies[place] for place in seats])
        result = match.result()
        series.add(result)
        if on_match is not None:
            on_match(tuple(part.table[place] for place in seats), result.record)
    return series.sitting()
