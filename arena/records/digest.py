"""The seal of a finished match: a hash over its rows and its record, which any changed byte breaks.

It is computed and stored when a match is written, and computed again when the database is checked
or exported. A forger can seal what he has forged; an export made before has the true seals. Pure.
"""

from __future__ import annotations

import hashlib

import msgspec

from arena.records.document import MatchDocument

__all__ = ["sealed"]


def sealed(document: MatchDocument) -> str:
    """The digest of a match, in hex; the one that the document has is not looked at.

    It is SHA-256 over a JSON array of its fields, a line feed, and its record as it is stored.
    """
    ended = document.termination
    fields = (
        document.match,
        document.competition,
        document.pairing,
        document.players,
        document.scores,
        document.points,
        ended.kind,
        ended.seat,
        ended.text,
        document.started_at,
        document.finished_at,
    )
    data = msgspec.json.encode(fields) + b"\n" + bytes(document.record)
    return hashlib.sha256(data).hexdigest()
