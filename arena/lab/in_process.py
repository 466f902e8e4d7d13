"""Matches in this process: strategies are objects, and nobody watches the clock."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from arena.engine.drive import drive
from arena.engine.match import Match, MatchResult
from arena.engine.shuffle import seed_from_int
from arena.games import game_named
from protocol.errors import UsageError
from protocol.strategy import Strategy

__all__ = ["play"]


def play(
    game: str,
    strategies: Iterable[Strategy],
    *,
    settings: Mapping[str, object] | None = None,
    decks: Iterable[Any] | None = None,
    seed: int | None = None,
) -> MatchResult:
    """Play one match between `strategies`, one per seat, and say how it ended.

    An illegal answer ends it with `illegal`, an exception in a strategy with `crash`; the seat is in the termination.
    A strategy that fails at the news after the last decision changes nothing: the match has run its course (J2).

    Args:
        game: its name or alias.
        strategies: an object of its own for every seat; each is reset first.
        settings: by the rulebook's names; what is missing has its default.
        decks: stacked decks, one per deal, as lists of cards in dealing order; for blackjack cut points.
        seed: what the cards are drawn from if no decks are given; the same seed and answers give the same result,
            byte for byte. None draws a seed.

    Raises:
        ValueError: unknown game, bad settings, the wrong number of strategies, a deck that is none, too few decks,
            a seed that is no whole number.
    """
    rules = game_named(game)
    strategies = tuple(strategies)
    if len(strategies) != rules.seats:
        raise UsageError(
            f"{rules.name} needs {rules.seats} strategies, got {len(strategies)}"
        )
    if len({id(strategy) for strategy in strategies}) < len(strategies):
        raise UsageError(
            "a bot against itself is two instances (A9): got one object twice"
        )
    read = rules.vocabulary.read_settings(settings)
    if decks is None:
        seed_bytes = secrets.token_bytes(32) if seed is None else seed_from_int(seed)
        match = Match(rules, read, seed=seed_bytes)
    elif isinstance(decks, Iterable):
        match = Match(rules, read, decks=decks)
    else:
        raise UsageError(f"expected a list of decks, got {decks!r}")
    drive(match, strategies)
    return match.result()
