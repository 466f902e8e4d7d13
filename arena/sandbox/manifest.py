"""What a submitted program is: its language, how it is built and run, and what it plays."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["ProgramManifest"]


class ProgramManifest(Struct, frozen=True):
    """What a submitted program is.

    Attributes:
        language: as `arena new` names it; empty if it is none of these.
        command: how it is run, in its folder.
        stdio: whether it speaks the protocol in lines over its standard streams.
        build: the command that builds it, in its folder; empty if nothing is to be built.
        games: the games that it plays; empty if it says so itself when it connects.
    """

    language: str
    command: tuple[str, ...]
    stdio: bool
    build: tuple[str, ...] = ()
    games: tuple[str, ...] = ()
