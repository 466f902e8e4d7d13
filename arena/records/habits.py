"""Counts what a bot did in the matches of its seat, for charts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from arena.games.analysis import Chart, SeatMatch, heard_by
from arena.games.rules import Game
from protocol.errors import NoAnalysis

__all__ = ["Habits", "habits_of"]


class Habits(msgspec.Struct, frozen=True):
    """The charts of a bot, and the numbers of matches and decisions that they count."""

    charts: tuple[Chart, ...]
    matches: int
    decisions: int


def habits_of(game: Game, matches: Iterable[SeatMatch]) -> Habits:
    """Count what a bot did in some matches of a game, each from the view of its seat.

    Raises `NoAnalysis` if the game counts nothing, and what `matches` raises.
    """
    if game.habits is None:
        raise NoAnalysis(f"{game.name} does not say what is counted of a bot's decisions")
    meter = game.habits()
    count = decisions = 0
    for match in matches:
        heard_by(match, meter)
        count += 1
        decisions += len(match.decisions)
    return Habits(meter.charts(), count, decisions)
