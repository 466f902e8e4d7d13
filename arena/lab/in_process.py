"""Matches in this process: strategies are objects, and nobody watches the clock."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from traceback import walk_tb
from typing import Any

from arena.engine.match import Match, MatchResult
from arena.engine.rules import EVERYONE
from arena.engine.shuffle import seed_from_int
from arena.games import game_named
from protocol.errors import IllegalAnswer, UsageError, in_words, one_line
from protocol.messages import Ending
from protocol.strategy import Strategy

__all__ = ["drive", "play"]

LONGEST_PATH = 1000  # so that its end, which says more than its beginning, is shown


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


def drive(
    match: Match,
    strategies: Sequence[Strategy],
) -> None:
    """Ask and tell until the match is over.

    Whatever a strategy raises, but Ctrl-C, is a crash of its seat and ends the match. A match that has run its course
    stands as it is: who fails at its last news only keeps that from who would have heard it next (J2).
    """
    decides: list[Callable[[Any], object]] = []
    hears: list[Callable[[Any], object]] = []
    for seat, strategy in enumerate(strategies):
        try:
            strategy.reset()
            decides.append(strategy.decide)
            hears.append(strategy.hear)
        except BaseException as error:
            return _crashed(match, seat, error)
    everyone = tuple(range(len(strategies)))
    while True:
        if match.news:
            for tell in match.take_news():
                for seat in everyone if tell.seat == EVERYONE else (tell.seat,):
                    try:
                        hears[seat](tell.news)
                    except BaseException as error:
                        return _crashed(match, seat, error)
        asked = match.pending
        if asked is None:
            return None
        try:
            value = decides[asked.seat](asked.question)
        except BaseException as error:
            return _crashed(match, asked.seat, error)
        try:
            match.answer(value)
        except IllegalAnswer as error:
            return match.end(Ending.ILLEGAL, asked.seat, str(error))


def _crashed(match: Match, seat: int, error: BaseException) -> None:
    """The strategy raised: say what and where, as its author needs it. Ctrl-C goes on to whoever started us."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    where = ""
    _ours, *frames = walk_tb(sys.exc_info()[2])
    if frames:
        frame, line = frames[-1]
        where = one_line(f" at {frame.f_code.co_filename}:{line}", LONGEST_PATH)
    match.end(Ending.CRASH, seat, f"seat {seat + 1} raised {in_words(error)}{where}")
