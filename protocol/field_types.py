"""Types of the fields that bots and instructors fill, with limits that the codec enforces."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

__all__ = ["Id", "Name", "Nonce", "Note", "Plain", "Value"]

Name = Annotated[str, Meta(min_length=1, max_length=64)]
Id = Annotated[str, Meta(min_length=1, max_length=64)]
Nonce = Annotated[str, Meta(min_length=1, max_length=64)]
Note = Annotated[str, Meta(max_length=1024)]

Plain: TypeAlias = bool | int | float | str | None
_Value1: TypeAlias = Plain | list[Plain] | dict[str, Plain]
_Value2: TypeAlias = Plain | list[_Value1] | dict[str, _Value1]
_Value3: TypeAlias = Plain | list[_Value2] | dict[str, _Value2]
Value: TypeAlias = Plain | list[_Value3] | dict[str, _Value3]
"""What an answer may be made of: what JSON has, one level deeper than any legal answer.

Not `Any`: msgpack's maps may have arrays as keys, and a frame of such keys with colliding hashes
would block the arena for a minute.
"""
