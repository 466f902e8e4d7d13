"""Players who have to go: by an offence, as their token is good no longer, or as the arena itself has failed.

What that means for the matches that they play is ruled by the conduct; here it is said to the player, and its connection is closed.
"""

from __future__ import annotations

import asyncio

import msgspec

from arena.engine.verdict import FORGIVABLE, Finding
from arena.referee.bot_session import BotSession
from arena.referee.outbox import Outboxes
from arena.referee.referee import FAULT, Referee
from arena.referee.transport import Wire
from arena.server.login import Login
from arena.storage.tokens import Access
from protocol.messages import (
    CLOSE_CRASHED,
    CLOSE_DONE,
    CLOSE_REFUSED,
    KEEPALIVE_REASONS,
    Ending,
    Mechanism,
    Refused,
)

__all__ = ["Dismissals", "on_wire"]


class Dismissals:
    """Has players leave one gateway.

    Attributes:
        referee: the matches.
    """

    def __init__(self, referee: Referee, login: Login, outboxes: Outboxes) -> None:
        self.referee = referee
        self._login = login
        self._players = login.players
        self._outboxes = outboxes
        self._loop = asyncio.get_running_loop()

    def rule_out(self, player: BotSession, finding: Finding) -> None:
        """The player is gone for good; that is an offence in every match that it plays."""
        player.leaving = True
        self.referee.offence(player, finding)
        if self._players.get(player.name) is player:
            self._players.remove(player)
            event = player.event if finding.kind in FORGIVABLE else ""
            self._login.on_offence(
                player.name, msgspec.structs.replace(finding, enforced=player.enforced, event=event)
            )

    def send_away(self, player: BotSession, text: str) -> None:
        """The player has to go and has done nothing: its matches are void, and it may come back as somebody else."""
        player.leaving = True
        for chair in tuple(player.chairs.values()):
            self.referee.void(chair.table, f"{player.name}: {text}")
        if self._players.get(player.name) is player:
            self._players.remove(player)
        self._outboxes.flush_now(player)
        if player.connection is not None:
            player.connection.close(CLOSE_REFUSED, text)
        self._login.on_change()

    def has_crashed(self, connection: Wire, player: BotSession) -> bool:
        """Whether a close says that the bot has crashed (J7); of one that we have launched, its exit says more."""
        reason = connection.close_reason.casefold()
        return (
            connection.close_code == CLOSE_CRASHED
            and player.process is None
            and not any(text in reason for text in KEEPALIVE_REASONS)
            and not self.referee.lag.follows_stall(self._loop.time())
        )

    def dismiss(self, name: str, finding: Finding, code: int = CLOSE_DONE) -> None:
        """Rule that a player is out of all its matches, from evidence that did not come over the wire."""
        player = self._players.get(name)
        if player is not None:
            self.rule_out(player, finding)
            self._outboxes.flush_now(player)
            if player.connection is not None:
                player.connection.close(code, finding.text)

    def roster_changed(self, access: Access) -> None:
        """Whoever is here with a token that is good no longer has to go."""
        for player, text, is_out in self._login.admission.change(access):
            if player.connection is not None:
                player.send(Refused("token", text))
            finding = Finding(kind=Ending.REMOVED, text=text, mechanism=Mechanism.INSTRUCTOR)
            if is_out:
                self.dismiss(player.name, finding, CLOSE_REFUSED)
            else:
                self.send_away(player, text)
        for connection in self._login.admin_requests.former():
            connection.close(CLOSE_REFUSED, "the token was replaced")

    def gone(self, player: BotSession, finding: Finding) -> None:
        """A player has not come back in time."""
        connection = player.connection
        self.rule_out(player, finding)
        if connection is not None:  # which nothing has come over for so long
            connection.cut()
        self._login.on_change()

    def failed(self, connection: Wire) -> None:
        """An error of the arena's own, met while it served this connection: never charged to a bot (J5)."""
        player = self._login.session_by_connection.get(connection)
        if player is not None:
            for chair in list(player.chairs.values()):
                self.referee.void(chair.table, FAULT)
            self._outboxes.flush_now(player)
        connection.close(CLOSE_CRASHED, "the arena failed; come back")


def on_wire(kind: Ending, text: str) -> Finding:
    """What was found by what came, or did not come, over a connection."""
    return Finding(kind=kind, text=text, mechanism=Mechanism.WIRE)
