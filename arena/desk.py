"""Where instructors are heard: their words get a token of their own, and are carried out by whoever runs the competitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from arena.admission import Admission
from arena.wire import Wire
from protocol.errors import ArenaError, UsageError
from protocol.messages import Done, Instruct, Refused

__all__ = ["Desk", "OnInstruct"]

OnInstruct = Callable[[Instruct, str], Done]
"""Does what an instructor wants, given the name on the token; raises `ArenaError` if that cannot be done."""


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

    def heard(self, connection: Wire, message: Instruct) -> Done | Refused:
        """Have done what an instructor wants; every message has the token, and a connection may bring many.

        Raises:
            Unwelcome: it is no instructor.
        """
        who = self._admission.instructs(message)
        self._tokens[connection] = message.token
        try:
            return self._on_instruct(message, who)
        except ArenaError as error:
            return Refused("instruct", str(error))

    def left(self, connection: Wire) -> None:
        """A connection is gone, whoever's it was."""
        self._tokens.pop(connection, None)

    def former(self) -> Iterator[Wire]:
        """The connections whose token is good no longer."""
        for connection, token in tuple(self._tokens.items()):
            if not self._admission.is_instructors(token):
                yield connection


def _nothing_to_instruct(message: Instruct, who: str) -> Done:
    raise UsageError("expected an arena with competitions to instruct, here are none")
