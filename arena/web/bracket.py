"""The bracket in the document of an elimination: its stages as they were drawn, who went on and who did not (K2)."""

from __future__ import annotations

from collections.abc import Sequence

from arena.engine.match import Result
from arena.formats.bracket import BracketStage, advanced
from arena.formats.schedule import Pairing
from arena.storage.models import State
from arena.web import documents
from arena.web.competition_cache import Followed

__all__ = ["bracket"]


def bracket(followed: Followed) -> tuple[documents.Stage, ...]:
    """All stages that were drawn; empty for other forms."""
    return tuple(_stage(followed, stage) for stage in followed.results.stages)


def _stage(followed: Followed, stage: BracketStage) -> documents.Stage:
    return documents.Stage(
        stage=stage.number,
        final=stage.is_final,
        tables=tuple(
            _table(followed, stage, pairing, result) for pairing, result in stage.tables
        ),
        byes=stage.byes,
    )


def _table(
    followed: Followed, stage: BracketStage, pairing: Pairing, result: Result | None
) -> documents.Table:
    players, entered = pairing.players, followed.results.plan.players
    through = out = frozenset[int]()
    state = "playing"
    if result is not None:
        through, state = advanced(result), "over"
        out = frozenset(range(len(players))) - through
        if stage.is_final:
            out = frozenset(result.out)
    elif followed.is_over or followed.results.competition.state is State.PAUSED:
        state = "waits"
    has_advanced = result is not None and not stage.is_final
    return documents.Table(
        pairing=pairing.number,
        match=followed.results.match_of(pairing.number),
        players=players,
        house=tuple(name for name in players if name not in entered),
        scores=None if result is None else result.scores,
        advanced=_named(players, through) if has_advanced else None,
        out=_named(players, out),
        state=state,
        offender=None if result is None else result.offender,
    )


def _named(players: Sequence[str], seats: frozenset[int]) -> tuple[str, ...]:
    return tuple(name for seat, name in enumerate(players) if seat in seats)
