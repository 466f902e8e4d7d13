"""The roster: who may play here, in which team, and with which token; and who instructs.

It is in the arena's database, and may be changed by `arena roster` while an arena runs on that: each change is one short
transaction in the calling thread, and raises the roster's revision, which `arena/roster_watch.py` looks at. A token is handed out when it
is made; only its hash is kept, so nobody can be told it again, but be given another. Nobody is ever deleted: who has
played stays known by name, and whoever should play no more is revoked.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from arena.access import Access, hashed
from arena.class_list import Student, check_name
from arena.database import INSTRUCTORS, META, ROSTER, changing, shown
from arena.names import alike, spelled
from arena.writer import failed
from protocol.errors import UsageError

__all__ = ["Imported", "Issued", "Member", "Roster"]

_TOKEN_BYTES = 24  # random ones, in 32 letters
_REVISION = "roster"  # of the table `meta`


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody on the roster; times in Unix seconds, `revoked_at` None while the token is good."""

    name: str
    email: str | None
    team: str | None
    made_at: float
    revoked_at: float | None


class Issued(msgspec.Struct, frozen=True, kw_only=True):
    """A token that was made just now: the one time that it is there to be handed out."""

    name: str
    email: str | None
    team: str | None
    token: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a list: the new ones with their tokens, how many others changed, and who of it stays revoked."""

    new: tuple[Issued, ...]
    changed: int
    same: int
    revoked: tuple[str, ...]


class Roster:
    """Reads and writes the roster in an arena's database.

    Args:
        engine: the database, of this schema; its owner disposes of it.
        now: the time of day in Unix seconds.

    Raises:
        StoreFailed: every method, if the database cannot be read or written; nothing has changed.
    """

    def __init__(self, engine: sa.Engine, now: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._now = now
        self._where = shown(engine.url)

    def take(
        self,
        students: Sequence[Student],
        hand_out: Callable[[Sequence[Issued]], None] = lambda issued: None,
    ) -> Imported:
        """Add those who are new, with a token each, and bring the others up to date; nobody loses a token or gets it back.

        Args:
            students: a class; what they leave as None stays as it is.
            hand_out: is given the new tokens before they count. If it raises nothing has changed, so that there is no token
                that nobody has seen.
        """
        new: list[Issued] = []
        revoked: list[str] = []
        changed = 0
        with self._changes() as connection:
            query = sa.select(ROSTER).order_by(ROSTER.c.name.desc())
            rows = connection.execute(query).all()
            known = {alike(row.name): row for row in rows}
            known |= {row.name: row for row in rows}
            for student in students:
                row = known.get(student.name) or known.get(alike(student.name))
                if row is None:
                    new.append(self._add(connection, student))
                    continue
                changed += self._update(connection, student, row)
                if row.revoked_at is not None:
                    revoked.append(row.name)
            if new:
                hand_out(tuple(new))
        return Imported(
            new=tuple(new),
            changed=changed,
            same=len(students) - len(new) - changed,
            revoked=tuple(revoked),
        )

    def rotate(self, name: str) -> Issued:
        """Give somebody another token: the former one is good no longer; who was revoked is in again.

        Raises:
            UsageError: nobody is called so.
        """
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with self._changes() as connection:
            row = self._known(connection, name)
            given = {"token_hash": hashed(token), "made_at": self._now()}
            self._set(connection, row.name, {**given, "revoked_at": None})
        return Issued(name=row.name, email=row.email, team=row.team, token=token)

    def revoke(self, name: str) -> str:
        """Somebody's token is good no longer, and there is no other; returns the name as it is on the roster.

        Raises:
            UsageError: nobody is called so, or it has been done before.
        """
        with self._changes() as connection:
            row = self._known(connection, name)
            if row.revoked_at is not None:
                raise UsageError(f"the token of {row.name!r} is revoked already")
            self._set(connection, row.name, {"revoked_at": self._now()})
        return str(row.name)

    def instructor(self, name: str = "instructor") -> str:
        """An instructor's token, made now; a former one of that name, or of one that looks like it, is good no longer.

        Raises:
            UsageError: that is no name.
        """
        check_name(name)
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        query = sa.select(INSTRUCTORS.c.name).order_by(INSTRUCTORS.c.name)
        with self._changes() as connection:
            known = [row.name for row in connection.execute(query)]
            same = [other for other in known if alike(other) == alike(name)]
            former = INSTRUCTORS.delete().where(INSTRUCTORS.c.name.in_(same))
            connection.execute(former)
            connection.execute(
                INSTRUCTORS.insert().values(
                    name=spelled(name, same),
                    token_hash=hashed(token),
                    made_at=self._now(),
                )
            )
        return token

    def members(self) -> tuple[Member, ...]:
        """All on the roster, by name."""
        with self._reads() as connection:
            rows = connection.execute(sa.select(ROSTER).order_by(ROSTER.c.name))
            names = Member.__struct_fields__
            return tuple(
                Member(**{name: getattr(row, name) for name in names}) for row in rows
            )

    def teams(self) -> dict[str, str]:
        """The teams by name, of those who are in one."""
        return {one.name: one.team for one in self.members() if one.team}

    def revision(self) -> int:
        """A number that goes up with every change."""
        with self._reads() as connection:
            return _revision(connection)

    def access(self) -> Access:
        """Who has a token now."""
        with self._reads() as connection:
            revision = _revision(
                connection
            )  # first: what changes now is seen once more
            rows = connection.execute(sa.select(ROSTER)).all()
            instructors = connection.execute(sa.select(INSTRUCTORS)).all()
        return Access(
            revision=revision,
            names=frozenset(row.name for row in rows),
            players={
                row.token_hash: row.name for row in rows if row.revoked_at is None
            },
            instructors={row.token_hash: row.name for row in instructors},
        )

    # --- within ---

    def _add(self, connection: sa.Connection, student: Student) -> Issued:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        email, team = student.email or None, student.team or None
        connection.execute(
            ROSTER.insert().values(
                name=student.name,
                email=email,
                team=team,
                token_hash=hashed(token),
                made_at=self._now(),
            )
        )
        return Issued(name=student.name, email=email, team=team, token=token)

    def _update(
        self,
        connection: sa.Connection,
        student: Student,
        row: sa.Row[tuple[object, ...]],
    ) -> bool:
        """Whether anything was new."""
        told = {"email": student.email, "team": student.team}
        values = {
            column: value or None
            for column, value in told.items()
            if value is not None and (value or None) != getattr(row, column)
        }
        if values:
            self._set(connection, row.name, values)
        return bool(values)

    def _set(
        self, connection: sa.Connection, name: str, values: Mapping[str, object]
    ) -> None:
        connection.execute(
            ROSTER.update().where(ROSTER.c.name == name).values(**values)
        )

    def _known(
        self, connection: sa.Connection, name: str
    ) -> sa.Row[tuple[object, ...]]:
        query = sa.select(ROSTER).order_by(ROSTER.c.name)
        known = {row.name: row for row in connection.execute(query)}
        row = known.get(spelled(name, known))
        if row is None:
            raise UsageError(f"expected a name on the roster, got {name!r}")
        return row

    @contextmanager
    def _changes(self) -> Iterator[sa.Connection]:
        """One transaction, and a new revision; changes of one process wait for those of another."""
        mine = META.c.key == _REVISION
        try:
            with changing(self._engine) as connection:
                row = connection.execute(
                    sa.select(META.c.value).where(mine).with_for_update()
                ).one()
                revision = (
                    META.update().where(mine).values(value=str(int(row.value) + 1))
                )
                connection.execute(revision)
                yield connection
        except SQLAlchemyError as error:
            raise failed("write", self._where, error) from error

    @contextmanager
    def _reads(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise failed("read", self._where, error) from error


def _revision(connection: sa.Connection) -> int:
    query = sa.select(META.c.value).where(META.c.key == _REVISION)
    return int(connection.execute(query).scalar_one())
