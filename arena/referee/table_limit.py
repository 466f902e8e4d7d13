"""At how many tables a bot plays at once. Pure."""

from __future__ import annotations

import math

__all__ = ["QUICK_S", "tables_at_once"]

_FIRST = 4  # tables: while some wait for other bots, one waits for this one
_ALL_AT = (
    0.5  # of a match: with 1.0 the first end sooner, and frames with few questions cost 3 % more
)
_FEW, _MANY = 8, 64
"""Tables that keep a slow bot busy, and a quick one: with 32 the arena needs some 20 % more CPU than with 64, as frames hold less."""

QUICK_S = 0.000_5
"""For an answer, as long as nobody knows how long a bot takes."""

_BUSY_S = 0.1  # a bot has questions for so long
_ON_THEIR_WAY = 4  # times link by answer: half of the tables wait for another bot


def tables_at_once(come: float, most: int, answer_s: float = QUICK_S, link_s: float = 0.0) -> int:
    """At how many tables of a competition a bot plays at once, so that it and the arena are busy and matches end evenly.

    All matches that begin together end together. So there are few at first, which are soon over, and evenly more until the first of
    them are half over: from then on as many end as begin. A quick bot has many, as frames with many questions cost the arena and the bot
    less. One that is far away has more at once, whose questions are on their way; half of them at first, so that its matches do
    not all end together, and another competition that begins a moment later finds room.

    Args:
        come: how far the first matches of the competition have come, from 0 to 1.
        most: at how many tables the bot plays at all.
        answer_s: how long the bot takes for an answer.
        link_s: how long a question and its answer are on their way.
    """
    far = math.ceil(_ON_THEIR_WAY * link_s / answer_s)
    enough = min(min(max(_FEW, int(_BUSY_S / answer_s)), _MANY) + far, most)
    first = min(_FIRST + min(far, enough // 2), enough)
    return first + int(min(come / _ALL_AT, 1.0) * (enough - first))
