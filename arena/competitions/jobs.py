"""Matches as jobs: what is to be played between bots of which none is connected by itself.

A job says what is played and by whom, and nothing of how: no seed, no process. Who takes it has it
played and says what came of it. Here the one who takes jobs is the arena itself
(`arena/competitions/job_runner.py`); the seam is small so that a bus can stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from arena.competitions.remote_match import RemoteMatch
from arena.engine.match import MatchResult, Record
from arena.engine.verdict import Finding
from arena.referee.live_match import Forgives
from protocol.messages import Ending, Limits, Termination, Verdict

__all__ = ["JobWatcher", "Jobs", "MatchJob", "unplayed", "unplayed_record"]


class MatchJob(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is to be played.

    Attributes:
        id: the same for the same attempt at the same pairing; put twice, it is played once.
        settings: all of the game's.
        players: names by seat.
        submissions: by seat, the number of the submission that plays; None for a bot that has that
            name here: one that the arena has launched otherwise.
        versions: by seat, as in `Record.versions`; empty where nobody takes submissions.
        package: of a game that is not ours.
        competition, pairing: whose match it is; the first result of the pairing counts. Empty and 0
            for a match of no competition.
        is_alike: all matches between the same bots are played on machines of one speed.
        spares_away: it is void if a bot is away, which is not blamed.
        teams: the team of each of the players that has one.
    """

    id: str
    game: str
    settings: dict[str, Any]
    limits: Limits
    players: tuple[str, ...]
    submissions: tuple[int | None, ...]
    package: str | None = None
    versions: tuple[str, ...] = ()
    competition: str = ""
    pairing: int = 0
    is_alike: bool = False
    spares_away: bool = False
    teams: dict[str, str] = {}

    @property
    def submitted(self) -> dict[int, tuple[str, int]]:
        """By seat, (name, number of the submission) of those that are submitted."""
        by_seat = enumerate(zip(self.players, self.submissions, strict=True))
        return {seat: (name, number) for seat, (name, number) in by_seat if number is not None}


class JobWatcher(Protocol):
    """Who has put a job, as it is told of it."""

    @property
    def forgives(self) -> Forgives:
        """Whether an offence costs a bot no more than the match (J3)."""

    def progressed(self, job: str, match: str, decisions: int) -> None:
        """The job is being played, as a match of that id, and has come so far."""

    def lost(self, job: str, match: str) -> None:
        """An attempt is without a result, as another machine is gone; the job goes on (J5)."""

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        """The match is over, or void; called once. Without an id it has not begun."""


class Jobs(Protocol):
    """Carries jobs from those who want them played to those who play them."""

    def put(self, job: MatchJob, watcher: JobWatcher) -> None:
        """Have a job played; with an id that was put and is not done, only the watcher changes."""

    async def take(self) -> MatchJob:
        """The next job, once there is one; it is the caller's until it is `done` or cancelled."""

    def forgives(self, job: str) -> Forgives:
        """What its watcher says of offences in it; that nothing is forgiven, if it has none."""

    def progress(self, job: str, match: str, decisions: int) -> None:
        """The taker says how far a job is; of one that is cancelled or done it means nothing."""

    def cancel(self, job: str, why: str) -> None:
        """Have a job end as void; again, or of one that is done, it means nothing."""

    def abandon(self, job: str, why: str) -> None:
        """End a job as void here; what another machine plays goes on, unless it was cancelled."""

    def offend(self, job: str, seat: int, finding: Finding) -> bool:
        """Have a match that another machine plays end by the offence of a seat, as it was removed.

        Returns whether another machine plays it.
        """

    @property
    def at_once(self) -> int:
        """How many jobs other machines take at once; 0 if there are none."""

    def is_portable(self, name: str, game: str) -> bool:
        """Whether other machines can play a bot that was launched here."""

    def interrupted(self, competition: str) -> Sequence[MatchJob]:
        """The jobs of a competition that other machines may still play for an earlier arena."""

    @property
    def remote(self) -> Mapping[str, RemoteMatch]:
        """By id, the matches that other machines play now."""

    def done(self, job: str, match: str, result: MatchResult, verdict: Verdict | None) -> None:
        """The taker says what came of a job; only the first time counts."""

    def on_cancel(self, call: Callable[[str, str], None]) -> None:
        """Have the taker told of jobs that are cancelled while it plays them."""


def unplayed(job: MatchJob, why: str) -> MatchResult:
    """The result of a job whose match is void before it has begun; it is not to be recorded."""
    record = unplayed_record(job.game, job.settings, len(job.players), why)
    return MatchResult(record.scores, record.points, record.termination, record=record)


def unplayed_record(game: str, settings: dict[str, Any], seats: int, why: str) -> Record:
    """What there is to say of a match that is void before it has begun."""
    zeros = (0,) * seats
    return Record(
        game=game,
        settings=settings,
        seed=None,
        nonces=(),
        decks=None,
        answers=(),
        scores=zeros,
        points=zeros,
        termination=Termination(Ending.VOID, None, why),
    )
