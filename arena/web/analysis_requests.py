"""Which analysis a request is for, and whether the viewer may see it (J8); or why there is none.

The mistakes of a seat are made from what that seat knew alone, and the strength of a bot from what
its seats knew. So both are the owner's at once, and everybody's when its competition is over. A
ladder has no end: there everybody sees what comes of matches that everybody may see.
"""

from __future__ import annotations

import math
from itertools import takewhile

from arena.engine.rules import Game
from arena.formats.spec import Form
from arena.games import game_named
from arena.records.visibility import LADDER_S, Viewer, is_open_to
from arena.web.competition_cache import CachedCompetition
from arena.web.documents import Refusal
from arena.web.match_pages import RequestedMatch
from arena.web.questions import AnalysisKind, AnalysisTask
from protocol.errors import NotInstalled, UnknownGame, one_line

__all__ = ["mistakes_task", "strength_task"]


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
