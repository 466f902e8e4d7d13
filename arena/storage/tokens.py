"""What the arena knows of tokens: their hashes, and whose they are.

An `Access` is what the database said at one moment (arena/storage/roster.py reads it); the door looks a `hello` up in it without a
database at hand. Tokens themselves are never kept. A hash is looked up in a map, not compared in constant time: how long that takes
tells something of the hash of what was guessed, and nobody can choose a guess by its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

__all__ = ["Access", "hashed"]


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a token.

    Attributes:
        revision: goes up with every change.
        names: all names on the roster, those whose token was revoked too: nobody else is called so.
        players: names by the hash of a token that is good.
        instructors: the same for instructors.
    """

    revision: int = 0
    names: frozenset[str] = frozenset()
    players: Mapping[str, str] = {}
    instructors: Mapping[str, str] = {}


def hashed(token: str) -> str:
    """What is kept of a token: enough to know it again.

    SHA-256 alone is enough, as tokens are long and drawn by us: there are no likely ones to be tried.
    """
    return hashlib.sha256(token.encode()).hexdigest()
