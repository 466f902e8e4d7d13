"""Carries out the requests of instructors, at once or in the background, and answers them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from arena.referee.transport import Wire
from arena.server.admission import Admission
from arena.server.background import BackgroundTasks
from protocol.errors import ArenaError, UsageError
from protocol.messages import Done, Instruct, Refused

__all__ = ["AdminRequests", "OnInstruct"]

log = logging.getLogger(__name__)

OnInstruct: TypeAlias = Callable[[Instruct, str], Done | Awaitable[Done]]
"""Carries out an instructor's request, given the name on the token; may raise `ArenaError`.

Requests that need the database are awaited, so that matches go on meanwhile.
"""


class AdminRequests:
    """The requests of the connected instructors; without `on_instruct` all are refused."""

    def __init__(self, admission: Admission, on_instruct: OnInstruct | None) -> None:
        self._admission = admission
        self._on_instruct = on_instruct or _refuse
        self._tokens: dict[Wire, str] = {}
        self._busy: set[Wire] = set()
        self._tasks = BackgroundTasks()

    def received(
        self, connection: Wire, message: Instruct, tell: Callable[[Done | Refused], None]
    ) -> None:
        """Carry out a request; a connection may send many, each with an instructor's token.

        `tell` is called with the answer, now or when the request is done, unless the connection is
        gone by then. Raises `Unwelcome` if the token is not an instructor's.
        """
        who = self._admission.instructs(message)
        self._tokens[connection] = message.token
        try:
            if connection in self._busy:
                raise UsageError("expected one instruction at a time; the last is still running")
            done = self._on_instruct(message, who)
        except ArenaError as error:
            tell(Refused("instruct", str(error)))
            return
        if isinstance(done, Done):
            tell(done)
            return
        self._busy.add(connection)
        self._tasks.start(self._work(connection, done, tell))

    def disconnected(self, connection: Wire) -> None:
        """Forget a connection that is gone; its request is still carried out."""
        self._tokens.pop(connection, None)

    def former(self) -> Iterator[Wire]:
        """Yield the connections whose token is no longer valid."""
        for connection, token in tuple(self._tokens.items()):
            if not self._admission.is_instructors(token):
                yield connection

    async def _work(
        self, connection: Wire, done: Awaitable[Done], tell: Callable[[Done | Refused], None]
    ) -> None:
        answer: Done | Refused
        try:
            answer = await done
        except ArenaError as error:
            answer = Refused("instruct", str(error))
        except Exception:  # logged, as the instructor may be gone
            log.exception("an instruction failed")
            answer = Refused("instruct", "the arena failed at this; see its log")
        finally:
            self._busy.discard(connection)
        if connection in self._tokens:
            tell(answer)


def _refuse(message: Instruct, who: str) -> Done:
    raise UsageError("expected an arena with competitions to instruct, here are none")
