"""Where instructors are heard: their words get a token of their own, and are carried out by whoever runs the competitions."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from arena.referee.transport import Wire
from arena.server.admission import Admission
from arena.server.background import BackgroundTasks
from protocol.errors import ArenaError, UsageError
from protocol.messages import Done, Instruct, Refused

__all__ = ["Desk", "OnInstruct"]

log = logging.getLogger(__name__)

OnInstruct: TypeAlias = Callable[[Instruct, str], Done | Awaitable[Done]]
"""Does what an instructor wants, given the name on the token; raises `ArenaError` if that cannot be done.

What has to wait for the database is done later, so that matches go on meanwhile.
"""


class Desk:
    """The instructors who are connected.

    Args:
        admission: knows their tokens.
        on_instruct: carries their words out; without one none can be.
    """

    def __init__(self, admission: Admission, on_instruct: OnInstruct | None) -> None:
        self._admission = admission
        self._on_instruct = on_instruct or _nothing_to_instruct
        self._tokens: dict[Wire, str] = {}
        self._busy: set[Wire] = set()
        self._tasks = BackgroundTasks()

    def heard(
        self,
        connection: Wire,
        message: Instruct,
        tell: Callable[[Done | Refused], None],
    ) -> None:
        """Have done what an instructor wants; every message has the token, and a connection may bring many.

        Args:
            connection: where it came from.
            message: what is wanted.
            tell: is given the answer, now or once it is done; not if the connection has gone by then.

        Raises:
            Unwelcome: it is no instructor.
        """
        who = self._admission.instructs(message)
        self._tokens[connection] = message.token
        try:
            if connection in self._busy:
                raise UsageError("expected one word at a time, the last one goes on")
            done = self._on_instruct(message, who)
        except ArenaError as error:
            tell(Refused("instruct", str(error)))
            return
        if isinstance(done, Done):
            tell(done)
            return
        self._busy.add(connection)
        self._tasks.start(self._work(connection, done, tell))

    def left(self, connection: Wire) -> None:
        """A connection is gone, whoever's it was; what it wants done is done all the same."""
        self._tokens.pop(connection, None)

    def former(self) -> Iterator[Wire]:
        """The connections whose token is good no longer."""
        for connection, token in tuple(self._tokens.items()):
            if not self._admission.is_instructors(token):
                yield connection

    # --- within ---

    async def _work(
        self,
        connection: Wire,
        done: Awaitable[Done],
        tell: Callable[[Done | Refused], None],
    ) -> None:
        """Wait for what is done later, and tell what came of it."""
        answer: Done | Refused
        try:
            answer = await done
        except ArenaError as error:
            answer = Refused("instruct", str(error))
        except Exception:  # the log should have it, whoever is still there
            log.exception("an instructor's word failed")
            answer = Refused("instruct", "the arena failed at this; see its log")
        finally:
            self._busy.discard(connection)
        if connection in self._tokens:
            tell(answer)


def _nothing_to_instruct(message: Instruct, who: str) -> Done:
    raise UsageError("expected an arena with competitions to instruct, here are none")
