"""What arenas and workers tell each other on the bus: frozen structs, in msgpack.

Both ends must be of one version (`WorkerReport`). A job carries no seed: who takes it draws the
seed, and announces attempt and commitment before any seat hears of the match (J6).
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import msgspec

from arena.engine.match import Record
from arena.engine.verdict import Finding
from arena.hosts.messages import Bundle, HouseBot, SeatProgram, Source
from protocol.messages import Ending, Limits, Verdict

__all__ = [
    "BUS_VERSION",
    "Announcement",
    "AttemptResult",
    "Bundle",
    "BusJob",
    "Cancel",
    "Command",
    "Denied",
    "Dismissal",
    "Drain",
    "Granted",
    "HandInAgain",
    "HouseBot",
    "Offend",
    "PartOfProgram",
    "ProgramRequest",
    "Reply",
    "RunningAttempt",
    "SeatProgram",
    "Source",
    "Taken",
    "WatchAttempt",
    "WorkerKind",
    "WorkerReport",
    "decode",
    "encode",
]

BUS_VERSION = 1
"""Of these messages; raised with every change."""

T = TypeVar("T")


class BusJob(msgspec.Struct, frozen=True, kw_only=True):
    """A match that a worker is to play; by seat where that is said."""

    arena: str
    id: str
    game: str
    settings: dict[str, Any]
    limits: Limits
    players: tuple[str, ...]  # public names, by seat
    programs: tuple[SeatProgram, ...]  # by seat
    package: str | None = None
    versions: tuple[str, ...] = ()  # by seat, as in `Record.versions`
    version: int = BUS_VERSION


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """A worker is about to play a job, and asks whether it may. It is asked again after a loss."""

    job: str
    attempt: str  # a fresh id, which is that of the match
    commitment: str  # to the seed that was drawn for it
    worker: str


class Granted(msgspec.Struct, frozen=True, tag="granted"):
    """The attempt is written down: it may begin.

    `forgiven` are by seat the offences that cost its bot no more than the match (J3).
    """

    forgiven: tuple[tuple[Ending, ...], ...] = ()


class Denied(msgspec.Struct, frozen=True, tag="denied"):
    """The attempt is not to begin; if `is_final`, the job is not to be delivered again either."""

    why: str
    is_final: bool


Reply: TypeAlias = Granted | Denied


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A worker asks for a part of a program of an attempt that was granted to it."""

    worker: str
    attempt: str
    key: str
    offset: int  # bytes from the start of the tar


class PartOfProgram(msgspec.Struct, frozen=True):
    """Bytes from the offset, at most 512 KiB; empty with a reason `why` if there are none."""

    data: bytes = b""
    why: str = ""


class WorkerKind(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker can play: tried, not guessed. Workers of one kind and speed are one class."""

    arena_version: str
    system: str  # `linux`
    machine: str  # `x86_64`
    isolation: str  # how bots are isolated, in words; empty if they are not
    languages: tuple[str, ...]  # of programs that are handed in, by their names; sorted
    commands: tuple[str, ...]  # programs on PATH that were started with success; sorted
    games: tuple[str, ...]  # names; with a package `leduc 1.0`; sorted


class RunningAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that a worker has begun or was granted; `decisions` and `scores` so far."""

    arena: str
    job: str
    attempt: str
    decisions: int = 0
    scores: tuple[int, ...] = ()  # by seat, for the lobby; none before it has begun
    has_begun: bool = False
    is_over: bool = False  # it is handed in, and not yet `Taken`


class WorkerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself twice a second, to all arenas."""

    worker: str
    session: str  # a new one at each start
    kind: WorkerKind
    speed: float  # calibrations a second: the median of five, while idle
    cores: int
    slots: int  # how many attempts it takes at once
    memory_mib: int
    attempts: tuple[RunningAttempt, ...] = ()
    is_draining: bool = False
    lag_ms: float = 0.0  # the worst of its loop in the last seconds
    played: int = 0
    last_error: str = ""
    version: int = BUS_VERSION


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """End an attempt as void, or do not begin it."""

    attempt: str
    why: str


class Offend(msgspec.Struct, frozen=True, tag="offend"):
    """End an attempt by the offence of a seat that was found here: the instructor removed it."""

    attempt: str
    seat: int
    finding: Finding


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """The result of an attempt is written down, or will never be: forget it."""

    attempt: str


class HandInAgain(msgspec.Struct, frozen=True, tag="again"):
    """The result of an attempt has not come: the bus may have lost it."""

    attempt: str


class WatchAttempt(msgspec.Struct, frozen=True, tag="watch"):
    """Somebody watches an attempt, or nobody any more."""

    attempt: str
    is_watched: bool


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Take no jobs any more, or again; what has begun is played to its end."""

    is_draining: bool = True


class Dismissal(msgspec.Struct, frozen=True, tag="refusal"):
    """The worker is of no use to this arena, with one line why."""

    why: str


Command: TypeAlias = Cancel | Offend | Taken | HandInAgain | WatchAttempt | Drain | Dismissal


class AttemptResult(msgspec.Struct, frozen=True, kw_only=True):
    """All that came of an attempt. `record` names the worker and is what is written down.

    The arena counts it only if `job` is the one that it has put, and record and commitment fit what
    was announced.
    """

    job: BusJob
    attempt: str
    worker: str
    record: Record
    verdict: Verdict | None
    stderr: tuple[str, ...]  # by seat, the end of what its process wrote; empty if nothing
    has_begun: bool  # a match was opened; else the record is that of a void one
    voided_offence: str = ""  # an offence that the worker does not charge, and why not


def encode(message: object) -> bytes:
    """One message in msgpack."""
    return msgspec.msgpack.encode(message)


def decode(data: bytes, kind: type[T] | Any) -> T:
    """Read a message; raises `msgspec.DecodeError` if it is not of that kind."""
    return msgspec.msgpack.decode(data, type=kind)
