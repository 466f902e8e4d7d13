"""The rows of submissions as their readers get them; times in Unix seconds."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from arena.sandbox.manifest import ProgramManifest

__all__ = ["InPlay", "MatchStderr", "Submission", "SubmissionState"]


class SubmissionState(StrEnum):
    """The states of a submission."""

    WAITING = "waiting"
    BUILDING = "building"
    CHECKING = "checking"
    ACCEPTED = "accepted"
    REFUSED = "refused"

    @property
    def is_decided(self) -> bool:
        return self in (SubmissionState.ACCEPTED, SubmissionState.REFUSED)


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission.

    Attributes:
        number: in this arena, in the order of arrival.
        owner: a name on the roster; `ann/left` of somebody who was taken off.
        version: its number among the owner's, from the day it was accepted.
        name: of the file that was handed in.
        program: its SHA-256.
        size: of the program's tar.
        games: what it plays, once it was accepted.
        manifest: None until it was accepted.
        text: why it was refused, or what was found.
        disabled_at: when an instructor took it out of play; else None.
    """

    number: int
    owner: str
    version: int | None
    name: str
    message: str
    arrived_at: float
    program: str
    size: int
    state: SubmissionState
    games: tuple[str, ...]
    manifest: ProgramManifest | None
    text: str
    decided_at: float | None
    disabled_at: float | None


class InPlay(msgspec.Struct, frozen=True):
    """A version that is in play in a game, since when, and who has put it there."""

    owner: str
    game: str
    submission: int  # its number
    version: int
    at: float
    who: str


class MatchStderr(msgspec.Struct, frozen=True):
    """The end of what a submission wrote on stderr in a match."""

    match: str
    at: float
    submission: int  # its number
    version: int | None
    text: str
