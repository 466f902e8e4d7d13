"""Whether the matches of a competition are the right ones: those that its schedule asks for, each once, between those bots.

The schedule is run again with the results that are there (`arena/formats/formats.py`), an elimination's tables are drawn again from its seed, and
the ranking is compared with what comes of it. What counts for nothing must have been taken back by somebody, and every verdict must be
that of its match. Whether a single match is what its record says is `arena/records/verify.py`'s business. Pure: it gets what a database says
and returns what does not fit, in words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, pairwise, zip_longest
from typing import TYPE_CHECKING

import msgspec

from arena.formats.schedule import Pairing, Ranking, RankingPlace
from arena.formats.scorebook import ScheduleRun, Scorebook
from arena.formats.spec import Form, Plan
from arena.records.verify import OpenQuestion
from arena.results.verdict_audit import Said, all_out, eventful, evident, ruled, ruling
from arena.storage.models import CompetitionState
from protocol.errors import UsageError, in_words, one_line
from protocol.messages import Action, Ending, Verdict

if TYPE_CHECKING:
    from arena.storage.store import Act, CompetitionRow, MatchRow

__all__ = ["Flaw", "audit", "remarks"]

_SHOWN = 5  # of what is missing
_OVER = (CompetitionState.FINISHED, CompetitionState.STOPPED)


class Flaw(msgspec.Struct, frozen=True):
    """Something that does not fit.

    Attributes:
        competition: its id; empty where there is none.
        match: the id of the match; None if it is about the competition.
        text: what it is, in words.
    """

    competition: str
    match: str | None
    text: str


def audit(
    competition: CompetitionRow,
    matches: Sequence[MatchRow],
    verdicts: Sequence[Verdict],
    acts: Sequence[Act],
    *,
    undealt: Collection[str] = (),
    asked: Mapping[str, OpenQuestion | None] | None = None,
    events: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Flaw]:
    """What does not fit in a competition.

    Args:
        competition: with its plan and its ranking.
        matches: all of it, in the order in which they were written.
        verdicts: its offences.
        acts: what was done to it from outside.
        undealt: the ids of matches that ended before there were cards: nobody has played there.
        asked: what was asked when an offence ended a match, or None if nothing was; of those matches whose record tells.
        events: which events these offences were, by match, in the order of who is out; of those matches whose record tells.
    """
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
            *ruled(matches, verdicts),
            *ruling(matches, verdicts),
            *_counting(matches),
            *_taken_back(matches, acts),
            *evident(competition.plan, verdicts, asked or {}),
            *eventful(matches, verdicts, events or {}),
            *_standing(competition, acts),
            *_afterwards(competition.plan, played, acts, out),
            *_scheduled(competition, matches, acts, book),
        )
    )


def remarks(
    competition: CompetitionRow, matches: Sequence[MatchRow], acts: Sequence[Act]
) -> Iterator[str]:
    """What is to be known and need not be wrong: removals after the end, and of a ladder, which has no schedule, order and gaps.

    Args:
        competition: with its plan and its state.
        matches: all of it, in the order in which they were written.
        acts: what was done to it from outside.
    """
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
    if gaps and competition.state in _OVER:  # else they may be being played
        first = next(number for number in count(1) if number not in numbers)
        yield (
            f"{gaps:,} of its pairings have no match, the first is {first}: "
            "they were being played when the arena was cut off, or they are gone"
        )


def _counting(matches: Sequence[MatchRow]) -> Said:
    """Void matches count for nothing, and a pairing counts once."""
    first: dict[int, str] = {}
    for match in matches:
        if not match.counts:
            continue
        if match.result.termination.kind is Ending.VOID:
            yield match.id, "it is void, and is counted all the same"
        if match.pairing in first:
            yield (
                match.id,
                f"pairing {match.pairing} is counted in match {first[match.pairing]} already",
            )
        first.setdefault(match.pairing, match.id)


def _taken_back(matches: Sequence[MatchRow], acts: Sequence[Act]) -> Said:
    """What is not void and counts for nothing was taken back by somebody, and what was taken back does not count."""
    back = {act.match for act in acts if act.what == Action.VOID}
    for match in matches:
        is_void = match.result.termination.kind is Ending.VOID
        if not match.counts and not is_void and match.id not in back:
            yield match.id, "it does not count, and nobody has taken it back"
        elif match.counts and match.id in back:
            yield match.id, "it was taken back, and is counted all the same"


def _standing(competition: CompetitionRow, acts: Sequence[Act]) -> Said:
    """Its state, when it ended, and whether it may have a ranking; whoever stops one is written down with that."""
    state, plan = competition.state, competition.plan
    for name in sorted({*plan.players} & {*plan.not_there}):
        yield None, f"{one_line(name)} takes part, and is listed as not there"
    if state is CompetitionState.STOPPED and not any(act.what == Action.STOP for act in acts):
        yield None, "it is stopped, and nobody has stopped it"
    if state in _OVER and competition.finished_at is None:
        yield None, f"it is {state.value}, and nothing says when it ended"
    if state not in _OVER and competition.finished_at is not None:
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
) -> Said:
    """Whoever is out does not play any more (J3), but on a ladder; of what was played and counts."""
    if plan.form is Form.LADDER:
        return
    out: dict[str, str] = {}
    removed = _removed(acts)
    for match in matches:
        offenders = all_out(match)
        for bot in dict.fromkeys(match.players):
            if bot in out:
                yield match.id, f"{bot} was out since match {out[bot]}"
            elif bot not in offenders and match.started_at > removed.get(bot, match.started_at):
                yield match.id, f"{bot} had been removed before"
        for bot in out_by.get(match.id, ()):
            out.setdefault(bot, match.id)


def _scheduled(
    competition: CompetitionRow, matches: Sequence[MatchRow], acts: Sequence[Act], book: Scorebook
) -> Said:
    """What counts is what the schedule asks for, and the ranking is what it returns."""
    plan = competition.plan
    if plan.form is Form.LADDER:
        return
    counted: dict[int, MatchRow] = {}
    for match in matches:
        if match.counts:
            counted.setdefault(match.pairing, match)
    run, why = ScheduleRun(plan), ""
    try:
        run.run(
            {number: match.result for number, match in counted.items()},
            {*_removed(acts), *book.out},
        )
    except UsageError as error:
        why = one_line(str(error))
    except Exception as error:  # by results that no match can have
        why = in_words(error)
    for number, pairing in run.asked.items():
        if number in counted and counted[number].players != pairing.players:
            match = counted[number]
            yield (
                match.id,
                f"it is {_versus(match.players)}, the schedule asks for {_versus(pairing.players)}",
            )
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


def _removed(acts: Sequence[Act]) -> dict[str, float]:
    """Whom the instructor has removed, and when first."""
    removed: dict[str, float] = {}
    for act in acts:
        if act.what == Action.REMOVE and act.bot is not None:
            removed.setdefault(act.bot, act.at)
    return removed


def _versus(players: Sequence[str]) -> str:
    return " v ".join(players) if players else "nobody"


def _first_difference(written: Ranking, made: Ranking) -> str:
    """Where two rankings part; the places below differ too if somebody has been put in between."""
    one, other = next((one, other) for one, other in zip_longest(written, made) if one != other)
    says, makes = _place(one), _place(other)
    if says == makes:
        says, makes = _place(one, in_full=True), _place(other, in_full=True)
    return f"its ranking says {says}, the matches make {makes}"


def _place(placed: RankingPlace | None, *, in_full: bool = False) -> str:
    """A place, as `3. ann ben`; in full with all names and how far they came."""
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
    """A ranking in a line, or its beginning."""
    if not ranking:
        return "nothing"
    more = ", …" if len(ranking) > _SHOWN else ""
    return ", ".join(_place(placed) for placed in ranking[:_SHOWN]) + more
