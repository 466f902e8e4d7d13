"""How competitions with the same bots share the bots' tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arena.competitions.competition import Competition
from arena.formats.spec import Form

__all__ = ["beside", "in_turn", "share"]

_ORDER = {Form.ELIMINATION: 0, Form.LADDER: 2}


def in_turn(competitions: Iterable[Competition]) -> list[Competition]:
    """In which order they are offered bots: eliminations first, as a stage waits for every match of it, ladders last, as they have no end.

    Of the others those with the fewest tables for what is left to decide, so that the standings of all move, and their pace stays as it is.
    """
    return sorted(
        competitions,
        key=lambda one: (_ORDER.get(one.plan.form, 1), len(one.tables) / max(1.0, one.rest)),
    )


def share(competition: str, competitions: Iterable[Competition], name: str) -> float:
    """Which part of a bot's tables is a competition's while its first matches are on, or those of another that waits for the bot.

    As much as is left to decide in it, so that all go on at the pace at which they began. Afterwards it is enough who is
    offered a bot first: see `in_turn`. An elimination waits for every match of a stage, and has what it needs.
    """
    wanting = [one for one in competitions if one.id == competition or one.wants(name)]
    own = next((one for one in wanting if one.id == competition), None)
    if own is None or own.plan.form is Form.ELIMINATION:
        return 1.0
    if not any(one.is_spreading for one in wanting):
        return 1.0
    return own.rest / max(1.0, sum(one.rest for one in wanting))


def beside(competition: str, competitions: Sequence[Competition]) -> list[Competition]:
    """The others that have a player in common with that one."""
    players = {name for one in competitions if one.id == competition for name in one.plan.players}
    return [
        one
        for one in competitions
        if one.id != competition and not players.isdisjoint(one.plan.players)
    ]
