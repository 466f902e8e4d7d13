"""How competitions with the same bots share the bots' tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from arena.competitions.competition import Competition
from arena.formats.spec import Form

__all__ = ["beside", "in_turn", "share"]

_ORDER = {Form.ELIMINATION: 0, Form.LADDER: 2}


def in_turn(competitions: Iterable[Competition]) -> list[Competition]:
    """The order in which competitions are offered a bot that is free.

    Eliminations come first, as a stage waits for all its matches, and ladders last, as they have no
    end. Among the others those come first that have few tables for what is left to decide, so that
    all move on at their own pace.
    """

    def turn(competition: Competition) -> tuple[int, float]:
        tables = competition.playing / max(1.0, competition.rest)
        return _ORDER.get(competition.plan.form, 1), tables

    return sorted(competitions, key=turn)


def share(competition: str, competitions: Collection[Competition], name: str) -> float:
    """The part of a bot's tables that a competition may use while it, or another, is spreading.

    It is the part of the decisions that are left in it, so that all competitions go on at the pace
    at which they began. Afterwards `in_turn` is enough. An elimination may use all tables, as a
    stage waits for all its matches.
    """
    if len(competitions) < 2:
        return 1.0
    wanting = [each for each in competitions if each.id == competition or each.wants(name)]
    own = next((each for each in wanting if each.id == competition), None)
    if own is None or own.plan.form is Form.ELIMINATION:
        return 1.0
    if not any(each.is_spreading for each in wanting):
        return 1.0
    return own.rest / max(1.0, sum(each.rest for each in wanting))


def beside(competition: str, competitions: Sequence[Competition]) -> list[Competition]:
    """The other competitions that have a player in common with that one."""
    names = {name for each in competitions if each.id == competition for name in each.plan.players}
    others = (each for each in competitions if each.id != competition)
    return [other for other in others if not names.isdisjoint(other.plan.players)]
