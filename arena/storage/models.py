"""What is written down of competitions: themselves, their matches, and what was done to them; as the database's readers get it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from arena.engine.match import Result
from arena.formats.schedule import RankingPlace
from arena.formats.spec import Plan
from protocol.messages import Action, Ending, Termination

__all__ = ["ARENA", "Act", "CompetitionRow", "CompetitionState", "MatchRow", "removed"]

ARENA = "the arena"
"""Who acts when nobody does."""


class CompetitionState(StrEnum):
    """How a competition stands; one that is `stopped` was ended by the instructor.

    One that the arena could not go on with is `running` still, and goes on when the arena is started again.
    """

    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"


class CompetitionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A competition as it was set up, and how it stands.

    Attributes:
        id: its own in this database.
        plan: what is to be played.
        state: whether it goes on.
        revision: goes up when a match that counted does so no longer; whoever adds up results then begins anew.
        started_at: when it was begun.
        finished_at: when it ended, if it has.
        ranking: of an elimination that has ended.
    """

    id: str
    plan: Plan
    state: CompetitionState
    revision: int
    started_at: float
    finished_at: float | None
    ranking: tuple[RankingPlace, ...]


class MatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is over, without its record.

    Attributes:
        number: goes up in the order of writing.
        id: its own in this database.
        competition: the id of that.
        pairing: its number in the competition's schedule.
        counts: whether it is neither void nor taken back.
        game: its name.
        players: the bots' names by seat.
        result: its scores, points and termination.
        started_at: when the seats were invited.
        finished_at: when the result was known.
        digest: what `arena/records/digest.py` made of all that when it was written.
    """

    number: int
    id: str
    competition: str
    pairing: int
    counts: bool
    game: str
    players: tuple[str, ...]
    result: Result
    started_at: float
    finished_at: float
    digest: str


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did to a competition, or to the arena.

    Attributes:
        competition: its id, if it was one.
        at: when.
        who: the instructor's name, or `arena`.
        what: in a word: pause, resume, stop, void, remove, flag; `out` and `in` of a bot that offended where it sat nowhere, and was excused.
        match: the match's id, if it was one.
        bot: the bot's name, if it was one.
        text: what came of it, for people.
    """

    competition: str | None = None
    at: float
    who: str
    what: str
    match: str | None = None
    bot: str | None = None
    text: str = ""


def removed(acts: Iterable[Act]) -> dict[str, Termination]:
    """Whom the instructor has taken out, and with what words."""
    out: dict[str, Termination] = {}
    for act in acts:
        if act.what == Action.REMOVE and act.bot is not None:
            out.setdefault(act.bot, Termination(Ending.REMOVED, None, act.text))
    return out
