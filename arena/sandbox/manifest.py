"""What a submission is."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["ProgramManifest"]


class ProgramManifest(Struct, frozen=True):
    """The contract."""

    language: str
    command: tuple[str, ...]
    stdio: bool
    build: tuple[str, ...] = ()
    games: tuple[str, ...] = ()
