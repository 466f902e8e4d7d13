"""Whether the verdicts of a competition are those of its matches: on whom, about what, and with the evidence that the records have. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from arena.formats.spec import Plan
from arena.records.verify import OpenQuestion, stored_text
from arena.storage.models import MatchRow
from protocol.errors import one_line
from protocol.messages import Ending, Verdict
from protocol.vocabulary import shorten

__all__ = ["Said", "all_out", "eventful", "evident", "ruled", "ruling"]

Said: TypeAlias = Iterator[tuple[str | None, str]]
"""A match, or None for the competition, and what is wrong with it."""


def ruled(matches: Sequence[MatchRow], verdicts: Sequence[Verdict]) -> Said:
    """Whoever is out by a match has its verdict (J4)."""
    ruled = {(one.match, one.bot): one.kind for one in verdicts}
    for match in matches:
        kind, offender = match.result.termination.kind, _offender(match)
        for bot in all_out(match):
            said = ruled.get((match.id, bot))
            if said is None or (bot == offender and said is not kind):
                yield match.id, f"{bot} is out by {kind.value}, no verdict says so"


def ruling(matches: Sequence[MatchRow], verdicts: Sequence[Verdict]) -> Said:
    """Every verdict is on somebody who is out by its match, forfeits included, and there is one."""
    by_id = {match.id: match for match in matches}
    for verdict in verdicts:
        match = by_id.get(verdict.match)
        if match is None:
            yield (
                None,
                f"a verdict on {one_line(verdict.bot)} is about match {one_line(verdict.match)}, which is not there",
            )
            continue
        ended, is_offender = match.result.termination, verdict.bot == _offender(match)
        is_other = is_offender and verdict.kind is not ended.kind
        if is_other or verdict.bot not in all_out(match):
            yield (
                match.id,
                f"a verdict says {one_line(verdict.bot)} is out by {verdict.kind.value}, the match does not",
            )
            continue
        seats = [seat for seat in match.result.out if seat < len(match.players)]
        told = stored_text(verdict.text), stored_text(ended.text)
        fits = {
            "seat": (verdict.seat, verdict.bot) in [(seat, match.players[seat]) for seat in seats],
            # Of the others who did not come only the verdict says why.
            "text": not is_offender or told[0] == told[1],
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
) -> Said:
    """The evidence, as far as it can be had from elsewhere: the limits, the question, what was legal, what was answered."""
    for verdict in verdicts:
        odd = [] if verdict.limits == plan.limits else ["limits"]
        if verdict.match in asked:
            was = asked[verdict.match]
            if was is not None and was.seat != verdict.seat:
                was = None  # another was asked
            if verdict.asked != (None if was is None else was.question):
                odd.append("asked")
            if verdict.legal != (None if was is None else was.legal):
                odd.append("legal")
            is_told = bool(verdict.got) and str(verdict.got) in verdict.text
            if verdict.kind is Ending.ILLEGAL and was is not None and not is_told:
                odd.append("got")  # the text has it too
        if odd:
            yield verdict.match, f"its verdict has wrong {' and wrong '.join(odd)}"


def eventful(
    matches: Sequence[MatchRow], verdicts: Sequence[Verdict], events: Mapping[str, Sequence[str]]
) -> Said:
    """Every verdict is about the event that the record, which is sealed, says: whoever counts events can rely on it (J3)."""
    told = {
        (match.id, bot): event
        for match in matches
        for bot, event in zip(all_out(match), events.get(match.id, ()), strict=False)
    }
    for verdict in verdicts:
        event = told.get((verdict.match, verdict.bot), verdict.event)
        if event != verdict.event:
            yield (
                verdict.match,
                f"its verdict is about the event {shorten(verdict.event)}, its record says {shorten(event)}",
            )


def _offender(match: MatchRow) -> str | None:
    """Whose offence ended it, as far as the seat is one; its own check says so if not."""
    seat = match.result.offender
    is_one = seat is not None and 0 <= seat < len(match.players)
    return match.players[seat] if seat is not None and is_one else None


def all_out(match: MatchRow) -> tuple[str, ...]:
    """Who is out by it: the offender, and those who did not come either."""
    seats = range(len(match.players))
    return tuple(match.players[seat] for seat in match.result.out if seat in seats)
