"""Requests of other processes to a running arena: changes of the roster that only it can judge.

Only the arena knows who is connected. So `arena roster rename` and `remove` put a request into the
table `meta`. The arena, which polls the roster (`arena/storage/roster_watch.py`), claims it,
carries it out, and writes the answer into the same row. The other process waits a while for that,
and then withdraws a request that was not claimed: it is done once or not at all. An arena that was
killed holds no lock (`arena/storage/lock.py`): nobody is connected then, and no request is needed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from enum import StrEnum

import msgspec
import sqlalchemy as sa

from arena.storage.roster import raise_revision
from arena.storage.schema import META, shown
from arena.storage.writer import reading, writing
from protocol.errors import Unreachable, UsageError
from protocol.messages import Action

__all__ = ["Request", "RequestStatus", "RosterRequests"]

_KEY = "request-"  # of the table `meta`, with a random end
_PATIENCE_S = 10.0  # the arena looks twice a second; a busy disk takes longer
_LOOK_S = 0.1


class RequestStatus(StrEnum):
    """The stages of a request."""

    ASKED = "asked"
    CLAIMED = "claimed"
    DONE = "done"
    REFUSED = "refused"


_ANSWERED = (RequestStatus.DONE, RequestStatus.REFUSED)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is asked for."""

    action: Action  # `rename` or `unlist`
    name: str  # as it is on the roster
    new: str | None = None  # the new name, for `rename`
    from_running: bool = False  # for `unlist`, as in `Instruct`
    status: RequestStatus = RequestStatus.ASKED
    answer: str = ""  # what came of it, in one line, once it is done or refused


class RosterRequests:
    """The requests in an arena's database; methods raise StoreFailed if that cannot be used."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._where = shown(engine.url)

    def ask(
        self,
        request: Request,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> str:
        """Have the arena carry a request out, and return its answer, one line.

        Raises UsageError if the arena refuses, with nothing changed, and Unreachable if it does not
        answer; the text says whether something may have changed.
        """
        key = _KEY + secrets.token_hex(8)
        with writing(self._engine) as connection:
            raise_revision(connection)  # the arena reads requests only after a change
            connection.execute(META.insert().values(key=key, value=_text(request)))
        give_up = clock() + _PATIENCE_S
        seen = request
        try:
            while (now := self._read(key)) is not None:
                seen = now
                if seen.status in _ANSWERED or clock() >= give_up:
                    break
                sleep(_LOOK_S)
        finally:
            # An arena that starts clears all requests; the state last seen counts then.
            seen = self._withdraw(key) or seen
        if seen.status is RequestStatus.DONE:
            return seen.answer
        if seen.status is RequestStatus.REFUSED:
            raise UsageError(seen.answer)
        if seen.status is RequestStatus.CLAIMED:
            raise Unreachable(
                f"the arena on {self._where} has begun with it, "
                "and it is not known whether it was done: see `arena roster list`"
            )
        raise Unreachable(f"the arena on {self._where} does not answer; nothing has changed")

    def waiting(self) -> tuple[tuple[str, Request], ...]:
        """The requests that nobody has claimed, each with its key."""
        query = sa.select(META).where(META.c.key.startswith(_KEY)).order_by(META.c.key)
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        requests = ((row.key, _request(row.value)) for row in rows)
        return tuple(
            (key, request) for key, request in requests if request.status is RequestStatus.ASKED
        )

    def claim(self, key: str, request: Request) -> bool:
        """Claim a request, which cannot be withdrawn then; False if it has been withdrawn."""
        claimed = msgspec.structs.replace(request, status=RequestStatus.CLAIMED)
        is_asked = (META.c.key == key) & (META.c.value == _text(request))
        with writing(self._engine) as connection:
            done = connection.execute(META.update().where(is_asked).values(value=_text(claimed)))
        return done.rowcount == 1

    def answer(self, key: str, request: Request, text: str, *, is_done: bool) -> None:
        status = RequestStatus.DONE if is_done else RequestStatus.REFUSED
        answered = msgspec.structs.replace(request, status=status, answer=text)
        update = META.update().where(META.c.key == key)
        with writing(self._engine) as connection:
            connection.execute(update.values(value=_text(answered)))

    def clear(self) -> None:
        """Delete the requests to an earlier arena: nobody waits for their answers."""
        with writing(self._engine) as connection:
            connection.execute(META.delete().where(META.c.key.startswith(_KEY)))

    # --- within ---

    def _read(self, key: str) -> Request | None:
        query = sa.select(META.c.value).where(META.c.key == key)
        with reading(self._engine) as connection:
            value = connection.execute(query).scalar()
        return None if value is None else _request(value)

    def _withdraw(self, key: str) -> Request | None:
        """Delete the request, and return it as it was until then; None if it was gone."""
        is_it = META.c.key == key
        # The arena may be claiming it: PostgreSQL lets others write between our read and our
        # delete unless the row is locked.
        query = sa.select(META.c.value).where(is_it).with_for_update()
        with writing(self._engine) as connection:
            value = connection.execute(query).scalar()
            connection.execute(META.delete().where(is_it))
        return None if value is None else _request(value)


def _text(request: Request) -> str:
    return msgspec.json.encode(request).decode()


def _request(text: str) -> Request:
    return msgspec.json.decode(text, type=Request)
