"""Analyses: a seat's mistakes in a match, and how a bot has played; and who may see them.

Both are made only from what the seats knew (`arena/records/seat_document.py`), so they reveal no
card to a bot's owner that J8 hides. The owner may see them at once, everybody when the competition
is over. A ladder has no end: there everybody sees the analysis of matches that everybody may see.
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

MOST_ANSWERS = 300_000  # in a match to be judged
MOST_SLOW_ANSWERS = 6_000  # where judging is slow: some minutes, while all others wait
MOST_MATCHES = 200  # a bot's latest matches, from which its strength is computed
MOST_DECISIONS = 50_000  # in these, about 100 MB; no match is added after that

OnProgress = Callable[[int, int], None]


def mistakes_task(match: RequestedMatch, seat: int, viewer: Viewer) -> AnalysisTask:
    """Make the task to list the mistakes of a seat (from 1); `Refusal` if missing or hidden."""
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
    """Make the task to analyse a bot; `now` is in Unix seconds. Raises `Refusal` if it is hidden.

    Also raises it if the bot is not in the competition. On a ladder, all but the owner see the
    analysis of matches that are at least a day old.
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
    """Compute what the mistakes of a seat (from 1) cost; `NoAnalysis` if they cannot be judged."""
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
    """Analyse how a bot has played; raises `NoAnalysis` if none of its matches counts any more."""
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
    """Read the bot's latest matches as it saw them, the oldest first, and count them."""
    game = reader.competition(task.id).plan.game
    rows = reader.latest(task.id, MOST_MATCHES, bots=(task.bot,), before=task.last + 1)
    counting = [row for row in rows if row.counts]
    seen: list[SeatMatch] = []
    decisions = used = 0
    for row in counting:
        if decisions >= MOST_DECISIONS:
            break
        record = reader.record(row.id)
        if (count := len(record.answers)) > MOST_ANSWERS:  # too many to hold in memory at once
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
    """Analyse matches by the game's methods; return None and the reason if that fails."""
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
    """Return the game of that name, or None and why it is not available."""
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
