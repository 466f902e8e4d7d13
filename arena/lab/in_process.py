"""Plays matches between strategy objects, here or in worker processes, without time limits."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

import msgspec

from arena.games.catalogue import game_named
from arena.games.match import MatchResult, MatchState, drive
from arena.games.rules import Game
from arena.games.shuffle import seed_from_int
from arena.lab.matches import Experiment, SampledGame, Summed
from arena.sandbox.worker_pool import work_through
from protocol.errors import UsageError
from protocol.strategy import Strategy, blaming, find

__all__ = ["Entrant", "derived_seed", "entrant", "play", "play_parts", "seeded"]

Part = TypeVar("Part")
Sums = TypeVar("Sums", bound=Summed)


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
        if isinstance(strategy, str | type):  # other functions of `arena` accept these
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
    """A bot that takes part: its name, and a function that makes an instance from a seed."""

    name: str
    make: Callable[[str], Strategy]


def entrant(game: Game, bot: str, arguments: Mapping[str, object] | None = None) -> Entrant:
    """Load a house bot or file, whose class will be constructed with these arguments.

    Raises `UnknownBot` if it cannot be loaded; `make` raises it if construction fails.
    """
    return Entrant(bot, _Maker(game.name, bot, arguments or {}))


class _Maker:
    """Makes instances of a bot; when pickled for another process, it loads the bot anew there."""

    def __init__(
        self, game: str, bot: str, arguments: Mapping[str, object], where: str | None = None
    ) -> None:
        self._game, self._bot, self._arguments = game, bot, arguments
        self._where = where or bot
        # Running the file may change the current directory.
        if bot.endswith(".py") and os.path.isfile(self._where):
            self._where = os.path.abspath(self._where)
        self._class = find(game, where or bot)

    def __reduce__(self) -> tuple[type[_Maker], tuple[object, ...]]:
        return _Maker, (self._game, self._bot, self._arguments, self._where)

    def __call__(self, seed: str) -> Strategy:
        with blaming(f"{self._bot} cannot be started"):
            return seeded(self._class(**self._arguments), seed)


def seeded(strategy: Strategy, seed: str) -> Strategy:
    """Seed a strategy if it has a method `seed`, and return it."""
    if callable(seeding := getattr(strategy, "seed", None)):
        seeding(seed)
    return strategy


def derived_seed(seed: int, *parts: object) -> int:
    """Derive the seed of one part of an experiment from the experiment's seed."""
    return Random(":".join(map(str, (seed, *parts)))).getrandbits(63)


def play_parts(
    experiment: Experiment[Part, Sums],
    entrants: Sequence[Entrant],
    parts: Sequence[Part],
    on_sums: Callable[[Sums], bool | None],
    *,
    units: int,
    report: Callable[[int], None] = lambda units: None,
    jobs: int = 1,
) -> None:
    """Play parts with objects, in up to `jobs` processes, until `on_sums` returns True.

    `on_sums` gets the sums in the order of the parts, whatever the number of jobs. A bot that has
    offended plays no further part (J3), unless the experiment plays on.

    Args:
        units: about how many units all parts have.
        report: called with the number of units played since its last call, as by `work_through`.
    """
    out: set[int] = set()

    def on_result(_: Part, sums: Sums) -> bool | None:
        if sums.offence is not None and not experiment.plays_on:
            out.add(sums.offence.bot)
        return on_sums(sums)

    work_through(
        partial(_play_part, experiment, tuple(entrants)),
        parts,
        on_result,
        jobs=jobs,
        units=units,
        report=report,
        wanted=lambda part: out.isdisjoint(experiment.bots(part)),
    )


def _play_part(
    experiment: Experiment[Part, Sums],
    entrants: Sequence[Entrant],
    part: Part,
    tick: Callable[[], None],
) -> Sums:
    played = []
    made_for: object = None
    instances: dict[int, Strategy] = {}
    for spec in experiment.specs(part):
        if spec.module is not None:
            random.seed(spec.module)
        if made_for != (wanted := (spec.instances, spec.by_number)):
            made_for, instances = wanted, {}
            for number, bot in spec.by_number:
                instances[number] = entrants[bot].make(f"{spec.instances}:{number}")
        sampled = SampledGame(experiment.game, tick)
        match = MatchState(sampled.game, experiment.settings, seed=spec.cards)
        drive(match, [instances[number] for number in spec.numbers])
        played.append(sampled.played(spec, match.result()))
        if played[-1].result.offender is not None and not experiment.plays_on:
            break
    return experiment.summed(part, played)
