"""A value that is there, for tests that could not go on without it."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["not_none"]

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """The value; the test fails if there is none."""
    assert value is not None
    return value
