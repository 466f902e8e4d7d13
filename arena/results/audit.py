"""Checks the matches of a competition against its schedule: each pairing once, with the right bots.

The audit runs the schedule again with the stored results (`arena/formats/formats.py`). It draws an
elimination's tables again from the seed, and compares the rankings. A match that does not count
must be void or have been taken back, and each verdict must fit its match. A match is checked
against its own record in `arena/records/verify.py`. Pure: rows in, flaws in words out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, pairwise, zip_longest
from typing import TypeAlias

import msgspec

from arena.formats.schedule import Pairing, Ranking, RankingPlace
from arena.formats.scorebook import ScheduleRun, Scorebook
from arena.formats.spec import Form, Plan
from arena.games.catalogue import mistaken_package, other_rules
from arena.records.document import stored_text
from arena.records.verify import OpenQuestion, RecordCheck
from arena.storage.models import Act, CompetitionRow, CompetitionState, MatchRow, taken_back
from protocol.errors import UsageError, in_words, one_line
from protocol.messages import Action, Ending, Verdict
from protocol.vocabulary import shorten

__all__ = ["Flaw", "audit", "remarks"]

# The id of a match, or None for the competition itself, and the text of the flaw.
Findings: TypeAlias = Iterator[tuple[str | None, str]]

_SHOWN = 5  # most names or pairings that a text lists


class Flaw(msgspec.Struct, frozen=True):
    """A flaw in a match, or with None in the competition itself; "" for an unknown competition."""

    competition: str
    match: str | None
    text: str


def audit(
    competition: CompetitionRow,
    matches: Sequence[MatchRow],
    verdicts: Sequence[Verdict],
    acts: Sequence[Act],
    checks: Mapping[str, RecordCheck] = {},
) -> Iterator[Flaw]:
    """Yield the flaws of a competition; `matches` are all its matches, in the order of writing.

    `checks` are the checks of their records, by match id. They tell whether cards were dealt, as
    nobody has played before that. Where an offence ended a match, the check of a sound record also
    gives the events and the question that was open.
    """
    sound = {
        match.id: checks[match.id]
        for match in matches
        if match.id in checks
        and match.result.termination.is_offence
        and not checks[match.id].reasons
        and checks[match.id].unverified is None
    }
    undealt = {match for match, checked in checks.items() if not checked.is_dealt}
    played = [match for match in matches if match.counts and match.id not in undealt]
    book = Scorebook(competition.plan, verdicts=verdicts, is_ranked=False)
    out = {
        match.id: book.add(
            match.id, Pairing(match.pairing, match.players), match.result, match.finished_at
        )
        for match in matches
        if match.counts
    }
    yield from (
        Flaw(competition.id, match, text)
        for match, text in (
            *_ruled(matches, verdicts),
            *_ruling(matches, verdicts),
            *_counting(matches),
            *_taken_back(matches, acts),
            *_evident(competition.plan, verdicts, sound),
            *_eventful(matches, verdicts, sound),
            *_standing(competition, acts),
            *_afterwards(competition.plan, played, acts, out),
            *_scheduled(competition, matches, acts, book),
        )
    )


def remarks(
    competition: CompetitionRow, matches: Sequence[MatchRow], acts: Sequence[Act]
) -> Iterator[str]:
    """Yield notable facts that need not be wrong: late removals, a ladder's order and gaps."""
    ended_at = competition.finished_at
    for bot, at in _removed(acts).items():
        if ended_at is not None and at > ended_at:
            yield f"{one_line(bot)} was removed after its end: none of its matches counts"
    if competition.plan.form is not Form.LADDER:
        return
    late = [
        later for earlier, later in pairwise(matches) if later.finished_at < earlier.finished_at
    ]
    if late:
        yield (
            f"match {late[0].id} stands after one that ended later, {len(late):,} in all do: "
            "ratings depend on the order, or a clock was put back"
        )
    numbers = {match.pairing for match in matches if match.pairing > 0}
    gaps = max(numbers, default=0) - len(numbers)
    if gaps and competition.state.is_over:  # before, these matches may still be going on
        first = next(number for number in count(1) if number not in numbers)
        yield (
            f"{gaps:,} of its pairings have no match, the first is {first}: "
            "they were being played when the arena was cut off, or they are gone"
        )


def _counting(matches: Sequence[MatchRow]) -> Findings:
    """Check that no void match counts, and that no pairing counts twice."""
    first: dict[int, str] = {}
    for match in matches:
        if not match.counts:
            continue
        if match.result.termination.kind is Ending.VOID:
            yield match.id, "it is void, and is counted all the same"
        pairing = match.pairing
        if pairing in first:
            yield match.id, f"pairing {pairing} is counted in match {first[pairing]} already"
        first.setdefault(pairing, match.id)


def _taken_back(matches: Sequence[MatchRow], acts: Sequence[Act]) -> Findings:
    """Check that each match counts unless it is void or was taken back."""
    back = taken_back(acts)
    for match in matches:
        is_void = match.result.termination.kind is Ending.VOID
        if not match.counts and not is_void and match.id not in back:
            yield match.id, "it does not count, and nobody has taken it back"
        elif match.counts and match.id in back:
            yield match.id, "it was taken back, and is counted all the same"


def _standing(competition: CompetitionRow, acts: Sequence[Act]) -> Findings:
    """Check that state, end time and ranking fit each other, and that a stop has its act."""
    state, plan = competition.state, competition.plan
    if (why := mistaken_package(plan.game, plan.package)) is not None:
        yield None, f"its plan is wrong: {why}"
    for name in sorted({*plan.players} & {*plan.not_there}):
        yield None, f"{one_line(name)} takes part, and is listed as not there"
    if state is CompetitionState.STOPPED and not any(act.what == Action.STOP for act in acts):
        yield None, "it is stopped, and nobody has stopped it"
    if state.is_over and competition.finished_at is None:
        yield None, f"it is {state.value}, and nothing says when it ended"
    if not state.is_over and competition.finished_at is not None:
        yield None, f"it is {state.value}, and has the time of an end"
    is_ladder = plan.form is Form.LADDER
    if competition.ranking and (is_ladder or state is not CompetitionState.FINISHED):
        what = "a ladder" if is_ladder else state.value
        yield None, f"it is {what}, its ranking says {_placed(competition.ranking)}"


def _afterwards(
    plan: Plan,
    matches: Sequence[MatchRow],
    acts: Sequence[Act],
    out_by: Mapping[str, Collection[str]],
) -> Findings:
    """Check that a bot that is out plays no more counting matches (J3), except on a ladder.

    It may have played while the match that put it out was void, before that match counted again.
    """
    if plan.form is Form.LADDER:
        return
    out: dict[str, str] = {}
    removed = _removed(acts)
    void: dict[str | None, float] = {}  # by match, when it first became void
    for act in acts:
        if act.what == Action.VOID:
            void.setdefault(act.match, act.at)
    for match in matches:
        offenders = _all_out(match)
        for bot in dict.fromkeys(match.players):
            if bot in out and match.finished_at < void.get(out[bot], math.inf):
                yield match.id, f"{bot} was out since match {out[bot]}"
            elif bot not in offenders and match.started_at > removed.get(bot, match.started_at):
                yield match.id, f"{bot} had been removed before"
        for bot in out_by.get(match.id, ()):
            out.setdefault(bot, match.id)


def _scheduled(
    competition: CompetitionRow, matches: Sequence[MatchRow], acts: Sequence[Act], book: Scorebook
) -> Findings:
    """Check that the counting matches and the ranking are those of the schedule."""
    plan = competition.plan
    if plan.form is Form.LADDER or other_rules(plan.game, plan.package) is not None:
        return
    counted: dict[int, MatchRow] = {}
    for match in matches:
        if match.counts:
            counted.setdefault(match.pairing, match)
    run, why = ScheduleRun(plan), ""
    results = {number: match.result for number, match in counted.items()}
    try:
        run.run(results, {*_removed(acts), *book.out})
    except UsageError as error:
        why = one_line(str(error))
    except Exception as error:  # from results that no match can have
        why = in_words(error)
    for number, pairing in run.asked.items():
        if number in counted and counted[number].players != pairing.players:
            match = counted[number]
            got, expected = _versus(match.players), _versus(pairing.players)
            yield match.id, f"it is {got}, the schedule asks for {expected}"
    if why:
        yield None, f"its schedule cannot be run again: {why}"
    for number, match in counted.items():
        if number not in run.asked:
            yield match.id, f"the schedule asks for no pairing {number}"
    if competition.state is not CompetitionState.FINISHED:
        return
    missing = [pairing for pairing in run.missing if not pairing.is_alone]
    for pairing in missing[:_SHOWN]:
        yield (None, f"pairing {pairing.number}, {_versus(pairing.players)}, has no match")
    if len(missing) > _SHOWN:
        yield None, f"{len(missing) - _SHOWN:,} pairings more have no match"
    if run.ranking is not None and run.ranking != competition.ranking:
        yield None, _first_difference(competition.ranking, run.ranking)


# --- verdicts ---


def _ruled(matches: Sequence[MatchRow], verdicts: Sequence[Verdict]) -> Findings:
    """Check that each bot that is out by a match has a verdict on that match (J4)."""
    kinds = {(verdict.match, verdict.bot): verdict.kind for verdict in verdicts}
    for match in matches:
        ended, offender = match.result.termination.kind, _offender(match)
        for bot in _all_out(match):
            kind = kinds.get((match.id, bot))
            if kind is None or (bot == offender and kind is not ended):
                yield match.id, f"{bot} is out by {ended.value}, no verdict says so"


def _ruling(matches: Sequence[MatchRow], verdicts: Sequence[Verdict]) -> Findings:
    """Check that each verdict is the only one, and on a bot that is out by its match or forfeit."""
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
        if is_other or verdict.bot not in _all_out(match):
            text = f"a verdict says {bot} is out by {verdict.kind.value}, the match does not"
            yield match.id, text
            continue
        seats = [seat for seat in match.result.out if seat < len(match.players)]
        fits = {
            "seat": (verdict.seat, verdict.bot) in [(seat, match.players[seat]) for seat in seats],
            # Only their verdicts say why the other bots did not come.
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


def _evident(plan: Plan, verdicts: Sequence[Verdict], sound: Mapping[str, RecordCheck]) -> Findings:
    """Check each verdict's limits against the plan, and its evidence against a sound record.

    The evidence is the open question, its legal answers, and an illegal answer.
    """
    for verdict in verdicts:
        odd = [] if verdict.limits == plan.limits else ["limits"]
        if verdict.match in sound:
            odd += _misquoted(verdict, sound[verdict.match].asked)
        if odd:
            yield verdict.match, f"its verdict has wrong {' and wrong '.join(odd)}"


def _misquoted(verdict: Verdict, asked: OpenQuestion | None) -> Iterator[str]:
    """Yield the fields of a verdict that do not fit the open question at the end of its match."""
    if asked is not None and asked.seat != verdict.seat:
        asked = None  # the question was for another seat
    if verdict.asked != (None if asked is None else asked.question):
        yield "asked"
    if verdict.legal != (None if asked is None else asked.legal):
        yield "legal"
    is_told = bool(verdict.got) and str(verdict.got) in verdict.text
    if verdict.kind is Ending.ILLEGAL and asked is not None and not is_told:
        yield "got"  # the text must repeat it


def _eventful(
    matches: Sequence[MatchRow], verdicts: Sequence[Verdict], sound: Mapping[str, RecordCheck]
) -> Findings:
    """Check that each verdict has the event that its sealed record counts (J3)."""
    told = {
        (match.id, bot): event
        for match in matches
        if match.id in sound
        for bot, event in zip(_all_out(match), sound[match.id].events, strict=False)
    }
    for verdict in verdicts:
        event = told.get((verdict.match, verdict.bot), verdict.event)
        if event != verdict.event:
            theirs, ours = shorten(verdict.event), shorten(event)
            yield verdict.match, f"its verdict is about the event {theirs}, its record says {ours}"


def _offender(match: MatchRow) -> str | None:
    """Return the bot whose offence ended the match; None for a wrong seat (see `verify`)."""
    seat = match.result.offender
    is_known = seat is not None and 0 <= seat < len(match.players)
    return match.players[seat] if seat is not None and is_known else None


def _all_out(match: MatchRow) -> tuple[str, ...]:
    """Return the bots that are out by a match: the offender, and others that did not come."""
    seats = range(len(match.players))
    return tuple(match.players[seat] for seat in match.result.out if seat in seats)


# --- words ---


def _removed(acts: Sequence[Act]) -> dict[str, float]:
    """Return the bots that the instructor removed, each with the time of the first removal."""
    removed: dict[str, float] = {}
    for act in acts:
        if act.what == Action.REMOVE and act.bot is not None:
            removed.setdefault(act.bot, act.at)
    return removed


def _versus(players: Sequence[str]) -> str:
    return " v ".join(players) if players else "nobody"


def _first_difference(written: Ranking, made: Ranking) -> str:
    """Describe the first place where two rankings differ: an insertion moves all later places."""
    places = next(places for places in zip_longest(written, made) if places[0] != places[1])
    says, makes = map(_place, places)
    if says == makes:
        says, makes = (_place(place, in_full=True) for place in places)
    return f"its ranking says {says}, the matches make {makes}"


def _place(placed: RankingPlace | None, *, in_full: bool = False) -> str:
    """Return a place as text, such as `3. ann ben`; `in_full` adds all names, stage and score."""
    if placed is None:
        return "nobody more"
    if in_full:
        out = ", out" if placed.offence else ""
        with_ = "" if placed.score is None else f" with {placed.score:+,}"
        return f"{placed.rank}. {' '.join(placed.names)} in stage {placed.stage}{out}{with_}"
    more = len(placed.names) - _SHOWN
    others = f" and {more:,} more" if more > 0 else ""
    return f"{placed.rank}. {' '.join(placed.names[:_SHOWN])}{others}"


def _placed(ranking: Ranking) -> str:
    if not ranking:
        return "nothing"
    more = ", …" if len(ranking) > _SHOWN else ""
    return ", ".join(_place(placed) for placed in ranking[:_SHOWN]) + more
