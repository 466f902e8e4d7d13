"""What the arena's host asks of the page for browsers, which stands above it (`arena/web/web.py`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from arena.competitions.competition import Competition
from arena.competitions.ledger import Ledger
from arena.engine.match import Result
from arena.formats.schedule import Pairing
from arena.server.entrance import Page as EntrancePage

__all__ = ["Page", "People"]


class People(Protocol):
    """Those who play at the page, and the house bots that play with them."""

    @property
    def aside(self) -> Collection[str]:
        """Their names: no competition takes these."""

    def is_aside(self, name: str) -> bool:
        """Whether no competition takes who is called so."""

    def record(self, match: str) -> object | None:
        """A match that was played there lately."""

    def changed(self) -> None:
        """A bot or a person has come or gone."""

    def needed(self, competition: Competition) -> None:
        """A competition begins: who has to play in it does not play there."""


class Page(EntrancePage, Protocol):
    """What there is for browsers, as the host drives it."""

    @property
    def people(self) -> People:
        """Those who play at it."""

    def matched(
        self, ledger: Ledger, match: str, pairing: Pairing, result: Result
    ) -> None:
        """A match is over and written down."""

    async def close(self) -> None:
        """Stop what has been started for it."""
