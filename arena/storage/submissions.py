"""Stores what students hand in, its state, and which of their versions are in play.

A submission is written once its whole program (`arena/storage/programs.py`) is stored; from then on
it survives a power cut. An accepted submission is a version of its owner. In each game, at most one
version of an owner is in play. Each change is one short transaction in the calling thread.

An owner is a name on the roster. Submissions follow when it is renamed. When it is taken off the
roster, its submissions stay for instructors under a name that nobody can have, so that the next
person of the old name does not get them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.records.document import stored_text
from arena.sandbox.manifest import ProgramManifest
from arena.storage.models import Act, InPlay, MatchStderr, Submission, SubmissionState
from arena.storage.programs import Programs
from arena.storage.schema import (
    ACTIONS,
    IN_PLAY,
    PROGRAMS,
    ROSTER,
    STDERR,
    SUBMISSION_LOGS,
    SUBMISSIONS,
    has_submissions,
    shown,
)
from arena.storage.writer import failed, raise_revision, reading, writing
from protocol.errors import UsageError

__all__ = [
    "InPlay",
    "MatchStderr",
    "StoredSubmission",
    "Submission",
    "SubmissionState",
    "Submissions",
    "owner_removed",
    "owner_renamed",
    "surplus",
]

MOST_STORED = 64 << 20  # bytes of an owner's programs, compressed
MOST_VERSIONS = 50  # submissions of an owner, refused ones included
MOST_STDERR = 20  # matches of an owner
STDERR_BYTES = 64 << 10  # of one match

_REVISION = "in play"  # a key of the table `meta`
_LEFT = "/left"  # suffix for an owner who has left: no name on a roster has a slash


_UNDECIDED = tuple(state.value for state in SubmissionState if not state.is_decided)


class Submissions:
    """Reads and writes the submissions in an arena's database.

    Methods block and are called from a thread (`asyncio.to_thread`). They raise StoreFailed if the
    database cannot be read or written, and UsageError if there is no such submission or version.
    After an error nothing has changed. `now` gives Unix seconds.
    """

    def __init__(self, engine: sa.Engine, now: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._now = now
        self._where = shown(engine.url)
        self._programs = Programs(engine)

    # --- the states of a submission ---

    def arrived(
        self, owner: str, name: str, message: str, sha256: str, size: int, at: float
    ) -> Submission:
        """Write a new submission, whose program is stored already.

        Raises UsageError if the owner is not on the roster or the program is not there. In the
        second case the quota of another owner may have deleted it: store it again.
        """
        row = {
            "owner": owner,
            "name": stored_text(name),
            "message": stored_text(message),
            "arrived_at": float(at),
            "program": sha256,
            "size": size,
            "state": SubmissionState.WAITING.value,
            "games": "[]",
            "text": "",
        }
        # Lock the row: somebody who takes the owner off the roster now finds the submission.
        member = sa.select(ROSTER.c.name).where(ROSTER.c.name == owner)
        program = sa.select(PROGRAMS.c.sha256).where(PROGRAMS.c.sha256 == sha256)
        with writing(self._engine) as connection:
            if connection.execute(member.with_for_update(read=True)).first() is None:
                raise UsageError(f"expected a name on the roster, got {owner!r}")
            if connection.execute(program.with_for_update(read=True)).first() is None:
                raise UsageError(f"expected a program that is in {self._where}, got {sha256}")
            done = connection.execute(SUBMISSIONS.insert().values(**row))
            assert done.inserted_primary_key is not None, "the database numbers them"
            return self._known(connection, done.inserted_primary_key.number)

    def undecided(self) -> tuple[Submission, ...]:
        """Return the submissions to be built and checked, in the order of arrival."""
        query = _SELECT.where(SUBMISSIONS.c.state.in_(_UNDECIDED))
        return self._all(query.order_by(SUBMISSIONS.c.number))

    def restarted(self) -> None:
        """Repair what a killed arena left behind. Called once at start-up.

        Submissions in building or checking wait again, and programs without a submission go.
        """
        is_open = SUBMISSIONS.c.state.in_(_UNDECIDED)
        with writing(self._engine) as connection:
            update = SUBMISSIONS.update().where(is_open)
            connection.execute(update.values(state=SubmissionState.WAITING.value))
        self._programs.sweep()

    def began(self, number: int, state: SubmissionState) -> None:
        """Write that a submission is building or checking; ignored once it is decided."""
        assert not state.is_decided, "accepted and refused are methods"
        is_it = (SUBMISSIONS.c.number == number) & SUBMISSIONS.c.state.in_(_UNDECIDED)
        with writing(self._engine) as connection:
            connection.execute(SUBMISSIONS.update().where(is_it).values(state=state.value))

    def reopened(self, number: int) -> Submission:
        """Let a decided submission wait again, to be built and checked anew.

        A version keeps its number, and stays in play until it is refused. Raises UsageError if the
        submission is not decided yet, or its owner has left.
        """
        with writing(self._engine) as connection:
            was = self._known(connection, number)
            if not was.state.is_decided:
                raise UsageError(f"submission {number} is not decided yet")
            if was.owner.endswith(_LEFT):
                raise UsageError(f"the owner of submission {number} is off the roster")
            state = SubmissionState.WAITING.value
            self._set(connection, number, state=state, text="", decided_at=None)
            return self._known(connection, number)

    def accepted(
        self, number: int, manifest: ProgramManifest, games: Sequence[str], text: str, at: float
    ) -> Submission:
        """Make a submission its owner's next version, and put it in play in its games.

        A submission that is decided already stays as it is. A reopened version keeps its number and
        is not put in play anew. Where a later submission is in play in a game, that one remains. A
        disabled submission is not put in play.
        """
        with writing(self._engine, _REVISION) as connection:
            was = self._known(connection, number)
            if was.state.is_decided:
                return was
            version = was.version or 1 + self._latest(connection, was.owner)
            self._set(
                connection,
                number,
                version=version,
                state=SubmissionState.ACCEPTED.value,
                games=_json(tuple(games)),
                manifest=_json(manifest),
                text=_stored(text),
                decided_at=float(at),
            )
            gone = (IN_PLAY.c.submission == number) & IN_PLAY.c.game.not_in(games)
            connection.execute(IN_PLAY.delete().where(gone))
            if was.version is None and was.disabled_at is None:
                later = IN_PLAY.c.submission > number
                query = sa.select(IN_PLAY.c.game).where(IN_PLAY.c.owner == was.owner, later)
                taken = set(connection.execute(query).scalars())
                for game in games:
                    if game not in taken:
                        self._put_in_play(connection, was, game, was.owner, at)
            return self._known(connection, number)

    def refused(self, number: int, text: str, at: float) -> None:
        """Refuse a submission; ignored if it is decided already.

        A reopened version that is refused is no longer in play.
        """
        with writing(self._engine, _REVISION) as connection:
            if self._known(connection, number).state.is_decided:
                return
            connection.execute(IN_PLAY.delete().where(IN_PLAY.c.submission == number))
            state = SubmissionState.REFUSED.value
            self._set(connection, number, state=state, text=_stored(text), decided_at=float(at))

    # --- queries ---

    def of(self, owner: str | None) -> tuple[Submission, ...]:
        """Return an owner's submissions, or all of them for None, the latest first."""
        query = _SELECT.order_by(SUBMISSIONS.c.number.desc())
        return self._all(query if owner is None else query.where(SUBMISSIONS.c.owner == owner))

    def get(self, number: int) -> Submission:
        for submission in self._all(_SELECT.where(SUBMISSIONS.c.number == number)):
            return submission
        raise self._no_submission(number)

    # --- versions in play ---

    def in_play(self, game: str | None = None) -> tuple[InPlay, ...]:
        """Return the versions in play, by owner and game, without disabled ones."""
        query = (
            sa.select(IN_PLAY, SUBMISSIONS.c.version)
            .join(SUBMISSIONS)
            .where(SUBMISSIONS.c.disabled_at.is_(None))
            .order_by(IN_PLAY.c.owner, IN_PLAY.c.game)
        )
        if game is not None:
            query = query.where(IN_PLAY.c.game == game)
        fields = InPlay.__struct_fields__
        return tuple(InPlay(**{field: row[field] for field in fields}) for row in self._read(query))

    def use(
        self, owner: str, version: int, game: str | None, who: str, at: float
    ) -> tuple[InPlay, ...]:
        """Put a version in play in a game, or with None in all its games.

        Returns all that the owner then has in play. Raises UsageError if the version is unknown,
        not accepted, disabled, or does not play that game.
        """
        is_it = (SUBMISSIONS.c.owner == owner) & (SUBMISSIONS.c.version == version)
        with writing(self._engine, _REVISION) as connection:
            found = connection.execute(_SELECT.where(is_it)).mappings().first()
            if found is None:
                raise UsageError(f"expected a version of {owner}, got v{version}")
            chosen = self._submission(found)
            if chosen.disabled_at is not None:
                raise UsageError(f"{owner} v{version} is disabled by an instructor")
            if chosen.state is not SubmissionState.ACCEPTED:
                raise UsageError(
                    f"expected a version that was accepted, v{version} is {chosen.state}"
                )
            if game is not None and game not in chosen.games:
                plays = ", ".join(chosen.games)
                raise UsageError(f"expected a game that v{version} plays ({plays}), got {game}")
            mine = (IN_PLAY.c.owner == owner) & (IN_PLAY.c.submission == chosen.number)
            there = set(connection.execute(sa.select(IN_PLAY.c.game).where(mine)).scalars())
            games = [one for one in chosen.games if game in (None, one) and one not in there]
            for one in games:
                self._put_in_play(connection, chosen, one, who, at)
            if games:
                text = f"{owner} v{version} is in play in {', '.join(games)}"
                _acted(connection, "use", owner, text, who, at)
        return tuple(one for one in self.in_play() if one.owner == owner)

    def disable(self, number: int, at: float | None, who: str) -> Submission:
        """Take a submission out of play, or with `at` None allow it again."""
        with writing(self._engine, _REVISION) as connection:
            was = self._known(connection, number)
            if (was.disabled_at is None) != (at is None):
                self._set(connection, number, disabled_at=at)
                what = "enable" if at is None else "disable"
                acted_at = self._now() if at is None else at
                _acted(connection, what, was.owner, f"{_shown(was)} is {what}d", who, acted_at)
            return self._known(connection, number)

    # --- logs ---

    def log(self, number: int, kind: str, text: str) -> None:
        """Write the log of a step, such as the build, in place of its earlier log."""
        is_it = (SUBMISSION_LOGS.c.submission == number) & (SUBMISSION_LOGS.c.kind == kind)
        row = {"submission": number, "kind": kind, "text": _stored(text)}
        with writing(self._engine) as connection:
            self._known(connection, number)
            connection.execute(SUBMISSION_LOGS.delete().where(is_it))
            connection.execute(SUBMISSION_LOGS.insert().values(**row))

    def logs(self, number: int) -> Mapping[str, str]:
        query = sa.select(SUBMISSION_LOGS).where(SUBMISSION_LOGS.c.submission == number)
        return {row["kind"]: row["text"] for row in self._read(query)}

    def note_stderr(self, submission: int, match: str, at: float, text: str) -> None:
        """Write the end of a match's stderr; only an owner's latest matches are kept.

        Ignored if the submission is gone.
        """
        end = _stored(text).encode()[-STDERR_BYTES:].decode(errors="ignore")
        whose = sa.select(SUBMISSIONS.c.owner).where(SUBMISSIONS.c.number == submission)
        with writing(self._engine) as connection:
            # The owner may have been renamed since the match began, and another have that name now.
            if (owner := connection.execute(whose).scalar()) is None:
                return
            row = {"owner": owner, "submission": submission, "match": match, "at": at, "text": end}
            mine = STDERR.c.owner == owner
            latest = sa.select(STDERR.c.number).where(mine).order_by(STDERR.c.number.desc())
            connection.execute(STDERR.delete().where(mine, STDERR.c.match == match))
            connection.execute(STDERR.insert().values(**row))
            oldest = connection.execute(latest.limit(MOST_STDERR)).scalars().all()[-1]
            connection.execute(STDERR.delete().where(mine, STDERR.c.number < oldest))

    def stderr(self, owner: str) -> tuple[MatchStderr, ...]:
        """Return stderr of the owner's latest matches, the latest first."""
        query = sa.select(STDERR, SUBMISSIONS.c.version).join(SUBMISSIONS)
        query = query.where(STDERR.c.owner == owner).order_by(STDERR.c.number.desc())
        fields = MatchStderr.__struct_fields__
        return tuple(
            MatchStderr(**{field: row[field] for field in fields}) for row in self._read(query)
        )

    # --- quota ---

    def make_room(self, owner: str, in_use: Collection[int] = ()) -> tuple[int, ...]:
        """Delete an owner's oldest submissions if there are too many, and return their numbers.

        Kept are submissions in play, undecided ones, the latest submission, the latest version, and
        those whose number is `in_use`, as the plans of unfinished competitions name them.
        """
        mine = SUBMISSIONS.c.owner == owner
        playing = sa.select(IN_PLAY.c.submission).where(IN_PLAY.c.owner == owner)
        query = sa.select(SUBMISSIONS, PROGRAMS.c.stored).join(PROGRAMS).where(mine)
        with writing(self._engine, _REVISION) as connection:
            rows = connection.execute(query.order_by(SUBMISSIONS.c.number)).all()
            needed = {*in_use, *connection.execute(playing).scalars()}
            needed |= {row.number for row in rows if row.state in _UNDECIDED}
            versions = [row for row in rows if row.version is not None]
            needed |= {row.number for row in rows[-1:]}
            needed |= {max(versions, key=lambda row: row.version).number} if versions else set()
            stored = [
                StoredSubmission(row.number, row.program, row.stored, row.number in needed)
                for row in rows
            ]
            numbers = surplus(stored)
            for table in (SUBMISSION_LOGS, STDERR):
                connection.execute(table.delete().where(table.c.submission.in_(numbers)))
            connection.execute(SUBMISSIONS.delete().where(SUBMISSIONS.c.number.in_(numbers)))
        for program in {one.program for one in stored if one.number in numbers}:
            self._programs.remove(program)
        return numbers

    # --- within ---

    def _put_in_play(
        self, connection: sa.Connection, version: Submission, game: str, who: str, at: float
    ) -> None:
        is_it = (IN_PLAY.c.owner == version.owner) & (IN_PLAY.c.game == game)
        row = {"owner": version.owner, "game": game, "submission": version.number}
        connection.execute(IN_PLAY.delete().where(is_it))
        connection.execute(IN_PLAY.insert().values(**row, at=float(at), who=who))

    def _latest(self, connection: sa.Connection, owner: str) -> int:
        query = sa.select(sa.func.max(SUBMISSIONS.c.version)).where(SUBMISSIONS.c.owner == owner)
        return connection.execute(query).scalar() or 0

    def _set(self, connection: sa.Connection, number: int, **values: object) -> None:
        connection.execute(
            SUBMISSIONS.update().where(SUBMISSIONS.c.number == number).values(**values)
        )

    def _known(self, connection: sa.Connection, number: int) -> Submission:
        query = _SELECT.where(SUBMISSIONS.c.number == number)
        row = connection.execute(query).mappings().first()
        if row is None:
            raise self._no_submission(number)
        return self._submission(row)

    def _all(self, query: sa.Select[Any]) -> tuple[Submission, ...]:
        return tuple(self._submission(row) for row in self._read(query))

    def _submission(self, row: sa.RowMapping) -> Submission:
        fields = {name: row[name] for name in Submission.__struct_fields__}
        try:
            for name in ("games", "manifest"):
                fields[name] = msgspec.json.decode(row[name] or "null")
            return msgspec.convert(fields, Submission)
        except msgspec.MsgspecError as error:
            raise failed(f"read submission {row['number']} in", self._where, error) from error

    def _read(self, query: sa.Select[Any]) -> Sequence[sa.RowMapping]:
        with reading(self._engine) as connection:
            if not has_submissions(connection):
                return ()
            return connection.execute(query).mappings().all()

    def _no_submission(self, number: int) -> UsageError:
        return UsageError(f"expected the number of a submission in {self._where}, got {number}")


_SELECT = sa.select(*(SUBMISSIONS.c[name] for name in Submission.__struct_fields__))


def owner_renamed(connection: sa.Connection, owner: str, new: str) -> None:
    """Move an owner's submissions to the owner's new name."""
    if has_submissions(connection):
        raise_revision(connection, _REVISION)
        for table in (SUBMISSIONS, IN_PLAY, STDERR):
            connection.execute(table.update().where(table.c.owner == owner).values(owner=new))


def owner_removed(connection: sa.Connection, owner: str, at: float) -> None:
    """Take a departed owner's submissions out of play, and keep them under a reserved name."""
    if has_submissions(connection):
        raise_revision(connection, _REVISION)
        mine = SUBMISSIONS.c.owner == owner
        connection.execute(IN_PLAY.delete().where(IN_PLAY.c.owner == owner))
        refused = {
            "state": SubmissionState.REFUSED.value,
            "text": f"{owner} was taken off the roster",
            "decided_at": at,
        }
        is_open = SUBMISSIONS.c.state.in_(_UNDECIDED)
        connection.execute(SUBMISSIONS.update().where(mine, is_open).values(**refused))
        for table in (SUBMISSIONS, STDERR):
            connection.execute(
                table.update().where(table.c.owner == owner).values(owner=owner + _LEFT)
            )


def _acted(connection: sa.Connection, what: str, bot: str, text: str, who: str, at: float) -> None:
    act = Act(at=float(at), who=who, what=what, bot=bot, text=text)
    connection.execute(ACTIONS.insert().values(**msgspec.structs.asdict(act)))


def _shown(submission: Submission) -> str:
    if submission.version is None:
        return f"submission {submission.number} of {submission.owner}"
    return f"{submission.owner} v{submission.version}"


def _stored(text: str) -> str:
    """Return a program's output as text that any database can store."""
    return stored_text(text).encode(errors="replace").decode()


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


class StoredSubmission(msgspec.Struct, frozen=True):
    """A submission, its program, and the program's compressed size in bytes."""

    number: int
    program: str  # its SHA-256
    stored: int
    is_needed: bool  # it must stay


def surplus(stored: Sequence[StoredSubmission]) -> tuple[int, ...]:
    """Return the numbers of the submissions to delete by the quota; `stored` is oldest first."""
    uses = Counter(one.program for one in stored)
    size = sum({one.program: one.stored for one in stored}.values())
    left = len(stored)
    gone = []
    for one in stored:
        if left <= MOST_VERSIONS and size <= MOST_STORED:
            break
        if not one.is_needed:
            gone.append(one.number)
            left -= 1
            uses[one.program] -= 1
            size -= 0 if uses[one.program] else one.stored
    return tuple(gone)
