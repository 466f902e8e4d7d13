"""What the arena knows of tokens: their hashes, and whose they are.

The roster (`arena/storage/roster.py`) reads an `Access` from the database, and the arena looks up
each `hello` in it. Tokens themselves are never stored. A hash is looked up in a map, not compared
in constant time: the time tells something of the guess's hash, and nobody can choose a guess by
its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

__all__ = ["Access", "hashed"]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The names on the roster and the valid tokens, at one moment."""

    names: frozenset[str] = frozenset()  # all on the roster; revoking a token reserves the name
    players: Mapping[str, str] = {}  # names by the hash of a valid token
    instructors: Mapping[str, str] = {}  # likewise


def hashed(token: str) -> str:
    """The SHA-256 of a token. That is enough: tokens are long and random, in no dictionary."""
    return hashlib.sha256(token.encode()).hexdigest()
