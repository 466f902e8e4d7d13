"""The seal of a finished match: one hash over all that the database says of it, so that a change of any byte shows.

It is reckoned when a match is written, stored beside it, and reckoned again by whoever checks or exports the database. It does not
prevent a forger from sealing what he has forged; whoever exported the results before has the seals of the truth. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from arena.engine.match import Result

__all__ = ["sealed"]


def sealed(
    *,
    match: str,
    competition: str,
    pairing: int,
    players: Sequence[str],
    result: Result,
    started_at: float,
    finished_at: float,
    record: bytes,
) -> str:
    """The digest of a match: SHA-256 in hex over a JSON array of its fields, a line feed, and its record as it is stored."""
    ended = result.termination
    fields = (
        match,
        competition,
        pairing,
        tuple(players),
        result.scores,
        result.points,
        ended.kind,
        ended.seat,
        ended.text,
        started_at,
        finished_at,
    )
    return hashlib.sha256(msgspec.json.encode(fields) + b"\n" + record).hexdigest()
