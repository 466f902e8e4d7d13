"""Matches in this process: strategies are objects, and there are no time limits."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from arena.engine.drive import drive
from arena.engine.match import MatchResult, MatchState
from arena.engine.rules import Game
from arena.engine.shuffle import seed_from_int
from arena.games import game_named
from arena.lab.series import Series, Sitting
from protocol.errors import UsageError
from protocol.strategy import Strategy, blaming, find
from protocol.vocabulary import Settings

__all__ = ["Entrant", "derived_seed", "entrant", "play", "sittings"]


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
        decks: stacked decks, one per deal, as lists of cards in dealing order; for blackjack cut
            points.
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
    cls = find(game.name, bot)

    def make(seed: str) -> Strategy:
        with blaming(f"{bot} cannot be started"):
            strategy: Strategy = cls(**(arguments or {}))
            if callable(seeding := getattr(strategy, "seed", None)):
                seeding(seed)
        return strategy

    return Entrant(bot, make)


def sittings(
    game: Game,
    entrants: Sequence[Entrant],
    tables: Sequence[tuple[int, ...]],
    *,
    seeds: Iterable[int],
    matches: int,
    settings: Settings,
    tick: Callable[[], None],
) -> tuple[Sitting, ...]:
    """Play all tables one after another, without those of bots that have offended before (J3).

    Tables are numbers in `entrants`; each plays so many matches, and has a seed in `seeds` for its
    cards and its instances. `tick` is called after every unit.
    """
    played: list[Sitting] = []
    out: set[int] = set()
    for table, seed in zip(tables, seeds, strict=True):
        if out.isdisjoint(table):
            sitting = _play_table(game, entrants, table, seed, matches, settings, tick)
            played.append(sitting)
            if sitting.offence is not None:
                out.add(sitting.offence.bot)
    return tuple(played)


def derived_seed(seed: int, *parts: object) -> int:
    """A seed for one part of an experiment that has a single seed."""
    return Random(":".join(map(str, (seed, *parts)))).getrandbits(63)


def _play_table(
    game: Game,
    entrants: Sequence[Entrant],
    table: tuple[int, ...],
    seed: int,
    matches: int,
    settings: Settings,
    tick: Callable[[], None],
) -> Sitting:
    strategies = [entrants[bot].make(f"{seed}:{place}") for place, bot in enumerate(table)]
    series = Series(game, table, matches, tick)
    for number, seats in enumerate(series):
        match_seed = derived_seed(seed, "match", number) if number else seed
        match = MatchState(series.begin(), settings, seed=seed_from_int(match_seed))
        drive(match, [strategies[place] for place in seats])
        series.add(match.result())
    return series.sitting()
