"""What a program that was handed in is: its language, and how it is built and started."""

from __future__ import annotations

import msgspec

__all__ = ["ProgramManifest"]


class ProgramManifest(msgspec.Struct, frozen=True):
    """How a program is built and started, in its folder.

    Attributes:
        language: as `arena new` names it, or `other`.
        command: the words that start it. A FILE.py with a strategy is started by our client.
        stdio: whether it speaks in lines over its standard streams.
        build: the words that build it; none if there is nothing to build.
        games: those that it says it plays; none if it says so in `hello`.
    """

    language: str
    command: tuple[str, ...]
    stdio: bool
    build: tuple[str, ...] = ()
    games: tuple[str, ...] = ()
