"""What another process asks of the arena that runs on a database: changes of the roster that only it can judge.

Only the arena knows who is connected. So `arena roster rename` and `remove` put a request into the table `meta`, and the arena,
which looks at the roster again and again (`arena/storage/roster_watch.py`), claims it, carries it out, and writes the answer into the
same row. Whoever asks waits a while for that, and then withdraws what was not claimed: it is done once or not at all. An arena
that was killed holds its lock no longer (`arena/storage/lock.py`): nobody is connected then, and nothing is asked.
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
_PATIENCE_S = 10.0  # the arena looks twice a second; a disk that is busy takes longer
_LOOK_S = 0.1


class RequestStatus(StrEnum):
    """How far a request is."""

    ASKED = "asked"
    CLAIMED = "claimed"
    DONE = "done"
    REFUSED = "refused"


_ANSWERED = (RequestStatus.DONE, RequestStatus.REFUSED)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is asked for.

    Attributes:
        action: `rename` or `unlist`.
        name: somebody's on the roster.
        new: the new name, of `rename`.
        status: how far it is.
        answer: what came of it, in one line.
    """

    action: Action
    name: str
    new: str | None = None
    status: RequestStatus = RequestStatus.ASKED
    answer: str = ""


class RosterRequests:
    """The requests in an arena's database.

    Args:
        engine: the database; its owner disposes of it.

    Raises:
        StoreFailed: every method, if the database cannot be read or written.
    """

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
        """Have the arena do it, and wait for that; what came of it, in one line.

        Raises:
            UsageError: the arena refuses; nothing has changed.
            Unreachable: it does not answer; the text says whether something may have changed.
        """
        key = _KEY + secrets.token_hex(8)
        with writing(self._engine) as connection:
            raise_revision(connection)  # the arena looks when that has changed
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
            # It is gone if the arena was started again: what was seen before counts then.
            seen = self._withdraw(key) or seen
        if seen.status is RequestStatus.DONE:
            return seen.answer
        if seen.status is RequestStatus.REFUSED:
            raise UsageError(seen.answer)
        if seen.status is RequestStatus.CLAIMED:
            raise Unreachable(
                f"the arena on {self._where} has begun with it, and it is not known whether it was done: see `arena roster list`"
            )
        raise Unreachable(f"the arena on {self._where} does not answer; nothing has changed")

    def waiting(self) -> tuple[tuple[str, Request], ...]:
        """What is asked for and nobody has claimed, each with its key."""
        with reading(self._engine) as connection:
            rows = connection.execute(_ALL).all()
        asked = ((row.key, _request(row.value)) for row in rows)
        return tuple(one for one in asked if one[1].status is RequestStatus.ASKED)

    def claim(self, key: str, request: Request) -> bool:
        """Whether it is still asked for; then it cannot be withdrawn any more."""
        claimed = msgspec.structs.replace(request, status=RequestStatus.CLAIMED)
        row = (META.c.key == key) & (META.c.value == _text(request))
        with writing(self._engine) as connection:
            done = connection.execute(META.update().where(row).values(value=_text(claimed)))
        return done.rowcount == 1

    def answer(self, key: str, request: Request, text: str, *, is_done: bool) -> None:
        """Write down what came of it."""
        status = RequestStatus.DONE if is_done else RequestStatus.REFUSED
        said = msgspec.structs.replace(request, status=status, answer=text)
        mine = META.c.key == key
        with writing(self._engine) as connection:
            connection.execute(META.update().where(mine).values(value=_text(said)))

    def clear(self) -> None:
        """Forget those that were put to an earlier arena: who asked has gone."""
        with writing(self._engine) as connection:
            connection.execute(META.delete().where(META.c.key.startswith(_KEY)))

    # --- within ---

    def _read(self, key: str) -> Request | None:
        query = sa.select(META.c.value).where(META.c.key == key)
        with reading(self._engine) as connection:
            value = connection.execute(query).scalar()
        return None if value is None else _request(value)

    def _withdraw(self, key: str) -> Request | None:
        """Ask no more; the request as it was until then, None if it was gone."""
        mine = META.c.key == key
        # PostgreSQL lets others write after we have read, unless the row is locked: the arena may be claiming it.
        query = sa.select(META.c.value).where(mine).with_for_update()
        with writing(self._engine) as connection:
            value = connection.execute(query).scalar()
            connection.execute(META.delete().where(mine))
        return None if value is None else _request(value)


_ALL = sa.select(META).where(META.c.key.startswith(_KEY)).order_by(META.c.key)


def _text(request: Request) -> str:
    return msgspec.json.encode(request).decode()


def _request(text: str) -> Request:
    return msgspec.json.decode(text, type=Request)
