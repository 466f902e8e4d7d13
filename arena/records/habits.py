"""What a bot did in the matches of its seat, counted for charts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from arena.games.analysis import Chart, SeatMatch, heard_by
from arena.games.rules import Game
from protocol.errors import NoAnalysis

__all__ = ["Habits", "habits_of"]


class Habits(msgspec.Struct, frozen=True):
    """The charts of a bot, and how many matches and decisions they are from."""

    charts: tuple[Chart, ...]
    matches: int
    decisions: int


def habits_of(game: Game, matches: Iterable[SeatMatch]) -> Habits:
    """Count what was done in some matches of a game, each as the bot's seat saw it.

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
