"""What is known of an offence, and what the bot's author is told. Pure, so all wording is tested.

A `Finding` is made where an offence is noticed: by the clock, the wire, the sampler, or when a
process ends. The referee adds what it knows of the match and makes it a `Verdict`
(`protocol/verdicts.py`), which is stored and sent to the offender.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from protocol.messages import Ending, Limits, Mechanism

__all__ = ["FORGIVABLE", "OUTAGE", "UNCOUNTED", "Finding", "advice", "out_of_clock_time"]
__all__ += ["out_of_time", "outage", "were_away"]

FORGIVABLE = frozenset((Ending.DISCONNECT, Ending.TIMEOUT, Ending.ABSENT, Ending.CRASH))
"""Endings that can happen to anybody (J3); cheating, flooding and taking too much space cannot."""

UNCOUNTED = "; the match does not count"
"""The end of the text of a match that is void without an offence (J5, J9)."""
OUTAGE = "an outage: "
"""The start of the text of a match that is void because bots were away (J9)."""

_LEFT = "left in the bank"
_CLOCK_BANK = "bank of clock time empty"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An offence as it was noticed."""

    kind: Ending
    text: str  # what happened, with figures, in one line: `memory 312 MiB > 256 MiB (sampled)`
    mechanism: Mechanism
    got: str | None = None  # what came from the bot, cut to a line, if that is the evidence
    exit_status: int | None = None  # of the bot's process, negative for a signal
    stderr: str | None = None  # the end of the process's standard error
    enforced: str = "time"  # which limits the bot was held to, if the referee does not know
    advice: str = ""  # what to do about it, if the place where it was noticed knows
    event: str = ""  # the id of the event, if it has already ended a match; see `Verdict`


def out_of_time(
    taken_ms: float, limit_ms: float, credit_ms: float, bank_ms: float | None, unit: str = ""
) -> str:
    """Why a decision came too late, in one line.

    Args:
        limit_ms: the most time allowed: `hard_ms`, or the free time and what the bank held.
        bank_ms: what is left in the bank afterwards; None if the bank made no difference.
        unit: what was measured, if it is not wall-clock time, such as `CPU`.
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


def out_of_clock_time(
    clock_ms: float, cpu_ms: float, waited_ms: float, bank_ms: float, limits: Limits
) -> str:
    """Why a launched bot's clock-time bank could not pay for a decision (J7), in one line.

    Args:
        clock_ms: the time of the decision on the clock, without the credit.
        cpu_ms: the CPU time that the bot used meanwhile.
        waited_ms: how long it waited for a core meanwhile.
        bank_ms: what the bank held before.
    """
    return (
        f"out of time: {clock_ms:,.0f} ms on the clock for a decision, of which "
        f"{cpu_ms:,.0f} ms CPU time and {waited_ms:,.0f} ms without a core; "
        f"{_CLOCK_BANK} ({bank_ms:,.0f} of {limits.wall_bank_ms:,} ms were left)"
    )


def outage(names: Sequence[str]) -> str:
    """Why a match is void in which these bots were away, in one line (J9)."""
    return f"{OUTAGE}{were_away(names)}{UNCOUNTED}"


def were_away(names: Sequence[str]) -> str:
    """The words for bots that were away from a match."""
    were = "was away" if len(names) == 1 else "were away at once"
    return f"{' and '.join(names)} {were}"


def advice(finding: Finding, limits: Limits) -> str:
    """What the bot's author can do about an offence, in one line."""
    match finding.kind:
        case _ if finding.advice:
            return finding.advice
        case Ending.ILLEGAL:
            return "answer with an element of `legal`, type and all"
        case Ending.MALFORMED:
            return (
                "send only messages of the protocol, one answer per ask; "
                "print for yourself on stderr"
            )
        case Ending.TIMEOUT if _CLOCK_BANK in finding.text:
            return (
                "do not sleep or wait in a decision: its time on the clock beyond its CPU time "
                f"drains a bank of {limits.wall_bank_ms:,} ms per match"
            )
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
            return (
                "see what the program said where it runs; "
                "play against a house bot with `arena play` to find it"
            )
        case Ending.CRASH:
            return "see the end of stderr; play against a house bot with `arena play` to find it"
        case Ending.ABSENT:
            return "connect early, stay connected, and answer every `match` with `ready` at once"
        case Ending.DISCONNECT:
            return (
                "come back with `resume` when the connection is lost, "
                "and say `goodbye` only between matches"
            )
        case Ending.REMOVED:
            return "ask your instructor why, or for another token"
        case _:
            return ""
