"""Dismissals: a player leaves for an offence, a revoked token, or a failure of the arena.

The referee rules on their matches; here the player is told, and its connection is closed.
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
    FAILED,
    KEEPALIVE_REASONS,
    Ending,
    Mechanism,
    Refused,
)

__all__ = ["Dismissals", "crash_reason", "on_wire"]


class Dismissals:
    """Removes players from one gateway."""

    def __init__(self, referee: Referee, login: Login, outboxes: Outboxes) -> None:
        self.referee = referee
        self._login = login
        self._players = login.players
        self._outboxes = outboxes
        self._loop = asyncio.get_running_loop()

    def rule_out(self, player: BotSession, finding: Finding) -> None:
        """Remove a player for good; it commits an offence in every match that it plays."""
        player.leaving = True
        self.referee.offence(player, finding)
        if self._players.get(player.name) is player:
            self._players.remove(player)
            event = player.event if finding.kind in FORGIVABLE else ""
            self._login.on_offence(
                player.name, msgspec.structs.replace(finding, enforced=player.enforced, event=event)
            )

    def send_away(self, player: BotSession, text: str) -> None:
        """Remove a player that is not to blame: its matches are void; it may log in again."""
        player.leaving = True
        for chair in tuple(player.chairs.values()):
            self.referee.void(chair.table, f"{player.public_name}: {text}")
        if self._players.get(player.name) is player:
            self._players.remove(player)
        self._outboxes.flush_now(player)
        if player.connection is not None:
            player.connection.close(CLOSE_REFUSED, text)
        self._login.on_change()

    def has_crashed(self, connection: Wire, player: BotSession) -> bool:
        """Whether a close tells of a crash (J7); a launched bot's exit tells more."""
        if connection.close_code != CLOSE_CRASHED or player.process is not None:
            return False
        reason = connection.close_reason.casefold()
        if reason.startswith(FAILED):
            return True
        is_of_the_link = any(text in reason for text in KEEPALIVE_REASONS)
        return not (is_of_the_link or self.referee.lag.follows_stall(self._loop.time()))

    def dismiss(self, name: str, finding: Finding, code: int = CLOSE_DONE) -> None:
        """Rule a player out by evidence from elsewhere, and close its connection."""
        player = self._players.get(name)
        if player is not None:
            self.rule_out(player, finding)
            self._outboxes.flush_now(player)
            if player.connection is not None:
                player.connection.close(code, finding.text)

    def roster_changed(self, access: Access) -> None:
        """Remove those whose token is no longer valid."""
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
        """Rule out a player that has not come back in time."""
        connection = player.connection
        self.rule_out(player, finding)
        if connection is not None:  # open, but silent for too long
            connection.cut()
        self._login.on_change()

    def failed(self, connection: Wire) -> None:
        """Void the matches of a connection that the arena failed to serve (J5)."""
        player = self._login.session_by_connection.get(connection)
        if player is not None:
            for chair in list(player.chairs.values()):
                self.referee.void(chair.table, FAULT)
            self._outboxes.flush_now(player)
        connection.close(CLOSE_CRASHED, "the arena failed; come back")


def crash_reason(reason: str) -> str:
    """What a bot says of its crash, without the prefix `failed:`."""
    is_marked = reason.casefold().startswith(FAILED)
    return reason[len(FAILED) :].lstrip() if is_marked else reason


def on_wire(kind: Ending, text: str) -> Finding:
    """A finding from what came, or did not come, over a connection."""
    return Finding(kind=kind, text=text, mechanism=Mechanism.WIRE)
