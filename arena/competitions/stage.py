"""A stage of a competition, as its competition drives it.

A competition always has one stage; between two of them, it has one with nothing to play. Events
drive a stage: a bot comes, a match ends, a deadline is over. An error must not be raised to their
source, so it ends the stage instead.
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
    """The pairings of one stage; this base class has none.

    Attributes:
        progress: how far the first matches are, from 0 to 1.
    """

    progress = 1.0

    def __init__(self, arbiter: Arbiter) -> None:
        self._arbiter = arbiter
        self._bots = arbiter.bots
        self._opened: dict[int, Pairing] = {}  # their matches are played or wait for seats
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
        """Absent bots with a deadline, and bots whose match waits for the instructor."""
        return ()

    @property
    def is_stuck(self) -> bool:
        """Whether a match waits for the instructor, as it was void too often (J5)."""
        return False

    def queue(self, most: int) -> tuple[Pairing, ...]:
        """Return at most `most` of the pairings that wait for a table, roughly in order."""
        return ()

    def waiting_for(self, name: str) -> tuple[Pairing, ...]:
        """Return the pairings of a bot that wait, for tables or for the instructor."""
        return ()

    def wants(self, name: str) -> bool:
        """Return whether a match of that bot waits for a table; never on a ladder."""
        return False

    async def outcomes(self) -> Outcomes:
        """Play all pairings and return their outcomes in order; a ladder keeps none.

        Raises `CompetitionStopped` if the instructor has ended it. Raises `ArenaError` if a match
        was void three times (J5) and there is no instructor to ask, or if results cannot be stored.
        """
        self.look_anew()
        why = _ARENA_STOPPED
        try:
            await self._until_over()
            why = "its ladder was closed"
        except Exception:  # not a cancellation
            why = "its competition was stopped"
            raise
        finally:
            self._done.cancel()  # opens no more matches
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
        """Go on after a pause, after a removal, or after results were taken back.

        Pairings that have lost their result are played again; those that have one again are not.
        Pairings before the number `first` stay, as later ones have followed from them.
        With `retries`, pairings that were void too often are played again, too.
        """

    def offended(self, name: str) -> None:
        """Let a bot that has offended between matches forfeit a match that waits for it."""

    def seat(self, names: Sequence[str]) -> None:
        """Open the matches that can be opened for these bots."""

    def look_anew(self) -> None:
        """Open what can be opened, as hosts have come or gone, or other versions are in play."""

    async def _until_over(self) -> None:
        await self._done

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """End the stage with an error that is raised inside."""
        try:
            yield
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)
            self._done.exception()  # retrieved, as nobody may be waiting for it
