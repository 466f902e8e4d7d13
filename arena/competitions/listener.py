"""The interface between a competition and the rest of the arena."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from arena.formats.eta import Left
from arena.formats.schedule import Pairing
from arena.games.match import Result
from protocol.messages import Verdict

if TYPE_CHECKING:  # which loads a database's client, and a command that only shows has none
    from arena.competitions.ledger import Ledger

__all__ = ["Listener"]


class Listener:
    """What competitions tell and ask the rest of the arena; these defaults do nothing."""

    def freed(self, names: Sequence[str]) -> None:
        """Told when a match has ended, so that these bots have a table free."""

    def share(self, competition: str, name: str) -> float:
        """The part of a bot's tables that a competition may use now, from 0 to 1."""
        return 1.0

    def beside(self, competition: str) -> Collection[Left]:
        """What is left of the other competitions with the same bots."""
        return ()

    def verdict_given(self, verdict: Verdict) -> None:
        """Told when a bot is out."""

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """Told when a match has ended and is recorded."""

    def told(self, text: str) -> None:
        """Told what the instructor should know."""

    def house_bots_elsewhere(self, own: Collection[str]) -> Collection[str]:
        """House bots besides a competition's `own` that are here for one competition or people."""
        return ()

    async def launch_house_bot(self, game: str, name: str) -> None:
        """Start the usual house bot of a game, or raise `ArenaError` if it cannot be started."""

    def is_non_competing(self, name: str) -> bool:
        """Whether this is the name of a person, or of a house bot that plays with people."""
        return False
