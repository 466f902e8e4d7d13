"""The roster: who may play here, in which team, and with which token; and who instructs.

It is in the arena's database, and may be changed by `arena roster` while an arena runs on that: each change is one short
transaction in the calling thread, and raises the roster's revision, which `arena/storage/roster_watch.py` looks at. A token is handed out when it
is made; only its hash is kept, so nobody can be told it again, but be given another. Whoever should play no more is revoked, and the
name stays kept. A name can also be changed or taken off the roster: results keep the old name, and the acts that are written down
with the change say whose results they are (`arena/storage/name_history.py`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import sqlalchemy as sa

from arena.engine.names import alike, owner_of, spelled
from arena.formats.spec import Form, Plan
from arena.storage.models import Act, CompetitionState
from arena.storage.name_history import Change, NameHistory
from arena.storage.roster_csv import Student, check_name
from arena.storage.schema import ACTIONS, COMPETITIONS, INSTRUCTORS, MATCHES, META, ROSTER, SEATS
from arena.storage.tokens import Access, hashed
from arena.storage.writer import reading, writing
from protocol.errors import UsageError
from protocol.messages import Action

__all__ = ["BY_HAND", "Imported", "Issued", "Member", "Roster", "raise_revision"]

BY_HAND = "arena roster"
"""Who acts by that command: whoever may write the database needs no token."""

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
        token = _new_token()
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

    def rename(self, name: str, new: str, who: str = BY_HAND) -> str:
        """Give somebody another name; token, e-mail and team stay. Returns the name as it was there.

        Args:
            name: as it is on the roster, or as it looks.
            new: one that no other on the roster has.
            who: written down with it.

        Raises:
            UsageError: nobody is called so, or the new name is none or somebody else's, or the old one takes part in a competition
                that is not over.
        """
        check_name(new)
        with self._changes() as connection:
            row = self._idle(connection, name)
            names = connection.execute(sa.select(ROSTER.c.name)).scalars()
            others = {alike(one): one for one in names if one != row.name}
            if new == row.name:
                raise UsageError(f"expected another name, got {new!r} again")
            if (other := others.get(alike(new))) is not None:
                raise UsageError(
                    f"expected a name that nobody on the roster has, got {new!r}, and {other!r} is on it"
                )
            self._set(connection, row.name, {"name": new})
            self._acted(connection, Action.RENAME, row.name, new, who)
        return str(row.name)

    def remove(self, name: str, who: str = BY_HAND) -> str:
        """Take somebody off the roster, token and e-mail with it; returns the name as it was there.

        Raises:
            UsageError: nobody is called so, or somebody who takes part in a competition that is not over.
        """
        with self._changes() as connection:
            row = self._idle(connection, name)
            connection.execute(ROSTER.delete().where(ROSTER.c.name == row.name))
            self._acted(connection, Action.UNLIST, row.name, "", who)
        return str(row.name)

    def instructor(self, name: str = "instructor") -> str:
        """An instructor's token, made now; a former one of that name, or of one that looks like it, is good no longer.

        Raises:
            UsageError: that is no name.
        """
        check_name(name)
        token = _new_token()
        query = sa.select(INSTRUCTORS.c.name).order_by(INSTRUCTORS.c.name)
        with self._changes() as connection:
            known = [row.name for row in connection.execute(query)]
            same = [other for other in known if alike(other) == alike(name)]
            former = INSTRUCTORS.delete().where(INSTRUCTORS.c.name.in_(same))
            connection.execute(former)
            connection.execute(
                INSTRUCTORS.insert().values(
                    name=spelled(name, same), token_hash=hashed(token), made_at=self._now()
                )
            )
        return token

    def members(self) -> tuple[Member, ...]:
        """All on the roster, by name."""
        with reading(self._engine) as connection:
            rows = connection.execute(sa.select(ROSTER).order_by(ROSTER.c.name))
            names = Member.__struct_fields__
            return tuple(Member(**{name: getattr(row, name) for name in names}) for row in rows)

    def teams(self) -> dict[str, str]:
        """The teams by name, of those who are in one."""
        return {one.name: one.team for one in self.members() if one.team}

    def revision(self) -> int:
        """A number that goes up with every change."""
        with reading(self._engine) as connection:
            return _revision(connection)

    def history(self) -> NameHistory[Member]:
        """Whose the names in results are."""
        query = (
            sa.select(ACTIONS)
            .where(ACTIONS.c.what.in_((Action.RENAME.value, Action.UNLIST.value)))
            .order_by(ACTIONS.c.number)
        )
        with reading(self._engine) as connection:
            changes = tuple(
                Change(row.at, row.bot, row.text or None) for row in connection.execute(query)
            )
        return NameHistory({one.name: one for one in self.members()}, changes)

    def access(self) -> Access:
        """Who has a token now."""
        with reading(self._engine) as connection:
            revision = _revision(connection)  # first: what changes now is seen once more
            rows = connection.execute(sa.select(ROSTER)).all()
            instructors = connection.execute(sa.select(INSTRUCTORS)).all()
        return Access(
            revision=revision,
            names=frozenset(row.name for row in rows),
            players={row.token_hash: row.name for row in rows if row.revoked_at is None},
            instructors={row.token_hash: row.name for row in instructors},
        )

    # --- within ---

    def _idle(self, connection: sa.Connection, name: str) -> sa.Row[tuple[object, ...]]:
        """Somebody who takes part in nothing that goes on."""
        row = self._known(connection, name)
        unfinished = (CompetitionState.RUNNING.value, CompetitionState.PAUSED.value)
        query = sa.select(COMPETITIONS).where(COMPETITIONS.c.state.in_(unfinished))
        for one in connection.execute(query).all():
            for bot in _taking_part(connection, one):
                if alike(owner_of(bot)) == alike(row.name):
                    raise UsageError(
                        f"expected somebody who takes part in nothing that goes on: {bot} is in {one.id}, "
                        f"which is not over; `arena remove {bot}` takes it out"
                    )
        return row

    def _acted(
        self, connection: sa.Connection, what: Action, name: str, text: str, who: str
    ) -> None:
        act = Act(at=self._now(), who=who, what=what.value, bot=name, text=text)
        connection.execute(ACTIONS.insert().values(**msgspec.structs.asdict(act)))

    def _add(self, connection: sa.Connection, student: Student) -> Issued:
        token = _new_token()
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
        self, connection: sa.Connection, student: Student, row: sa.Row[tuple[object, ...]]
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

    def _set(self, connection: sa.Connection, name: str, values: Mapping[str, object]) -> None:
        connection.execute(ROSTER.update().where(ROSTER.c.name == name).values(**values))

    def _known(self, connection: sa.Connection, name: str) -> sa.Row[tuple[object, ...]]:
        query = sa.select(ROSTER).order_by(ROSTER.c.name)
        known = {row.name: row for row in connection.execute(query)}
        row = known.get(spelled(name, known))
        if row is None:
            raise UsageError(f"expected a name on the roster, got {name!r}")
        return row

    @contextmanager
    def _changes(self) -> Iterator[sa.Connection]:
        """One transaction, and a new revision."""
        with writing(self._engine) as connection:
            raise_revision(connection)
            yield connection


def _new_token() -> str:
    """One that a spreadsheet, in which tokens are handed out, does not take for a formula."""
    while (token := secrets.token_urlsafe(_TOKEN_BYTES)).startswith("-"):
        pass
    return token


def raise_revision(connection: sa.Connection) -> None:
    """Have the arena that runs on a database look at its roster once more; changes of one process wait for those of another."""
    mine = META.c.key == _REVISION
    row = connection.execute(sa.select(META.c.value).where(mine).with_for_update()).one()
    connection.execute(META.update().where(mine).values(value=str(int(row.value) + 1)))


def _taking_part(connection: sa.Connection, competition: sa.Row[Any]) -> Sequence[str]:
    """The bots in a competition, but for those that the instructor has taken out: nothing brings them back."""
    plan = msgspec.json.decode(competition.plan, type=Plan)
    bots = list(plan.players)
    if plan.form is Form.LADDER:  # which is entered by a match
        query = sa.select(SEATS.c.bot).distinct().join(MATCHES)
        query = query.where(MATCHES.c.competition == competition.id)
        bots += connection.execute(query).scalars()
    taken_out = (
        sa.select(ACTIONS.c.bot)
        .where(ACTIONS.c.competition == competition.id)
        .where(ACTIONS.c.what == Action.REMOVE.value)
    )
    removed = set(connection.execute(taken_out).scalars())
    return [
        bot
        for bot in bots
        if bot not in removed and not (plan.form is Form.LADDER and owner_of(bot) in removed)
    ]


def _revision(connection: sa.Connection) -> int:
    query = sa.select(META.c.value).where(META.c.key == _REVISION)
    return int(connection.execute(query).scalar_one())
