"""Matches in this process: strategies are objects, and nobody watches the clock."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from arena.chance import seed_from_int
from arena.games import game_named
from arena.match import Match, MatchResult
from arena.rules import EVERYONE
from protocol.errors import IllegalAnswer, UsageError, one_line
from protocol.messages import Ending
from protocol.strategy import Strategy

__all__ = ["drive", "play"]

_CRASHES = (Exception, SystemExit)
"""What ends a strategy and not us: `exit()` does, Ctrl-C does not."""


def play(
    game: str,
    strategies: Sequence[Strategy],
    *,
    settings: Mapping[str, object] | None = None,
    decks: Iterable[Any] | None = None,
    seed: int | None = None,
) -> MatchResult:
    """Play one match between `strategies`, one per seat, and say how it ended.

    An illegal answer ends it with `illegal`, an exception in a strategy with `crash`; the seat is in the termination.

    Args:
        game: its name or alias.
        strategies: an object of its own for every seat; each is reset first.
        settings: by the rulebook's names; what is missing has its default.
        decks: stacked decks, one per deal, as lists of cards in dealing order; for blackjack cut points.
        seed: what the cards are drawn from if no decks are given; the same seed and answers give the same result,
            byte for byte. None draws a seed.

    Raises:
        ValueError: unknown game, bad settings, the wrong number of strategies, a deck that is none, too few decks.
    """
    rules = game_named(game)
    if len(strategies) != rules.seats:
        raise UsageError(
            f"{rules.name} needs {rules.seats} strategies, got {len(strategies)}"
        )
    if len({id(strategy) for strategy in strategies}) < len(strategies):
        raise UsageError(
            "a bot against itself is two instances (A9): got one object twice"
        )
    read = rules.vocabulary.read_settings(settings)
    if decks is not None:
        if seed is not None:
            raise UsageError("expected decks or a seed, got both")
        match = Match(rules, read, decks=decks)
    else:
        seed_bytes = secrets.token_bytes(32) if seed is None else seed_from_int(seed)
        match = Match(rules, read, seed=seed_bytes)
    drive(match, strategies)
    return match.result()


def drive(
    match: Match,
    strategies: Sequence[Strategy],
    until: Callable[[], bool] | None = None,
) -> None:
    """Ask and tell until the match is over, or before a decision at which `until` holds."""
    for seat, strategy in enumerate(strategies):
        try:
            strategy.reset()
        except _CRASHES as error:
            return _crashed(match, seat, error)
    everyone = tuple(range(len(strategies)))
    decides = [strategy.decide for strategy in strategies]
    hears = [strategy.hear for strategy in strategies]
    while True:
        if match.news:
            for tell in match.take_news():
                for seat in everyone if tell.seat == EVERYONE else (tell.seat,):
                    try:
                        hears[seat](tell.news)
                    except _CRASHES as error:
                        return _crashed(match, seat, error)
        asked = match.pending
        if asked is None or (until is not None and until()):
            return None
        try:
            value = decides[asked.seat](asked.question)
        except _CRASHES as error:
            return _crashed(match, asked.seat, error)
        try:
            match.answer(value)
        except IllegalAnswer as error:
            return match.end(Ending.ILLEGAL, asked.seat, str(error))


def _crashed(match: Match, seat: int, error: BaseException) -> None:
    """The strategy raised: say what and where, as its author needs it."""
    where = ""
    frames = traceback.extract_tb(error.__traceback__)
    if len(frames) > 1:
        where = f" at {frames[-1].filename}:{frames[-1].lineno}"
    try:
        said = one_line(f"{type(error).__name__}: {error}")
    except Exception:  # its own words may be what is broken
        said = type(error).__name__
    match.end(Ending.CRASH, seat, f"seat {seat + 1} raised {said}{where}")
