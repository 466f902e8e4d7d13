"""What was found out about an offender, and the words that its author is told: pure, so that every wording has its test.

A `Finding` is made where an offence is noticed (the clock, the wire, the sampler, a process that ended); the conduct adds what it knows
of the match and makes it a `Verdict` (protocol/messages.py), which is kept, sent to the offender, and explains itself.
"""

from __future__ import annotations

import msgspec

from protocol.messages import Ending, Limits, Mechanism

__all__ = ["FORGIVABLE", "Finding", "advice", "out_of_time"]

FORGIVABLE = frozenset((Ending.DISCONNECT, Ending.TIMEOUT, Ending.ABSENT, Ending.CRASH))
"""What can happen to anybody; whoever cheats, floods or takes too much space is never forgiven."""


_LEFT = "left in the bank"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An offence as it was noticed.

    Attributes:
        kind: the word of J2.
        text: what happened, with figures, in one line: `memory 312 MiB > 256 MiB (sampled)`.
        mechanism: what found out; see `Mechanism`.
        got: what came from the bot, cut to a line, if that is the evidence.
        exit_status: of its process, negative for a signal.
        stderr: the end of what its process wrote there.
        enforced: which limits the bot was held to, where the conduct does not know that.
        event: the id of the event, if it has ended a match already; see `Verdict`.
    """

    kind: Ending
    text: str
    mechanism: Mechanism
    got: str | None = None
    exit_status: int | None = None
    stderr: str | None = None
    enforced: str = "time"
    event: str = ""


def out_of_time(
    taken_ms: float, limit_ms: float, credit_ms: float, bank_ms: float | None, unit: str = ""
) -> str:
    """Why a decision came too late, in one line.

    Args:
        taken_ms: what was charged for it.
        limit_ms: what it may take at most with a full bank: `hard_ms`, or what the bank had left.
        credit_ms: what the link and the arena's own delays were good for.
        bank_ms: what is left in the bank after it; None if that is not what it came to.
        unit: what was measured if not the time on the wall, such as `CPU`.
    """
    of = f" of {unit}" if unit else ""
    text = (
        f"out of time: {taken_ms:,.0f} ms{of} for a decision "
        f"(limit {limit_ms:,.0f} ms, credit {credit_ms:,.0f} ms)"
    )
    if bank_ms is None:
        return text
    bank = "bank empty" if bank_ms <= 0 else f"{bank_ms:,.0f} ms {_LEFT}"
    return f"{text}, {bank}"


def advice(finding: Finding, limits: Limits) -> str:
    """What the bot's author can do about it, in one line."""
    match finding.kind:
        case Ending.ILLEGAL:
            return "answer with an element of `legal`, type and all: 4 is not '4' and true is not 1"
        case Ending.MALFORMED:
            return "send only messages of the protocol, one answer per ask; print for yourself on stderr"
        case Ending.TIMEOUT if finding.mechanism is Mechanism.WALL_CAP:
            return (
                f"answer within {limits.wall_ms:,} ms whatever happens; "
                "did the bot wait for input, or forget to flush its output?"
            )
        case Ending.TIMEOUT | Ending.CPU if _LEFT in finding.text:
            return (
                f"no decision may take longer than {limits.hard_ms:,} ms, "
                "however much is left in the bank"
            )
        case Ending.TIMEOUT:
            return (
                f"a decision is free up to {limits.decision_ms:,} ms, then it drains the bank; "
                "watch `bank_ms` in every ask and answer something in time"
            )
        case Ending.OVERSIZE:
            return f"keep frames under {limits.frame_bytes:,} bytes"
        case Ending.OVERFLOW:
            return "read what the arena sends while you think, or play fewer tables"
        case Ending.MEMORY:
            return f"keep all processes of the bot together under {limits.memory_mib:,} MiB"
        case Ending.PROCESSES:
            return f"start at most {limits.processes:,} processes, and wait for them to end"
        case Ending.CPU:
            return "do not compute while the others decide, and watch `bank_ms` in every ask"
        case Ending.CRASH if finding.stderr is None:
            return "see what the program said where it runs; play against a house bot with `arena play` to find it"
        case Ending.CRASH:
            return "see the end of stderr; play against a house bot with `arena play` to find it"
        case Ending.ABSENT:
            return "connect early, stay connected, and answer every `match` with `ready` at once"
        case Ending.DISCONNECT:
            return "come back with `resume` when the connection is lost, and say `goodbye` only between matches"
        case Ending.REMOVED:
            return "ask your instructor why, or for another token"
        case _:
            return ""
