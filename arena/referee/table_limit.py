"""How many tables of a competition a bot plays at once. Pure."""

from __future__ import annotations

import math

__all__ = ["QUICK_S", "tables_at_once"]

_FIRST = 4  # tables: while some wait for other bots, one waits for this one
# Of a match; with 1.0 the first end sooner, but frames with few questions cost 3 % more.
_ALL_AT = 0.5
# Tables that keep a slow bot and a quick bot busy: with 32 instead of 64 the arena needs some 20 %
# more CPU, as frames hold less.
_FEW, _MANY = 8, 64

QUICK_S = 0.000_5
"""The time per answer that is assumed for a bot that has not been measured."""

_BUSY_S = 0.2  # a bot has questions for so long; with 0.1, frames hold less and cost 10 % more CPU
_ON_THEIR_WAY = 4  # times link by answer: half of the tables wait for another bot


def tables_at_once(
    progress: float, most: int, answer_s: float = QUICK_S, link_s: float = 0.0
) -> int:
    """How many tables a bot plays at once, so that all stay busy and matches end evenly.

    Matches that begin together end together. So there are few tables at first, and their number
    rises evenly until the matches' `progress`, from 0 to 1, is a half: then as many end as begin. A
    quick bot gets many tables, as frames with many questions cost less. A distant bot gets more, as
    some of its questions are in transit (`link_s` there and back); only half of these at first, so
    that its matches do not all end together and another competition finds room.
    """
    far = math.ceil(_ON_THEIR_WAY * link_s / answer_s)
    enough = min(min(max(_FEW, int(_BUSY_S / answer_s)), _MANY) + far, most)
    first = min(_FIRST + min(far, enough // 2), enough)
    return first + int(min(progress / _ALL_AT, 1.0) * (enough - first))
