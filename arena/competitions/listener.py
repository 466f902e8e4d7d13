"""What a competition tells others, and what it asks of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from arena.competitions.ledger import Ledger
from arena.engine.match import Result
from arena.formats.eta import Left
from arena.formats.schedule import Pairing
from protocol.messages import Verdict

__all__ = ["Listener"]


class Listener:
    """Is told what happens in competitions, and asked who plays elsewhere; by default nobody is interested, and nobody does."""

    def freed(self, names: Sequence[str]) -> None:
        """A match is over, and these bots have a table free, for any competition."""

    def share(self, competition: str, name: str) -> float:
        """Which part of a bot's tables is that competition's while matches are still being spread; by default all."""
        return 1.0

    def beside(self, competition: str) -> Collection[Left]:
        """What is left of the other competitions with the same bots."""
        return ()

    def verdict_given(self, verdict: Verdict) -> None:
        """A bot is out, by what did not end a match."""

    def match_finished(self, ledger: Ledger, match: str, pairing: Pairing, result: Result) -> None:
        """A match is over and written down."""

    def told(self, text: str) -> None:
        """Something that the instructor should know."""

    def house_bots_elsewhere(self, fillers: Collection[str]) -> Collection[str]:
        """Besides these: the house bots that are there for one competition only, and for people."""
        return ()

    def is_non_competing(self, name: str) -> bool:
        """Whether who is called so does not compete, as it is a person."""
        return False
