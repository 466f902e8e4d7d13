"""The bus between arenas and workers, as both use it.

Jobs are queued by class of worker; each is delivered until it is acknowledged, perhaps twice, late,
or out of order. Results wait until an arena has acknowledged them. All else is as lost as a wire:
reports, commands and frames of watched matches may not arrive, and requests may fail. A bus may
lose everything that it holds; `BusJobs` and workers repeat what is missing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from arena.hosts.bus import ARENA_USER, BusAddress, BusDown, secret_files

__all__ = [
    "ARENA_USER",
    "Bus",
    "BusAddress",
    "BusDown",
    "JobDelivery",
    "OnMessage",
    "OnRequest",
    "ResultDelivery",
    "secret_files",
]

OnMessage: TypeAlias = Callable[[str, bytes], None]
"""(name of the worker, data): called in the event loop."""
OnRequest: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""(name of the worker, data) → the reply."""


class JobDelivery(Protocol):
    """A job that was delivered to this worker; `data` is a `BusJob`.

    The methods do nothing if the bus cannot be reached: the job is delivered again then.
    """

    @property
    def data(self) -> bytes: ...

    @property
    def ack_wait_s(self) -> float:
        """After so long without `in_progress` it is delivered again."""

    async def in_progress(self) -> None: ...

    async def ack(self) -> None:
        """It is done, or not to be played: it is never delivered again."""

    async def give_back(self, delay_s: float) -> None:
        """Have it delivered again, to any worker of the class, not before `delay_s`."""


class ResultDelivery(Protocol):
    """A result that was handed in."""

    worker: str
    attempt: str

    async def read(self) -> bytes:
        """The `AttemptResult`; raises `BusDown`, also if the bus has lost it."""

    async def ack(self) -> None:
        """It is written down, or will never count: the bus may forget it."""

    async def give_back(self, delay_s: float) -> None:
        """Have it delivered again, not before `delay_s`."""


class Bus(Protocol):
    """What is done with a bus. Methods raise `BusDown`; nothing is kept for later then."""

    @property
    def is_up(self) -> bool: ...

    async def close(self) -> None: ...

    # --- for arenas ---

    async def open_arena(
        self,
        arena: str,
        on_report: OnMessage,
        on_announcement: OnRequest,
        on_program_request: OnRequest,
        on_frames: Callable[[str, str, bytes], None],
        on_result: Callable[[ResultDelivery], Awaitable[None]],
    ) -> None:
        """Make the streams that are missing, and call these from now on, also after a loss.

        `on_frames` gets (worker, attempt, data). Few results are given to `on_result` at once.
        """

    async def close_arena(self, *, forever: bool) -> None:
        """Call nothing any more; `forever` removes what only this arena needed."""

    async def open_class(self, worker_class: str) -> None:
        """Have a queue for a class of workers; once more does nothing."""

    async def open_worker(self, worker: str) -> None:
        """Have room for the results of a worker; once more does nothing."""

    async def put(self, worker_class: str, job: str, data: bytes) -> bool:
        """Queue a job of this arena; False if it is queued already, or delivered and not done."""

    async def withdraw(self, worker_class: str, job: str) -> None:
        """Take a job of this arena back; whoever has it may still announce an attempt."""

    async def command(self, worker: str, data: bytes) -> None: ...

    # --- for an operator ---

    async def on_reports(self, call: OnMessage) -> None:
        """Call this for each report of each worker; an arena does not need it."""

    # --- for workers ---

    async def report(self, worker: str, data: bytes) -> None: ...

    async def on_command(self, worker: str, call: Callable[[bytes], None]) -> None: ...

    async def fetch(self, worker_class: str, timeout_s: float) -> JobDelivery | None:
        """The next job of a class; None if none has come. `BusDown` if there is no such queue."""

    async def announce(self, arena: str, worker: str, data: bytes) -> bytes: ...

    async def program_part(self, arena: str, worker: str, data: bytes) -> bytes: ...

    async def frames(self, arena: str, worker: str, attempt: str, data: bytes) -> None: ...

    async def hand_in(self, arena: str, worker: str, attempt: str, data: bytes) -> None:
        """Hand a result in, of any size; when this returns the bus has it."""
