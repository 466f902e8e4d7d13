"""The roster: who may play here, in which team and with which token, and who the instructors are.

It is in the arena's database. `arena roster` may change it while an arena runs, and then tells that
arena to read it again (`arena/storage/arena_contact.py`). Each change is one short transaction in
the calling thread. A token is shown once, when it is made; only its hash is stored. Revoking a
token reserves the name. A name can also be changed or removed: results keep the old name, and the
acts written with the change say who had it (`NameHistory`). Submissions follow the change of name
(`arena/storage/submissions.py`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import sqlalchemy as sa

from arena.formats.spec import Form, Plan
from arena.games.names import alike, owner_of, spelled
from arena.storage.models import Act, CompetitionState, Imported, Issued, Member
from arena.storage.roster_csv import Student, check_name
from arena.storage.schema import ACTIONS, COMPETITIONS, INSTRUCTORS, MATCHES, ROSTER, SEATS
from arena.storage.submissions import owner_removed, owner_renamed
from arena.storage.tokens import Access, hashed
from arena.storage.writer import reading, writing
from protocol.errors import UsageError
from protocol.messages import Action

__all__ = ["BY_HAND", "Change", "Imported", "Issued", "Member", "NameHistory", "Roster"]

BY_HAND = "arena roster"
"""`Act.who` for that command, which needs no token as it writes the database itself."""

Person = TypeVar("Person")

_TOKEN_BYTES = 24  # random bytes, 32 letters when encoded
_REVISION = "roster"  # a key of the table `meta`


class Change(msgspec.Struct, frozen=True):
    """A person was renamed, or left the roster if `new` is None; `at` in Unix seconds."""

    at: float
    name: str
    new: str | None


class NameHistory(Generic[Person]):
    """The people now on the roster, by name, and all changes of names in order."""

    def __init__(self, people: Mapping[str, Person], changes: Sequence[Change] = ()) -> None:
        self._people = dict(people)
        self._alike = {alike(name): people[name] for name in reversed(tuple(people))}
        self._changes = changes

    def owner(self, bot: str, at: float) -> Person | None:
        """Return who owned the bot of that name at that time; None if no longer on the roster."""
        name = owner_of(bot)
        for change in self._changes:
            if change.at > at and alike(change.name) == alike(name):
                if change.new is None:
                    return None
                name = change.new
        return self._people.get(name) or self._alike.get(alike(name))


class Roster:
    """Reads and writes the roster in an arena's database; `now` gives Unix seconds.

    A name may be given in any spelling that looks alike. Methods that change a person return the
    name as it was on the roster, and raise UsageError if it is not there. Every method raises
    StoreFailed if the database cannot be read or written. After an error nothing has changed.
    """

    def __init__(self, engine: sa.Engine, now: Callable[[], float] = time.time) -> None:
        self.engine = engine
        self._now = now

    def take(
        self,
        students: Sequence[Student],
        hand_out: Callable[[Sequence[Issued]], None] = lambda issued: None,
    ) -> Imported:
        """Add the new students, with a token each, and update the others, whose tokens stay.

        A field that is None stays as it is. `hand_out` gets the new tokens before they are valid.
        If it raises, nothing is changed, so no token becomes valid that nobody has seen.
        """
        new: list[Issued] = []
        revoked: list[str] = []
        changed = 0
        with writing(self.engine, _REVISION) as connection:
            rows = connection.execute(sa.select(ROSTER).order_by(ROSTER.c.name.desc())).all()
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
        """Give a person a new token in place of the old or revoked one."""
        token = _new_token()
        with writing(self.engine, _REVISION) as connection:
            row = self._known(connection, name)
            given = {"token_hash": hashed(token), "made_at": self._now()}
            self._set(connection, row.name, {**given, "revoked_at": None})
        return Issued(name=row.name, email=row.email, team=row.team, token=token)

    def revoke(self, name: str) -> str:
        """Revoke a person's token; raises UsageError if it is revoked already."""
        with writing(self.engine, _REVISION) as connection:
            row = self._known(connection, name)
            if row.revoked_at is not None:
                raise UsageError(f"the token of {row.name!r} is revoked already")
            self._set(connection, row.name, {"revoked_at": self._now()})
        return str(row.name)

    def rename(self, name: str, new: str, who: str = BY_HAND) -> str:
        """Give a person another name; token, e-mail and team stay.

        Raises UsageError if the new name is invalid or taken, or if the old one takes part in a
        competition that is not over.
        """
        check_name(new)
        with writing(self.engine, _REVISION) as connection:
            row = self._idle(connection, name)
            names = connection.execute(sa.select(ROSTER.c.name)).scalars()
            others = {alike(other): other for other in names if other != row.name}
            if new == row.name:
                raise UsageError(f"expected another name, got {new!r} again")
            if (other := others.get(alike(new))) is not None:
                raise UsageError(
                    "expected a name that nobody on the roster has, "
                    f"got {new!r}, and {other!r} is on it"
                )
            self._set(connection, row.name, {"name": new})
            owner_renamed(connection, row.name, new)
            self._acted(connection, Action.RENAME, row.name, new, who)
        return str(row.name)

    def remove(self, name: str, who: str = BY_HAND, *, from_running: bool = False) -> str:
        """Delete a person. Raises UsageError if the person takes part in a competition that is not
        over, unless `from_running`.
        """
        with writing(self.engine, _REVISION) as connection:
            row = self._known(connection, name) if from_running else self._idle(connection, name)
            connection.execute(ROSTER.delete().where(ROSTER.c.name == row.name))
            owner_removed(connection, row.name, self._now())
            self._acted(connection, Action.UNLIST, row.name, "", who)
        return str(row.name)

    def instructor(self, name: str = "instructor") -> str:
        """Make an instructor's token, which replaces that of any name that looks alike.

        Raises UsageError if the name is invalid.
        """
        check_name(name)
        token = _new_token()
        query = sa.select(INSTRUCTORS.c.name).order_by(INSTRUCTORS.c.name)
        with writing(self.engine, _REVISION) as connection:
            known = connection.execute(query).scalars().all()
            same = [other for other in known if alike(other) == alike(name)]
            connection.execute(INSTRUCTORS.delete().where(INSTRUCTORS.c.name.in_(same)))
            row = {"name": spelled(name, same), "token_hash": hashed(token), "made_at": self._now()}
            connection.execute(INSTRUCTORS.insert().values(**row))
        return token

    def members(self) -> tuple[Member, ...]:
        """Return all people on the roster, by name."""
        columns = [ROSTER.c[name] for name in Member.__struct_fields__]
        with reading(self.engine) as connection:
            rows = connection.execute(sa.select(*columns).order_by(ROSTER.c.name))
            return tuple(Member(**row) for row in rows.mappings())

    def taking_part(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return a person's bots in unfinished competitions, each with the competition's id."""
        with reading(self.engine) as connection:
            return tuple(_unfinished(connection, self._known(connection, name).name))

    def teams(self) -> dict[str, str]:
        return {member.name: member.team for member in self.members() if member.team}

    def history(self) -> NameHistory[Member]:
        """Return the members and all changes of names; they tell who had a name in results."""
        changed = ACTIONS.c.what.in_((Action.RENAME.value, Action.UNLIST.value))
        query = sa.select(ACTIONS).where(changed).order_by(ACTIONS.c.number)
        with reading(self.engine) as connection:
            rows = connection.execute(query).all()
        changes = tuple(Change(row.at, row.bot, row.text or None) for row in rows)
        return NameHistory({member.name: member for member in self.members()}, changes)

    def access(self) -> Access:
        with reading(self.engine) as connection:
            rows = connection.execute(sa.select(ROSTER)).all()
            instructors = connection.execute(sa.select(INSTRUCTORS)).all()
        return Access(
            names=frozenset(row.name for row in rows),
            players={row.token_hash: row.name for row in rows if row.revoked_at is None},
            instructors={row.token_hash: row.name for row in instructors},
        )

    # --- within ---

    def _idle(self, connection: sa.Connection, name: str) -> sa.Row[tuple[object, ...]]:
        """Return a person's row; raises UsageError for one in a competition that is not over."""
        row = self._known(connection, name)
        for bot, competition in _unfinished(connection, row.name):
            raise UsageError(
                "expected somebody who takes part in nothing that goes on: "
                f"{bot} is in {competition}, which is not over; "
                f"`arena remove {bot}` takes it out"
            )
        return row

    def _acted(
        self, connection: sa.Connection, what: Action, name: str, text: str, who: str
    ) -> None:
        act = Act(at=self._now(), who=who, what=what.value, bot=name, text=text)
        connection.execute(ACTIONS.insert().values(**msgspec.structs.asdict(act)))

    def _add(self, connection: sa.Connection, student: Student) -> Issued:
        email, team, token = student.email or None, student.team or None, _new_token()
        person = {"name": student.name, "email": email, "team": team}
        row = {**person, "token_hash": hashed(token), "made_at": self._now()}
        connection.execute(ROSTER.insert().values(**row))
        return Issued(name=student.name, email=email, team=team, token=token)

    def _update(
        self, connection: sa.Connection, student: Student, row: sa.Row[tuple[object, ...]]
    ) -> bool:
        """Write the e-mail and team from a class list; return whether anything changed."""
        values = {
            column: value or None
            for column, value in (("email", student.email), ("team", student.team))
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


def _new_token() -> str:
    """Make a random token that does not begin with `-`, which spreadsheets read as a formula."""
    while (token := secrets.token_urlsafe(_TOKEN_BYTES)).startswith("-"):
        pass
    return token


def _unfinished(connection: sa.Connection, owner: str) -> Iterator[tuple[str, str]]:
    """Yield an owner's bots in unfinished competitions, each with the competition's id."""
    unfinished = (CompetitionState.RUNNING.value, CompetitionState.PAUSED.value)
    query = sa.select(COMPETITIONS).where(COMPETITIONS.c.state.in_(unfinished))
    for competition in connection.execute(query).all():
        for bot in _taking_part(connection, competition):
            if alike(owner_of(bot)) == alike(owner):
                yield bot, competition.id


def _taking_part(connection: sa.Connection, competition: sa.Row[Any]) -> Sequence[str]:
    """Return the bots in a competition, except removed ones, which cannot come back."""
    plan = msgspec.json.decode(competition.plan, type=Plan)
    bots = list(plan.players)
    if plan.form is Form.LADDER:  # a bot enters a ladder by its first match
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
