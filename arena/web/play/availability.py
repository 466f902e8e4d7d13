"""Whether a bot has time to play against people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arena.formats.spec import Form
from arena.referee.bot_session import Player

if TYPE_CHECKING:
    from arena.competitions.competition import Competition

__all__ = ["has_time", "is_needed"]


def has_time(player: Player, tables: int) -> bool:
    """Whether it is here, and can be dealt to at so many chairs more."""
    free = player.tables - len(player.chairs)
    return not (player.is_away or player.leaving) and free >= tables


def is_needed(player: Player, competition: Competition) -> bool:
    """Whether a competition that is on may deal to a bot at any time."""
    if competition.plan.form is Form.LADDER:
        is_barred = competition.is_barred(player.name)
        return competition.plan.game in player.games and not is_barred
    return competition.is_in(player.name)
