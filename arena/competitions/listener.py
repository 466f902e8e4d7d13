"""The interface between a competition and the rest of the arena."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from arena.formats.eta import Left
from arena.formats.schedule import Pairing
from arena.games.match import Result
from protocol.messages import Verdict

if TYPE_CHECKING:  # it loads a database client, which commands that only show results lack
    from arena.competitions.ledger import Ledger

__all__ = ["Listener"]


class Listener:
    """Events and questions of competitions for the rest of the arena; the defaults do nothing."""

    def freed(self, names: Sequence[str]) -> None:
        """Called when a match has ended, so that these bots have a table free."""

    def share(self, competition: str, name: str) -> float:
        """Return the part of a bot's tables that a competition may use now, from 0 to 1."""
        return 1.0

    def beside(self, competition: str) -> Collection[Left]:
        """Return what is left to play of each other competition that shares a bot with this one.

        The time that is left is estimated from it.
        """
        return ()

    def verdict_given(self, verdict: Verdict) -> None:
        """Called when a bot is out."""

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """Called when a match has ended and is recorded."""

    def told(self, text: str) -> None:
        """Called with a line for the instructor."""

    def house_bots_elsewhere(self, own: Collection[str]) -> Collection[str]:
        """Return house bots here for people or one competition, except the given `own` bots."""
        return ()

    async def launch_house_bot(self, game: str, name: str) -> None:
        """Start the usual house bot of a game; raises `ArenaError` if it cannot be started."""

    def is_non_competing(self, name: str) -> bool:
        """Return whether a person, or a house bot that plays with people, has this name."""
        return False
