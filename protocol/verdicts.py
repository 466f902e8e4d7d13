"""Limits and offences: what a bot is held to, why a match stopped, the evidence of an offence."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

__all__ = ["LAUNCHED_LIMITS", "Ending", "Limits", "Mechanism", "Termination", "Verdict"]


class Ending(StrEnum):
    """Why a match stopped: `completed`, `void`, or the one word of an offence (J2).

    Attributes:
        completed: the match ran its course.
        void: nobody's fault; it does not count.
        illegal: an answer that was not legal.
        malformed: a message that cannot be read or was out of turn.
        timeout: did not answer in time.
        oversize: a frame that was too large.
        overflow: read too slowly.
        memory: its processes hold more than `memory_mib`; like the next two, only of a bot that the
            arena has started.
        processes: it has more than `processes`.
        cpu: a decision took too much CPU time; too long by the clock on the wall is `timeout`.
        crash: its process ended, with any status, or it closed with 1011. A 1011 by a failed
            keepalive, or soon after the arena stood still, is none, unless it says `failed:`.
        absent: did not come, or was not `ready` in time.
        disconnect: left with `goodbye` during a match, or lost its connection for longer than
            `grace_ms`, or was silent for longer than `silence_ms`, in all.
        removed: the instructor took it out, or revoked its token; it counts like an offence.
    """

    COMPLETED = "completed"
    VOID = "void"
    ILLEGAL = "illegal"
    MALFORMED = "malformed"
    TIMEOUT = "timeout"
    OVERSIZE = "oversize"
    OVERFLOW = "overflow"
    MEMORY = "memory"
    PROCESSES = "processes"
    CPU = "cpu"
    CRASH = "crash"
    ABSENT = "absent"
    DISCONNECT = "disconnect"
    REMOVED = "removed"


class Termination(Struct, frozen=True, gc=False):
    """Why a match stopped.

    Attributes:
        kind: the word for it, see "What goes wrong".
        seat: the seat to blame, or `null`.
        text: a sentence for people; empty if another seat is to blame.
    """

    kind: Ending
    seat: int | None = None
    text: str = ""

    @property
    def is_offence(self) -> bool:
        """Whether a seat is to blame (J3)."""
        return self.kind not in (Ending.COMPLETED, Ending.VOID)


_DAY_MS = 86_400_000  # nobody needs a longer limit, and it fits every encoding


class Limits(Struct, frozen=True, kw_only=True):
    """What a bot may use. A limit of `launched` bots is for those that the arena has started.

    Attributes:
        decision_ms: a decision that takes no longer costs nothing.
        bank_ms: what decisions may take beyond that, in all, per match and seat.
        hard_ms: no single decision may take longer.
        wall_ms: no single decision or start of a launched bot may take longer by the clock on the
            wall, without the time for which it had no core; its other times are CPU time.
        wall_bank_ms: what decisions of a launched bot may take by the clock on the wall beyond
            their CPU time and the time for which it had no core, in all, per match and seat; those
            of up to 100 ms cost nothing.
        start_ms: from `match` to `ready`, without the credit; of a launched bot in CPU time, and so
            from its launch to `hello`, too.
        grace_ms: how long a connection may be lost, per match and seat in all; the clock stands
            meanwhile.
        silence_ms: how long a connection may be silent that nobody has closed, as the bot's
            machine sleeps or has no network, per match and seat in all; the clock stands meanwhile.
        hello_ms: from the connection to `hello`.
        frame_bytes: the largest frame a bot may send.
        buffer_bytes: how much may wait for a bot that reads slowly before that is an offence.
        unanswered: how many messages without effect, such as repeated answers, a bot may send per
            second; with more it is not read until the next second.
        tables: the most matches at once over one connection; a bot with more in `hello` gets that
            many.
        memory_mib: what all processes of a launched bot may hold together.
        processes: how many processes a launched bot may have.
        strangers: how many connections from one address may be open without a `hello`.
        per_token: how many connections may be open with one `token`.
        per_address: how many connections without a `token` may be open from one address.
    """

    # This is the one place for all defaults.
    decision_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 1_000
    bank_ms: Annotated[int, Meta(ge=0, le=_DAY_MS)] = 20_000
    hard_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 15_000
    wall_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 30_000
    # With less, the kernel's coarse measuring steps could eliminate an honest bot.
    wall_bank_ms: Annotated[int, Meta(ge=1_000, le=_DAY_MS)] = 120_000
    start_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 10_000
    grace_ms: Annotated[int, Meta(ge=0, le=_DAY_MS)] = 30_000
    silence_ms: Annotated[int, Meta(ge=0, le=_DAY_MS)] = 120_000
    hello_ms: Annotated[int, Meta(ge=1, le=_DAY_MS)] = 10_000
    frame_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 1 << 20
    buffer_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 8 << 20
    unanswered: Annotated[int, Meta(ge=1, le=1 << 30)] = 1_000
    tables: Annotated[int, Meta(ge=1, le=4096)] = 512
    memory_mib: Annotated[int, Meta(ge=16, le=1 << 30)] = 512
    processes: Annotated[int, Meta(ge=1, le=1 << 30)] = 32
    strangers: Annotated[int, Meta(ge=1, le=1 << 30)] = 512
    per_token: Annotated[int, Meta(ge=1, le=1 << 30)] = 8
    per_address: Annotated[int, Meta(ge=1, le=1 << 30)] = 1_024


LAUNCHED_LIMITS = ("wall_ms", "wall_bank_ms", "memory_mib", "processes")
"""The limits that are only for bots that the arena has started."""


class Mechanism(StrEnum):
    """What detected an offence.

    Attributes:
        rules: the rules of the game: the answer was not legal.
        wire: the rules of the wire: a message was unreadable, out of turn, too large or one too
            many.
        wall clock: the arena's clock.
        wall cap: the arena's clock, for a launched bot that neither computes nor answers: at
            `wall_ms`, or as `wall_bank_ms` is used up.
        CPU clock: the CPU time of a launched bot's processes.
        sampled: a look at a launched bot's processes, ten times a second.
        cgroup: the kernel, which measures a launched bot's control group.
        exit: the end of a launched bot's process.
        session: the session: the bot did not come, left, or stayed away too long.
        instructor: the instructor.
    """

    RULES = "rules"
    WIRE = "wire"
    WALL_CLOCK = "wall clock"
    WALL_CAP = "wall cap"
    CPU_CLOCK = "CPU clock"
    SAMPLED = "sampled"
    CGROUP = "cgroup"
    EXIT = "exit"
    SESSION = "session"
    INSTRUCTOR = "instructor"


class Verdict(Struct, frozen=True, kw_only=True):
    """One offence and its evidence (J4). Fields that do not apply are `null`.

    Attributes:
        kind: the word for it, see "What goes wrong".
        match: the id of the match, not of the seat.
        game: the name of the game.
        bot: the bot's name.
        seat: its seat, from 0.
        text: what it did, with figures, in one line.
        advice: what its author can do about it, in one line.
        mechanism: what detected it.
        asked: the question, as a text of JSON; `null` if none waited.
        legal: what would have been legal, in words.
        got: what came instead, cut to a line; `null` if nothing did.
        taken_ms: the time that the decision is charged with, before the credit is taken off.
        waited_ms: how long the question had been waiting by the clock on the wall.
        credit_ms: the credit: what was taken off for the link and for the arena's own delays.
        min_rtt_ms: the least round trip that the kernel has measured on the connection, for
            comparison only.
        bank_ms: what was left in the seat's bank.
        exit_status: of a launched bot's process, negative for a signal; `null` if it still runs.
        stderr: the end of what a launched bot has written there.
        enforced: which limits this bot was held to, and by what, see "The record of a match".
        limits: all limits in force.
        event: the id of the event, the same in all verdicts on one lost connection, crash or
            freeze: the id of the seat whose match it ended first.
        forgiven: whether the run forgave it, so that it cost the bot this match only (J3).
    """

    kind: Ending
    match: str
    game: str
    bot: str
    seat: int
    text: str
    advice: str = ""
    mechanism: Mechanism = Mechanism.RULES
    asked: str | None = None
    legal: str | None = None
    got: str | None = None
    taken_ms: float | None = None
    waited_ms: float | None = None
    credit_ms: float | None = None
    min_rtt_ms: float | None = None
    bank_ms: int
    exit_status: int | None = None
    stderr: str | None = None
    enforced: str = "time"
    limits: Limits
    event: str = ""
    forgiven: bool = False

    @property
    def headline(self) -> str:
        """What happened, in one line for people."""
        if self.forgiven:
            return f"lost this match and plays on: {self.text}"
        if self.kind is Ending.CRASH:
            return self.text
        return f"eliminated: {self.text}"
