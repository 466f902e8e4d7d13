"""Analyses a bot by asking it made-up questions, or by its answers in matches it has played."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from arena.games.analysis import Analyser, Analysis, Figure, SeatMatch, heard_by, need_analysis
from arena.games.catalogue import competition_settings, game_named
from arena.games.rules import Game
from arena.lab.estimate import estimated
from arena.lab.in_process import entrant, seeded
from arena.lab.probe import ProbeFailed, analyse_here
from protocol.errors import NoAnalysis
from protocol.strategy import Strategy, blaming
from protocol.vocabulary import Settings

__all__ = ["analyse", "begun", "watched"]

_NO_VALUE = "no exact value of a bot is known in this game"


def analyse(
    game: str,
    bot: Strategy | type[Any] | str,
    *,
    against: Iterable[Strategy | type[Any] | str] = (),
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
) -> Analysis:
    """Find out how good a bot is, by asking it made-up questions in this process.

    Args:
        game: its name or alias.
        bot: an object, a class, the name of a house bot or a FILE.py. It is reset before every
            match of the analysis.
        against: opponents for whom to compute further results.
        settings: by the rulebook's names; missing ones are as in competitions.
        seed: what cards and choices are drawn from; None draws one.

    Raises:
        ValueError: unknown game or bot, bad settings, or numpy and scipy are not installed.
        NoAnalysis: a bot cannot be analysed in this game or with these settings, or it failed.
    """
    rules = game_named(game)
    read = competition_settings(rules, settings or {})
    seed = secrets.randbits(63) if seed is None else seed
    bots = [bot, *against]
    names = [_name_of(one) for one in bots]
    analyser = begun(rules, read, seed, names[1:])
    made = [_made(rules, one, f"{seed}:{place}") for place, one in enumerate(bots)]
    try:
        return analyse_here(rules, analyser, made)
    except ProbeFailed as failed:
        raise NoAnalysis(failed.told(rules, names[failed.bot])) from None


def begun(game: Game, settings: Settings, seed: int, against: Sequence[str]) -> Analyser:
    """Begin the analysis of a bot, also against the bots named in `against`.

    If the game has no exact values but its decisions can be judged, the analysis is an estimate of
    what the bot gives away. Raises `NoAnalysis` if neither is possible, or if `against` is given
    without exact values, and `UsageError` if numpy and scipy are missing.
    """
    analysing = game.analysing
    reason = _NO_VALUE if analysing is None else analysing.refuses(settings)
    if analysing is not None and reason is None:
        need_analysis()
        return analysing.probe(settings, seed, against)
    assert reason is not None, "there is one for a game without exact values"
    if against:
        raise NoAnalysis(f"{reason}; `arena compare` finds out which of two bots is better")
    if game.judging is None:
        raise NoAnalysis(reason)
    if (why := game.judging.refuses(settings)) is not None:
        raise NoAnalysis(f"{reason}, and what mistakes cost cannot be estimated: {why}")
    return estimated(game, settings, seed, reason)


def watched(game: Game, settings: Settings, matches: Iterable[SeatMatch]) -> Analysis:
    """Analyse a bot from matches that it played with these settings.

    Raises `NoAnalysis` if the game has no analysis of played matches, and what `matches` raises.
    """
    analysing, meter = game.analysing, None if game.habits is None else game.habits()
    watch = None if analysing is None else analysing.watch
    if watch is None and meter is None:
        raise NoAnalysis(f"nothing can be said of a bot from its matches of {game.name}")
    reason = None if analysing is None else analysing.refuses(settings)
    asked = 0

    def heard() -> Iterator[SeatMatch]:
        nonlocal asked
        for match in matches:
            asked += len(match.decisions)
            if meter is not None:
                heard_by(match, meter)
            yield match

    seen = heard()
    if watch is not None and reason is None:
        need_analysis()
        analysis = watch(seen)
    else:
        refused = () if reason is None else (Figure(name="value", value=None, remark=reason),)
        analysis = Analysis(figures=refused)
    for _ in seen:  # take the matches that `watch` did not need
        pass
    charts = analysis.charts or (() if meter is None else meter.charts())
    return msgspec.structs.replace(analysis, charts=charts, asked=asked)


def _name_of(bot: Strategy | type[Any] | str) -> str:
    if isinstance(bot, str):
        return bot
    return (bot if isinstance(bot, type) else type(bot)).__name__


def _made(game: Game, bot: Strategy | type[Any] | str, seed: str) -> Strategy:
    """Make an instance of a bot, and seed it if it has a method `seed`."""
    if isinstance(bot, str):
        return entrant(game, bot).make(seed)
    with blaming(f"{_name_of(bot)} cannot be started"):
        return seeded(bot() if isinstance(bot, type) else bot, seed)
