"""One attempt at a job, as a worker has it, and who plays it.

`MatchPlayer` is the seam between the bus and the referee: `arena/workers/worker.py` needs no
processes, and `arena/workers/match_player.py` no bus.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from arena.competitions.jobs import unplayed_record
from arena.engine.match import Record
from arena.engine.shuffle import commitment
from arena.engine.verdict import Finding
from arena.referee.live_match import LiveMatch
from arena.sandbox.command import Program
from arena.workers.bus import JobDelivery
from arena.workers.messages import AttemptResult, BusJob, RunningAttempt, SeatProgram
from protocol.messages import Ending, Verdict

__all__ = [
    "DrawnAttempt",
    "FrameSource",
    "MatchPlayer",
    "PlayedAttempt",
    "ProgramSource",
    "WorkerAttempt",
    "draw_attempt",
    "void_attempt",
]


class DrawnAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt whose seed was drawn; `id` is that of its match.

    `forgiven` are by seat the offences that cost its bot no more than the match (J3).
    """

    id: str
    seed: bytes
    job: BusJob
    worker: str
    forgiven: tuple[tuple[Ending, ...], ...] = ()

    @property
    def commitment(self) -> str:
        return commitment(self.seed)


class PlayedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an attempt; the fields are those of `AttemptResult`."""

    record: Record
    verdict: Verdict | None = None
    stderr: tuple[str, ...] = ()
    has_begun: bool = True
    voided_offence: str = ""


class MatchPlayer(Protocol):
    """Plays attempts; `cancel` and `offend` of one that it does not play mean nothing."""

    async def play(
        self, attempt: DrawnAttempt, programs: Sequence[Program], on_progress: Callable[[int], None]
    ) -> PlayedAttempt:
        """Play an attempt with these programs by seat.

        `on_progress` is called with the decisions so far, at first when the match is opened.
        Cancelling this stops the match without a result. Raises `ArenaError` if the attempt cannot
        be played here.
        """

    def cancel(self, attempt: str, why: str) -> None:
        """End an attempt as void."""

    def offend(self, attempt: str, seat: int, finding: Finding) -> None:
        """End an attempt by the offence of a seat."""

    def live(self, attempt: str) -> LiveMatch | None:
        """The match of an attempt that is being played."""


class FrameSource(Protocol):
    """What those who watch a match have not been sent yet (`arena/workers/live_frames.py`)."""

    @property
    def is_over(self) -> bool: ...

    def again(self) -> None:
        """Have the next frame begin with all of the present round."""

    def due(self, now: float, matches: int = 1) -> bytes | None:
        """A frame, if one is due; so many `matches` share the time for it."""


class ProgramSource(Protocol):
    """Where a worker has the programs of its seats from."""

    async def program(
        self, wanted: SeatProgram, game: str, name: str, fetch: Callable[[int], Awaitable[bytes]]
    ) -> Program:
        """The program of a seat; `fetch` asks the arena for the bytes from an offset.

        `fetch` raises `BusDown` if the arena does not answer now, and may be called again then.
        Raises `ArenaError` with one line why there is none.
        """


def draw_attempt() -> tuple[str, bytes]:
    """A fresh id for an attempt, and the seed of its match (J6)."""
    return secrets.token_hex(8), secrets.token_bytes(32)


def void_attempt(attempt: DrawnAttempt, why: str) -> PlayedAttempt:
    """An attempt that is void before a match was opened."""
    job = attempt.job
    record = msgspec.structs.replace(
        unplayed_record(job.game, job.settings, len(job.players), why),
        versions=job.versions or msgspec.UNSET,
        worker=attempt.worker,
    )
    return PlayedAttempt(record=record, stderr=("",) * len(job.players), has_begun=False)


class WorkerAttempt:
    """An attempt of this worker, from its draw until the arena has taken its result.

    Attributes:
        delivery: the latest of its job, as one may be delivered twice.
        void: why it was cancelled; empty if it was not.
        work: prepares and plays it.
        offence: the seat that was removed, and the finding, if one was.
        result: what is handed in, once it is over.
        news: set when it was taken, or is to be handed in again.
        watching, frames: what sends its frames while somebody watches it.
    """

    def __init__(self, drawn: DrawnAttempt, delivery: JobDelivery) -> None:
        self.drawn = drawn
        self.delivery = delivery
        self.void = ""
        self.offence: tuple[int, Finding] | None = None
        self.has_begun = False
        self.decisions = 0
        self.result: bytes | None = None
        self.is_taken = False
        self.is_wanted_again = False
        self.news = asyncio.Event()
        self.work: asyncio.Task[PlayedAttempt] | None = None
        self.watching: asyncio.Task[None] | None = None
        self.frames: FrameSource | None = None

    @property
    def id(self) -> str:
        return self.drawn.id

    @property
    def job(self) -> BusJob:
        return self.drawn.job

    @property
    def is_over(self) -> bool:
        return self.result is not None

    def report(self, scores: tuple[int, ...]) -> RunningAttempt:
        return RunningAttempt(
            arena=self.job.arena,
            job=self.job.id,
            attempt=self.id,
            decisions=self.decisions,
            scores=scores,
            has_begun=self.has_begun,
            is_over=self.is_over,
        )

    def result_of(self, played: PlayedAttempt) -> AttemptResult:
        return AttemptResult(
            job=self.job,
            attempt=self.id,
            worker=self.drawn.worker,
            record=played.record,
            verdict=played.verdict,
            stderr=played.stderr,
            has_begun=played.has_begun,
            voided_offence=played.voided_offence,
        )
