"""A stage of a competition, as its competition drives it.

A competition has one at any time, between two of them one in which nothing is to be played. A stage
is driven by events elsewhere: a bot comes, a match ends, a deadline is over. So no error may be
raised there: it ends the stage instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from arena.competitions.arbiter import Arbiter
from arena.formats.schedule import Outcomes, Pairing

__all__ = ["CompetitionStage", "CompetitionStopped"]

_ARENA_STOPPED = "the arena was stopped, and this match does not count"


class CompetitionStopped(Exception):
    """The instructor has ended the competition."""


class CompetitionStage:
    """The pairings of one stage; of this base class there are none.

    Attributes:
        progress: how far the first matches are, from 0 to 1.
    """

    progress = 1.0

    def __init__(self, arbiter: Arbiter) -> None:
        self._arbiter = arbiter
        self._bots = arbiter.bots
        self._opened: dict[int, Pairing] = {}  # those whose matches are played or wait for seats
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[None] = self._loop.create_future()

    @property
    def playing(self) -> int:
        return len(self._opened)

    @property
    def settled(self) -> int:
        """How many pairings have been played or never will be."""
        return 0

    @property
    def waiting(self) -> int:
        """How many pairings wait for a table now; always 0 on a ladder."""
        return 0

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Bots that have a deadline as they are away, or whose match waits for the instructor."""
        return ()

    @property
    def is_stuck(self) -> bool:
        """Whether a match waits for the instructor, as it was void too often (J5)."""
        return False

    def queue(self, most: int) -> tuple[Pairing, ...]:
        """At most `most` of the pairings that wait for a table, roughly in order."""
        return ()

    def waiting_for(self, name: str) -> tuple[Pairing, ...]:
        """The pairings of a bot that wait, for tables or for the instructor."""
        return ()

    def wants(self, name: str) -> bool:
        """Whether a match of that bot waits for a table; never on a ladder."""
        return False

    async def outcomes(self) -> Outcomes:
        """Play all pairings and return their outcomes in order; those of a ladder are not kept.

        Raises `CompetitionStopped` if the instructor has ended it, and `ArenaError` if a match was
        void three times (J5) and there is no instructor to ask, or results cannot be stored.
        """
        self.look_anew()
        why = _ARENA_STOPPED
        try:
            await self._until_over()
            why = "its ladder was closed"
        except Exception:  # a cancellation is none
            why = "its competition was stopped"
            raise
        finally:
            self._done.cancel()  # nothing is opened any more
            self.halted()
            self._arbiter.void_all(why)
        return ()

    def stop(self) -> None:
        """Make `outcomes` raise `CompetitionStopped`."""
        self._fail(CompetitionStopped())

    def close(self) -> None:
        """End a ladder; other stages end by themselves."""

    def halted(self) -> None:
        """Cancel all deadlines, as no match is opened; matches that are being played go on."""

    def reopen(self, first: int = 1, *, retries: bool = False) -> None:
        """Go on after a pause, a removal, or after results were taken back.

        Pairings that have no result any more are played again, and those that have one again are
        not, if their number is at least `first`: others have followed from those before. With
        `retries` also those that were void too often are played again.
        """

    def offended(self, name: str) -> None:
        """Have a bot that has offended between matches forfeit one that waits for it."""

    def seat(self, names: Sequence[str]) -> None:
        """Open the matches that can be opened for these bots."""

    def look_anew(self) -> None:
        """Open what can be opened: hosts have come or gone, or other versions are in play."""

    async def _until_over(self) -> None:
        await self._done

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Have an error that is raised within end the stage."""
        try:
            yield
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)
            self._done.exception()  # nobody may wait for it
