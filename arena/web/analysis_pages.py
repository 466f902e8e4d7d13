"""Analyses: what a seat did wrong in a match, and how a bot has played; who may see them, and what.

Both are made from what the seats knew alone (`arena/records/seat_document.py`), so they can tell a
bot's owner no card that J8 keeps from them. They are the owner's at once, and everybody's when the
competition is over. A ladder has no end: there everybody sees what comes of matches that everybody
may see.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import takewhile

import msgspec

from arena.formats.spec import Form
from arena.games.analysis import Analysis, SeatMatch, need_analysis
from arena.games.catalogue import game_named
from arena.games.match import Record
from arena.games.rules import Game
from arena.records.habits import habits_of
from arena.records.mistakes import JudgedDecision, mistakes_of
from arena.records.seat_document import seat_match
from arena.records.visibility import LADDER_S, Viewer, is_open_to
from arena.storage.reader import StoreReader
from arena.web.competition_pages import CachedCompetition
from arena.web.documents import DecisionMark, MistakesPage, Refusal, StrengthPage
from arena.web.match_pages import RequestedMatch
from arena.web.questions import AnalysisKind, AnalysisTask
from protocol.errors import NoAnalysis, NotInstalled, UnknownGame, UsageError, one_line

__all__ = [
    "MOST_ANSWERS",
    "MOST_DECISIONS",
    "MOST_MATCHES",
    "MOST_SLOW_ANSWERS",
    "mistakes",
    "mistakes_task",
    "strength",
    "strength_task",
]

MOST_ANSWERS = 300_000  # of a match that is judged for a page
MOST_SLOW_ANSWERS = 6_000  # where judging is slow: some minutes, while all others wait
MOST_MATCHES = 200  # of a bot, the latest, from which its strength is made
MOST_DECISIONS = 50_000  # in these, about 100 MB; the match that passes this is the last one

OnProgress = Callable[[int, int], None]


def mistakes_task(match: RequestedMatch, seat: int, viewer: Viewer) -> AnalysisTask:
    """What a seat, from 1, did wrong; raises `Refusal` without that seat, or if it is hidden."""
    row = match.row
    if seat > len(row.players):
        raise Refusal(404, f"match {row.id} has {len(row.players)} seats, got {seat}")
    bot = row.players[seat - 1]
    if not is_open_to(viewer, bot, match.view.kind == "all"):
        raise _hidden(f"the list of mistakes of {bot}", row.competition)
    game, refused = _game(row.game)
    if game is not None and game.judging is None:
        refused = f"{game.vocabulary.title} does not say what decisions cost"
    version = game.judging.version if game is not None and game.judging is not None else 0
    return AnalysisTask(
        kind=AnalysisKind.MISTAKES, id=row.id, bot=bot, seat=seat, version=version, refused=refused
    )


def strength_task(cached: CachedCompetition, bot: str, viewer: Viewer, now: float) -> AnalysisTask:
    """How a bot has played, at a time in Unix seconds; raises `Refusal` without it, or if hidden.

    On a ladder others see its matches of a day ago.
    """
    plan = cached.results.plan
    is_own = is_open_to(viewer, bot, cached.is_over)
    if not is_own and plan.form is not Form.LADDER:
        raise _hidden(f"the analysis of {one_line(bot, 80)}", cached.id)
    until = math.inf if is_own else now - LADDER_S
    played = takewhile(lambda match: match[1] <= until, cached.reader.scores(cached.id, bot))
    numbers = [number for number, _, _ in played]
    is_there = numbers or bot in (*plan.players, *plan.not_there)
    if not is_there and not cached.reader.latest(cached.id, 1, bots=(bot,)):
        raise Refusal(404, f"expected a bot that is in {cached.id}, got {one_line(bot, 80)!r}")
    game, refused = _game(plan.game)
    if game is not None and game.habits is None and game.analysing is None:
        refused = f"{game.vocabulary.title} does not say how good a bot is"
    if not numbers:
        refused = f"no match of {bot} counts" + ("" if is_own else " that everybody may see")
    return AnalysisTask(
        kind=AnalysisKind.STRENGTH,
        id=cached.id,
        bot=bot,
        version=game.analysing.version if game is not None and game.analysing is not None else 0,
        revision=cached.results.competition.revision,
        is_old=not is_own,
        last=max(numbers, default=0),
        matches=len(numbers),
        refused=refused,
    )


def mistakes(record: Record, match: str, seat: int, on_progress: OnProgress) -> MistakesPage:
    """What the decisions of a seat, from 1, cost; raises `NoAnalysis` if that cannot be said."""
    game = game_named(record.game, record.package)
    is_slow = game.judging is not None and game.judging.is_slow
    most = MOST_SLOW_ANSWERS if is_slow else MOST_ANSWERS
    if len(record.answers) > most:
        count = f"{len(record.answers):,} answers, more than {most:,}"
        raise NoAnalysis(f"match {match} has {count}: use `arena mistakes {match}`")
    found = mistakes_of(record, seat - 1, on_progress)
    marks = (_mark(game, mistake) for mistake in found.mistakes if mistake.judgement.grade)
    return MistakesPage(
        seat=seat,
        version=found.version,
        totals=found.totals,
        decisions=found.decisions,
        judged=found.judged,
        marks=tuple(marks),
    )


def strength(reader: StoreReader, task: AnalysisTask, on_progress: OnProgress) -> StrengthPage:
    """How a bot has played in a competition; raises `NoAnalysis` if nothing counts any more."""
    plan = reader.competition(task.id).plan
    game = game_named(plan.game, plan.package)
    matches, used = _seat_matches(reader, task, on_progress)
    if not matches:
        raise NoAnalysis(f"no match of {task.bot} counts any more")
    analysis, refused = _watched(game, matches)
    charts = () if game.habits is None else habits_of(game, matches).charts
    if analysis is not None:
        titles = {chart.title for chart in charts}
        more = tuple(chart for chart in analysis.charts if chart.title not in titles)
        analysis = msgspec.structs.replace(analysis, charts=more)
    return StrengthPage(
        bot=task.bot,
        version=task.version,
        matches=used,
        of_matches=task.matches,
        analysis=analysis,
        refused=refused,
        charts=charts,
    )


def _mark(game: Game, decision: JudgedDecision) -> DecisionMark:
    judgement, question = decision.judgement, decision.question
    words = game.vocabulary.asked_words(question)
    return DecisionMark(
        round=decision.round,
        turn=decision.turn,
        number=decision.number,
        index=decision.index,
        kind=question.kind,
        answer_text=words.answered(question, decision.answer),
        best_text=words.answered(question, judgement.best),
        cost=judgement.cost,
        error=judgement.error,
        unit=judgement.unit,
        grade=judgement.grade,
    )


def _seat_matches(
    reader: StoreReader, task: AnalysisTask, on_progress: OnProgress
) -> tuple[list[SeatMatch], int]:
    """The bot's latest matches as it saw them, the oldest first, and how many these are."""
    game = reader.competition(task.id).plan.game
    rows = reader.latest(task.id, MOST_MATCHES, bots=(task.bot,), before=task.last + 1)
    counting = [row for row in rows if row.counts]
    seen: list[SeatMatch] = []
    decisions = used = 0
    for row in counting:
        if decisions >= MOST_DECISIONS:
            break
        record = reader.record(row.id)
        if (count := len(record.answers)) > MOST_ANSWERS:  # to be in memory at once
            how = f"use `arena analyse {game} BOT --from {task.id}`"
            raise NoAnalysis(f"match {row.id} has {count:,} answers: {how}")
        for seat, name in enumerate(row.players):
            if name == task.bot:
                seen.append(seat_match(record, seat))
                decisions += len(seen[-1].decisions)
        used += 1
        on_progress(used, len(counting))
    return seen[::-1], used


def _watched(game: Game, matches: Sequence[SeatMatch]) -> tuple[Analysis | None, str]:
    """What the game says of these matches; or None, and why nothing."""
    analysing = game.analysing
    if analysing is None or analysing.watch is None:
        return None, f"how good a bot is in {game.vocabulary.title} cannot be told from its matches"
    if (reason := analysing.refuses(matches[0].settings)) is not None:
        return None, reason
    try:
        need_analysis()
        return analysing.watch(matches), ""
    except (NoAnalysis, UsageError) as error:
        return None, str(error)


def _game(name: str) -> tuple[Game | None, str]:
    """The game of that name, or why it is not there."""
    try:
        return game_named(name), ""
    except (NotInstalled, UnknownGame) as error:
        return None, str(error)


def _hidden(what: str, competition: str | None) -> Refusal:
    return Refusal(
        403,
        f"{what} is for the bot's owner and the instructor until {competition} is over; "
        "on a ladder for a day",
    )
