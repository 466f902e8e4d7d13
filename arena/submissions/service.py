"""What the rest of the arena asks of submissions: what is in play, its program, what is undecided.

The socket, competitions and instructors call one `SubmissionService`, in the event loop. It keeps
in memory what is in play and what is undecided, so that nobody waits for the database to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from arena.sandbox.command import Program
from arena.submissions.settings import SubmissionSettings

if TYPE_CHECKING:
    from arena.storage.submissions import InPlay, Submission

__all__ = ["SubmissionService"]


class SubmissionService:
    """The submissions of one arena; use it as an asynchronous context.

    Attributes:
        settings: of the course file.
        on_change: each is called, in the event loop, when what is in play has changed, or when a
            submission has been decided. A callback that fails is logged.
        unsafe: what every student could read, where programs are not isolated; else empty.
    """

    settings: SubmissionSettings
    on_change: list[Callable[[], None]]
    unsafe: str

    def in_play(self, game: str) -> Mapping[str, InPlay]:
        """The version that is in play in a game, by its owner's name; no disabled ones."""
        raise NotImplementedError

    def undecided_before(self, at: float, game: str | None = None) -> tuple[Submission, ...]:
        """What arrived before a time, in Unix seconds, and is not decided yet.

        With a `game`: without those whose manifest is known and names other games only.
        """
        raise NotImplementedError

    def expected_s(self, number: int) -> float | None:
        """Roughly how long until a submission is decided; None if that is not known."""
        raise NotImplementedError

    async def program(self, number: int) -> Program:
        """How an accepted submission is launched; built again if its build is lost.

        Raises `UsageError` if there is no such submission, or `ArenaError` if it cannot be built.
        """
        raise NotImplementedError

    async def get(self, number: int) -> Submission:
        """A submission, with its version; raises `UsageError` if there is none."""
        raise NotImplementedError

    def note_stderr(self, number: int, match: str, text: str) -> None:
        """Keep the end of what a submission wrote on stderr in a match, for its owner."""
        raise NotImplementedError
