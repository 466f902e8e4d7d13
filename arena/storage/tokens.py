"""Looks up who a token belongs to, by the token's hash.

The roster (`arena/storage/roster.py`) reads an `Access` from the database, and the arena looks up
each `hello` in it. Tokens themselves are never stored. A hash is looked up in a map and not
compared in constant time: timing reveals something about the hash of a guess, but nobody can choose
a guess by its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

__all__ = ["Access", "hashed"]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The names on the roster and the valid tokens, at one moment."""

    names: frozenset[str] = frozenset()  # all on the roster, also those whose token is revoked
    players: Mapping[str, str] = {}  # names of students by the hash of their token
    instructors: Mapping[str, str] = {}  # names of instructors by the hash of their token


def hashed(token: str) -> str:
    """Return a token's SHA-256. No slow hash is needed, as tokens are long and random."""
    return hashlib.sha256(token.encode()).hexdigest()
