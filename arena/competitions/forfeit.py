"""The evidence of offences outside of play: of bots that did not come, start, or stay (J2, J4)."""

from __future__ import annotations

from arena.engine.verdict import Finding, advice
from protocol.messages import Limits, Verdict

__all__ = ["verdict_outside_play"]


def verdict_outside_play(
    finding: Finding,
    *,
    match: str,
    game: str,
    bot: str,
    seat: int,
    limits: Limits,
    event: str,
    forgiven: bool,
) -> Verdict:
    """The verdict on a bot whose match ends before it was asked anything."""
    return Verdict(
        kind=finding.kind,
        match=match,
        game=game,
        bot=bot,
        seat=seat,
        text=finding.text,
        advice=advice(finding, limits),
        mechanism=finding.mechanism,
        got=finding.got,
        exit_status=finding.exit_status,
        stderr=finding.stderr,
        enforced=finding.enforced,
        bank_ms=limits.bank_ms,
        limits=limits,
        event=event,
        forgiven=forgiven,
    )
