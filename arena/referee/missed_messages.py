"""What a bot may have missed while its connection was lost, and is told again after `resume`.

These are the transcripts of its matches, if it asks for them, and then the messages that were sent
last. A bot ignores those that it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import UNSET

from protocol.messages import Answer, BotMessage, Match, Over, Past, Ready

if TYPE_CHECKING:
    from arena.referee.bot_session import BotSession

__all__ = ["MissedMessages"]

_PAST_BYTES = 32 * 1024  # of a transcript at once: some milliseconds of rules
_STANDINGS = 8  # more competitions do not end while a bot is away
_STEP_BYTES = 128  # a step that is not sent counts as so many


class MissedMessages:
    """What one bot may have missed."""

    __slots__ = ("_allowed", "_overs", "_player", "_standings", "is_repeated", "transcripts")

    def __init__(self, player: BotSession) -> None:
        # What is still to be told of matches that the bot has forgotten.
        self.transcripts: Iterator[Match | Past | None] | None = None
        # All that it missed is in the outbox; its clocks go on when that is written.
        self.is_repeated = False
        self._player = player
        self._overs: deque[Over] = deque(maxlen=player.tables)
        self._standings: deque[Over] = deque(maxlen=_STANDINGS)  # ends of competitions
        self._allowed: set[tuple[type[BotMessage], str]] = set()

    def add(self, over: Over) -> None:
        """Note the end of a match, of which the bot may not hear."""
        (self._overs if over.standing is UNSET else self._standings).append(over)
        if self._player.leaving:
            self.transcripts = None  # else it would get its verdict after them, too late

    def disconnected(self) -> None:
        self.transcripts = None
        self.is_repeated = False

    def resend_unseen(self, first: int | None = None) -> None:
        """After `resumed` and `welcome`: send again what the bot may not have got.

        `first` is how many questions of every match it remembers, or None if it remembers all.
        """
        player = self._player
        self._allow_repeats()
        player.mark_dirty(player)  # also if there is nothing to repeat: its clocks go on then
        if first is not None:
            self.transcripts = self._past(first)
            return
        self.is_repeated = True
        overs = (*self._overs, *self._standings)
        self._overs.clear()
        self._standings.clear()
        for over in overs:
            player.send(over)
        for chair in player.chairs.values():
            chair.resend()

    def may_repeat(self, message: BotMessage) -> bool:
        """Whether a message without effect is repeated because of `resume`; true once for each."""
        if not isinstance(message, Answer | Ready):
            return False
        key = type(message), message.match
        if key not in self._allowed:
            return False
        self._allowed.remove(key)
        return True

    def tell(self) -> None:
        """Send the next piece of the transcripts unless the bot is behind with reading.

        After the last piece comes what else it missed, and what has happened meanwhile.
        """
        player = self._player
        assert self.transcripts is not None, "only called while there is a transcript"
        assert player.connection is not None, "it has come back for it"
        size = 0
        while not player.connection.is_behind and size < _PAST_BYTES:
            try:
                message = next(self.transcripts)
            except StopIteration:
                self.transcripts = None
                self.resend_unseen()
                return
            if message is None:
                size += _STEP_BYTES
            else:
                size += player.put(message)
        if not player.connection.is_behind:
            player.mark_dirty(player)  # goes on in the next turn of the loop

    # --- within ---

    def _allow_repeats(self) -> None:
        """Allow one `ready` per match and one answer per question, however often it comes back."""
        self._allowed.clear()
        for chair in self._player.chairs.values():
            self._allowed.add((Ready, chair.id))
            if chair.repeated < chair.asked:
                chair.repeated = chair.asked
                self._allowed.add((Answer, chair.id))

    def _past(self, first: int) -> Iterator[Match | Past | None]:
        """The open matches, and their questions after the first so many."""
        for chair in tuple(self._player.chairs.values()):
            if chair.invitation is not None and not chair.table.is_over:
                yield chair.invitation
                yield from chair.questions_after(first)
