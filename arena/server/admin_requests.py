"""Where instructors are heard: their words get a token of their own, and are carried out by whoever runs the competitions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

from arena.referee.transport import Wire
from arena.server.admission import Admission
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
        self._works: dict[asyncio.Task[Done], Wire] = {}

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
            if connection in self._works.values():
                raise UsageError("expected one word at a time, the last one goes on")
            done = self._on_instruct(message, who)
        except ArenaError as error:
            tell(Refused("instruct", str(error)))
            return
        if isinstance(done, Done):
            tell(done)
            return
        task = asyncio.ensure_future(_awaited(done))
        self._works[task] = connection
        task.add_done_callback(partial(self._worked, tell))

    def left(self, connection: Wire) -> None:
        """A connection is gone, whoever's it was; what it wants done is done all the same."""
        self._tokens.pop(connection, None)

    def former(self) -> Iterator[Wire]:
        """The connections whose token is good no longer."""
        for connection, token in tuple(self._tokens.items()):
            if not self._admission.is_instructors(token):
                yield connection

    # --- within ---

    def _worked(
        self, tell: Callable[[Done | Refused], None], task: asyncio.Task[Done]
    ) -> None:
        """What had to wait is done, or cannot be."""
        connection = self._works.pop(task)
        if task.cancelled():
            return
        answer = _answer(task)  # the log should have it, whoever is still there
        if connection in self._tokens:
            tell(answer)


def _answer(task: asyncio.Task[Done]) -> Done | Refused:
    """What came of it."""
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, ArenaError):
        return Refused("instruct", str(error))
    log.error("an instructor's word failed", exc_info=error)
    return Refused("instruct", "the arena failed at this; see its log")


async def _awaited(done: Awaitable[Done]) -> Done:
    return await done


def _nothing_to_instruct(message: Instruct, who: str) -> Done:
    raise UsageError("expected an arena with competitions to instruct, here are none")
