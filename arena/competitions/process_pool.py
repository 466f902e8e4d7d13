"""The processes of submitted programs: started when a match needs them, kept warm between matches.

A submission may play several matches at once, each with a process of its own. All of them have the
same public name; `process_name` tells them apart. House bots and `[[bot]]`s are not in here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from arena.competitions.bot_supervisor import BotSupervisor
from arena.engine.verdict import Finding
from arena.referee.bot_session import BotSession
from arena.referee.compute_gate import ComputeGate
from arena.sandbox.launcher import Program
from arena.server.gateway import Gateway

__all__ = ["OnStderr", "ProcessPool", "ReservedSeat", "StartFailed"]

OnStderr: TypeAlias = Callable[[str, int, str, str], None]
"""(public name, submission, match, text): what a process wrote to stderr in that match."""


class StartFailed(Exception):
    """A submission cannot be seated: `finding` says why, with the end of its stderr."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.text)
        self.finding = finding


class ReservedSeat:
    """A process, or the room for one, that is kept for one seat of one match."""

    name: str  # the public one
    submission: int

    async def session(self) -> BotSession:
        """The session of its process, which has said `hello` and is free for this match.

        Waits for the build, a core and the start. Cancelling it is fine; `release` is then due.

        Raises:
            StartFailed: it crashed three times before its first message, or took too long or too
                much to start.
            UsageError, ArenaError: the arena has no such program, or cannot start it.
        """
        raise NotImplementedError

    def release(self, match: str = "") -> None:
        """Give the process back, which stays warm unless it has offended; once more does nothing.

        With the id of the match that it was for, `on_stderr` gets what it wrote meanwhile. To be
        called whatever `session` did.
        """
        raise NotImplementedError


class ProcessPool:
    """The processes of all submissions of an arena; at most `most` run at once.

    Args:
        gate: shares the cores between them.
        program: returns the program of a submission, which may have to be built again.
        most: how many processes fit into the memory of this machine.
        on_stderr: called when a match of a process is over.

    Attributes:
        on_room: called when a later `reserve` may succeed.
    """

    def __init__(
        self,
        supervisor: BotSupervisor,
        gateway: Gateway,
        gate: ComputeGate,
        program: Callable[[int], Awaitable[Program]],
        most: int,
        on_stderr: OnStderr = lambda name, submission, match, text: None,
    ) -> None:
        self.on_room: Callable[[], None] = lambda: None

    def reserve(self, seats: Sequence[tuple[str, int]]) -> tuple[ReservedSeat, ...] | None:
        """Seats for these (public name, submission), or None if there is no room just now.

        All or none. Warm processes are taken first; idle ones of other submissions make room.
        Raises `UsageError` if so many never fit.
        """
        raise NotImplementedError

    def retire(self, name: str, submission: int) -> None:
        """End its idle processes, and those that play after their match; another is in play."""
        raise NotImplementedError
