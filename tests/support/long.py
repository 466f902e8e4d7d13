"""Long forms of tests that measure: they run where `CARD_ARENA_LONG` is set, small ones always.

A test that has no small form is marked `@pytest.mark.long`.
"""

from __future__ import annotations

import os

__all__ = ["LONG", "sized"]

LONG = "CARD_ARENA_LONG" in os.environ


def sized(long: int, short: int) -> int:
    """How many to measure: for a command that takes minutes, or on every commit."""
    return long if LONG else short
