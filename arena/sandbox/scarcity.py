"""When the machine has no file descriptor, memory or process left: log a line, pause, try again.

Any program may get what is left first, so no bot has offended. What cannot be done now is done as
soon as it can be.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from protocol.errors import ArenaError

__all__ = ["NO_PROGRAM", "PAUSE_S", "Scarcity", "is_scarce", "scarcity_in"]

log = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_S = 5.0
"""Between two attempts to start a program."""

NO_PROGRAM = "no program can be started (%s): its match waits"
"""A line for a bot that this machine launches."""

_TELL_S = 60.0  # between two lines
_SCARCE = frozenset(
    (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN, errno.EADDRNOTAVAIL)
)
"""No file descriptor of ours or the machine's, no memory (two codes), no process, no port."""


def is_scarce(error: BaseException | None) -> bool:
    """Whether this machine lacked a resource; for an `ArenaError`, its cause decides."""
    return _scarce(error) is not None


def scarcity_in(text: str) -> OSError | None:
    """The error that a program names in its message, if it lacked a resource of the machine."""
    codes = (code for code in _SCARCE if os.strerror(code) in text)
    return next((OSError(code, text) for code in codes), None)


def _scarce(error: BaseException | None) -> OSError | None:
    cause = error.__cause__ if isinstance(error, ArenaError) else error
    return cause if isinstance(cause, OSError) and cause.errno in _SCARCE else None


class Scarcity:
    """Reports that something cannot be done because the machine lacks a resource.

    Args:
        what: what cannot be done, and what happens meanwhile; `%s` stands for the reason.
        clock: returns the time in seconds.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._tell_at = clock()

    def tell(self, error: BaseException) -> bool:
        """Log a line, at most one a minute; False if an error has another cause."""
        cause = _scarce(error)
        if cause is None:
            return False
        now = self._clock()
        if now >= self._tell_at:
            self._tell_at = now + _TELL_S
            why = (cause.strerror or str(cause)).lower()
            if cause.errno == errno.EMFILE:
                why += ", `ulimit -n` allows more"
            log.error(self._what, why)
        return True

    async def outlast(self, start: Callable[[], Awaitable[T]]) -> T:
        """Try something again and again until the machine has the resources for it."""
        while True:
            try:
                return await start()
            except (ArenaError, OSError) as error:
                if not self.tell(error):
                    raise
            await asyncio.sleep(PAUSE_S)
