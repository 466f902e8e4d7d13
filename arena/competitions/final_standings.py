"""Finds each bot's place when a competition is over, or when the bot leaves a ladder."""

from __future__ import annotations

from typing import Any

from arena.formats.bracket import reached
from arena.formats.intervals import with_interval
from arena.formats.ladder import LadderRow
from arena.formats.settled import SettledRow
from arena.formats.standings import LeagueRow
from arena.games.catalogue import game_named
from arena.games.statistics import Bounds, plural, signed
from arena.storage.models import CompetitionReport, CompetitionState
from protocol.messages import FinalStanding

__all__ = ["final_standings"]


def final_standings(report: CompetitionReport, page: str | None) -> dict[str, FinalStanding]:
    """Return the place of every bot that took part, by name; `page` shows the competition."""
    rows = [row for row in report.standings if not getattr(row, "not_there", False)]
    count = len(rows) or sum(len(placed.names) for placed in report.ranking)

    ends = {CompetitionState.STOPPED: "was stopped", CompetitionState.FINISHED: "is over"}
    how = ends.get(report.state, "goes on")

    def standing(
        rank: int | None, text: str, score: float | None = None, interval: Bounds | None = None
    ) -> FinalStanding:
        place = text if rank is None else f"rank {rank} of {count} · {text}"
        return FinalStanding(
            competition=report.competition,
            run=report.run,
            game=report.game,
            rank=rank,
            players=count,
            score=score,
            interval=interval,
            text=f"{report.run or report.game} {how} · {place}",
            page=page,
        )

    ended = {}
    for row in rows:
        if row.eliminated:
            ended[row.name] = standing(None, f"out: {row.eliminated.kind.value}")
        elif row.rank is None:
            ended[row.name] = standing(None, "no match counts")
        else:
            ended[row.name] = standing(row.rank, *_score(row, report.game))
    for placed, stage in reached(report.ranking):
        score = "" if placed.score is None else f" · score {signed(placed.score)}"
        out = " · out" if placed.offence else ""
        text = f"{stage}{score}{out}" if stage == "final" else f"reached stage {stage}{out}"
        for name in placed.names:
            ended[name] = standing(placed.rank, text, placed.score)
    return ended


def _score(row: Any, game: str) -> tuple[str, float | None, Bounds | None]:
    """Return a row in words, its score, and the score's interval."""
    matches = plural(row.played, "match")
    match row:
        case LadderRow():
            text = f"rating {row.rating:.1f} (mu {row.mu:.1f}, σ {row.sigma:.1f}) after {matches}"
            return text, row.rating, None
        case LeagueRow():
            measure = game_named(game).measure
            number = (_percent, 3) if measure.is_share else (_number, 1)
            value = with_interval(row.value, row.interval, *number)
            return f"{measure.title} {value} in {matches}", row.value, row.interval
        case SettledRow():
            low, high = row.share_low, row.share_high
            bounds = None if low is None or high is None else Bounds(low, high)
            share = with_interval(row.share, bounds, _number, 3)
            return f"share won {share} in {matches}", row.share, bounds
        case _:
            value = with_interval(row.mean, row.interval, signed, 1)
            wins = plural(row.wins, "win")
            return f"{wins} in {matches}, score {value} per match", row.mean, row.interval


def _number(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}"


def _percent(share: float, digits: int) -> str:
    return f"{100 * share:.{max(0, digits - 2)}f} %"
