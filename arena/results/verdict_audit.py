"""Checks the verdicts of a competition against its matches and their records. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from arena.formats.spec import Plan
from arena.records.document import stored_text
from arena.records.verify import OpenQuestion
from arena.storage.models import MatchRow
from protocol.errors import one_line
from protocol.messages import Ending, Verdict
from protocol.vocabulary import shorten

__all__ = ["Findings", "all_out", "eventful", "evident", "misquoted", "ruled", "ruling"]

# The id of a match, None for the competition, and what is wrong with it.
Findings: TypeAlias = Iterator[tuple[str | None, str]]


def ruled(matches: Sequence[MatchRow], verdicts: Sequence[Verdict]) -> Findings:
    """Each bot that is out by a match has a verdict of that match (J4)."""
    kinds = {(verdict.match, verdict.bot): verdict.kind for verdict in verdicts}
    for match in matches:
        ended, offender = match.result.termination.kind, _offender(match)
        for bot in all_out(match):
            kind = kinds.get((match.id, bot))
            if kind is None or (bot == offender and kind is not ended):
                yield match.id, f"{bot} is out by {ended.value}, no verdict says so"


def ruling(matches: Sequence[MatchRow], verdicts: Sequence[Verdict]) -> Findings:
    """Each verdict is on a bot that is out by its match, forfeits included, and is the only one."""
    by_id = {match.id: match for match in matches}
    for verdict in verdicts:
        bot = one_line(verdict.bot)
        match = by_id.get(verdict.match)
        if match is None:
            name = one_line(verdict.match)
            yield None, f"a verdict on {bot} is about match {name}, which is not there"
            continue
        ended, is_offender = match.result.termination, verdict.bot == _offender(match)
        is_other = is_offender and verdict.kind is not ended.kind
        if is_other or verdict.bot not in all_out(match):
            text = f"a verdict says {bot} is out by {verdict.kind.value}, the match does not"
            yield match.id, text
            continue
        seats = [seat for seat in match.result.out if seat < len(match.players)]
        fits = {
            "seat": (verdict.seat, verdict.bot) in [(seat, match.players[seat]) for seat in seats],
            # Why the others did not come is in their verdicts alone.
            "text": not is_offender or stored_text(verdict.text) == stored_text(ended.text),
            "game": verdict.game == match.game,
        }
        odd = [what for what, is_so in fits.items() if not is_so]
        if odd:
            yield match.id, f"its verdict has another {' and another '.join(odd)}"
    counted = Counter((verdict.match, verdict.bot) for verdict in verdicts)
    for (name, bot), times in counted.items():
        if times > 1 and name in by_id:
            yield name, f"it has {times} verdicts on {one_line(bot)}"


def evident(
    plan: Plan, verdicts: Sequence[Verdict], asked: Mapping[str, OpenQuestion | None]
) -> Findings:
    """The evidence is right where it can be known: limits, question, legal answers, the answer."""
    for verdict in verdicts:
        odd = [] if verdict.limits == plan.limits else ["limits"]
        if verdict.match in asked:
            odd += misquoted(verdict, asked[verdict.match])
        if odd:
            yield verdict.match, f"its verdict has wrong {' and wrong '.join(odd)}"


def misquoted(verdict: Verdict, asked: OpenQuestion | None) -> Iterator[str]:
    """The fields of a verdict that do not fit the question that waited when its match ended."""
    if asked is not None and asked.seat != verdict.seat:
        asked = None  # another seat was asked
    if verdict.asked != (None if asked is None else asked.question):
        yield "asked"
    if verdict.legal != (None if asked is None else asked.legal):
        yield "legal"
    is_told = bool(verdict.got) and str(verdict.got) in verdict.text
    if verdict.kind is Ending.ILLEGAL and asked is not None and not is_told:
        yield "got"  # which the text repeats


def eventful(
    matches: Sequence[MatchRow], verdicts: Sequence[Verdict], events: Mapping[str, Sequence[str]]
) -> Findings:
    """Each verdict has the event of its sealed record, as events are counted (J3)."""
    told = {
        (match.id, bot): event
        for match in matches
        for bot, event in zip(all_out(match), events.get(match.id, ()), strict=False)
    }
    for verdict in verdicts:
        event = told.get((verdict.match, verdict.bot), verdict.event)
        if event != verdict.event:
            theirs, ours = shorten(verdict.event), shorten(event)
            yield verdict.match, f"its verdict is about the event {theirs}, its record says {ours}"


def _offender(match: MatchRow) -> str | None:
    """The bot whose offence ended the match; None also for a wrong seat, which `verify` reports."""
    seat = match.result.offender
    is_known = seat is not None and 0 <= seat < len(match.players)
    return match.players[seat] if seat is not None and is_known else None


def all_out(match: MatchRow) -> tuple[str, ...]:
    """The bots that are out by a match: the offender, and those that did not come either."""
    seats = range(len(match.players))
    return tuple(match.players[seat] for seat in match.result.out if seat in seats)
