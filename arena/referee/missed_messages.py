"""What a bot may have missed while its connection was lost, and is told again when it is back (`resume`).

It is the transcript of the matches that go on, if the bot has forgotten it, and then what was sent last. A bot ignores what it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from protocol.messages import Answer, BotMessage, Match, Over, Past, Ready

if TYPE_CHECKING:
    from arena.referee.bot_session import BotSession

__all__ = ["MissedMessages"]

_PAST_BYTES = 32 * 1024  # of a transcript at a time: some milliseconds of rules
_STEP_BYTES = 128  # what a step that is not told counts as


class MissedMessages:
    """What one bot may have missed.

    Attributes:
        transcripts: what is still to be told of matches that the bot has forgotten; None if it knows them.
        is_repeated: whether all is in the outbox that the bot has missed, and its clocks go on when that is written.
    """

    __slots__ = ("_allowed", "_overs", "_player", "is_repeated", "transcripts")

    def __init__(self, player: BotSession) -> None:
        self.transcripts: Iterator[Match | Past | None] | None = None
        self.is_repeated = False
        self._player = player
        self._overs: deque[Over] = deque(maxlen=player.tables)
        self._allowed: set[tuple[type[BotMessage], str]] = set()

    def add(self, over: Over) -> None:
        """A match is over: the bot may never hear of it."""
        self._overs.append(over)
        if self._player.leaving:
            self.transcripts = None  # there is no later time for its verdict

    def disconnected(self) -> None:
        """The connection is gone: whatever was told again has to be told once more."""
        self.transcripts = None
        self.is_repeated = False

    def resend_unseen(self, first: int | None = None) -> None:
        """After `resumed` and `welcome`: send again what the bot may not have got.

        Args:
            first: how many questions of every match it remembers; the others are told once more. None: all.
        """
        player = self._player
        self._allow_repeats()
        player.mark_dirty(player)  # also if there is nothing to be repeated
        if first is not None:
            self.transcripts = self._past(first)
            return
        self.is_repeated = True
        overs = tuple(self._overs)
        self._overs.clear()
        for over in overs:
            player.send(over)
        for chair in player.chairs.values():
            chair.resend()

    def may_repeat(self, message: BotMessage) -> bool:
        """Whether a message that comes to nothing is one that a bot says again after `resume`, as it should: each is so once."""
        if not isinstance(message, Answer | Ready):
            return False
        key = type(message), message.match
        if key not in self._allowed:
            return False
        self._allowed.remove(key)
        return True

    def tell(self) -> None:
        """Send the next piece of the transcripts, unless the bot is behind with reading; after them, the rest.

        What happens meanwhile is not sent: as without a connection, it is there to be repeated at the end.
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
                player.put(message)
                size += len(player.outbox[-1])
        if not player.connection.is_behind:
            player.mark_dirty(player)  # after whatever else the loop has to do

    # --- within ---

    def _allow_repeats(self) -> None:
        """One `ready` per match that is told again, and one answer for each question, however often it comes back meanwhile."""
        self._allowed.clear()
        for chair in self._player.chairs.values():
            self._allowed.add((Ready, chair.id))
            if chair.repeated < chair.asked:
                chair.repeated = chair.asked
                self._allowed.add((Answer, chair.id))

    def _past(self, first: int) -> Iterator[Match | Past | None]:
        """The matches that go on, and what they asked after the first so many questions."""
        for chair in tuple(self._player.chairs.values()):
            if chair.invitation is not None and not chair.table.is_over:
                yield chair.invitation
                yield from chair.questions_after(first)
