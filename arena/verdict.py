"""What is kept of an elimination, so that it can be explained: which word of J2, and the evidence (J4)."""

from __future__ import annotations

import msgspec

from protocol.messages import Ending, Limits

__all__ = ["Verdict"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One elimination and its evidence; no field depends on anything outside this struct.

    Attributes:
        kind: the word of J2.
        match: the match's id.
        game: its game.
        bot: the offender's name.
        seat: where it sat, from 0.
        text: one sentence for its author.
        asked: the question as JSON, or None if nothing was asked.
        legal: what would have been legal, as text.
        got: what came back, cut to a line, or None if nothing did.
        taken_ms: how long the decision had been waited for.
        bank_ms: what was left in the seat's bank.
        limits: all limits in force.
    """

    kind: Ending
    match: str
    game: str
    bot: str
    seat: int
    text: str
    asked: str | None = None
    legal: str | None = None
    got: str | None = None
    taken_ms: float | None = None
    bank_ms: int
    limits: Limits
