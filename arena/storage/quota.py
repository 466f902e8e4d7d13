"""Which submissions of an owner go when there are too many. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

__all__ = ["StoredSubmission", "surplus"]

MOST_STORED = 64 << 20  # bytes of an owner's programs, compressed
MOST_VERSIONS = 50  # of an owner, what was refused included


class StoredSubmission(msgspec.Struct, frozen=True):
    """A submission, its program, and the bytes of that, compressed."""

    number: int
    program: str  # its SHA-256
    stored: int
    is_needed: bool  # it must stay


def surplus(stored: Sequence[StoredSubmission]) -> tuple[int, ...]:
    """Which of an owner's submissions, of which the oldest comes first, are to go by the quota."""
    uses = Counter(one.program for one in stored)
    size = sum({one.program: one.stored for one in stored}.values())
    left = len(stored)
    gone = []
    for one in stored:
        if left <= MOST_VERSIONS and size <= MOST_STORED:
            break
        if not one.is_needed:
            gone.append(one.number)
            left -= 1
            uses[one.program] -= 1
            size -= 0 if uses[one.program] else one.stored
    return tuple(gone)
