"""Competitions, matches, acts and people as readers of the database get them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from arena.formats.intervals import IntervalUnit
from arena.formats.schedule import Pairing, RankingPlace
from arena.formats.scorebook import Scorebook
from arena.formats.spec import Form, Plan
from arena.games.match import Result
from arena.games.statistics import UnitSums
from arena.records.luck import LuckSums
from arena.sandbox.manifest import ProgramManifest
from protocol.messages import Action, Ending, Termination, Verdict

__all__ = [
    "ARENA",
    "REOPENED",
    "RESTORED",
    "VERSION",
    "Act",
    "CompetitionReport",
    "CompetitionRow",
    "CompetitionState",
    "Imported",
    "InPlay",
    "Issued",
    "MatchRow",
    "MatchStderr",
    "MatchSums",
    "Member",
    "Outage",
    "Submission",
    "SubmissionState",
    "VersionChange",
    "add_to",
    "in_order",
    "removed",
    "seated_versions",
    "taken_back",
]

ARENA = "the arena"
"""`Act.who` for what the arena does by itself."""
VERSION = "version"
"""`Act.what` when a version comes into play on a ladder, after the act's match (K4)."""
REOPENED = "reopen"
"""`Act.what` when a finished competition runs again because the act's match was taken back."""
RESTORED = "restore"
"""`Act.what` when a match that was taken back counts again, as it was not played again."""


class CompetitionState(StrEnum):
    """How far a competition is."""

    RUNNING = "running"  # also when the arena could not continue it; the next start tries again
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"  # ended by the instructor

    @property
    def is_over(self) -> bool:
        return self in (CompetitionState.FINISHED, CompetitionState.STOPPED)


class CompetitionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A competition as it was set up, and its state; times in Unix seconds."""

    id: str
    plan: Plan
    state: CompetitionState
    revision: int  # grows when a match is taken back: all results are then added up again
    started_at: float
    finished_at: float | None
    ranking: tuple[RankingPlace, ...]  # only for an elimination that has ended, else empty


class MatchSums(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The sums of a match that are stored with it; they follow from its record.

    `units` is None if the match itself is the unit, or has no whole block of units. `luck` is
    measured after the match: it is None until then, and a text with the reason if it cannot be.
    """

    units: UnitSums | None = None
    luck: LuckSums | str | None = None


class MatchRow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A match that is over, without its record; times in Unix seconds."""

    number: int  # grows in the order of writing
    id: str
    competition: str  # its id
    pairing: int  # its number in the competition's schedule, from 1
    counts: bool  # neither void nor taken back
    game: str
    players: tuple[str, ...]  # the bots' names by seat
    result: Result
    started_at: float  # when the seats were invited
    finished_at: float  # when the result was known
    digest: str  # the match's seal (`arena/records/document.py`)
    sums: MatchSums | None = None  # None: written by an older arena (`arena luck` adds them)
    # By seat, as in the record; None for a seat without a version, empty if no seat has one.
    versions: tuple[str | None, ...] = ()

    @property
    def units(self) -> UnitSums | None:
        return None if self.sums is None else self.sums.units


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """A match that is void because bots were away at once (J9); times in Unix seconds."""

    match: str
    pairing: int
    away: tuple[str, ...]  # the names of these bots
    scores: dict[str, int]  # of all bots when the match stopped
    started_at: float
    finished_at: float

    @classmethod
    def of(cls, played: MatchRow, away: Iterable[int]) -> Outage:
        """Make the outage from a void match; `away` are the seats in its record."""
        return cls(
            match=played.id,
            pairing=played.pairing,
            away=tuple(played.players[seat] for seat in away),
            scores=dict(zip(played.players, played.result.scores, strict=True)),
            started_at=played.started_at,
            finished_at=played.finished_at,
        )


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did to a competition, or to the arena."""

    competition: str | None = None  # its id; None if it was done to the arena
    at: float  # in Unix seconds
    who: str  # the instructor's name, or `ARENA`
    # An `Action`; `out` or `in` if a bot offended outside a match or was excused; `use`, `disable`
    # or `enable` for a submitted version; or `VERSION`, `REOPENED` or `RESTORED`.
    what: str
    match: str | None = None
    bot: str | None = None
    text: str = ""  # the outcome, for people


class VersionChange(msgspec.Struct, frozen=True):
    """Another version of a bot came into play on a ladder."""

    bot: str
    match: str | None  # the last match that was written before; None if there was none
    after: int  # the number of that match; 0 if there was none


class CompetitionReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a competition ended.

    Attributes:
        run: the name of its run, or empty.
        state: `finished`, or `stopped` by the instructor.
        standings: rows, best first, the eliminated at the end; empty for an elimination.
        cross_table: the results of each player against each other one, in a round robin.
        ranking: the places of an elimination.
        played: how many matches count or ended by an offence.
        seconds: how long it took, since the arena was last started.
        not_there: names of the roster that had not come when it started.
        unit: what the intervals in the standings are made from; None where there are none.
        versions: by bot, the latest that has played, of bots that have one.
        is_written: whether all of it has reached the disk; if not, the arena keeps trying.
    """

    competition: str
    run: str
    game: str
    form: Form
    players: tuple[str, ...]
    state: CompetitionState
    standings: tuple[Any, ...]
    cross_table: dict[str, dict[str, Any]]
    ranking: tuple[RankingPlace, ...]
    verdicts: tuple[Verdict, ...]
    played: int
    seconds: float
    not_there: tuple[str, ...] = ()
    unit: IntervalUnit | None = None
    versions: dict[str, str] = {}
    is_written: bool = True


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A person on the roster; times in Unix seconds. `revoked_at` is None for a valid token."""

    name: str
    email: str | None
    team: str | None
    made_at: float
    revoked_at: float | None


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A new token, which cannot be read again later."""

    name: str
    email: str | None
    team: str | None
    token: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of importing a class list; `revoked` are names on it whose token is revoked."""

    new: tuple[Issued, ...]
    changed: int
    same: int
    revoked: tuple[str, ...]


class SubmissionState(StrEnum):
    """How far a submission is."""

    WAITING = "waiting"
    BUILDING = "building"
    CHECKING = "checking"
    ACCEPTED = "accepted"
    REFUSED = "refused"

    @property
    def is_decided(self) -> bool:
        return self in (SubmissionState.ACCEPTED, SubmissionState.REFUSED)


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """A submission. Times are in Unix seconds.

    Attributes:
        number: its number in this arena, in the order of arrival.
        owner: a name on the roster; `ann/left` once ann was taken off.
        version: its number among the owner's versions; None until it is accepted.
        name: the name of the file that was handed in.
        program: the program's SHA-256.
        size: the size of the program's tar in bytes.
        games: the games that it plays; empty until it is accepted.
        manifest: None until it is accepted.
        text: why it was refused, or what was found.
        disabled_at: when an instructor took it out of play; else None.
    """

    number: int
    owner: str
    version: int | None
    name: str
    message: str
    arrived_at: float
    program: str
    size: int
    state: SubmissionState
    games: tuple[str, ...]
    manifest: ProgramManifest | None
    text: str
    decided_at: float | None
    disabled_at: float | None


class InPlay(msgspec.Struct, frozen=True):
    """A version in play in a game, with the time and the name of the person who put it there."""

    owner: str
    game: str
    submission: int  # its number
    version: int
    at: float
    who: str


class MatchStderr(msgspec.Struct, frozen=True):
    """The end of a submission's stderr in one match."""

    match: str
    at: float
    submission: int  # its number
    version: int | None
    text: str


def in_order(
    matches: Iterable[MatchRow], changes: Sequence[VersionChange]
) -> Iterator[MatchRow | VersionChange]:
    """Yield a ladder's matches and version changes in the order in which they are rated (K4)."""
    made = 0
    for played in matches:
        while made < len(changes) and changes[made].after < played.number:
            yield changes[made]
            made += 1
        yield played
    yield from changes[made:]


def add_to(book: Scorebook, each: MatchRow | VersionChange) -> None:
    """Add a match that counts, or a version change, to the scorebook of a competition."""
    if isinstance(each, MatchRow):
        pairing, ended_at = Pairing(each.pairing, each.players), each.finished_at
        book.add(each.id, pairing, each.result, ended_at, each.units, each.versions)
    else:
        book.version_changed(each.bot)


def seated_versions(versions: Iterable[str | None]) -> tuple[str | None, ...]:
    """Return `MatchRow.versions` for the versions of the seats; "" and None mean no version."""
    by_seat = tuple(version or None for version in versions)
    return by_seat if any(by_seat) else ()


def removed(acts: Iterable[Act]) -> dict[str, Termination]:
    """Return the bots that the instructor has removed, each with its termination."""
    out: dict[str, Termination] = {}
    for act in acts:
        if act.what == Action.REMOVE and act.bot is not None:
            out.setdefault(act.bot, Termination(Ending.REMOVED, None, act.text))
    return out


def taken_back(acts: Iterable[Act]) -> dict[str, float]:
    """Return the matches that the instructor made void and that still are, each with the time."""
    back: dict[str, float] = {}
    for act in acts:
        if act.match is not None and act.what == Action.VOID:
            back[act.match] = act.at
        elif act.match is not None and act.what == RESTORED:
            back.pop(act.match, None)
    return back
